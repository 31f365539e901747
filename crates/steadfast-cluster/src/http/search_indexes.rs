//! Definitions of search indexes.
//!
//! Definitions are stored, listed and dropped, for the whole cluster or for a scope. No
//! index has documents.

use std::collections::BTreeMap;

use parking_lot::RwLock;
use serde_json::{Map, Value, json};

use super::{HttpRequest, HttpResponse};

/// The most definitions that a cluster has.
const MAX_INDEXES: usize = 1000;

/// The definitions of a cluster, by scope and name. Those of the whole cluster have no scope.
#[derive(Debug, Default)]
pub(crate) struct SearchIndexes {
    by_name: RwLock<ByName>,
}

type ByName = BTreeMap<(String, String), Map<String, Value>>;

impl SearchIndexes {
    /// Answers a request about definitions; none if the path is about something else.
    pub(super) fn answer(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let segments = request.segments();
        let (scope, rest) = match segments.as_slice() {
            ["api", "index", rest @ ..] => (String::new(), rest),
            ["api", "bucket", bucket, "scope", scope, "index", rest @ ..] => {
                (format!("{bucket}.{scope}"), rest)
            }
            _ => return None,
        };
        let method = request.method.as_str();
        Some(match (method, rest) {
            ("GET", []) => self.list(&scope),
            ("PUT", [name]) => self.put(request, scope, name),
            ("DELETE", [name]) => {
                let dropped = self.by_name.write().remove(&(scope, (*name).to_owned()));
                dropped.map_or_else(|| missing(name), |_| done(json!({})))
            }
            (_, [name, rest @ ..]) => {
                let indexes = self.by_name.read();
                let Some(index) = indexes.get(&(scope, (*name).to_owned())) else {
                    return Some(missing(name));
                };
                match (method, rest) {
                    ("GET", []) => done(json!({"indexDef": index, "planPIndexes": []})),
                    ("GET", ["count"]) => done(json!({"count": 0})),
                    ("POST", ["analyzeDoc"]) => done(json!({"analyzed": []})),
                    (
                        "POST",
                        [
                            "ingestControl" | "queryControl" | "planFreezeControl",
                            "pause" | "resume" | "allow" | "disallow" | "freeze" | "unfreeze",
                        ],
                    ) => done(json!({})),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// Creates an index. Its name may have a bucket and a scope in front: `travel.inventory.i`.
    pub(crate) fn create(&self, name: &str) {
        let (scope, name) = name.rsplit_once('.').unwrap_or(("", name));
        let mut index = Map::new();
        index.insert("type".into(), "fulltext-index".into());
        let key = (scope.to_owned(), name.to_owned());
        insert(&mut self.by_name.write(), key, index);
    }

    /// Returns whether there is an index. A name for the whole cluster may have its scope in front.
    pub(super) fn has(&self, scope: &str, name: &str) -> bool {
        let indexes = self.by_name.read();
        let has =
            |scope: &str, name: &str| indexes.contains_key(&(scope.to_owned(), name.to_owned()));
        has(scope, name)
            || name
                .rsplit_once('.')
                .is_some_and(|(of, name)| scope.is_empty() && has(of, name))
    }

    fn list(&self, scope: &str) -> HttpResponse {
        let indexes = self.by_name.read();
        let found = indexes.iter().filter(|((of, _), _)| of == scope);
        let found: Map<String, Value> = found
            .map(|((_, name), index)| (name.clone(), Value::Object(index.clone())))
            .collect();
        let definitions = json!({"uuid": "0", "indexDefs": found, "implVersion": "5.7.0"});
        done(json!({"indexDefs": definitions}))
    }

    /// Creates a definition, or replaces the one whose uuid it has.
    fn put(&self, request: &HttpRequest, scope: String, name: &str) -> HttpResponse {
        let index = match request.json::<Value>() {
            Ok(Value::Object(index)) => index,
            Ok(_) => return refuse("the definition is not an object"),
            Err(sentence) => return refuse(&sentence),
        };
        let first = name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic());
        // A dot separates bucket, scope and name in a name for the whole cluster.
        let others: &[u8] = if scope.is_empty() { b"_-." } else { b"_-" };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
        if !first || !name.bytes().all(plain) {
            return refuse(&format!("index name is invalid, indexName: {name:?}"));
        }
        if !matches!(index.get("type"), Some(Value::String(kind)) if !kind.is_empty()) {
            return refuse("unknown indexType");
        }
        let mut indexes = self.by_name.write();
        let key = (scope, name.to_owned());
        if let Some(known) = indexes.get(&key) {
            match index.get("uuid").and_then(Value::as_str) {
                None | Some("") => {
                    return refuse(&format!(
                        "cannot create index because an index with the same name already exists: {name}"
                    ));
                }
                Some(uuid) if known["uuid"] != *uuid => {
                    return refuse(&format!("cannot update index, indexUUID mismatch: {uuid}"));
                }
                Some(_) => {}
            }
        } else if indexes.len() >= MAX_INDEXES {
            return refuse("there are too many indexes");
        }
        let uuid = insert(&mut indexes, key, index);
        done(json!({"name": name, "uuid": uuid}))
    }
}

/// Stores a definition under a new uuid, and returns that.
fn insert(indexes: &mut ByName, key: (String, String), mut index: Map<String, Value>) -> String {
    let uuid = format!("{:016x}", steadfast_os::random::u64());
    index.insert("uuid".into(), uuid.as_str().into());
    index.insert("name".into(), key.1.as_str().into());
    indexes.insert(key, index);
    uuid
}

fn done(mut body: Value) -> HttpResponse {
    body["status"] = "ok".into();
    HttpResponse::json(200, &body)
}

/// The response about an index that does not exist.
pub(super) fn missing(name: &str) -> HttpResponse {
    let sentence = format!("rest_auth: preparePerms, err: index not found: {name}");
    // Clients take a 404 for a server without the feature.
    HttpResponse::json(400, &json!({"error": sentence, "status": "fail"}))
}

fn refuse(sentence: &str) -> HttpResponse {
    let sentence = format!("rest_create_index: error creating index: {sentence}");
    HttpResponse::json(400, &json!({"error": sentence, "status": "fail"}))
}
