//! A recursive-descent parser for statements.

mod cursor;
mod expressions;
mod indexes;
mod transactions;
mod writes;

use super::LanguageError;
use super::expression::Expression;
use super::lexer::{Lexeme, LexemeKind, split};
use super::statement::{KeyspacePath, Projection, Select, Source, Statement, Term};

use cursor::is_reserved;

/// The maximum nesting of expressions: statements come from the network, and the stack is finite.
const MAX_DEPTH: usize = 64;
/// The maximum number of operators, fields and elements in a statement, because chains nest.
const MAX_LINKS: usize = 200;

/// Reads a statement.
pub(crate) fn parse(text: &str) -> Result<Statement, LanguageError> {
    let mut parser = Parser {
        text,
        lexemes: split(text)?,
        at: 0,
        depth: 0,
        links: 0,
        placeholders: 0,
    };
    let statement = parser.statement()?;
    let ended = parser.symbol(";");
    match parser.lexemes.get(parser.at) {
        None => Ok(statement),
        Some(lexeme) if ended => Err(LanguageError::syntax_at(lexeme.at, "a second statement")),
        Some(_) => Err(parser.unexpected()),
    }
}

struct Parser<'a> {
    text: &'a str,
    lexemes: Vec<Lexeme>,
    at: usize,
    depth: usize,
    links: usize,
    /// How many `?` there have been.
    placeholders: usize,
}

type Parsed<T> = Result<T, LanguageError>;

