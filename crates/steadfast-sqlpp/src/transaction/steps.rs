//! Begins and ends transactions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{MAX_SAVEPOINTS, Place, Staged, Transaction, random_id};
use crate::error::QueryError;
use crate::execute::{Done, Executed, Execution, weight};
use crate::keyspace::Keyspace;
use crate::language::{KeyspacePath, TransactionStep};
use crate::session::Session;

impl Execution<'_> {
    /// Executes a statement that begins or ends a transaction, or takes a savepoint.
    pub(crate) fn transact(&self, step: &TransactionStep) -> Done {
        let nothing = || Ok(Executed::with_rows(json!("json"), Vec::new()));
        let transaction = match (step, &self.transaction) {
            (TransactionStep::Begin, None) => return self.begin(),
            (TransactionStep::SetIsolation, None) => return nothing(),
            (_, None) => return Err(QueryError::no_transaction("")),
            (_, Some(_)) if self.options.flag("tximplicit") => {
                return Err(QueryError::not_in_a_transaction("This statement"));
            }
            (_, Some(transaction)) => transaction,
        };
        let open = self.session.transactions();
        match step {
            TransactionStep::SetIsolation => {}
            TransactionStep::Begin => {
                let message = format!("The transaction {} has begun already.", transaction.id);
                return Err(QueryError::new(17_006, message));
            }
            TransactionStep::Commit => {
                open.close(&transaction.id);
                transaction.commit(self.session)?;
            }
            TransactionStep::Rollback => {
                open.close(&transaction.id);
                transaction.roll_back(self.session)?;
            }
            TransactionStep::Savepoint(name) => transaction.take_savepoint(name)?,
            TransactionStep::RollbackTo(name) => {
                transaction.return_to_savepoint(name, self.session)?;
            }
        }
        nothing()
    }

    /// Executes a statement in its own transaction.
    pub(crate) fn in_a_transaction(&mut self) -> Done {
        let transaction = Transaction::implicit(self.options, self.session);
        self.transaction = Some(Arc::clone(&transaction));
        let executed = self.run_request().and_then(|executed| {
            // An error of a late row undoes the statement, too.
            let rows = executed.rows.collect::<Result<Vec<Value>, _>>()?;
            Ok(Executed {
                held: rows.iter().map(weight).sum(),
                rows: Box::new(rows.into_iter().map(Ok)),
                ..executed
            })
        });
        match executed {
            Ok(executed) => transaction.commit(self.session).map(|()| executed),
            Err(error) => {
                if let Err(remains) = transaction.roll_back(self.session) {
                    tracing::debug!(%remains.message, "a failed statement is not undone");
                }
                Err(error)
            }
        }
    }

    fn begin(&self) -> Done {
        let sent = self.options.value("txdata");
        let id = |name: &str| match &sent["id"][name] {
            Value::Null => Ok(random_id(&**self.session)),
            Value::String(id) if is_safe(id) => Ok(id.clone()),
            _ => Err(QueryError::new(
                17_006,
                "The id of the transaction is invalid.",
            )),
        };
        let transaction = Transaction::new(id("atmpt")?, id("txn")?, self.options, self.session);
        if let Some(name) = self.options.text("atrcollection") {
            let keyspace = self.open(&KeyspacePath::quoted(name))?;
            transaction.changes.lock().wanted_record =
                Some((keyspace.bucket().to_owned(), keyspace.collection()));
        }
        self.adopt(&transaction, sent)?;
        let transaction = Arc::new(transaction);
        self.session
            .transactions()
            .open(&transaction, self.session)?;
        let joined = super::Joined(transaction);
        let row = json!({"nodeUUID": self.session.cluster_uuid(), "txid": joined.0.id});
        Ok(Executed::with_rows(json!("json"), vec![row]))
    }

    /// Takes over the changes that the client has staged by itself.
    fn adopt(&self, transaction: &Transaction, sent: &Value) -> Result<(), QueryError> {
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let open = |value: &Value| {
            self.open(&KeyspacePath {
                namespace: Some("default".to_owned()),
                parts: ["bkt", "scp", "coll"].map(|part| text(value, part)).into(),
            })
        };
        let record = text(&sent["atr"], "id");
        if !record.is_empty() {
            let place = open(&sent["atr"])?.place(&record);
            transaction.changes.lock().record = Some(place);
        } else if !text(&sent["atr"], "bkt").is_empty() {
            let keyspace = open(&sent["atr"])?;
            transaction.changes.lock().wanted_record =
                Some((keyspace.bucket().to_owned(), keyspace.collection()));
        }
        for mutation in sent["mutations"].as_array().into_iter().flatten() {
            let (keyspace, key) = (open(mutation)?, text(mutation, "id"));
            let Some(change) = keyspace.staged_by(transaction, &key)? else {
                let message = format!("The change of {key} is no longer staged.");
                return Err(QueryError::new(17_006, message).asking_for_a_retry());
            };
            let mut changes = transaction.changes.lock();
            changes.staged.insert(keyspace.place(&key), change);
        }
        Ok(())
    }
}

