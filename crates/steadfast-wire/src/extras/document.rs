//! Extras of the commands that fetch and change documents.

use super::layout::layout;

layout! {
    /// The format of the value. The server stores it for the application.
    pub struct DocumentFlags called "the document's flags" {
        /// The flags. Couchbase clients put the common format into the top byte: `0x02000000` is
        /// JSON.
        pub flags: u32,
    }
}

layout! {
    /// The extras of Set, Add and Replace.
    pub struct StoreExtras called "the extras of a store" {
        /// See [`DocumentFlags`].
        pub flags: u32,
        /// The expiry: up to thirty days in seconds from now, more in seconds since 1970. Zero is
        /// never.
        pub expiry: u32,
    }
}

layout! {
    /// The extras of Touch and GetAndTouch.
    pub struct ExpiryExtras called "the expiry" {
        /// As [`StoreExtras::expiry`].
        pub expiry: u32,
    }
}

layout! {
    /// The extras of GetLocked.
    pub struct LockTime called "the lock time" {
        /// The time of the lock. Zero, or more than the server's maximum, means its default.
        pub seconds: u32,
    }
}

layout! {
    /// The extras of Increment and Decrement.
    pub struct CounterExtras called "the extras of a counter" {
        /// The number to add or subtract.
        pub delta: u64,
        /// The value of a counter that this creates.
        pub initial: u64,
        /// The expiry of a counter that this creates, or [`CounterExtras::DO_NOT_CREATE`].
        pub expiry: u32,
    }
}

impl CounterExtras {
    /// The expiry that means: fail if the counter is missing.
    pub const DO_NOT_CREATE: u32 = u32::MAX;
}

layout! {
    /// The *value* of the response to Increment and Decrement: the new value of the counter.
    pub struct CounterValue called "the value of a counter" {
        /// The value.
        pub value: u64,
    }
}

layout! {
    /// The position of a mutation in the history of its vbucket.
    pub struct MutationTokenExtras called "the mutation token" {
        /// The vbucket's history; it changes when a failover may have lost mutations.
        pub vbucket_uuid: u64,
        /// The mutation's sequence number in it.
        pub seqno: u64,
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::{DecodeError, Encode};

    #[test]
    fn fields_are_adjacent_and_big_endian() {
        let counter = CounterExtras {
            delta: 1,
            initial: 2,
            expiry: CounterExtras::DO_NOT_CREATE,
        };
        let mut out = BytesMut::new();
        counter.append_to(&mut out).unwrap();
        assert_eq!(
            &out[..],
            b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\xff\xff\xff\xff"
        );
        assert_eq!(CounterExtras::decode(&out), Ok(counter));
    }

    #[test]
    fn any_other_length_is_an_error_that_names_the_section() {
        for len in (0..30).filter(|len| *len != StoreExtras::LEN) {
            let error = StoreExtras::decode(&vec![0; len]).unwrap_err();
            assert!(matches!(error, DecodeError::Length { .. }));
            assert_eq!(
                error.to_string(),
                format!("the extras of a store has {len} bytes instead of 8")
            );
        }
    }

    #[test]
    fn the_lengths_are_those_of_the_protocol() {
        let lengths = [
            DocumentFlags::LEN,
            StoreExtras::LEN,
            ExpiryExtras::LEN,
            LockTime::LEN,
            CounterExtras::LEN,
            CounterValue::LEN,
            MutationTokenExtras::LEN,
        ];
        assert_eq!(lengths, [4, 8, 4, 4, 20, 8, 16]);
    }
}
