//! The small part of SQL++ that the cluster answers by itself.
//!
//! It lets tests of a client run without a script for every response. Literals and
//! parameters are echoed, and documents are read and written by key. Without keys, a
//! keyspace is read as a whole, as if it had a primary index.
//!
//! A transaction can begin, take savepoints, and be committed or rolled back.
//! Results can be filtered, grouped, ordered and limited; documents can be inserted,
//! upserted, updated and deleted; indexes can be created, built and dropped, and are
//! listed, but nothing uses them. What is part of SQL++ and not of this subset is
//! rejected as unsupported, so that nobody looks for a mistake in the statement.
//!
//! [`parse`] turns a statement into a [`Statement`]; [`EvalScope`] evaluates its
//! expressions.

mod change;
mod evaluate;
mod expression;
mod function;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lexer;
mod like;
mod parser;
mod statement;

pub(crate) use change::{Step, set_path, unset_path};
pub(crate) use evaluate::{EvalScope, Parameters, collate};
pub use evaluate::{Random, Row};
pub(crate) use expression::Expression;
pub(crate) use function::uuid;
pub(crate) use parser::parse;
pub(crate) use statement::{
    Assignment, IndexChange, IndexStatement, KeyspacePath, PathStep, Projection, Select, Statement,
    TransactionStep, Write, WriteKind,
};

/// The reason why a statement fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LanguageError {
    /// The statement is not SQL++.
    #[error("{0}")]
    Syntax(String),
    /// The statement needs something that only a real service has.
    #[error(
        "{0} is not supported by this cluster: script the answer with `POST /scripts` of the \
         control endpoint, or with `TestCluster::script`"
    )]
    Unsupported(String),
    /// The statement cannot be evaluated.
    #[error("{0}")]
    Evaluation(String),
}

impl LanguageError {
    fn syntax_at(at: usize, near: &str) -> Self {
        Self::Syntax(format!("syntax error - at or near {near:?}, offset {at}"))
    }
}
