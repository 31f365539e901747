//! One operation at one path of one JSON value.
//!
//! These functions know nothing of documents, xattrs or the wire. A function that fails
//! leaves the value unchanged. A request of several operations works on a copy, so that
//! it can fail as a whole.

use serde_json::{Map, Value};

use super::path::{Component, Path};
use steadfast_wire::Status;

/// How deep a value to insert may be nested.
const MAX_VALUE_DEPTH: usize = 32;

/// Finds what is at a path.
pub(crate) fn find<'a>(root: &'a Value, path: &Path) -> Result<&'a Value, Status> {
    path.components()
        .iter()
        .try_fold(root, |value, component| match (component, value) {
            (Component::Key(key), Value::Object(object)) => {
                object.get(key).ok_or(Status::SubdocPathNotFound)
            }
            (Component::Index(index), Value::Array(array)) => {
                array.get(*index).ok_or(Status::SubdocPathNotFound)
            }
            (Component::Last, Value::Array(array)) => {
                array.last().ok_or(Status::SubdocPathNotFound)
            }
            _ => Err(Status::SubdocPathMismatch),
        })
}

/// The number of elements of the array, or keys of the object, at a path.
pub(crate) fn count(root: &Value, path: &Path) -> Result<usize, Status> {
    match find(root, path)? {
        Value::Array(array) => Ok(array.len()),
        Value::Object(object) => Ok(object.len()),
        _ => Err(Status::SubdocPathMismatch),
    }
}

/// Puts a value under a key of an object; `replace_existing` decides what happens if the key is taken.
pub(crate) fn dict_set(
    root: &mut Value,
    path: &Path,
    value: Value,
    create_parents: bool,
    replace_existing: bool,
) -> Result<(), Status> {
    let (last, parents) = path.split_last().ok_or(Status::SubdocPathInvalid)?;
    let Component::Key(key) = last else {
        return Err(Status::SubdocPathInvalid);
    };
    let parent = descend(root, parents, create_parents, || Value::Object(Map::new()))?;
    let object = parent.as_object_mut().ok_or(Status::SubdocPathMismatch)?;
    if !replace_existing && object.contains_key(key) {
        return Err(Status::SubdocPathExists);
    }
    object.insert(key.clone(), value);
    Ok(())
}

/// Replaces what is at a path, which must exist.
pub(crate) fn replace(root: &mut Value, path: &Path, value: Value) -> Result<(), Status> {
    if path.is_root() {
        return Err(Status::SubdocPathInvalid);
    }
    *find_mut(root, path.components())? = value;
    Ok(())
}

/// Removes what is at a path, which must exist.
pub(crate) fn remove(root: &mut Value, path: &Path) -> Result<(), Status> {
    let (last, parents) = path.split_last().ok_or(Status::SubdocPathInvalid)?;
    match (last, find_mut(root, parents)?) {
        (Component::Key(key), Value::Object(object)) => {
            // `shift_remove` keeps the order of the keys that stay.
            object
                .shift_remove(key)
                .map(drop)
                .ok_or(Status::SubdocPathNotFound)
        }
        (Component::Index(index), Value::Array(array)) if *index < array.len() => {
            array.remove(*index);
            Ok(())
        }
        (Component::Index(_), Value::Array(_)) => Err(Status::SubdocPathNotFound),
        (Component::Last, Value::Array(array)) => {
            array.pop().map(drop).ok_or(Status::SubdocPathNotFound)
        }
        _ => Err(Status::SubdocPathMismatch),
    }
}

/// Which end of an array to push to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrayEnd {
    /// Before the first element.
    Front,
    /// After the last element.
    Back,
}

/// Adds values at one end of the array at a path.
pub(crate) fn push(
    root: &mut Value,
    path: &Path,
    values: Vec<Value>,
    end: ArrayEnd,
    create_parents: bool,
) -> Result<(), Status> {
    let array = array_at(root, path, create_parents)?;
    match end {
        ArrayEnd::Back => array.extend(values),
        ArrayEnd::Front => drop(array.splice(0..0, values)),
    }
    Ok(())
}

/// Inserts values before the element that a path ends in; one past the end is allowed.
pub(crate) fn insert(root: &mut Value, path: &Path, values: Vec<Value>) -> Result<(), Status> {
    let (last, parents) = path.split_last().ok_or(Status::SubdocPathInvalid)?;
    let Component::Index(index) = last else {
        return Err(Status::SubdocPathInvalid);
    };
    let array = find_mut(root, parents)?
        .as_array_mut()
        .ok_or(Status::SubdocPathMismatch)?;
    if *index > array.len() {
        return Err(Status::SubdocPathNotFound);
    }
    array.splice(*index..*index, values);
    Ok(())
}

/// Adds a primitive to an array of primitives unless it is there already.
pub(crate) fn add_unique(
    root: &mut Value,
    path: &Path,
    value: Value,
    create_parents: bool,
) -> Result<(), Status> {
    if !is_primitive(&value) {
        return Err(Status::SubdocValueCannotInsert);
    }
    let array = array_at(root, path, create_parents)?;
    if !array.iter().all(is_primitive) {
        return Err(Status::SubdocPathMismatch);
    }
    if array.contains(&value) {
        return Err(Status::SubdocPathExists);
    }
    array.push(value);
    Ok(())
}

