//! Executes INSERT, UPSERT, UPDATE and DELETE.

use serde_json::Value;

use crate::error::QueryError;
use crate::execute::{Done, Executed, Execution, signature, weight};
use crate::keyspace::Keyspace;
use crate::language::{
    Assignment, EvalScope, Expression, PathStep, Row, Step, Write, WriteKind, set_path, unset_path,
};
use crate::select::Selection;
use crate::session::WriteMode;

/// The changed documents, and the first error.
type Changed = (Vec<Row>, Option<QueryError>);

impl Execution<'_> {
    /// Rejects a statement that changes documents where it must not.
    pub(crate) fn check_write(&self, kind: &str) -> Result<(), QueryError> {
        if self.options.flag("readonly") {
            return Err(QueryError::read_only());
        }
        if !self.session.may_write() {
            return Err(QueryError::unauthorized(&format!("{kind} statements")));
        }
        Ok(())
    }

    pub(crate) fn write(&self, write: &Write) -> Done {
        self.check_write(write.kind.name())?;
        let keyspace = self.open(&write.source.keyspace)?;
        if let Some(projection) = &write.returning {
            // Rejects an invalid RETURNING before anything is written.
            let row = Row::default();
            self.scope(Some((&write.source.alias, &row)))
                .project(projection)?;
        }
        let before = self
            .transaction
            .as_ref()
            .map(|transaction| transaction.staged());
        let (changed, failed) = match &write.kind {
            WriteKind::Insert(pairs) => self.store(&keyspace, WriteMode::Insert, pairs)?,
            WriteKind::Upsert(pairs) => self.store(&keyspace, WriteMode::Upsert, pairs)?,
            WriteKind::Delete { filter, limit } => {
                let rows = self.found(write, &keyspace, filter, limit)?;
                change_each(&rows, |row| match keyspace.remove(&row.key)? {
                    true => Ok(Some(row.clone())),
                    false => Ok(None),
                })
            }
            WriteKind::Update {
                set,
                unset,
                filter,
                limit,
            } => {
                let rows = self.found(write, &keyspace, filter, limit)?;
                let mut updated = Vec::new();
                for row in rows {
                    let scope = self.scope(Some((&write.source.alias, &row)));
                    let mut value = row.value.clone();
                    for (path, to) in set {
                        // Setting something to MISSING leaves it out.
                        match scope.evaluate(to)? {
                            Some(to) => set_path(&mut value, &steps(path, &scope)?, to),
                            None => unset_path(&mut value, &steps(path, &scope)?),
                        }
                    }
                    for path in unset {
                        unset_path(&mut value, &steps(path, &scope)?);
                    }
                    updated.push((row.key, value));
                }
                change_each(&updated, |(key, value)| {
                    keyspace.store(WriteMode::Update, key, value)
                })
            }
        };
        if let (Some(error), Some(transaction)) = (&failed, &self.transaction) {
            // In a transaction, a statement is applied as a whole or not at all.
            transaction.restore(before.unwrap_or_default(), self.session)?;
            return Err(error.clone());
        }
        let returned = |row| {
            let projection = write.returning.as_ref()?;
            let scope = self.scope(Some((&write.source.alias, row)));
            let projected = scope.project(projection);
            Some(projected.map_err(QueryError::from))
        };
        let mut rows: Vec<Result<Value, QueryError>> =
            changed.iter().filter_map(returned).collect();
        rows.extend(failed.map(Err));
        let signature = write.returning.as_ref().map_or(Value::Null, signature);
        Ok(Executed {
            mutations: changed.len() as u64,
            held: rows.iter().flatten().map(weight).sum(),
            rows: Box::new(rows.into_iter()),
            ..Executed::with_rows(signature, Vec::new())
        })
    }

    /// The documents that a statement is about, all of them before the first change.
    fn found(
        &self,
        write: &Write,
        keyspace: &Keyspace,
        filter: &Option<Expression>,
        limit: &Option<Expression>,
    ) -> Result<Vec<Row>, QueryError> {
        let rows = Selection {
            keyspace: keyspace.clone(),
            parameters: self.parameters.clone(),
            alias: write.source.alias.clone(),
            filter: filter.clone(),
        };
        let limit = self.count(limit.as_ref())?.unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for key in self.keys(keyspace, write.source.keys.as_ref())? {
            if found.len() >= limit {
                break;
            }
            found.extend(rows.find(&key)?);
        }
        Ok(found)
    }

    fn store(
        &self,
        keyspace: &Keyspace,
        mode: WriteMode,
        pairs: &[(Expression, Expression)],
    ) -> Result<Changed, QueryError> {
        let scope = self.scope(None);
        // Nothing is written before every key and value is known.
        let mut documents = Vec::new();
        for (key, value) in pairs {
            let Some(Value::String(key)) = scope.evaluate(key)? else {
                return Err(QueryError::new(
                    5070,
                    "Cannot write a key that is not a string.",
                ));
            };
            documents.push((key, scope.evaluate(value)?.unwrap_or(Value::Null)));
        }
        Ok(change_each(&documents, |(key, value)| {
            keyspace.store(mode, key, value)
        }))
    }
}

fn steps(path: &Assignment, scope: &EvalScope<'_>) -> Result<Vec<Step>, QueryError> {
    let steps = path.0.iter().map(|step| {
        Ok(match step {
            PathStep::Field(name) => Step::Field(name.clone()),
            PathStep::Element(index) => {
                let index = scope.evaluate(index)?.as_ref().and_then(Value::as_u64);
                Step::Element(index.and_then(|index| index.try_into().ok()))
            }
        })
    });
    steps.collect()
}

/// Changes one document after the other. Like a real service, it keeps the changes
/// made so far and goes on after an error, so a statement can be applied in part.
fn change_each<T>(each: &[T], change: impl Fn(&T) -> Result<Option<Row>, QueryError>) -> Changed {
    let (mut changed, mut failed) = (Vec::new(), None);
    for item in each {
        match change(item) {
            Ok(row) => changed.extend(row),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    (changed, failed)
}
