//! Attributes of a status in the error map.

use bitflags::bitflags;

/// Defines the attributes together with their names in the JSON.
macro_rules! attributes {
    ($( $(#[doc = $doc:literal])+ $name:ident = $bit:literal $text:literal, )*) => {
        bitflags! {
            /// A set of attributes of a status (RFC 0013, "Error Attributes").
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct Attributes: u32 {
                $(
                    $(#[doc = $doc])+
                    #[doc = concat!("\n\n`", $text, "`.")]
                    const $name = 1 << $bit;
                )*
            }
        }

        impl Attributes {
            /// The attribute with this name in the JSON; nothing if this version does not know it.
            pub fn from_json_name(name: &str) -> Self {
                match name {
                    $($text => Self::$name,)*
                    _ => Self::empty(),
                }
            }

            /// The names in the JSON of all attributes in the set.
            pub fn json_names(self) -> impl Iterator<Item = &'static str> {
                [$((Self::$name, $text)),*]
                    .into_iter()
                    .filter(move |(attribute, _)| self.contains(*attribute))
                    .map(|(_, text)| text)
            }
        }
    };
}

attributes! {
    /// The document does not meet a constraint; when it changes, a retry may succeed.
    ITEM_ONLY = 0 "item-only",
    /// The document is deleted.
    ITEM_DELETED = 1 "item-deleted",
    /// The document is locked.
    ITEM_LOCKED = 2 "item-locked",
    /// The request is invalid or exceeds a limit.
    INVALID_INPUT = 3 "invalid-input",
    /// The client's config may be outdated; it should fetch the new one.
    FETCH_CONFIG = 4 "fetch-config",
    /// The connection cannot be used further, unless something special is done about it.
    CONN_STATE_INVALIDATED = 5 "conn-state-invalidated",
    /// The user is not authenticated or not authorized.
    AUTH = 6 "auth",
    /// Needs special treatment, and the connection must be dropped where it gets none.
    SPECIAL_HANDLING = 7 "special-handling",
    /// This server, bucket or user cannot do it.
    SUPPORT = 8 "support",
    /// It will pass; which does not mean that a retry is safe.
    TEMP = 9 "temp",
    /// Something broke inside the server.
    INTERNAL = 10 "internal",
    /// May be retried at once.
    RETRY_NOW = 11 "retry-now",
    /// May be retried after a while.
    RETRY_LATER = 12 "retry-later",
    /// Must not be retried. Version 2.
    NO_RETRY = 13 "no-retry",
    /// Should be retried as the retry specification says.
    AUTO_RETRY = 14 "auto-retry",
    /// About subdocuments.
    SUBDOC = 15 "subdoc",
    /// About DCP.
    DCP = 16 "dcp",
    /// A rate limit was reached. Version 2.
    RATE_LIMIT = 17 "rate-limit",
    /// A limit of the system was reached. Version 2.
    SYSTEM_CONSTRAINT = 18 "system-constraint",
    /// Not an error after all.
    SUCCESS = 19 "success",
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in the server's documentation of the format. No other code has them.
    #[test]
    fn every_attribute_is_read_and_written_by_its_documented_name() {
        let documented = [
            ("item-only", Attributes::ITEM_ONLY),
            ("item-deleted", Attributes::ITEM_DELETED),
            ("item-locked", Attributes::ITEM_LOCKED),
            ("invalid-input", Attributes::INVALID_INPUT),
            ("fetch-config", Attributes::FETCH_CONFIG),
            ("conn-state-invalidated", Attributes::CONN_STATE_INVALIDATED),
            ("auth", Attributes::AUTH),
            ("special-handling", Attributes::SPECIAL_HANDLING),
            ("support", Attributes::SUPPORT),
            ("temp", Attributes::TEMP),
            ("internal", Attributes::INTERNAL),
            ("retry-now", Attributes::RETRY_NOW),
            ("retry-later", Attributes::RETRY_LATER),
            ("no-retry", Attributes::NO_RETRY),
            ("auto-retry", Attributes::AUTO_RETRY),
            ("subdoc", Attributes::SUBDOC),
            ("dcp", Attributes::DCP),
            ("rate-limit", Attributes::RATE_LIMIT),
            ("system-constraint", Attributes::SYSTEM_CONSTRAINT),
            ("success", Attributes::SUCCESS),
        ];
        for (name, attribute) in documented {
            assert_eq!(Attributes::from_json_name(name), attribute, "{name}");
            assert_eq!(attribute.json_names().collect::<Vec<_>>(), [name]);
        }
        let all: Attributes = documented
            .map(|(_, attribute)| attribute)
            .into_iter()
            .collect();
        assert_eq!(all, Attributes::all());
        assert_eq!(
            Attributes::from_json_name("from-the-future"),
            Attributes::empty()
        );
    }
}
