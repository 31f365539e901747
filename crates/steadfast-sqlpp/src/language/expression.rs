//! Syntax tree of expressions.

use serde_json::Value;

use super::function::Function;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    /// A value that stands in the statement.
    Literal(Value),
    /// `MISSING`, which is not even null.
    Missing,
    /// `$1`, or `?` by its session: the arguments from one on.
    Positional(usize),
    /// `$name`
    Named(String),
    /// The name of a keyspace, or of a field of its documents.
    Name(String),
    /// `a.b`
    Field(Box<Self>, String),
    /// `a[0]`
    Element(Box<Self>, Box<Self>),
    /// `[a, b]`
    Array(Vec<Self>),
    /// `{"a": b}`
    Object(Vec<(String, Self)>),
    /// `NOT a`
    Not(Box<Self>),
    /// `-a`
    Negative(Box<Self>),
    /// `a = b` and the like.
    Binary(Operator, Box<Self>, Box<Self>),
    /// `a IS NULL` and the like; the flag is its NOT.
    Is(Box<Self>, IsTest, bool),
    /// `META()`
    Meta,
    /// `UUID()`: a random one.
    Uuid,
    /// `a LIKE b`
    Like(Box<Self>, Box<Self>),
    /// `COUNT(*)`, `SUM(a)` and the like.
    Aggregate(Aggregate, Option<Box<Self>>),
    /// `UPPER(a)` and the like.
    Call(Function, Vec<Self>),
}

/// An aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aggregate {
    pub kind: AggregateKind,
    /// Whether equal values count once.
    pub distinct: bool,
}

/// The kind of an aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    Count,
    Sum,
    Average,
    Least,
    Greatest,
    Array,
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Concatenate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The test of an `IS` expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsTest {
    Null,
    Missing,
    /// Neither null nor missing.
    Valued,
}

impl Expression {
    /// Returns whether it contains an aggregate function.
    pub(crate) fn aggregates(&self) -> bool {
        match self {
            Self::Aggregate(..) => true,
            Self::Literal(_)
            | Self::Missing
            | Self::Positional(_)
            | Self::Named(_)
            | Self::Name(_)
            | Self::Meta
            | Self::Uuid => false,
            Self::Field(of, _) | Self::Not(of) | Self::Negative(of) | Self::Is(of, _, _) => {
                of.aggregates()
            }
            Self::Element(left, right) | Self::Like(left, right) | Self::Binary(_, left, right) => {
                left.aggregates() || right.aggregates()
            }
            Self::Array(items) | Self::Call(_, items) => items.iter().any(Self::aggregates),
            Self::Object(fields) => fields.iter().any(|(_, value)| value.aggregates()),
        }
    }

    /// A path of fields as a service shows it, such as ``(`a`.`b`)``; nothing for others.
    pub(crate) fn shown_path(&self) -> Option<String> {
        match self {
            Self::Name(name) => Some(format!("`{name}`")),
            Self::Field(of, name) => Some(format!("({}.`{name}`)", of.shown_path()?)),
            _ => None,
        }
    }

    /// The name that a result has for it where none was given.
    pub(crate) fn usual_name(&self) -> Option<&str> {
        match self {
            Self::Name(name) | Self::Field(_, name) => Some(name),
            _ => None,
        }
    }
}
