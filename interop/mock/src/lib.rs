//! The client against CouchbaseMock.