impl Parser<'_> {
    fn statement(&mut self) -> Parsed<Statement> {
        if self.word("PREPARE") {
            return self.prepare();
        }
        if self.word("EXECUTE") {
            if self.is_word(self.at, "FUNCTION") && self.lexemes.len() > self.at + 1 {
                return Err(LanguageError::Unsupported("EXECUTE FUNCTION".into()));
            }
            let name = match self.peek().cloned() {
                Some(LexemeKind::Text(name)) => {
                    self.at += 1;
                    name
                }
                _ => self.name()?,
            };
            let using = self.word("USING").then(|| self.expression()).transpose()?;
            return Ok(Statement::Execute { name, using });
        }
        if self.word("SELECT") {
            return self.select().map(Statement::Select);
        }
        if self.is_word(self.at, "FROM") || self.is_symbol("(") {
            let what = "a statement that begins with FROM or a parenthesis";
            return Err(LanguageError::Unsupported(what.into()));
        }
        if let Some(step) = self.transaction()? {
            return Ok(Statement::Transaction(step));
        }
        let start = self.at;
        if self.word("CREATE") || self.word("DROP") || self.word("BUILD") {
            self.at = start;
            return self.index().map(Statement::Index);
        }
        self.write().map(Statement::Write)
    }

    fn prepare(&mut self) -> Parsed<Statement> {
        self.word("FORCE");
        let begins = |kind: Option<&LexemeKind>| {
            let word = match kind {
                Some(LexemeKind::Word(word)) => word.to_ascii_uppercase(),
                _ => return false,
            };
            matches!(
                word.as_str(),
                "SELECT" | "INSERT" | "UPSERT" | "UPDATE" | "DELETE" | "PREPARE" | "EXECUTE"
            )
        };
        let name = if begins(self.peek()) {
            None
        } else {
            let name = self.name()?;
            if !self.word("AS") {
                self.expect_word("FROM")?;
            }
            Some(name)
        };
        let start = self
            .lexemes
            .get(self.at)
            .map_or(self.text.len(), |lexeme| lexeme.at);
        match self.statement()? {
            Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Transaction(_) => {
                Err(LanguageError::Syntax(
                    "syntax error - only a statement on documents can be prepared".into(),
                ))
            }
            Statement::Select(_) | Statement::Write(_) | Statement::Index(_) => {
                Ok(Statement::Prepare {
                    name,
                    text: self.text[start..]
                        .trim_end_matches([';', ' ', '\n'])
                        .to_owned(),
                })
            }
        }
    }

    fn select(&mut self) -> Parsed<Select> {
        let distinct = self.word("DISTINCT");
        let projection = self.projection()?;
        let source = if self.word("FROM") {
            Some(self.source()?)
        } else {
            None
        };
        let filter = self.clause("WHERE")?;
        let group = if self.word("GROUP") {
            self.expect_word("BY")?;
            self.several(Self::expression)?
        } else {
            Vec::new()
        };
        let having = self.clause("HAVING")?;
        let order = if self.word("ORDER") {
            self.expect_word("BY")?;
            self.several(|parser| {
                let by = parser.expression()?;
                let descending = parser.word("DESC");
                if !descending {
                    parser.word("ASC");
                }
                Ok((by, descending))
            })?
        } else {
            Vec::new()
        };
        let limit = self.clause("LIMIT")?;
        let offset = self.clause("OFFSET")?;
        Ok(Select {
            projection,
            distinct,
            source,
            filter,
            group,
            having,
            order,
            limit,
            offset,
        })
    }

    /// One item or several, between commas.
    fn several<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.symbol(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn source(&mut self) -> Parsed<Source> {
        if ["(", "[", "{"].iter().any(|symbol| self.is_symbol(symbol)) {
            return Err(LanguageError::Unsupported("an expression in FROM".into()));
        }
        let (keyspace, mut alias) = self.keyspace()?;
        if self.is_symbol("(") {
            return Err(LanguageError::Unsupported("a function in FROM".into()));
        }
        if self.word("AS") {
            alias = self.name()?;
        } else if let Some(LexemeKind::Word(word)) = self.peek()
            && !is_reserved(word)
        {
            alias = self.name()?;
        } else if matches!(self.peek(), Some(LexemeKind::Name(_))) {
            alias = self.name()?;
        }
        if self.is_symbol(",") {
            return Err(LanguageError::Unsupported(
                "a second keyspace in FROM".into(),
            ));
        }
        let mut keys = None;
        if self.word("USE") {
            if self.word("INDEX") {
                // Nothing uses an index, so the hint says nothing.
                self.skip_parentheses()?;
            } else {
                self.word("PRIMARY");
                self.expect_word("KEYS")?;
                keys = Some(self.expression()?);
            }
        }
        Ok(Source {
            keyspace,
            alias,
            keys,
        })
    }

    fn keyspace(&mut self) -> Parsed<(KeyspacePath, String)> {
        let mut namespace = None;
        let mut first = self.name()?;
        if self.symbol(":") {
            namespace = Some(std::mem::replace(&mut first, self.name()?));
        }
        let mut parts = vec![first];
        while self.symbol(".") {
            parts.push(self.name()?);
        }
        let alias = parts.last().cloned().unwrap_or_default();
        Ok((KeyspacePath { namespace, parts }, alias))
    }

    fn projection(&mut self) -> Parsed<Projection> {
        self.word("ALL");
        if self.word("RAW") || self.word("ELEMENT") || self.word("VALUE") {
            return self.expression().map(Projection::Raw);
        }
        let mut terms = Vec::new();
        let mut unnamed = 0;
        loop {
            terms.push(self.term(&mut unnamed)?);
            if !self.symbol(",") {
                return Ok(Projection::Object(terms));
            }
        }
    }

    fn term(&mut self, unnamed: &mut usize) -> Parsed<Term> {
        if self.symbol("*") {
            return Ok(Term::Everything);
        }
        let value = self.expression()?;
        if self.symbol(".") {
            self.expect_symbol("*")?;
            return Ok(Term::FieldsOf(value));
        }
        let named = self.word("AS")
            || match self.peek() {
                Some(LexemeKind::Word(word)) => !is_reserved(word),
                Some(LexemeKind::Name(_)) => true,
                _ => false,
            };
        let name = if named {
            self.name()?
        } else if let Some(name) = value.usual_name() {
            name.to_owned()
        } else {
            *unnamed += 1;
            format!("${unnamed}")
        };
        Ok(Term::Value(value, name))
    }

    fn clause(&mut self, keyword: &str) -> Parsed<Option<Expression>> {
        self.word(keyword).then(|| self.expression()).transpose()
    }
}

#[cfg(test)]
mod tests;
