//! The error map that clients ask for (RFC 0013).
//!
//! The map tells a client what to make of statuses that it was not written for. The
//! one served by default has the attributes of a recent server. A test that wants to
//! see a client obey the map adds codes of its own, with attributes and a retry
//! specification, and answers with them through a fault.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use serde_json::{Value, json};
use steadfast_wire::Status;

/// The newest version of the map's format that is served.
pub const MAX_VERSION: u16 = 2;
/// The revision of the version 2 map. Version 1 is four ahead, as on a real server.
const REVISION: u64 = 9;
const V1_REVISION_AHEAD: u64 = 4;
/// Attributes that version 1 does not have.
const NOT_IN_V1: &[&str] = &["rate-limit", "system-constraint", "no-retry"];

/// What the map says about one code.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorEntry {
    /// A short name.
    pub name: String,
    /// A sentence.
    pub description: String,
    /// Attributes, such as `retry-later`.
    pub attributes: Vec<String>,
    /// How to retry, where the attributes say to: strategy, interval, after, ceil, max-duration.
    pub retry: Option<Value>,
}

/// The map, as it can be changed while the cluster runs.
#[derive(Debug)]
pub struct ErrorMap {
    inner: RwLock<Inner>,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    entries: BTreeMap<u16, ErrorEntry>,
    /// Served instead of the map, whatever it is.
    raw: Option<Vec<u8>>,
}

impl ErrorMap {
    /// The map that a recent server has.
    pub fn new() -> Self {
        let entries = STANDARD
            .iter()
            .flat_map(|(attributes, codes)| codes.iter().map(move |code| (*code, *attributes)))
            .map(|(code, attributes)| (code, standard_entry(code, attributes)))
            .collect();
        Self {
            inner: RwLock::new(Inner {
                revision: REVISION,
                entries,
                raw: None,
            }),
        }
    }

    /// Adds a code, or changes what the map says about it.
    pub fn set(&self, code: u16, entry: ErrorEntry) {
        let mut inner = self.inner.write();
        inner.entries.insert(code, entry);
        inner.revision += 1;
    }

    /// Removes a code from the map.
    pub fn remove(&self, code: u16) {
        let mut inner = self.inner.write();
        inner.entries.remove(&code);
        inner.revision += 1;
    }

    /// Serves these bytes instead of the map, or the map again.
    pub fn set_raw(&self, raw: Option<Vec<u8>>) {
        self.inner.write().raw = raw;
    }

    /// The map in the version that a client asked for, or the nearest below.
    pub fn to_bytes(&self, version: u16) -> Vec<u8> {
        let inner = self.inner.read();
        if let Some(raw) = &inner.raw {
            return raw.clone();
        }
        let version = version.clamp(1, MAX_VERSION);
        let errors: serde_json::Map<String, Value> = inner
            .entries
            .iter()
            .map(|(code, entry)| (format!("{code:x}"), entry.to_json(version)))
            .collect();
        let ahead = if version == 1 { V1_REVISION_AHEAD } else { 0 };
        json!({"version": version, "revision": inner.revision + ahead, "errors": errors})
            .to_string()
            .into_bytes()
    }
}

impl Default for ErrorMap {
    fn default() -> Self {
        Self::new()
    }
}

impl ErrorEntry {
    fn to_json(&self, version: u16) -> Value {
        let attributes: Vec<&String> = self
            .attributes
            .iter()
            .filter(|attribute| version > 1 || !NOT_IN_V1.contains(&attribute.as_str()))
            .collect();
        let mut shown = json!({"name": self.name, "desc": self.description, "attrs": attributes});
        if let Some(retry) = &self.retry {
            shown["retry"] = retry.clone();
        }
        shown
    }
}

fn standard_entry(code: u16, attributes: &[&str]) -> ErrorEntry {
    let status = Status::from_code(code);
    let name = status
        .name()
        .map_or_else(|| format!("STATUS_{code:#04x}"), str::to_owned);
    ErrorEntry {
        description: name.to_lowercase().replace('_', " "),
        name,
        attributes: attributes
            .iter()
            .map(|attribute| (*attribute).to_owned())
            .collect(),
        retry: None,
    }
}

