//! A recursive-descent parser for statements.

mod cursor;
mod expressions;
mod indexes;

use super::LanguageError;
use super::expression::Expression;
use super::lexer::{Lexeme, LexemeKind, split};
use super::statement::{
    Assignment, KeyspacePath, PathStep, Projection, Select, Source, Statement, Term, Write,
    WriteKind,
};

use cursor::is_reserved;

/// The maximum nesting of expressions: statements come from the network, and the stack is finite.
const MAX_DEPTH: usize = 64;
/// The maximum number of operators, fields and elements in a statement, because chains nest.
const MAX_LINKS: usize = 200;

/// Reads a statement.
pub(in crate::http) fn parse(text: &str) -> Result<Statement, LanguageError> {
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
            Statement::Prepare { .. } | Statement::Execute { .. } => Err(LanguageError::Syntax(
                "syntax error - only a statement that does something can be prepared".into(),
            )),
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

    fn write(&mut self) -> Parsed<Write> {
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
            self.expect_symbol(")")?;
        }
        self.expect_word("VALUES")?;
        let mut pairs = Vec::new();
        loop {
            self.expect_symbol("(")?;
            let key = self.expression()?;
            self.expect_symbol(",")?;
            let value = self.expression()?;
            self.expect_symbol(")")?;
            pairs.push((key, value));
            if !self.symbol(",") {
                return Ok(pairs);
            }
            self.word("VALUES");
        }
    }

    fn source(&mut self) -> Parsed<Source> {
        let (keyspace, mut alias) = self.keyspace()?;
        if self.word("AS") {
            alias = self.name()?;
        } else if let Some(LexemeKind::Word(word)) = self.peek()
            && !is_reserved(word)
        {
            alias = self.name()?;
        } else if matches!(self.peek(), Some(LexemeKind::Name(_))) {
            alias = self.name()?;
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
mod tests {
    use super::*;

    #[test]
    fn a_prepared_statement_keeps_its_text() {
        for (text, wanted) in [
            ("PREPARE SELECT 1", (None, "SELECT 1")),
            ("prepare p AS  SELECT $1 ;", (Some("p"), "SELECT $1")),
            ("PREPARE FORCE `p` FROM SELECT 1", (Some("p"), "SELECT 1")),
        ] {
            let Statement::Prepare { name, text } = parse(text).unwrap() else {
                panic!("{text} is a PREPARE")
            };
            assert_eq!((name.as_deref(), text.as_str()), wanted);
        }
        assert!(parse("PREPARE PREPARE SELECT 1").is_err());
    }

    #[test]
    fn keyspaces_have_namespaces_parts_and_aliases() {
        let Statement::Select(select) =
            parse("SELECT d.* FROM default:`a-b`.s.`c` AS d USE KEYS ['k'] WHERE d.x = 1 LIMIT 2")
                .unwrap()
        else {
            panic!("it is a SELECT")
        };
        let source = select.source.unwrap();
        assert_eq!(source.keyspace.to_string(), "default:a-b.s.c");
        assert_eq!(source.alias, "d");
        assert!(source.keys.is_some() && select.filter.is_some() && select.limit.is_some());
    }

    #[test]
    fn what_only_a_real_service_has_is_unsupported() {
        for (text, what) in [
            ("SELECT a FROM b JOIN c ON 1", "JOIN"),
            ("SELECT a FROM b x LEFT JOIN c y ON 1", "LEFT"),
            ("SELECT a FROM b UNNEST c", "UNNEST"),
            ("SELECT nope(1)", "the function NOPE"),
            ("SELECT CASE WHEN 1 THEN 2 END", "CASE"),
            ("SELECT (SELECT 1)", "a subquery"),
            ("SELECT EXISTS [1]", "EXISTS"),
            ("SELECT 1 UNION SELECT 2", "UNION"),
            ("MERGE INTO b", "MERGE"),
            ("EXPLAIN SELECT 1", "EXPLAIN"),
            ("CREATE FUNCTION f() { 1 }", "CREATE"),
            ("ALTER INDEX a ON b", "ALTER"),
            ("BEGIN WORK", "BEGIN"),
            ("UPDATE STATISTICS FOR b", "UPDATE"),
            ("WITH a AS (1) SELECT a", "WITH"),
            ("UPDATE b SET META().expiration = 1", "a change of META()"),
        ] {
            assert_eq!(
                parse(text),
                Err(LanguageError::Unsupported(what.to_owned())),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_statements_are_syntax_errors() {
        for text in [
            "",
            "SELEC 1",
            "SELECT",
            "SELECT FROM",
            "SELECT 1 FROM",
            "SELECT 1 1",
            "SELECT a FROM b ORDER a",
            "SELECT a FROM b GROUP a",
            "SELECT a LIKE",
            "SELECT a BETWEEN 1 OR 2",
            "SELECT UPPER()",
            "SELECT COUNT()",
            "UPDATE b",
            "UPDATE b SET",
            "UPDATE b SET a",
            "CREATE INDEX ON b(a)",
            "CREATE INDEX i ON b",
            "DROP INDEX",
            "BUILD INDEX b",
            "SELECT (1",
            "SELECT [1,",
            "SELECT {\"a\" 1}",
            "INSERT INTO b VALUES",
            "INSERT INTO b VALUES ('k')",
            "DELETE b",
            "SELECT 1; SELECT 2",
        ] {
            assert!(
                matches!(parse(text), Err(LanguageError::Syntax(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn random_lexemes_never_panic() {
        use rand::rngs::SmallRng;
        use rand::seq::IndexedRandom;
        use rand::{RngExt, SeedableRng};
        const PIECES: &[&str] = &[
            "SELECT ",
            "RAW ",
            "FROM ",
            "`b`",
            "b ",
            "USE KEYS ",
            "[",
            "]",
            "(",
            ")",
            "{",
            "}",
            ",",
            ".",
            "*",
            ":",
            "'k'",
            "\"",
            "'",
            "`",
            "\\",
            "$1",
            "$",
            "?",
            "1",
            "1e",
            "-",
            "NOT ",
            "IS ",
            "IN ",
            "NULL ",
            "META()",
            "COUNT(*)",
            "SUM(",
            "UPPER(",
            "LIKE ",
            "BETWEEN ",
            "ORDER BY ",
            "GROUP BY ",
            "UPDATE ",
            "SET ",
            "UNSET ",
            "CREATE INDEX ",
            "PRIMARY ",
            "ON ",
            "WITH ",
            "PREPARE ",
            "EXECUTE ",
            "p ",
            "AS ",
            "INSERT INTO ",
            "VALUES ",
            "DELETE ",
            "WHERE ",
            "LIMIT ",
            "RETURNING ",
            "=",
            "||",
            "--",
            "/*",
            "ü",
            ";",
            "\n",
        ];
        let seed = 4711;
        let mut random = SmallRng::seed_from_u64(seed);
        for round in 0..20_000 {
            let length = random.random_range(0..24);
            let text: String = (0..length)
                .filter_map(|_| PIECES.choose(&mut random))
                .copied()
                .collect();
            let parsed = std::panic::catch_unwind(|| parse(&text).is_ok());
            assert!(parsed.is_ok(), "seed {seed}, round {round}: {text:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for open in ["(", "[", "-", "NOT ", "a["] {
            let text = format!("SELECT {}", open.repeat(100_000));
            assert!(parse(&text).is_err());
        }
        let chain = |length| parse(&format!("SELECT 1{}", "+1".repeat(length)));
        assert!(chain(MAX_LINKS).is_ok() && chain(100_000).is_err());
        assert!(parse(&format!("SELECT a{}", ".b".repeat(100_000))).is_err());
    }
}
