//! A copy of the headers of a request.
//!
//! A copy of a `HeaderMap` takes two allocations, even though most requests succeed and never
//! use it. A few headers are kept in place instead.

use http::{HeaderMap, HeaderName, HeaderValue};

/// So many headers need no allocation of their own.
const FEW: usize = 4;

pub(super) enum KeptHeaders {
    Few([Option<(HeaderName, HeaderValue)>; FEW]),
    Many(HeaderMap),
}

impl KeptHeaders {
    pub(super) fn new(headers: &HeaderMap) -> Self {
        if headers.len() > FEW {
            return Self::Many(headers.clone());
        }
        let mut few = [const { None }; FEW];
        for (place, (name, value)) in few.iter_mut().zip(headers) {
            *place = Some((name.clone(), value.clone()));
        }
        Self::Few(few)
    }

    pub(super) fn to_map(&self) -> HeaderMap {
        match self {
            // In the same order, also of several values of a name.
            Self::Few(headers) => {
                let mut map = HeaderMap::with_capacity(FEW);
                for (name, value) in headers.iter().flatten() {
                    map.append(name, value.clone());
                }
                map
            }
            Self::Many(headers) => headers.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_headers_in_the_same_order() {
        let names = ["x-b", "accept", "x-b", "x-a", "accept", "te"];
        for count in 0..=names.len() {
            let mut headers = HeaderMap::new();
            for (index, name) in names.iter().enumerate().take(count) {
                let mut value = HeaderValue::from(index);
                value.set_sensitive(index == 1);
                headers.append(*name, value);
            }
            let kept = KeptHeaders::new(&headers);
            assert_eq!(matches!(kept, KeptHeaders::Few(_)), count <= FEW);
            let copy = kept.to_map();
            assert!(copy.iter().eq(headers.iter()), "{copy:?}");
            let sensitive = |map: &HeaderMap| map.values().filter(|v| v.is_sensitive()).count();
            assert_eq!(sensitive(&copy), sensitive(&headers));
        }
    }
}
