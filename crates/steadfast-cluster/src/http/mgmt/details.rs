//! Settings of a bucket that are stored and shown.
//!
//! A table has the name, the values and the default of each setting. Most have no
//! effect here. The minimum durability and the longest life of documents do: the bucket
//! reads them.

use serde_json::{Map, Value, json};

use super::super::HttpRequest;

/// What a setting may be set to.
enum Values {
    OneOf(&'static [&'static str]),
    /// 0 or 1, shown as a truth value.
    Flag,
    /// A number, at most this.
    Number(u64),
}

/// A setting of a bucket.
struct Setting {
    name: &'static str,
    values: Values,
    /// Whether an existing bucket can get another value.
    mutable: bool,
}

const fn setting(name: &'static str, mutable: bool, values: Values) -> Setting {
    Setting {
        name,
        values,
        mutable,
    }
}

const SETTINGS: &[Setting] = &[
    setting("replicaIndex", false, Values::Flag),
    setting("threadsNumber", true, Values::Number(8)),
    setting(
        "evictionPolicy",
        true,
        Values::OneOf(&["valueOnly", "fullEviction", "noEviction", "nruEviction"]),
    ),
    setting(
        "durabilityMinLevel",
        true,
        Values::OneOf(&[
            "none",
            "majority",
            "majorityAndPersistActive",
            "persistToMajority",
        ]),
    ),
    setting(
        "conflictResolutionType",
        false,
        Values::OneOf(&["seqno", "lww", "custom"]),
    ),
    setting("maxTTL", true, Values::Number(2_147_483_647)),
    setting(
        "compressionMode",
        true,
        Values::OneOf(&["off", "passive", "active"]),
    ),
    setting(
        "storageBackend",
        false,
        Values::OneOf(&["couchstore", "magma"]),
    ),
    setting("historyRetentionCollectionDefault", true, Values::Flag),
    setting("historyRetentionSeconds", true, Values::Number(u64::MAX)),
    setting("historyRetentionBytes", true, Values::Number(u64::MAX)),
];

/// An error of a parameter: its name, and a sentence.
pub(super) type SettingError = (&'static str, String);

/// The settings of a new bucket.
pub(super) fn create(
    request: &HttpRequest,
    ephemeral: bool,
) -> Result<Map<String, Value>, Vec<SettingError>> {
    let mut details = defaults(ephemeral);
    if request.parameter("storageBackend") == Some("magma") && !ephemeral {
        details["evictionPolicy"] = "fullEviction".into();
        details.insert("historyRetentionCollectionDefault".into(), true.into());
        details.insert("historyRetentionSeconds".into(), 0.into());
        details.insert("historyRetentionBytes".into(), 0.into());
    }
    change(request, ephemeral, None, &mut details)?;
    Ok(details)
}

/// The settings that a bucket has if nothing is said about them.
pub(crate) fn defaults(ephemeral: bool) -> Map<String, Value> {
    let details = json!({
        "replicaIndex": false,
        "threadsNumber": 3,
        "evictionPolicy": if ephemeral { "noEviction" } else { "valueOnly" },
        "durabilityMinLevel": "none",
        "conflictResolutionType": "seqno",
        "maxTTL": 0,
        "compressionMode": "passive",
        "storageBackend": if ephemeral { "undefined" } else { "couchstore" },
    });
    match details {
        Value::Object(details) => details,
        _ => Map::new(),
    }
}

/// Applies the parameters of a request. `old` are the settings of a bucket that exists.
pub(super) fn change(
    request: &HttpRequest,
    ephemeral: bool,
    old: Option<&Map<String, Value>>,
    details: &mut Map<String, Value>,
) -> Result<(), Vec<SettingError>> {
    let mut errors = Vec::new();
    for setting in SETTINGS {
        let Some(text) = request.parameter(setting.name) else {
            continue;
        };
        let value = match setting.read(text) {
            Ok(value) => value,
            Err(sentence) => {
                errors.push((setting.name, sentence));
                continue;
            }
        };
        if setting.name == "replicaIndex" && old.is_some() {
            // Like a real server, ignores it for a bucket that exists.
            continue;
        }
        let fixed = old.filter(|_| !setting.mutable);
        if fixed.is_some_and(|old| old.get(setting.name) != Some(&value)) {
            if setting.name == "storageBackend" && ephemeral {
                continue;
            }
            let sentence = format!("{} of a bucket cannot be changed.", setting.name);
            errors.push((setting.name, sentence));
            continue;
        }
        let magma = request.parameter("storageBackend").map_or_else(
            || details["storageBackend"] == "magma",
            |backend| backend == "magma",
        );
        let is_history = setting.name.starts_with("history");
        match setting.name {
            "conflictResolutionType" if text == "custom" => errors.push((
                setting.name,
                "Conflict resolution type 'custom' is supported only with developer preview \
                 enabled: not supported by this cluster"
                    .into(),
            )),
            _ if is_history && !magma => errors.push((
                setting.name,
                "History Retention can only used with Magma".into(),
            )),
            "durabilityMinLevel" if ephemeral && text.to_ascii_lowercase().contains("persist") => {
                errors.push((
                    setting.name,
                    "Durability minimum level must be either 'none' or 'majority' for ephemeral \
                     buckets"
                        .into(),
                ));
            }
            "evictionPolicy" if ephemeral != text.starts_with('n') => errors.push((
                setting.name,
                "Eviction policy is not allowed for this type of bucket".into(),
            )),
            "storageBackend" if ephemeral => {}
            _ => {
                details.insert(setting.name.into(), value);
            }
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

impl Setting {
    fn read(&self, text: &str) -> Result<Value, String> {
        let name = self.name;
        match self.values {
            Values::OneOf(values) if values.contains(&text) => Ok(text.into()),
            Values::OneOf(values) => Err(format!("{name} must be one of: {}", values.join(", "))),
            Values::Flag => match text {
                "0" | "false" => Ok(false.into()),
                "1" | "true" => Ok(true.into()),
                _ => Err(format!("{name} must be 0 or 1")),
            },
            Values::Number(most) => match text.parse::<u64>() {
                Ok(number) if number <= most => Ok(number.into()),
                _ => Err(format!("{name} must be a number from 0 to {most}")),
            },
        }
    }
}
