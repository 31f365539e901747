//! Syntax tree of statements.

use super::expression::Expression;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
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
    /// `INSERT`, `UPSERT`, `UPDATE` and `DELETE`.
    Write(Write),
    /// `CREATE INDEX …`, `BUILD INDEX …` and `DROP INDEX …`.
    Index(IndexStatement),
    /// `BEGIN WORK`, `COMMIT`, `ROLLBACK …` and `SAVEPOINT …`.
    Transaction(TransactionStep),
}

/// A step of a transaction that is not about documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransactionStep {
    Begin,
    Commit,
    Rollback,
    Savepoint(String),
    /// `ROLLBACK TO SAVEPOINT name`
    RollbackTo(String),
    /// `SET TRANSACTION ISOLATION LEVEL READ COMMITTED`, which is the only level.
    SetIsolation,
}

/// A change of the indexes of a keyspace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexStatement {
    pub keyspace: KeyspacePath,
    pub change: IndexChange,
}

/// The kind of change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum IndexChange {
    Create {
        /// Without a name, the name of a primary index.
        name: Option<String>,
        primary: bool,
        if_missing: bool,
        /// The keys and the condition, as they were written.
        keys: Vec<String>,
        condition: Option<String>,
        /// `HASH(…)`
        partition: Option<String>,
        /// `WITH {…}`
        with: Option<Expression>,
    },
    Drop {
        name: Option<String>,
        if_exists: bool,
    },
    Build(Vec<String>),
}

/// `SELECT … [FROM …] [WHERE …] [GROUP BY …] [ORDER BY …] [LIMIT …] [OFFSET …]`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    pub projection: Projection,
    /// Whether equal rows come once.
    pub distinct: bool,
    pub source: Option<Source>,
    pub filter: Option<Expression>,
    pub group: Vec<Expression>,
    pub having: Option<Expression>,
    /// The expressions to sort by; the flag is DESC.
    pub order: Vec<(Expression, bool)>,
    pub limit: Option<Expression>,
    pub offset: Option<Expression>,
}

/// The shape of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Projection {
    /// `RAW a`: the value itself.
    Raw(Expression),
    /// An object of these.
    Object(Vec<Term>),
}

impl Projection {
    /// Returns whether it contains an aggregate function.
    pub(crate) fn aggregates(&self) -> bool {
        match self {
            Self::Raw(value) => value.aggregates(),
            Self::Object(terms) => terms.iter().any(Term::aggregates),
        }
    }

    /// The expression that a result shows under this name.
    pub(crate) fn named(&self, wanted: &str) -> Option<&Expression> {
        match self {
            Self::Raw(_) => None,
            Self::Object(terms) => terms.iter().find_map(|term| match term {
                Term::Value(value, name) if name == wanted => Some(value),
                _ => None,
            }),
        }
    }
}

/// One part of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Term {
    /// `*`
    Everything,
    /// `a.*`
    FieldsOf(Expression),
    /// `a AS b`, with the name it goes by.
    Value(Expression, String),
}

/// `keyspace [AS alias] [USE KEYS …]`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub keyspace: KeyspacePath,
    pub alias: String,
    /// Without keys, all documents.
    pub keys: Option<Expression>,
}

/// The parts of a keyspace's name, as many as were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyspacePath {
    pub namespace: Option<String>,
    pub parts: Vec<String>,
}

impl KeyspacePath {
    /// Reads a name such as ``default:`b`.`s`.`c` ``.
    pub(crate) fn quoted(name: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut quoted = false;
        for letter in name.strip_prefix("default:").unwrap_or(name).chars() {
            match letter {
                '`' => quoted = !quoted,
                '.' if !quoted => parts.push(String::new()),
                _ => {
                    if let Some(part) = parts.last_mut() {
                        part.push(letter);
                    }
                }
            }
        }
        Self {
            namespace: Some("default".to_owned()),
            parts,
        }
    }
}

impl std::fmt::Display for KeyspacePath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let namespace = self.namespace.as_deref().unwrap_or("default");
        write!(formatter, "{namespace}:{}", self.parts.join("."))
    }
}

/// A statement that changes documents.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    pub kind: WriteKind,
    pub source: Source,
    /// `RETURNING …`
    pub returning: Option<Projection>,
}

/// The kind of change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WriteKind {
    /// Keys and values; only new documents.
    Insert(Vec<(Expression, Expression)>),
    /// Keys and values; new documents or old.
    Upsert(Vec<(Expression, Expression)>),
    /// Those that the source has and the filter lets through.
    Delete {
        filter: Option<Expression>,
        limit: Option<Expression>,
    },
    /// The same, with these changes.
    Update {
        set: Vec<(Assignment, Expression)>,
        unset: Vec<Assignment>,
        filter: Option<Expression>,
        limit: Option<Expression>,
    },
}

/// The part of a document that an UPDATE changes: fields, and elements by their index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment(pub Vec<PathStep>);

/// A step into a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PathStep {
    Field(String),
    Element(Expression),
}

impl WriteKind {
    /// The keyword.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "INSERT",
            Self::Upsert(_) => "UPSERT",
            Self::Delete { .. } => "DELETE",
            Self::Update { .. } => "UPDATE",
        }
    }
}

impl Term {
    /// The name it goes by; everything has none.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Everything | Self::FieldsOf(_) => None,
            Self::Value(_, name) => Some(name),
        }
    }

    /// Returns whether it contains an aggregate function.
    pub(crate) fn aggregates(&self) -> bool {
        match self {
            Self::Everything => false,
            Self::FieldsOf(value) | Self::Value(value, _) => value.aggregates(),
        }
    }
}
