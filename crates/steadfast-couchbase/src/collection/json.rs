//! Encodes documents as JSON.
//!
//! `serde_json` looks at the bytes of a string one by one for characters to escape, and
//! most strings have none. That took a quarter of a write. Here a string is checked many
//! bytes at a time, and if it needs no escapes it is copied whole. Everything else is left
//! to `serde_json`, and so is the format.
//!
//! A serializer of `serde_json` does not lend its output. But it passes bytes to its
//! [`Formatter`], which writes them to the output. So [`Strings`] hands a string without
//! escapes over as bytes, and [`Quoted`] writes bytes as a string.

use std::fmt::Display;
use std::io;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::ser::Formatter;

/// The capacity to begin with, as `serde_json` has it.
const CAPACITY: usize = 128;

/// The prefix of structs with a meaning for `serde_json`: numbers of any precision, and
/// JSON that is encoded already. It reads their fields itself.
const PRIVATE: &str = "$serde_json::private::";

/// Encodes a value as JSON, byte for byte as `serde_json` does.
pub(super) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(CAPACITY);
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Quoted);
    value.serialize(Strings(&mut serializer))?;
    Ok(out)
}

/// The compact format, with bytes as a string.
struct Quoted;

impl Formatter for Quoted {
    #[inline]
    fn write_byte_array<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        value: &[u8],
    ) -> io::Result<()> {
        writer.write_all(b"\"")?;
        writer.write_all(value)?;
        writer.write_all(b"\"")
    }
}

/// Returns whether no character of a string has to be escaped. Looks at all of them, so
/// that the compiler can do it in vectors.
#[inline]
fn is_plain(text: &str) -> bool {
    let escaped = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    !text
        .as_bytes()
        .iter()
        .map(escaped)
        .fold(false, |any, it| any | it)
}

/// A serializer that hands over strings without escapes as bytes.
struct Strings<S>(S);

/// A value that is serialized by [`Strings`].
struct WithStrings<'v, T: ?Sized>(&'v T);

/// The parts of a value. Those of a private struct are left as they are.
struct Parts<C> {
    inner: C,
    is_private: bool,
}

impl<C> Parts<C> {
    fn new(inner: C) -> Self {
        let is_private = false;
        Self { inner, is_private }
    }
}

impl<T: Serialize + ?Sized> Serialize for WithStrings<'_, T> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Strings(serializer))
    }
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(#[inline]
        fn $method(self, $($argument: $type),*) -> Result<S::Ok, S::Error> {
            self.0.$method($($argument),*)
        })*
    };
}

impl<S: Serializer> Serializer for Strings<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Parts<S::SerializeSeq>;
    type SerializeTuple = Parts<S::SerializeTuple>;
    type SerializeTupleStruct = Parts<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Parts<S::SerializeTupleVariant>;
    type SerializeMap = Parts<S::SerializeMap>;
    type SerializeStruct = Parts<S::SerializeStruct>;
    type SerializeStructVariant = Parts<S::SerializeStructVariant>;

    #[inline]
    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        if is_plain(text) {
            self.0.serialize_bytes(text.as_bytes())
        } else {
            self.0.serialize_str(text)
        }
    }

    /// Bytes are an array of numbers.
    fn serialize_bytes(self, bytes: &[u8]) -> Result<S::Ok, S::Error> {
        self.0.collect_seq(bytes)
    }

    forward! {
        serialize_bool(value: bool);
        serialize_i8(value: i8);
        serialize_i16(value: i16);
        serialize_i32(value: i32);
        serialize_i64(value: i64);
        serialize_i128(value: i128);
        serialize_u8(value: u8);
        serialize_u16(value: u16);
        serialize_u32(value: u32);
        serialize_u64(value: u64);
        serialize_u128(value: u128);
        serialize_f32(value: f32);
        serialize_f64(value: f64);
        serialize_char(value: char);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&WithStrings(value))
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &WithStrings(value))
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = &WithStrings(value);
        (self.0).serialize_newtype_variant(name, index, variant, value)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(len).map(Parts::new)
    }

    #[inline]
    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(len).map(Parts::new)
    }

    #[inline]
    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, len).map(Parts::new)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let parts = (self.0).serialize_tuple_variant(name, index, variant, len);
        parts.map(Parts::new)
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(len).map(Parts::new)
    }

    #[inline]
    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        let is_private = name.starts_with(PRIVATE);
        let inner = self.0.serialize_struct(name, len)?;
        Ok(Parts { inner, is_private })
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let parts = (self.0).serialize_struct_variant(name, index, variant, len);
        parts.map(Parts::new)
    }
}

/// Implements a trait whose parts have no names.
macro_rules! unnamed_parts {
    ($($Trait:ident::$method:ident;)*) => {$(
        impl<C: $Trait> $Trait for Parts<C> {
            type Ok = C::Ok;
            type Error = C::Error;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                self.inner.$method(&WithStrings(value))
            }

            #[inline]
            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )*};
}

unnamed_parts! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

