//! Parses INSERT, UPSERT, UPDATE and DELETE.

use super::super::LanguageError;
use super::super::expression::Expression;
use super::super::statement::{Assignment, PathStep, Source, Write, WriteKind};
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(crate) fn write(&mut self) -> Parsed<Write> {
        let (source, kind) = if self.word("INSERT") {
            let source = self.target("INTO")?;
            (source, WriteKind::Insert(self.values()?))
        } else if self.word("UPSERT") {
            let source = self.target("INTO")?;
            (source, WriteKind::Upsert(self.values()?))
        } else if self.word("DELETE") {
            self.expect_word("FROM")?;
            let source = self.source()?;
            let filter = self.clause("WHERE")?;
            let limit = self.clause("LIMIT")?;
            (source, WriteKind::Delete { filter, limit })
        } else if self.is_word(self.at, "UPDATE") && !self.is_word(self.at + 1, "STATISTICS") {
            self.at += 1;
            self.update()?
        } else {
            return Err(self.unexpected());
        };
        let returning = self
            .word("RETURNING")
            .then(|| self.projection())
            .transpose()?;
        Ok(Write {
            kind,
            source,
            returning,
        })
    }

    /// `keyspace … [SET a = b, …] [UNSET a, …] [WHERE …] [LIMIT …]`
    fn update(&mut self) -> Parsed<(Source, WriteKind)> {
        let source = self.source()?;
        let (mut set, mut unset) = (Vec::new(), Vec::new());
        if self.word("SET") {
            set = self.several(|parser| {
                let path = parser.assignment(&source.alias)?;
                parser.expect_symbol("=")?;
                Ok((path, parser.expression()?))
            })?;
        }
        if self.word("UNSET") {
            unset = self.several(|parser| parser.assignment(&source.alias))?;
        }
        if set.is_empty() && unset.is_empty() {
            return Err(self.unexpected());
        }
        let filter = self.clause("WHERE")?;
        let limit = self.clause("LIMIT")?;
        let kind = WriteKind::Update {
            set,
            unset,
            filter,
            limit,
        };
        Ok((source, kind))
    }

    /// The part of a document to change. The alias of the keyspace may stand in front.
    fn assignment(&mut self, alias: &str) -> Parsed<Assignment> {
        let mut steps = vec![PathStep::Field(self.name()?)];
        loop {
            self.link()?;
            if self.symbol(".") {
                if matches!(&steps[..], [PathStep::Field(first)] if first == alias) {
                    steps.clear();
                }
                steps.push(PathStep::Field(self.name()?));
            } else if self.symbol("[") {
                steps.push(PathStep::Element(self.expression()?));
                self.expect_symbol("]")?;
            } else if self.symbol("(") {
                return Err(LanguageError::Unsupported("a change of META()".into()));
            } else {
                return Ok(Assignment(steps));
            }
        }
    }

    fn target(&mut self, keyword: &str) -> Parsed<Source> {
        self.expect_word(keyword)?;
        let (keyspace, alias) = self.keyspace()?;
        Ok(Source {
            keyspace,
            alias,
            keys: None,
        })
    }

    /// `[(KEY, VALUE)] VALUES (k, v) [, [VALUES] (k, v)]…`
    fn values(&mut self) -> Parsed<Vec<(Expression, Expression)>> {
        if self.symbol("(") {
            self.expect_word("KEY")?;
            self.expect_symbol(",")?;
            self.expect_word("VALUE")?;
            if self.is_symbol(",") {
                return Err(options());
            }
            self.expect_symbol(")")?;
        }
        if self.is_word(self.at, "SELECT") {
            return Err(LanguageError::Unsupported("INSERT of a SELECT".into()));
        }
        self.expect_word("VALUES")?;
        let mut pairs = Vec::new();
        loop {
            self.expect_symbol("(")?;
            let key = self.expression()?;
            self.expect_symbol(",")?;
            let value = self.expression()?;
            if self.is_symbol(",") {
                return Err(options());
            }
            self.expect_symbol(")")?;
            pairs.push((key, value));
            if !self.symbol(",") {
                return Ok(pairs);
            }
            self.word("VALUES");
        }
    }
}

fn options() -> LanguageError {
    LanguageError::Unsupported("OPTIONS of VALUES".into())
}
