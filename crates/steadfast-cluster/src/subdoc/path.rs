//! Paths into a JSON document: `a.b[2].c`, `list[-1]`, `` `dotted.key`.x ``.
//!
//! A dot or a bracket inside a key is written between backticks, and a backtick
//! inside those is doubled. An index counts from zero; `-1` is the last element and
//! no other negative index exists. The empty path is the document itself.

use steadfast_wire::Status;

/// The longest path a client may send, in bytes.
pub(crate) const MAX_PATH_BYTES: usize = 1024;
/// The deepest path a client may send, in components.
pub(crate) const MAX_COMPONENTS: usize = 32;

/// One step from a JSON value into a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Component {
    /// Into an object, by key.
    Key(String),
    /// Into an array, by position.
    Index(usize),
    /// To the last element of an array.
    Last,
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Path(Vec<Component>);

impl Path {
    /// Reads a path as a client sent it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Status> {
        if bytes.len() > MAX_PATH_BYTES {
            return Err(Status::SubdocPathTooBig);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Status::SubdocPathInvalid)?;
        let components = Parser { rest: text }.parse()?;
        if components.len() > MAX_COMPONENTS {
            return Err(Status::SubdocPathTooBig);
        }
        Ok(Self(components))
    }

    /// All steps, outermost first.
    pub(crate) fn components(&self) -> &[Component] {
        &self.0
    }

    /// Returns whether this is the document itself.
    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last step and those before it; nothing for the document itself.
    pub(crate) fn split_last(&self) -> Option<(&Component, &[Component])> {
        self.0.split_last()
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn parse(mut self) -> Result<Vec<Component>, Status> {
        let mut components = Vec::new();
        while !self.rest.is_empty() {
            // `a.[0]` is `a[0]`.
            let dotted = self
                .rest
                .strip_prefix('.')
                .filter(|_| !components.is_empty());
            if let Some(rest) = dotted.unwrap_or(self.rest).strip_prefix('[') {
                let (index, rest) = rest.split_once(']').ok_or(Status::SubdocPathInvalid)?;
                components.push(index_component(index)?);
                self.rest = rest;
            } else {
                if !components.is_empty() {
                    // Only the first key, and an index, need no dot before them.
                    self.rest = self
                        .rest
                        .strip_prefix('.')
                        .ok_or(Status::SubdocPathInvalid)?;
                }
                components.push(Component::Key(self.key()?));
            }
        }
        Ok(components)
    }

    fn key(&mut self) -> Result<String, Status> {
        if let Some(quoted) = self.rest.strip_prefix('`') {
            return self.quoted_key(quoted);
        }
        let end = self
            .rest
            .find(['.', '[', ']', '`'])
            .unwrap_or(self.rest.len());
        let (key, rest) = self.rest.split_at(end);
        if key.is_empty() || rest.starts_with([']', '`']) {
            return Err(Status::SubdocPathInvalid);
        }
        let key = key.to_owned();
        self.rest = &self.rest[end..];
        Ok(key)
    }

    fn quoted_key(&mut self, quoted: &str) -> Result<String, Status> {
        let mut key = String::new();
        let mut characters = quoted.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            if character != '`' {
                key.push(character);
            } else if characters.next_if(|&(_, next)| next == '`').is_some() {
                key.push('`');
            } else {
                // One byte for the opening backtick, one for the closing.
                self.rest = &self.rest[at + 2..];
                return if key.is_empty() {
                    Err(Status::SubdocPathInvalid)
                } else {
                    Ok(key)
                };
            }
        }
        Err(Status::SubdocPathInvalid)
    }
}

fn index_component(text: &str) -> Result<Component, Status> {
    if text == "-1" {
        return Ok(Component::Last);
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Status::SubdocPathInvalid);
    }
    text.parse()
        .map(Component::Index)
        .map_err(|_| Status::SubdocPathInvalid)
}
