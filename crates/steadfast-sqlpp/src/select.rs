//! Executes SELECT.
//!
//! A plain SELECT is lazy. Grouping, sorting and DISTINCT need all rows first.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::error::QueryError;
use crate::execute::{Done, Executed, Execution, signature};
use crate::keyspace::Keyspace;
use crate::language::{
    EvalScope, Expression, KeyspacePath, LanguageError, Parameters, Row, Select, collate,
};

/// The documents of a keyspace that a filter lets through.
pub(crate) struct Selection {
    pub keyspace: Keyspace,
    pub parameters: Parameters,
    pub alias: String,
    pub filter: Option<Expression>,
}

impl Selection {
    pub(crate) fn find(&self, key: &str) -> Result<Option<Row>, QueryError> {
        let Some(row) = self.keyspace.read(key)? else {
            return Ok(None);
        };
        let holds = self.scope(&row).passes(self.filter.as_ref())?;
        Ok(holds.then_some(row))
    }

    pub(crate) fn scope<'a>(&'a self, row: &'a Row) -> EvalScope<'a> {
        EvalScope {
            parameters: &self.parameters,
            row: Some((&self.alias, row)),
            group: None,
            alias: &self.alias,
        }
    }
}

impl Execution<'_> {
    pub(crate) fn select(&self, mut select: Select) -> Done {
        // A name in ORDER BY can be one of the result.
        for (by, _) in &mut select.order {
            if let Expression::Name(name) = by
                && let Some(shown) = select.projection.named(name)
            {
                *by = shown.clone();
            }
        }
        let grouped = !select.group.is_empty()
            || select.having.is_some()
            || select.projection.aggregates()
            || select.order.iter().any(|(by, _)| by.aggregates());
        let Some(source) = &select.source else {
            // Without a keyspace there is one row, made of nothing.
            let rows = match self.scope(None).passes(select.filter.as_ref())? {
                true => vec![Row::default()],
                false => Vec::new(),
            };
            return self.select_all(&select, "", rows, grouped);
        };
        if source.keyspace.namespace.as_deref() == Some("system") {
            let mut rows = self.system_rows(&source.keyspace)?;
            let mut failed = None;
            rows.retain(|row| {
                let scope = self.scope(Some((&source.alias, row)));
                scope
                    .passes(select.filter.as_ref())
                    .unwrap_or_else(|error| {
                        failed = Some(error);
                        false
                    })
            });
            if let Some(error) = failed {
                return Err(error.into());
            }
            return self.select_all(&select, &source.alias, rows, grouped);
        }
        let keyspace = self.open(&source.keyspace)?;
        let keys = self.keys(&keyspace, source.keys.as_ref())?;
        let rows = Selection {
            keyspace,
            parameters: self.parameters.clone(),
            alias: source.alias.clone(),
            filter: select.filter.clone(),
        };
        if grouped || select.distinct || !select.order.is_empty() {
            let mut found = Vec::new();
            for key in keys {
                found.extend(rows.find(&key)?);
            }
            return self.select_all(&select, &source.alias, found, grouped);
        }
        let limit = self.count(select.limit.as_ref())?.unwrap_or(usize::MAX);
        let offset = self.count(select.offset.as_ref())?.unwrap_or(0);
        let signature = signature(&select.projection);
        let held = keys.iter().map(String::len).sum();
        let found = keys
            .into_iter()
            .filter_map(move |key| match rows.find(&key) {
                Ok(None) => None,
                Ok(Some(row)) => {
                    let projected = rows.scope(&row).project(&select.projection);
                    Some(projected.map_err(QueryError::from))
                }
                Err(error) => Some(Err(error)),
            });
        Ok(Executed {
            held,
            rows: Box::new(found.skip(offset).take(limit)),
            ..Executed::with_rows(signature, Vec::new())
        })
    }

    /// Groups, sorts and projects rows that are all there.
    fn select_all(&self, select: &Select, alias: &str, rows: Vec<Row>, grouped: bool) -> Done {
        let groups = match grouped {
            true => self.group(select, alias, rows)?,
            false => rows.into_iter().map(|row| vec![row]).collect(),
        };
        let mut results: Vec<(Vec<Option<Value>>, Value)> = Vec::new();
        for group in &groups {
            let first = group.first().filter(|_| !alias.is_empty());
            let scope = EvalScope {
                parameters: &self.parameters,
                row: first.map(|row| (alias, row)),
                group: grouped.then_some(&group[..]),
                alias,
            };
            if !scope.passes(select.having.as_ref())? {
                continue;
            }
            let order = select.order.iter().map(|(by, _)| scope.evaluate(by));
            let order = order.collect::<Result<_, LanguageError>>()?;
            let result = scope.project(&select.projection)?;
            if select.distinct && results.iter().any(|(_, known)| *known == result) {
                continue;
            }
            results.push((order, result));
        }
        results.sort_by(|(left, _), (right, _)| {
            let columns = left.iter().zip(right).zip(&select.order);
            columns
                .map(|((left, right), (_, descending))| {
                    let order = collate(left.as_ref(), right.as_ref());
                    if *descending { order.reverse() } else { order }
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        let limit = self.count(select.limit.as_ref())?.unwrap_or(usize::MAX);
        let offset = self.count(select.offset.as_ref())?.unwrap_or(0);
        let results = results.into_iter().map(|(_, result)| result);
        let results = results.skip(offset).take(limit).collect();
        Ok(Executed::with_rows(signature(&select.projection), results))
    }

    fn group(
        &self,
        select: &Select,
        alias: &str,
        rows: Vec<Row>,
    ) -> Result<Vec<Vec<Row>>, QueryError> {
        if select.group.is_empty() {
            // Everything is one group, even nothing.
            return Ok(vec![rows]);
        }
        let mut groups: Vec<(Vec<Option<Value>>, Vec<Row>)> = Vec::new();
        for row in rows {
            let scope = self.scope(Some((alias, &row)));
            let key = select.group.iter().map(|by| scope.evaluate(by));
            let key = key.collect::<Result<Vec<_>, LanguageError>>()?;
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, group)) => group.push(row),
                None => groups.push((key, vec![row])),
            }
        }
        Ok(groups.into_iter().map(|(_, group)| group).collect())
    }

    /// The rows of a system keyspace.
    fn system_rows(&self, path: &KeyspacePath) -> Result<Vec<Row>, QueryError> {
        let name = path.parts.join(".");
        let mut rows = Vec::new();
        for bucket in self.session.buckets() {
            if !self.session.may_open(&bucket.name) {
                continue;
            }
            let all = &bucket.collections;
            match name.as_str() {
                "indexes" | "all_indexes" => {
                    let names = |id| {
                        let found = all.iter().find(|(of, ..)| *of == id);
                        found.map(|(_, scope, name)| (scope.clone(), name.clone()))
                    };
                    rows.extend(bucket.indexes.rows(&bucket.name, names));
                }
                "keyspaces" => {
                    let path = |path: &str| format!("default:{}{path}", bucket.name);
                    rows.push(json!({
                        "id": bucket.name, "name": bucket.name, "path": path(""),
                        "namespace_id": "default", "datastore_id": "cluster",
                    }));
                    rows.extend(all.iter().map(|(_, scope, name)| {
                        json!({
                            "id": name, "name": name, "bucket": bucket.name, "scope": scope,
                            "path": path(&format!(".{scope}.{name}")),
                            "namespace": "default", "datastore_id": "cluster",
                        })
                    }));
                }
                _ => {
                    return Err(LanguageError::Unsupported(format!("system:{name}")).into());
                }
            }
        }
        Ok(rows
            .into_iter()
            .map(|value| Row {
                value,
                ..Row::default()
            })
            .collect())
    }
}
