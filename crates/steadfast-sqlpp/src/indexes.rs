//! Executes statements about indexes.

use serde_json::{Value, json};

use crate::error::QueryError;
use crate::execute::{Done, Executed, Execution};
use crate::index_definitions::{IndexDefinition, IndexError};
use crate::language::{IndexChange, IndexStatement};

impl Execution<'_> {
    pub(crate) fn change_indexes(&self, statement: &IndexStatement) -> Done {
        if self.options.flag("readonly") {
            return Err(QueryError::read_only());
        }
        if self.transaction.is_some() {
            return Err(QueryError::not_in_a_transaction("A change of indexes"));
        }
        let keyspace = self.open(&statement.keyspace)?;
        let (indexes, collection) = (keyspace.indexes(), keyspace.collection());
        let done = match &statement.change {
            IndexChange::Create {
                name,
                primary,
                if_missing,
                keys,
                condition,
                partition,
                with,
            } => {
                let with = match with {
                    Some(with) => self.scope(None).evaluate(with)?.unwrap_or_default(),
                    None => Value::Null,
                };
                let index = IndexDefinition {
                    name: name.clone(),
                    primary: *primary,
                    keys: keys.clone(),
                    condition: condition.clone(),
                    partition: partition.clone(),
                    deferred: with["defer_build"] == true,
                };
                match indexes.create(collection, index) {
                    Err(IndexError::Exists(_)) if *if_missing => Ok(()),
                    created => created,
                }
            }
            IndexChange::Drop { name, if_exists } => {
                match indexes.drop(collection, name.as_deref()) {
                    Err(IndexError::NotFound(_) | IndexError::NoPrimary) if *if_exists => Ok(()),
                    dropped => dropped,
                }
            }
            IndexChange::Build(names) => indexes.build(collection, names),
        };
        done?;
        Ok(Executed::with_rows(json!(null), Vec::new()))
    }
}