/// Implements a trait whose parts have names.
macro_rules! named_parts {
    ($($Trait:ident;)*) => {$(
        impl<C: $Trait> $Trait for Parts<C> {
            type Ok = C::Ok;
            type Error = C::Error;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), C::Error> {
                if self.is_private {
                    return self.inner.serialize_field(name, value);
                }
                self.inner.serialize_field(name, &WithStrings(value))
            }

            #[inline]
            fn skip_field(&mut self, name: &'static str) -> Result<(), C::Error> {
                self.inner.skip_field(name)
            }

            #[inline]
            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )*};
}

named_parts! {
    SerializeStruct;
    SerializeStructVariant;
}

impl<C: SerializeMap> SerializeMap for Parts<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    /// A key has rules of its own: a number becomes a string, and bytes are invalid.
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.inner.serialize_key(key)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        self.inner.serialize_value(&WithStrings(value))
    }

    #[inline]
    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Serialize;

    use super::*;

    #[track_caller]
    fn assert_same(value: &(impl Serialize + ?Sized)) {
        let text = |json: Result<Vec<u8>, serde_json::Error>| {
            json.map(|json| String::from_utf8(json).unwrap())
                .map_err(|error| error.to_string())
        };
        assert_eq!(text(encode(value)), text(serde_json::to_vec(value)));
    }

    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct Bytes(Vec<u8>);

    impl Serialize for Bytes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }

    struct Shown(&'static str);

    impl Serialize for Shown {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self.0)
        }
    }

    struct Failing;

    impl Serialize for Failing {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("as it says"))
        }
    }

    #[derive(Serialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Named { name: &'static str },
    }

    #[derive(Serialize)]
    #[serde(tag = "kind", content = "content")]
    enum Adjacent {
        Text(&'static str),
    }

    #[derive(Serialize)]
    #[serde(untagged)]
    enum Untagged {
        Text(&'static str),
    }

    #[derive(Serialize)]
    struct Flat {
        #[serde(flatten)]
        rest: BTreeMap<&'static str, serde_json::Value>,
        raw: Box<serde_json::value::RawValue>,
    }

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(&'static str),
        Tuple(&'static str, u8),
        Struct { name: &'static str },
    }

    #[derive(Serialize)]
    struct Wide {
        plain: &'static str,
        escaped: &'static str,
        unit: (),
        none: Option<&'static str>,
        some: Option<&'static str>,
        list: Vec<String>,
        tuple: (i8, u16, i32, u64, f32, f64, bool, char),
        large: (i128, u128),
        map: BTreeMap<u32, &'static str>,
        shapes: Vec<Shape>,
        bytes: Bytes,
        shown: [Shown; 2],
    }

    #[test]
    fn every_kind_of_value_is_encoded_as_by_serde_json() {
        assert_same(&Wide {
            plain: "plain",
            escaped: "a \"quoted\" line\nand a tab\t",
            unit: (),
            none: None,
            some: Some("back\\slash"),
            list: vec![String::new(), "ünï".to_owned(), "\u{7f}\u{1f}".to_owned()],
            tuple: (-1, 2, -3, 4, 0.5, f64::NAN, true, '"'),
            large: (i128::MIN, u128::MAX),
            map: BTreeMap::from([(7, "seven"), (8, "ei\\ght")]),
            shapes: vec![
                Shape::Unit,
                Shape::Newtype("new"),
                Shape::Tuple("tu\"ple", 2),
                Shape::Struct { name: "struct" },
            ],
            bytes: Bytes(vec![0, 34, 255]),
            shown: [Shown("plain"), Shown("\"")],
        });
        assert_same("a document may be a string");
        assert_same(&Tagged::Named { name: "tagged" });
        assert_same(&(Adjacent::Text("adjacent"), Untagged::Text("untagged")));
        assert_same(&BTreeMap::from([('c', true)]));
        assert_same(&(BTreeMap::from([(true, "key")]), [(); 0], Bytes(Vec::new())));
        assert_same(&Flat {
            rest: BTreeMap::from([("flat", serde_json::json!({"x": "y", "z": [1.5, "\n"]}))]),
            raw: serde_json::value::RawValue::from_string("true".to_owned()).unwrap(),
        });
        let raw = serde_json::value::RawValue::from_string("[1, 2]".to_owned());
        assert_same(&[raw.unwrap()]);
        assert_same(&serde_json::json!({"nested": {"list": ["x", 1, null, {"y": "\\"}]}}));
    }

    #[test]
    fn invalid_values_have_the_same_error() {
        assert_same(&BTreeMap::from([(Bytes(Vec::new()), "bytes are no key")]));
        assert_same(&BTreeMap::from([(vec!["nor is a list"], 1)]));
        assert_same(&[Failing]);
    }

    proptest! {
        #[test]
        fn every_string_is_encoded_as_by_serde_json(text in any::<String>(), long in "[ -~]{0,80}") {
            assert_same(&text);
            assert_same(&long);
        }
    }
}
