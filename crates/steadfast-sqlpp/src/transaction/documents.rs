//! Single documents in a transaction.
//!
//! Once an SDK has executed a statement in a transaction, it reads and writes documents
//! with prepared statements of fixed names, such as `EXECUTE __get`. Their arguments are the
//! keyspace, the key, and the value.

use serde_json::{Value, json};

use super::Transaction;
use crate::error::QueryError;
use crate::execute::{Done, Executed, Execution};
use crate::language::{KeyspacePath, Row};
use crate::session::WriteMode;

impl Execution<'_> {
    /// Executes one of these statements. Returns `None` for any other name.
    pub(crate) fn document_step(&self, name: &str) -> Option<Done> {
        let transaction = self.transaction.as_ref()?;
        matches!(name, "__get" | "__insert" | "__update" | "__delete")
            .then(|| self.run_document_step(transaction, name))
    }

    fn run_document_step(&self, transaction: &Transaction, name: &str) -> Done {
        let arguments = &self.parameters.positional;
        let [Value::String(keyspace), Value::String(key), rest @ ..] = arguments.as_slice() else {
            let message = format!("EXECUTE {name} takes a keyspace and a key.");
            return Err(QueryError::new(17_099, message));
        };
        let keyspace = self.open(&KeyspacePath::quoted(keyspace))?;
        if name != "__get" {
            self.check_write("transactional")?;
        }
        if name == "__update" || name == "__delete" {
            let current = keyspace.read_in(transaction, key)?;
            let current = current.ok_or_else(|| QueryError::key_not_found(key))?;
            self.check_cas(&current)?;
        }
        let value = rest.first().unwrap_or(&Value::Null);
        let shown = match name {
            "__get" => keyspace.read_in(transaction, key)?,
            "__insert" => keyspace.stage(transaction, WriteMode::Insert, key, Some(value))?,
            "__update" => keyspace.stage(transaction, WriteMode::Update, key, Some(value))?,
            _ => keyspace.stage(transaction, WriteMode::Update, key, None)?,
        };
        let shown = shown.ok_or_else(|| QueryError::key_not_found(key))?;
        let row = json!({"scas": shown.cas.to_string(), "doc": shown.value});
        let mutations = u64::from(name != "__get");
        Ok(Executed {
            mutations,
            ..Executed::with_rows(json!("json"), vec![row])
        })
    }

    /// The document must be the one that the SDK has read.
    fn check_cas(&self, current: &Row) -> Result<(), QueryError> {
        match self.options.value("txdata")["scas"].as_str() {
            Some(cas) if cas != "0" && cas != current.cas.to_string() => Err(QueryError::new(
                17_015,
                format!("cas mismatch for {}", current.key),
            )),
            _ => Ok(()),
        }
    }
}
