//! Tests of the network: each fault does what it says.
