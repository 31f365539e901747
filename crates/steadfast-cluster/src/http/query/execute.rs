//! Executes statements.
//!
//! Reads are lazy: a row is made when there is room to write it. Writes are complete
//! before the first byte of the response, so that a fault that cuts the connection
//! after applying finds everything applied.

use serde_json::{Value, json};

use super::super::HttpSession;
use super::super::language::{
    EvalScope, Expression, Parameters, Projection, Row, Select, Statement, Write, WriteKind, parse,
};
use super::super::rows::{Break, Rows};
use super::error::QueryError;
use super::keyspace::Keyspace;
use super::options::RequestOptions;
use crate::store::operations::StoreMode;
use crate::users::User;

/// A statement on its way.
pub(super) struct Execution<'a> {
    pub session: &'a HttpSession,
    pub user: &'a User,
    pub options: &'a RequestOptions,
    pub parameters: Parameters,
}

/// The result of a statement.
pub(super) struct Executed {
    pub signature: Value,
    pub rows: Rows,
    /// How many documents were changed.
    pub mutations: u64,
    /// The name of the plan, where the client is to learn it.
    pub prepared: Option<String>,
}

impl Executed {
    fn with_rows(signature: Value, rows: Vec<Value>) -> Self {
        Self {
            signature,
            rows: Box::new(rows.into_iter().map(Ok)),
            mutations: 0,
            prepared: None,
        }
    }
}

type Done = Result<Executed, QueryError>;

impl Execution<'_> {
    /// Executes a statement.
    pub(super) fn run(&mut self, text: &str) -> Done {
        match parse(text)? {
            Statement::Prepare { name, text } => self.prepare(name, &text),
            Statement::Execute { name, using } => {
                if let Some(using) = using {
                    self.use_arguments(&using)?;
                }
                self.run_prepared(&name)
            }
            Statement::Select(select) => self.select(select),
            Statement::Write(write) => self.write(&write),
        }
    }

    /// Executes the plan of a name.
    pub(super) fn run_prepared(&mut self, name: &str) -> Done {
        let encoded = self.options.text("encoded_plan");
        let text = self.session.shared.plans.statement(name, encoded)?;
        match parse(&text)? {
            Statement::Select(select) => self.select(select),
            Statement::Write(write) => self.write(&write),
            // Such a plan is never made; a client could have made it up.
            Statement::Prepare { .. } | Statement::Execute { .. } => {
                Err(QueryError::unrecognizable_plan(name))
            }
        }
    }

    fn prepare(&mut self, name: Option<String>, text: &str) -> Done {
        let (name, encoded) = self.session.shared.plans.prepare(name, text);
        if self.options.flag("auto_execute") {
            let executed = self.run(text)?;
            return Ok(Executed {
                prepared: Some(name),
                ..executed
            });
        }
        let row = json!({
            "encoded_plan": encoded,
            "indexApiVersion": 4,
            "name": name,
            "operator": {"#operator": "Authorize"},
            "text": format!("PREPARE {text}"),
        });
        Ok(Executed {
            prepared: Some(name),
            ..Executed::with_rows(json!("json"), vec![row])
        })
    }

    fn use_arguments(&mut self, using: &Expression) -> Result<(), QueryError> {
        match self.scope(None).evaluate(using)? {
            Some(Value::Array(values)) => self.parameters.positional = values,
            Some(Value::Object(values)) => {
                let values = values.into_iter();
                self.parameters.named = values
                    .map(|(name, value)| (name.trim_start_matches('$').to_owned(), value))
                    .collect();
            }
            _ => return Err(QueryError::new(3000, "USING takes an array or an object.")),
        }
        Ok(())
    }

    fn select(&self, select: Select) -> Done {
        let signature = signature(&select.projection);
        let Some(source) = &select.source else {
            // Without a keyspace there is one row, made of nothing.
            let scope = EvalScope {
                count: counts(&select.projection).then_some(1),
                ..self.scope(None)
            };
            let rows = if scope.passes(select.filter.as_ref())? {
                vec![scope.project(&select.projection)?]
            } else {
                Vec::new()
            };
            return Ok(Executed::with_rows(signature, rows));
        };
        let keyspace = self.open(&source.keyspace)?;
        let keys = self.keys(&keyspace, source.keys.as_ref())?;
        let limit = self.count(select.limit.as_ref())?.unwrap_or(usize::MAX);
        let offset = self.count(select.offset.as_ref())?.unwrap_or(0);
        let rows = Selection {
            keyspace,
            parameters: self.parameters.clone(),
            alias: source.alias.clone(),
            filter: select.filter.clone(),
        };
        if counts(&select.projection) {
            let mut count = 0;
            for key in keys {
                count += u64::from(rows.find(&key)?.is_some());
            }
            let scope = EvalScope {
                count: Some(count),
                ..self.scope(None)
            };
            let row = scope.project(&select.projection)?;
            return Ok(Executed::with_rows(signature, vec![row]));
        }
        let found = keys
            .into_iter()
            .filter_map(move |key| match rows.find(&key) {
                Ok(None) => None,
                Ok(Some(row)) => {
                    let projected = rows.scope(&row).project(&select.projection);
                    Some(projected.map_err(|error| QueryError::from(error).into()))
                }
                Err(error) => Some(Err(Break::from(error))),
            });
        Ok(Executed {
            rows: Box::new(found.skip(offset).take(limit)),
            ..Executed::with_rows(signature, Vec::new())
        })
    }

    fn write(&self, write: &Write) -> Done {
        if self.options.flag("readonly") {
            return Err(QueryError::read_only());
        }
        if self.user.rights.read_only {
            let what = format!("{} statements", write.kind.name());
            return Err(QueryError::unauthorized(&what));
        }
        let keyspace = self.open(&write.source.keyspace)?;
        if let Some(projection) = &write.returning {
            // Rejects an invalid RETURNING before anything is written.
            let row = Row::default();
            self.scope(Some((&write.source.alias, &row)))
                .project(projection)?;
        }
        let (changed, failed) = match &write.kind {
            WriteKind::Insert(pairs) => self.store(&keyspace, StoreMode::Add, pairs)?,
            WriteKind::Upsert(pairs) => self.store(&keyspace, StoreMode::Set, pairs)?,
            WriteKind::Delete { filter } => {
                let rows = Selection {
                    keyspace: keyspace.clone(),
                    parameters: self.parameters.clone(),
                    alias: write.source.alias.clone(),
                    filter: filter.clone(),
                };
                let keys = self.keys(&keyspace, write.source.keys.as_ref())?;
                change_each(&keys, |key| match rows.find(key)? {
                    Some(row) if keyspace.remove(key)? => Ok(Some(row)),
                    Some(_) | None => Ok(None),
                })
            }
        };
        let returned = |row| {
            let projection = write.returning.as_ref()?;
            let scope = self.scope(Some((&write.source.alias, row)));
            let projected = scope.project(projection);
            Some(projected.map_err(|error| QueryError::from(error).into()))
        };
        let mut rows: Vec<Result<Value, Break>> = changed.iter().filter_map(returned).collect();
        rows.extend(failed.map(|error| Err(Break::from(error))));
        let signature = write.returning.as_ref().map_or(Value::Null, signature);
        Ok(Executed {
            mutations: changed.len() as u64,
            rows: Box::new(rows.into_iter()),
            ..Executed::with_rows(signature, Vec::new())
        })
    }

    fn store(
        &self,
        keyspace: &Keyspace,
        mode: StoreMode,
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
            keyspace.store(mode, key, value).map(Some)
        }))
    }

    fn open(&self, path: &super::super::language::KeyspacePath) -> Result<Keyspace, QueryError> {
        Keyspace::open(
            self.session,
            self.user,
            path,
            self.options.text("query_context"),
        )
    }

    /// The keys that a statement names, or all there are.
    fn keys(
        &self,
        keyspace: &Keyspace,
        keys: Option<&Expression>,
    ) -> Result<Vec<String>, QueryError> {
        let Some(keys) = keys else {
            return keyspace.keys();
        };
        let text = |key: Value| match key {
            Value::String(key) => Ok(key),
            _ => Err(QueryError::new(
                5370,
                "Unable to use a key that is not a string.",
            )),
        };
        match self.scope(None).evaluate(keys)? {
            Some(Value::Array(keys)) => keys.into_iter().map(text).collect(),
            Some(key) => Ok(vec![text(key)?]),
            None => Ok(Vec::new()),
        }
    }

    fn count(&self, expression: Option<&Expression>) -> Result<Option<usize>, QueryError> {
        let Some(expression) = expression else {
            return Ok(None);
        };
        let value = self.scope(None).evaluate(expression)?;
        let count = value.as_ref().and_then(Value::as_i64);
        let count = count.ok_or_else(|| QueryError::new(5010, "LIMIT and OFFSET are numbers."))?;
        // Less than nothing is nothing.
        Ok(Some(usize::try_from(count.max(0)).unwrap_or(usize::MAX)))
    }

    fn scope<'a>(&'a self, row: Option<(&'a str, &'a Row)>) -> EvalScope<'a> {
        EvalScope {
            parameters: &self.parameters,
            row,
            count: None,
        }
    }
}