/// Returns whether an id can be part of a path inside a record.
fn is_safe(id: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    !id.is_empty() && id.len() <= 128 && id.chars().all(allowed)
}

impl Transaction {
    /// Applies every staged change. Once the record says "committed", the transaction cannot be undone.
    pub(crate) fn commit(&self, session: &Arc<dyn Session>) -> Result<(), QueryError> {
        let staged = self.staged();
        if !staged.is_empty()
            && let Err(status) = self.set_state("COMMITTED", &staged, session)
        {
            self.roll_back(session)?;
            let message = format!("Commit Transaction statement error: {status}");
            return Err(QueryError::new(17_007, message).with_cause("failed", false, false));
        }
        let mut failed = None;
        for (place, change) in &staged {
            let applied = Keyspace::of_place(session, place)
                .and_then(|it| it.apply(self, &place.key, change));
            if let Err(error) = applied {
                failed.get_or_insert(error.message);
            }
        }
        match failed {
            None => self.leave_record(session),
            Some(message) => {
                let message = format!(
                    "The transaction is committed, but a change could not be applied: {message}"
                );
                Err(QueryError::new(17_018, message).with_cause("failed_post_commit", false, false))
            }
        }
    }

    /// Undoes every staged change.
    pub(crate) fn roll_back(&self, session: &Arc<dyn Session>) -> Result<(), QueryError> {
        let staged = self.staged();
        if !staged.is_empty() {
            // If the entry is gone, a client has already rolled the transaction back.
            let _ = self.set_state("ABORTED", &staged, session);
        }
        self.restore(Staged::new(), session)
            .and_then(|()| self.leave_record(session))
            .map_err(|error| {
                let message = format!("Rollback Transaction statement error: {}", error.message);
                QueryError::new(17_008, message).with_cause("failed", false, false)
            })
    }

    /// Restages what was staged at an earlier time, and undoes the rest.
    pub(crate) fn restore(
        &self,
        earlier: Staged,
        session: &Arc<dyn Session>,
    ) -> Result<(), QueryError> {
        let staged = self.staged();
        let mut failed = None;
        let places: BTreeSet<&Place> = staged.keys().chain(earlier.keys()).collect();
        for place in places {
            if self.change(place) == earlier.get(place).cloned() {
                continue;
            }
            let keyspace = Keyspace::of_place(session, place);
            let restored = keyspace.and_then(|it| match earlier.get(place) {
                Some(change) => it.put(self, &place.key, change.clone(), None).map(|_| ()),
                None => it.unstage(self, &place.key),
            });
            if let Err(error) = restored {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn take_savepoint(&self, name: &str) -> Result<(), QueryError> {
        let mut changes = self.changes.lock();
        let staged = changes.staged.clone();
        changes.savepoints.retain(|(known, _)| known != name);
        if changes.savepoints.len() >= MAX_SAVEPOINTS {
            return Err(QueryError::new(17_009, "Too many savepoints."));
        }
        changes.savepoints.push((name.to_owned(), staged));
        Ok(())
    }

    fn return_to_savepoint(
        &self,
        name: &str,
        session: &Arc<dyn Session>,
    ) -> Result<(), QueryError> {
        let earlier = {
            let mut changes = self.changes.lock();
            let at = changes
                .savepoints
                .iter()
                .position(|(known, _)| known == name);
            let at = at.ok_or_else(|| {
                QueryError::new(17_009, format!("{name} savepoint is not defined"))
            })?;
            changes.savepoints.truncate(at + 1);
            changes.savepoints[at].1.clone()
        };
        self.restore(earlier, session)
    }

    /// The staged changes, as they are now.
    pub(crate) fn staged(&self) -> Staged {
        self.changes.lock().staged.clone()
    }

    pub(crate) fn change(&self, place: &Place) -> Option<super::StagedChange> {
        self.changes.lock().staged.get(place).cloned()
    }
}