/// Adds a delta to the integer at a path and says what it became; a missing one starts at zero.
pub(crate) fn counter(
    root: &mut Value,
    path: &Path,
    delta: i64,
    create_parents: bool,
) -> Result<i64, Status> {
    match find_mut(root, path.components()) {
        Ok(Value::Number(number)) => {
            let current = match (number.as_i64(), number.is_f64()) {
                (Some(current), _) => current,
                (None, true) => return Err(Status::SubdocPathMismatch),
                (None, false) => return Err(Status::SubdocNumberOutOfRange),
            };
            let sum = current
                .checked_add(delta)
                .ok_or(Status::SubdocValueCannotInsert)?;
            *number = sum.into();
            Ok(sum)
        }
        Ok(_) => Err(Status::SubdocPathMismatch),
        Err(Status::SubdocPathNotFound) => {
            dict_set(root, path, delta.into(), create_parents, false)?;
            Ok(delta)
        }
        Err(error) => Err(error),
    }
}

/// Reads one JSON value to insert.
pub(crate) fn parse_value(bytes: &[u8]) -> Result<Value, Status> {
    let value = serde_json::from_slice(bytes).map_err(|_| Status::SubdocValueCannotInsert)?;
    check_depth(&value)?;
    Ok(value)
}

/// Reads one or more JSON values with commas between, as array operations take them.
pub(crate) fn parse_values(bytes: &[u8]) -> Result<Vec<Value>, Status> {
    let wrapped = [b"[", bytes, b"]"].concat();
    let values: Vec<Value> =
        serde_json::from_slice(&wrapped).map_err(|_| Status::SubdocValueCannotInsert)?;
    if values.is_empty() {
        return Err(Status::SubdocValueCannotInsert);
    }
    values.iter().try_for_each(check_depth)?;
    Ok(values)
}

/// Reads a counter's delta: a non-zero 64-bit integer in decimal.
pub(crate) fn parse_delta(bytes: &[u8]) -> Result<i64, Status> {
    let text = std::str::from_utf8(bytes).map_err(|_| Status::SubdocDeltaInvalid)?;
    match text.trim().parse() {
        Ok(0) | Err(_) => Err(Status::SubdocDeltaInvalid),
        Ok(delta) => Ok(delta),
    }
}

fn check_depth(value: &Value) -> Result<(), Status> {
    fn within(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(array) => left > 0 && array.iter().all(|item| within(item, left - 1)),
            Value::Object(object) => left > 0 && object.values().all(|item| within(item, left - 1)),
            _ => true,
        }
    }
    if within(value, MAX_VALUE_DEPTH) {
        Ok(())
    } else {
        Err(Status::SubdocValueTooDeep)
    }
}

fn is_primitive(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn array_at<'a>(
    root: &'a mut Value,
    path: &Path,
    create_parents: bool,
) -> Result<&'a mut Vec<Value>, Status> {
    descend(root, path.components(), create_parents, || {
        Value::Array(Vec::new())
    })?
    .as_array_mut()
    .ok_or(Status::SubdocPathMismatch)
}

fn find_mut<'a>(root: &'a mut Value, components: &[Component]) -> Result<&'a mut Value, Status> {
    components.iter().try_fold(root, step_mut)
}

fn step_mut<'a>(value: &'a mut Value, component: &Component) -> Result<&'a mut Value, Status> {
    match (component, value) {
        (Component::Key(key), Value::Object(object)) => {
            object.get_mut(key).ok_or(Status::SubdocPathNotFound)
        }
        (Component::Index(index), Value::Array(array)) => {
            array.get_mut(*index).ok_or(Status::SubdocPathNotFound)
        }
        (Component::Last, Value::Array(array)) => {
            array.last_mut().ok_or(Status::SubdocPathNotFound)
        }
        _ => Err(Status::SubdocPathMismatch),
    }
}

/// Follows a path; where `create` says so, missing keys become objects and the last one `leaf`.
fn descend<'a>(
    root: &'a mut Value,
    components: &[Component],
    create: bool,
    leaf: impl Fn() -> Value,
) -> Result<&'a mut Value, Status> {
    if !create || find_mut(root, components).err() != Some(Status::SubdocPathNotFound) {
        return find_mut(root, components);
    }
    // A missing array element cannot be made up, so look before creating anything.
    let missing = first_missing(root, components)?;
    if components[missing..]
        .iter()
        .any(|component| !matches!(component, Component::Key(_)))
    {
        return Err(Status::SubdocPathNotFound);
    }
    let last = components.len() - 1;
    components
        .iter()
        .enumerate()
        .try_fold(root, |value, (at, component)| {
            if at >= missing
                && let (Component::Key(key), Value::Object(object)) = (component, &mut *value)
            {
                object.insert(
                    key.clone(),
                    if at == last {
                        leaf()
                    } else {
                        Value::Object(Map::new())
                    },
                );
            }
            step_mut(value, component)
        })
}

fn first_missing(root: &mut Value, components: &[Component]) -> Result<usize, Status> {
    let mut value = root;
    for (at, component) in components.iter().enumerate() {
        match step_mut(value, component) {
            Ok(next) => value = next,
            Err(Status::SubdocPathNotFound) => return Ok(at),
            Err(error) => return Err(error),
        }
    }
    Ok(components.len())
}