/// The changed documents, and the first error.
type Changed = (Vec<Row>, Option<QueryError>);

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

/// The documents of a keyspace that a filter lets through.
struct Selection {
    keyspace: Keyspace,
    parameters: Parameters,
    alias: String,
    filter: Option<Expression>,
}

impl Selection {
    fn find(&self, key: &str) -> Result<Option<Row>, QueryError> {
        let Some(row) = self.keyspace.read(key)? else {
            return Ok(None);
        };
        let holds = self.scope(&row).passes(self.filter.as_ref())?;
        Ok(holds.then_some(row))
    }

    fn scope<'a>(&'a self, row: &'a Row) -> EvalScope<'a> {
        EvalScope {
            parameters: &self.parameters,
            row: Some((&self.alias, row)),
            count: None,
        }
    }
}

fn counts(projection: &Projection) -> bool {
    match projection {
        Projection::Raw(value) => value.counts(),
        Projection::Object(terms) => terms.iter().any(|term| term.counts()),
    }
}

/// The signature of the rows. Types are not inferred here, so every field
/// is just JSON.
pub(in crate::http) fn signature(projection: &Projection) -> Value {
    match projection {
        Projection::Raw(_) => json!("json"),
        Projection::Object(terms) => {
            let fields = terms.iter().map(|term| match term.name() {
                Some(name) => (name.to_owned(), json!("json")),
                None => ("*".to_owned(), json!("*")),
            });
            Value::Object(fields.collect())
        }
    }
}
