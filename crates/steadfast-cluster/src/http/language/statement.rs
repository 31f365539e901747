//! Syntax tree of statements.

use super::expression::Expression;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum Statement {
    /// `PREPARE [name AS] …`
    Prepare {
        name: Option<String>,
        /// What is prepared, as it was written.
        text: String,
    },
    /// `EXECUTE name [USING …]`
    Execute {
        name: String,
        using: Option<Expression>,
    },
    /// `SELECT …`
    Select(Select),
    /// `INSERT`, `UPSERT` and `DELETE`.
    Write(Write),
}

/// `SELECT … [FROM …] [WHERE …] [LIMIT …] [OFFSET …]`
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct Select {
    pub projection: Projection,
    pub source: Option<Source>,
    pub filter: Option<Expression>,
    pub limit: Option<Expression>,
    pub offset: Option<Expression>,
}

/// The shape of a row.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum Projection {
    /// `RAW a`: the value itself.
    Raw(Expression),
    /// An object of these.
    Object(Vec<Term>),
}

/// One part of an object.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum Term {
    /// `*`
    Everything,
    /// `a.*`
    FieldsOf(Expression),
    /// `a AS b`, with the name it goes by.
    Value(Expression, String),
}

/// `keyspace [AS alias] [USE KEYS …]`
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct Source {
    pub keyspace: KeyspacePath,
    pub alias: String,
    /// Without keys, all documents.
    pub keys: Option<Expression>,
}

/// The parts of a keyspace's name, as many as were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct KeyspacePath {
    pub namespace: Option<String>,
    pub parts: Vec<String>,
}

impl std::fmt::Display for KeyspacePath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let namespace = self.namespace.as_deref().unwrap_or("default");
        write!(formatter, "{namespace}:{}", self.parts.join("."))
    }
}

/// A statement that changes documents.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct Write {
    pub kind: WriteKind,
    pub source: Source,
    /// `RETURNING …`
    pub returning: Option<Projection>,
}

/// The kind of change.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum WriteKind {
    /// Keys and values; only new documents.
    Insert(Vec<(Expression, Expression)>),
    /// Keys and values; new documents or old.
    Upsert(Vec<(Expression, Expression)>),
    /// Those that the source has and the filter lets through.
    Delete { filter: Option<Expression> },
}

impl WriteKind {
    /// The keyword.
    pub(in crate::http) const fn name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "INSERT",
            Self::Upsert(_) => "UPSERT",
            Self::Delete { .. } => "DELETE",
        }
    }
}

impl Term {
    /// The name it goes by; everything has none.
    pub(in crate::http) fn name(&self) -> Option<&str> {
        match self {
            Self::Everything | Self::FieldsOf(_) => None,
            Self::Value(_, name) => Some(name),
        }
    }

    /// Returns whether it contains `COUNT(*)`.
    pub(in crate::http) fn counts(&self) -> bool {
        match self {
            Self::Everything => false,
            Self::FieldsOf(value) | Self::Value(value, _) => value.counts(),
        }
    }
}
