//! The error map that clients ask for (RFC 0013).
//!
//! The map describes statuses that are newer than the client. The default map is that
//! of a recent server. A test that checks how a client obeys the map adds its own
//! codes, with attributes and a retry specification, and answers with them through a
//! fault.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use steadfast_wire::error_map::{ErrorDefinition, ErrorMap, MapVersion};

/// The map, as it can be changed while the cluster runs. Connections keep what they were sent.
#[derive(Debug, Default)]
pub struct ServedErrorMap {
    inner: RwLock<MapState>,
}

#[derive(Debug, Default)]
struct MapState {
    /// What differs from the map that servers ship: another definition, or none.
    changes: BTreeMap<u16, Option<ErrorDefinition>>,
    change_count: u32,
    /// Served instead of the map, whatever it is.
    raw: Option<Vec<u8>>,
}

impl ServedErrorMap {
    /// Adds a code, or changes what the map says about it.
    pub fn set(&self, code: u16, definition: ErrorDefinition) {
        self.change(code, Some(definition));
    }

    /// Removes a code from the map.
    pub fn remove(&self, code: u16) {
        self.change(code, None);
    }

    /// Serves these bytes instead of the map, or the map again.
    pub fn set_raw(&self, raw: Option<Vec<u8>>) {
        self.inner.write().raw = raw;
    }

    /// The map in the version that a client asked for, or the nearest below; there is none for
    /// version zero.
    pub(crate) fn to_json(&self, version: u16) -> Option<Vec<u8>> {
        let inner = self.inner.read();
        if let Some(raw) = &inner.raw {
            return Some(raw.clone());
        }
        let mut map = ErrorMap::shipped(MapVersion::for_request(version)?);
        map.revision += inner.change_count;
        for (code, definition) in &inner.changes {
            match definition {
                Some(definition) => map.errors.insert(*code, definition.clone()),
                None => map.errors.remove(code),
            };
        }
        Some(map.to_json())
    }

    fn change(&self, code: u16, definition: Option<ErrorDefinition>) {
        let mut inner = self.inner.write();
        inner.changes.insert(code, definition);
        inner.change_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use steadfast_wire::Status;
    use steadfast_wire::error_map::{Attributes, ErrorMapBackoff, RetrySpec};

    fn read(map: &ServedErrorMap, version: u16) -> ErrorMap {
        ErrorMap::parse(&map.to_json(version).unwrap()).unwrap()
    }

    #[test]
    fn versions_are_clamped_and_zero_is_none() {
        let map = ServedErrorMap::default();
        assert_eq!(read(&map, 1), ErrorMap::shipped(MapVersion::V1));
        assert_eq!(read(&map, 2), ErrorMap::shipped(MapVersion::V2));
        assert_eq!(read(&map, 9), ErrorMap::shipped(MapVersion::V2));
        assert_eq!(map.to_json(0), None);
    }

    #[test]
    fn codes_come_and_go_and_the_map_can_be_replaced() {
        let map = ServedErrorMap::default();
        let before = read(&map, 2).revision;
        let definition = ErrorDefinition {
            name: "DUMMY".into(),
            description: "made up".into(),
            attributes: Attributes::AUTO_RETRY,
            retry: Some(RetrySpec {
                strategy: ErrorMapBackoff::Constant,
                interval: Duration::from_millis(10),
                after: Duration::from_millis(20),
                max_duration: None,
                ceil: None,
            }),
        };
        map.set(0xfff0, definition.clone());
        assert_eq!(
            read(&map, 2).get(Status::from_code(0xfff0)),
            Some(&definition)
        );
        assert_eq!(read(&map, 2).revision, before + 1);
        map.remove(0xfff0);
        assert_eq!(read(&map, 2).get(Status::from_code(0xfff0)), None);
        map.set_raw(Some(b"{broken".to_vec()));
        assert_eq!(map.to_json(2).unwrap(), b"{broken");
    }
}
