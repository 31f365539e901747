//! Changes of parts of a document, for UPDATE.

use serde_json::Value;

/// A step into a document, with its index known.
pub(crate) enum Step {
    Field(String),
    Element(Option<usize>),
}

/// Sets a part of a document. A path through something else than objects and existing
/// elements changes nothing, as in a real service.
pub(crate) fn set_path(document: &mut Value, path: &[Step], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *document = value;
        return;
    };
    match (first, document) {
        (Step::Field(name), Value::Object(fields)) => {
            if rest.is_empty() {
                fields.insert(name.clone(), value);
            } else if let Some(field) = fields.get_mut(name) {
                set_path(field, rest, value);
            }
        }
        (Step::Element(Some(at)), Value::Array(items)) => {
            if let Some(item) = items.get_mut(*at) {
                set_path(item, rest, value);
            }
        }
        _ => {}
    }
}

/// Removes a field of a document.
pub(crate) fn unset_path(document: &mut Value, path: &[Step]) {
    match (path, document) {
        ([Step::Field(name)], Value::Object(fields)) => {
            fields.shift_remove(name);
        }
        ([Step::Field(name), rest @ ..], Value::Object(fields)) => {
            if let Some(field) = fields.get_mut(name) {
                unset_path(field, rest);
            }
        }
        ([Step::Element(Some(at)), rest @ ..], Value::Array(items)) => {
            if let Some(item) = items.get_mut(*at) {
                unset_path(item, rest);
            }
        }
        _ => {}
    }
}
