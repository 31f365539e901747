//! Executes statements.
//!
//! Reads are lazy: a row is made when there is room to write it. Writes are complete
//! before the first byte of the response, so that a fault that cuts the connection
//! after applying finds everything applied.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::consistency;
use crate::error::QueryError;
use crate::keyspace::Keyspace;
use crate::language::{
    EvalScope, Expression, KeyspacePath, Parameters, Projection, Row, Statement, parse,
};
use crate::options::RequestOptions;
use crate::session::Session;
use crate::transaction::Transaction;

/// Rows that are made as they are read. An error is the last.
pub type ResultRows = Box<dyn Iterator<Item = Result<Value, QueryError>> + Send>;

/// A statement on its way.
pub(crate) struct Execution<'a> {
    pub session: &'a Arc<dyn Session>,
    pub options: &'a RequestOptions,
    pub parameters: Parameters,
    pub transaction: Option<Arc<Transaction>>,
}

/// The result of a statement.
pub struct Executed {
    /// The types of the rows.
    pub signature: Value,
    /// The rows.
    pub rows: ResultRows,
    /// How many documents were changed.
    pub mutations: u64,
    /// How many bytes the rows hold until they are written, about.
    pub held: usize,
    /// The name of the plan, where the client is to learn it.
    pub prepared: Option<String>,
}

impl Executed {
    /// A result that is nothing but an error.
    pub fn failing(error: QueryError) -> Self {
        Self {
            rows: Box::new(std::iter::once(Err(error))),
            ..Self::with_rows(Value::Null, Vec::new())
        }
    }

    pub(crate) fn with_rows(signature: Value, rows: Vec<Value>) -> Self {
        Self {
            signature,
            held: rows.iter().map(weight).sum(),
            rows: Box::new(rows.into_iter().map(Ok)),
            mutations: 0,
            prepared: None,
        }
    }
}

pub(crate) type Done = Result<Executed, QueryError>;

/// Executes the statement of a request, or its plan.
///
/// # Errors
/// If nothing was executed. An error of a row comes with the rows.
pub fn execute(options: &RequestOptions, session: &Arc<dyn Session>) -> Done {
    options.check()?;
    let parameters = options
        .parameters(session.random())
        .map_err(|sentence| QueryError::new(1070, sentence))?;
    consistency::check(options, &**session)?;
    let mut execution = Execution {
        session,
        options,
        parameters,
        transaction: None,
    };
    if options.flag("tximplicit") {
        return execution.in_a_transaction();
    }
    // In use until the statement is executed.
    let joined = options
        .text("txid")
        .map(|id| session.transactions().join(id, session))
        .transpose()?;
    execution.transaction = joined.as_ref().map(|joined| Arc::clone(&joined.0));
    execution.run_request()
}

impl Execution<'_> {
    /// Executes the statement of the request, or its plan.
    pub(crate) fn run_request(&mut self) -> Done {
        match (
            self.options.text("prepared"),
            self.options.text("statement"),
        ) {
            (Some(name), None) => self.run_prepared(name),
            (None, Some(statement)) => self.run(statement),
            (Some(_), Some(_)) => Err(QueryError::new(
                1060,
                "Multiple values for statement or prepared.",
            )),
            (None, None) => Err(QueryError::new(1050, "No statement or prepared value")),
        }
    }

    /// Executes a statement.
    pub(crate) fn run(&mut self, text: &str) -> Done {
        match parse(text)? {
            Statement::Prepare { name, text } => self.prepare(name, &text),
            Statement::Execute { name, using } => {
                if let Some(using) = using {
                    self.use_arguments(&using)?;
                }
                match self.document_step(&name) {
                    Some(done) => done,
                    None => self.run_prepared(&name),
                }
            }
            Statement::Select(select) => self.select(select),
            Statement::Write(write) => self.write(&write),
            Statement::Index(index) => self.change_indexes(&index),
            Statement::Transaction(step) => self.transact(&step),
        }
    }

    /// Executes the plan of a name.
    pub(crate) fn run_prepared(&mut self, name: &str) -> Done {
        let encoded = self.options.text("encoded_plan");
        let text = self.session.plans().statement(name, encoded)?;
        match parse(&text)? {
            Statement::Select(select) => self.select(select),
            Statement::Write(write) => self.write(&write),
            Statement::Index(index) => self.change_indexes(&index),
            // Such a plan is never made; a client could have made it up.
            Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Transaction(_) => {
                Err(QueryError::unrecognizable_plan(name))
            }
        }
    }

    fn prepare(&mut self, name: Option<String>, text: &str) -> Done {
        let (name, encoded) = self.session.plans().prepare(name, text);
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

    pub(crate) fn open(&self, path: &KeyspacePath) -> Result<Keyspace, QueryError> {
        Keyspace::open(self, path)
    }

    /// The keys that a statement names, or all there are.
    pub(crate) fn keys(
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

    pub(crate) fn count(
        &self,
        expression: Option<&Expression>,
    ) -> Result<Option<usize>, QueryError> {
        let Some(expression) = expression else {
            return Ok(None);
        };
        let value = self.scope(None).evaluate(expression)?;
        let count = value.as_ref().and_then(Value::as_i64);
        let count = count.ok_or_else(|| QueryError::new(5010, "LIMIT and OFFSET are numbers."))?;
        // Less than nothing is nothing.
        Ok(Some(usize::try_from(count.max(0)).unwrap_or(usize::MAX)))
    }

    pub(crate) fn scope<'a>(&'a self, row: Option<(&'a str, &'a Row)>) -> EvalScope<'a> {
        EvalScope {
            parameters: &self.parameters,
            row,
            group: None,
            alias: "",
        }
    }
}

/// The signature of the rows: the names, without the types of the values.
pub(crate) fn signature(projection: &Projection) -> Value {
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

/// How many bytes a value takes up, about.
pub(crate) fn weight(value: &Value) -> usize {
    const OVERHEAD: usize = 32;
    OVERHEAD
        + match value {
            Value::String(text) => text.len(),
            Value::Array(array) => array.iter().map(weight).sum(),
            Value::Object(object) => object
                .iter()
                .map(|(name, value)| name.len() + weight(value))
                .sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