/// Attributes, and the codes that have exactly these.
const STANDARD: &[(&[&str], &[u16])] = &[
    (&["success"], &[0x00, 0xa5, 0xa6, 0xa7]),
    (&["success", "item-deleted", "subdoc"], &[0xcd]),
    (&["item-locked", "item-only", "retry-now"], &[0x09]),
    (&["fetch-config", "retry-now"], &[0x0d]),
    (&["item-only", "retry-now"], &[0x51]),
    (&["temp", "retry-now"], &[0x85, 0x86]),
    (
        &["temp", "retry-later", "rate-limit"],
        &[0x0c, 0x30, 0x31, 0x33],
    ),
    (&["temp", "retry-later"], &[0x82]),
    (&["item-only", "retry-later"], &[0xa2, 0xa4]),
    (
        &["item-only", "no-retry", "system-constraint"],
        &[0x28, 0x29, 0x35, 0x36, 0x37, 0x38],
    ),
    (&["conn-state-invalidated"], &[0x08, 0x25]),
    (&["conn-state-invalidated", "dcp"], &[0x0a, 0x0b]),
    (&["conn-state-invalidated", "auth"], &[0x1f, 0x20]),
    (&["conn-state-invalidated", "rate-limit"], &[0x32]),
    (&["conn-state-invalidated", "internal"], &[0x84]),
    (&["fetch-config", "invalid-input"], &[0x07]),
    (&["special-handling"], &[0x21, 0x26, 0x27]),
    (&["special-handling", "dcp"], &[0x23]),
    (&["special-handling", "subdoc"], &[0xcc]),
    (&["special-handling", "subdoc", "item-deleted"], &[0xd3]),
    (&["support"], &[0x24, 0x50, 0x80, 0x81, 0x83]),
    (&["internal", "invalid-input"], &[0x04]),
    (&["internal", "item-only"], &[0x05]),
    (&["item-only"], &[0x01, 0x02, 0x0e, 0x0f, 0xa3]),
    (&["item-only", "invalid-input"], &[0x03, 0x06, 0xa1]),
    (
        &["invalid-input"],
        &[0x22, 0x87, 0x88, 0x8a, 0x8c, 0x8d, 0xa0, 0xa8],
    ),
    (
        &["subdoc", "item-only"],
        &[0xc0, 0xc1, 0xc6, 0xc7, 0xc8, 0xc9, 0xd6, 0xd7, 0xd8],
    ),
    (
        &["subdoc", "invalid-input"],
        &[
            0xc2, 0xc3, 0xc4, 0xc5, 0xcb, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd4, 0xd5,
        ],
    ),
    (&["subdoc", "invalid-input", "item-only"], &[0xca]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(map: &ErrorMap, version: u16) -> Value {
        serde_json::from_slice(&map.to_bytes(version)).unwrap()
    }

    #[test]
    fn versions_are_clamped_and_differ_as_on_a_real_server() {
        let map = ErrorMap::new();
        let (one, two, nine) = (read(&map, 1), read(&map, 2), read(&map, 9));
        assert_eq!(two, nine);
        assert_eq!(
            (one["version"].as_u64(), one["revision"].as_u64()),
            (Some(1), Some(13))
        );
        assert_eq!(
            (two["version"].as_u64(), two["revision"].as_u64()),
            (Some(2), Some(9))
        );
        assert_eq!(
            two["errors"]["30"]["attrs"],
            json!(["temp", "retry-later", "rate-limit"])
        );
        assert_eq!(one["errors"]["30"]["attrs"], json!(["temp", "retry-later"]));
    }

    #[test]
    fn no_code_is_in_two_rows_and_all_are_known() {
        let codes: Vec<u16> = STANDARD
            .iter()
            .flat_map(|(_, codes)| codes.iter().copied())
            .collect();
        assert_eq!(codes.len(), 83);
        let map = ErrorMap::new();
        assert_eq!(
            read(&map, 2)["errors"].as_object().unwrap().len(),
            codes.len()
        );
        for code in codes {
            assert!(Status::from_code(code).name().is_some(), "{code:#x}");
        }
    }

    #[test]
    fn codes_can_be_added_with_a_retry_specification_and_the_map_replaced() {
        let map = ErrorMap::new();
        let retry = json!({"strategy": "constant", "interval": 10, "after": 20});
        map.set(
            0xfff0,
            ErrorEntry {
                name: "DUMMY".into(),
                description: "made up".into(),
                attributes: vec!["auto-retry".into()],
                retry: Some(retry.clone()),
            },
        );
        assert_eq!(read(&map, 2)["errors"]["fff0"]["retry"], retry);
        map.remove(0xfff0);
        assert_eq!(read(&map, 2)["errors"].get("fff0"), None);
        map.set_raw(Some(b"{broken".to_vec()));
        assert_eq!(map.to_bytes(2), b"{broken");
    }
}
