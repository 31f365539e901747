//! Parses statements about indexes.

use super::super::LanguageError;
use super::super::lexer::LexemeKind;
use super::super::statement::{IndexChange, IndexStatement, KeyspacePath};
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(crate) fn index(&mut self) -> Parsed<IndexStatement> {
        let start = self.at;
        let verb = self.name()?.to_ascii_uppercase();
        let primary = self.word("PRIMARY");
        if !self.word("INDEX") {
            // CREATE and DROP of anything else.
            self.at = start;
            return Err(self.unexpected());
        }
        match verb.as_str() {
            "CREATE" => self.create(primary),
            "DROP" => self.drop_index(primary),
            _ => {
                self.expect_word("ON")?;
                let (keyspace, _) = self.keyspace()?;
                self.expect_symbol("(")?;
                let names = self.list(")", |parser| match parser.peek().cloned() {
                    Some(LexemeKind::Text(name)) => {
                        parser.at += 1;
                        Ok(name)
                    }
                    _ => parser.name(),
                })?;
                self.using()?;
                let change = IndexChange::Build(names);
                Ok(IndexStatement { keyspace, change })
            }
        }
    }

    /// `[name] [IF NOT EXISTS] ON keyspace [(keys)] [PARTITION BY …] [WHERE …] [USING …] [WITH …]`
    fn create(&mut self, primary: bool) -> Parsed<IndexStatement> {
        let mut name = self.index_name("ON")?;
        let if_missing = self.condition(&["IF", "NOT", "EXISTS"]);
        if name.is_none() && if_missing {
            name = self.index_name("ON")?;
        }
        if name.is_none() && !primary {
            return Err(self.unexpected());
        }
        self.expect_word("ON")?;
        let (keyspace, _) = self.keyspace()?;
        let mut keys = Vec::new();
        if !primary {
            self.expect_symbol("(")?;
            keys = self.list(")", |parser| {
                let key = parser.written()?;
                if parser.is_symbol(":") {
                    let what = "an index with the types of its keys";
                    return Err(LanguageError::Unsupported(what.into()));
                }
                if !parser.word("DESC") {
                    parser.word("ASC");
                }
                Ok(key)
            })?;
        }
        let mut partition = None;
        if self.word("PARTITION") {
            self.expect_word("BY")?;
            self.expect_word("HASH")?;
            self.expect_symbol("(")?;
            let by = self.list(")", Self::written)?;
            partition = Some(format!("HASH({})", by.join(", ")));
        }
        let condition = match self.word("WHERE") {
            true => Some(self.written()?),
            false => None,
        };
        self.using()?;
        let with = self.word("WITH").then(|| self.expression()).transpose()?;
        let change = IndexChange::Create {
            name,
            primary,
            if_missing,
            keys,
            condition,
            partition,
            with,
        };
        Ok(IndexStatement { keyspace, change })
    }

    /// `[name] [IF EXISTS] ON keyspace`, or the older `keyspace.name`.
    fn drop_index(&mut self, primary: bool) -> Parsed<IndexStatement> {
        let if_first = self.condition(&["IF", "EXISTS"]);
        let (name, if_exists, keyspace) = if primary {
            let if_exists = self.condition(&["IF", "EXISTS"]) || if_first;
            self.expect_word("ON")?;
            (None, if_exists, self.keyspace()?.0)
        } else {
            let (path, name) = self.keyspace()?;
            let if_exists = self.condition(&["IF", "EXISTS"]) || if_first;
            if self.word("ON") {
                (Some(name), if_exists, self.keyspace()?.0)
            } else {
                let KeyspacePath {
                    namespace,
                    mut parts,
                } = path;
                parts.pop();
                if parts.is_empty() {
                    return Err(self.unexpected());
                }
                (Some(name), if_exists, KeyspacePath { namespace, parts })
            }
        };
        self.using()?;
        let change = IndexChange::Drop { name, if_exists };
        Ok(IndexStatement { keyspace, change })
    }

    /// A name, unless this keyword or IF comes next.
    fn index_name(&mut self, keyword: &str) -> Parsed<Option<String>> {
        match self.is_word(self.at, keyword) || self.is_word(self.at, "IF") {
            true => Ok(None),
            false => self.name().map(Some),
        }
    }

    fn condition(&mut self, words: &[&str]) -> bool {
        let found = (self.at..)
            .zip(words)
            .all(|(at, word)| self.is_word(at, word));
        if found {
            self.at += words.len();
        }
        found
    }

    fn using(&mut self) -> Parsed<()> {
        if self.word("USING") {
            self.expect_word("GSI")?;
        }
        Ok(())
    }

    /// An expression as it was written. A path gets backticks, as a real service shows it.
    fn written(&mut self) -> Parsed<String> {
        let start = self.lexemes.get(self.at).map_or(0, |lexeme| lexeme.at);
        let expression = self.expression()?;
        let end = self.lexemes.get(self.at);
        let end = end.map_or(self.text.len(), |lexeme| lexeme.at);
        let text = || self.text[start..end].trim().to_owned();
        Ok(expression.shown_path().unwrap_or_else(text))
    }

    pub(crate) fn skip_parentheses(&mut self) -> Parsed<()> {
        self.expect_symbol("(")?;
        let mut open = 1;
        while open > 0 {
            if self.symbol("(") {
                open += 1;
            } else if self.symbol(")") {
                open -= 1;
            } else if self.peek().is_some() {
                self.at += 1;
            } else {
                return Err(self.unexpected());
            }
        }
        Ok(())
    }
}
