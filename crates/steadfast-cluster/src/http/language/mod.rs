//! The small part of SQL++ that the cluster answers by itself.
//!
//! It lets tests of a client run without a script for every response. Literals and
//! parameters are echoed, and documents are read and written by key. Without keys, a
//! keyspace is read as a whole, as if it had a primary index. Anything else is rejected
//! with a syntax error, as by a real service.
//!
//! There are no joins, no grouping, no order but that of the keys, no UPDATE, and no
//! functions but `META` and `COUNT(*)`.
//!
//! [`parse`] turns a statement into a [`Statement`]; [`EvalScope`] evaluates its
//! expressions.

mod evaluate;
mod expression;
mod lexer;
mod parser;
mod statement;

pub(super) use evaluate::{EvalScope, Parameters, Row};
pub(super) use expression::Expression;
pub(super) use parser::parse;
pub(super) use statement::{KeyspacePath, Projection, Select, Statement, Write, WriteKind};

/// The reason why a statement fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LanguageError {
    /// The statement is not supported.
    #[error("{0}")]
    Syntax(String),
    /// The statement cannot be evaluated.
    #[error("{0}")]
    Evaluation(String),
}

impl LanguageError {
    fn syntax_at(at: usize, near: &str) -> Self {
        Self::Syntax(format!("syntax error - at or near {near:?}, offset {at}"))
    }
}
