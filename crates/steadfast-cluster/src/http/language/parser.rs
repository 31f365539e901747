//! From pieces to a statement, by recursive descent.

use serde_json::Value;

use super::LanguageError;
use super::expression::{Expression, Operator, State};
use super::lexer::{Kind, Placeholder, Token, split};
use super::statement::{
    KeyspacePath, Projection, Select, Source, Statement, Term, Write, WriteKind,
};

/// How deep expressions may nest; a statement comes from the network, and a stack is finite.
const MAX_DEPTH: usize = 64;
/// How many operators, fields and elements a statement may have: a chain of them is as deep.
const MAX_LINKS: usize = 200;

/// Reads a statement.
pub(in crate::http) fn parse(text: &str) -> Result<Statement, LanguageError> {
    let mut parser = Parser {
        text,
        tokens: split(text)?,
        at: 0,
        depth: 0,
        links: 0,
        placeholders: 0,
    };
    let statement = parser.statement()?;
    parser.symbol(";");
    match parser.tokens.get(parser.at) {
        None => Ok(statement),
        Some(_) => Err(parser.unexpected()),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
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
                Some(Kind::Text(name)) => {
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
        self.write().map(Statement::Write)
    }

    fn prepare(&mut self) -> Parsed<Statement> {
        self.word("FORCE");
        let begins = |kind: Option<&Kind>| {
            let word = match kind {
                Some(Kind::Word(word)) => word.to_ascii_uppercase(),
                _ => return false,
            };
            matches!(
                word.as_str(),
                "SELECT" | "INSERT" | "UPSERT" | "DELETE" | "PREPARE" | "EXECUTE"
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
            .tokens
            .get(self.at)
            .map_or(self.text.len(), |token| token.at);
        match self.statement()? {
            Statement::Prepare { .. } | Statement::Execute { .. } => Err(LanguageError::Syntax(
                "syntax error - only a statement that does something can be prepared".into(),
            )),
            Statement::Select(_) | Statement::Write(_) => Ok(Statement::Prepare {
                name,
                text: self.text[start..]
                    .trim_end_matches([';', ' ', '\n'])
                    .to_owned(),
            }),
        }
    }

    fn select(&mut self) -> Parsed<Select> {
        let projection = self.projection()?;
        let source = if self.word("FROM") {
            Some(self.source()?)
        } else {
            None
        };
        let filter = self.clause("WHERE")?;
        let limit = self.clause("LIMIT")?;
        let offset = self.clause("OFFSET")?;
        Ok(Select {
            projection,
            source,
            filter,
            limit,
            offset,
        })
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
            (source, WriteKind::Delete { filter })
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
        } else if let Some(Kind::Word(word)) = self.peek()
            && !is_reserved(word)
        {
            alias = self.name()?;
        } else if matches!(self.peek(), Some(Kind::Name(_))) {
            alias = self.name()?;
        }
        let keys = if self.word("USE") {
            self.word("PRIMARY");
            self.expect_word("KEYS")?;
            Some(self.expression()?)
        } else {
            None
        };
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
                Some(Kind::Word(word)) => !is_reserved(word),
                Some(Kind::Name(_)) => true,
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

    fn expression(&mut self) -> Parsed<Expression> {
        self.binary(0)
    }

    /// Operators that bind more tightly have higher levels.
    fn binary(&mut self, level: usize) -> Parsed<Expression> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(LanguageError::Syntax(format!(
                "syntax error - expressions nest more than {MAX_DEPTH} deep"
            )));
        }
        let mut left = self.unary()?;
        loop {
            if level <= 3 && self.word("IS") {
                self.link()?;
                left = self.state(left)?;
                continue;
            }
            let Some((operator, tightness, length)) = self.operator() else {
                break;
            };
            if tightness < level {
                break;
            }
            self.at += length;
            self.link()?;
            let right = self.binary(tightness + 1)?;
            left = match operator {
                // NOT IN
                Operator::In if length == 2 => {
                    Expression::Not(Box::new(join(operator, left, right)))
                }
                _ => join(operator, left, right),
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The operator that comes next, how tightly it binds, and how many pieces it has.
    fn operator(&self) -> Option<(Operator, usize, usize)> {
        Some(match self.peek()? {
            Kind::Symbol(symbol) => match *symbol {
                "=" | "==" => (Operator::Equal, 3, 1),
                "!=" | "<>" => (Operator::Unequal, 3, 1),
                "<" => (Operator::Less, 3, 1),
                "<=" => (Operator::LessOrEqual, 3, 1),
                ">" => (Operator::Greater, 3, 1),
                ">=" => (Operator::GreaterOrEqual, 3, 1),
                "||" => (Operator::Concatenate, 4, 1),
                "+" => (Operator::Add, 5, 1),
                "-" => (Operator::Subtract, 5, 1),
                "*" => (Operator::Multiply, 6, 1),
                "/" => (Operator::Divide, 6, 1),
                _ => return None,
            },
            Kind::Word(word) => match word.to_ascii_uppercase().as_str() {
                "OR" => (Operator::Or, 1, 1),
                "AND" => (Operator::And, 2, 1),
                "IN" => (Operator::In, 3, 1),
                "NOT" if self.is_word(self.at + 1, "IN") => (Operator::In, 3, 2),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn state(&mut self, of: Expression) -> Parsed<Expression> {
        let negated = self.word("NOT");
        let state = if self.word("NULL") {
            State::Null
        } else if self.word("MISSING") {
            State::Missing
        } else if self.word("VALUED") || self.word("KNOWN") {
            State::Valued
        } else {
            return Err(self.unexpected());
        };
        Ok(Expression::Is(Box::new(of), state, negated))
    }

    fn unary(&mut self) -> Parsed<Expression> {
        if self.word("NOT") {
            // Binds less tightly than a comparison.
            return self.binary(3).map(|of| Expression::Not(Box::new(of)));
        }
        if self.symbol("-") {
            return self.binary(6).map(|of| Expression::Negative(Box::new(of)));
        }
        let mut value = self.primary()?;
        loop {
            let star = matches!(
                self.tokens.get(self.at + 1).map(|token| &token.kind),
                Some(Kind::Symbol("*"))
            );
            if !star && self.symbol(".") {
                self.link()?;
                value = Expression::Field(Box::new(value), self.name()?);
            } else if self.symbol("[") {
                self.link()?;
                let index = self.expression()?;
                self.expect_symbol("]")?;
                value = Expression::Element(Box::new(value), Box::new(index));
            } else {
                return Ok(value);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expression> {
        let Some(kind) = self.peek().cloned() else {
            return Err(self.unexpected());
        };
        self.at += 1;
        match kind {
            Kind::Text(text) => Ok(Expression::Literal(text.into())),
            Kind::Number(number) => Ok(Expression::Literal(Value::Number(number))),
            Kind::Parameter(Placeholder::Named(name)) => Ok(Expression::Named(name)),
            Kind::Parameter(Placeholder::Numbered(number)) => Ok(Expression::Positional(number)),
            Kind::Parameter(Placeholder::Next) => {
                self.placeholders += 1;
                Ok(Expression::Positional(self.placeholders))
            }
            Kind::Symbol("(") => {
                let inner = self.expression()?;
                self.expect_symbol(")")?;
                Ok(inner)
            }
            Kind::Symbol("[") => self.list("]", Self::expression).map(Expression::Array),
            Kind::Symbol("{") => self
                .list("}", |parser| {
                    let name = match parser.peek().cloned() {
                        Some(Kind::Text(name)) => {
                            parser.at += 1;
                            name
                        }
                        _ => parser.name()?,
                    };
                    parser.expect_symbol(":")?;
                    Ok((name, parser.expression()?))
                })
                .map(Expression::Object),
            Kind::Name(name) => Ok(Expression::Name(name)),
            Kind::Word(word) => self.word_expression(&word),
            Kind::Symbol(_) => {
                self.at -= 1;
                Err(self.unexpected())
            }
        }
    }

    fn word_expression(&mut self, word: &str) -> Parsed<Expression> {
        let upper = word.to_ascii_uppercase();
        if self.symbol("(") {
            return match upper.as_str() {
                "META" => {
                    // There is one keyspace, so naming it says nothing new.
                    if !self.symbol(")") {
                        self.name()?;
                        self.expect_symbol(")")?;
                    }
                    Ok(Expression::Meta)
                }
                "COUNT" => {
                    self.expect_symbol("*")?;
                    self.expect_symbol(")")?;
                    Ok(Expression::Count)
                }
                _ => Err(LanguageError::Syntax(format!("Invalid function {word}"))),
            };
        }
        match upper.as_str() {
            "TRUE" => Ok(Expression::Literal(true.into())),
            "FALSE" => Ok(Expression::Literal(false.into())),
            "NULL" => Ok(Expression::Literal(Value::Null)),
            "MISSING" => Ok(Expression::Missing),
            _ if is_reserved(word) => {
                self.at -= 1;
                Err(self.unexpected())
            }
            _ => Ok(Expression::Name(word.to_owned())),
        }
    }

    fn link(&mut self) -> Parsed<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(LanguageError::Syntax(format!(
                "syntax error - more than {MAX_LINKS} operators"
            )));
        }
        Ok(())
    }

    fn list<T>(
        &mut self,
        end: &'static str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.symbol(end) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.symbol(end) {
                return Ok(items);
            }
            self.expect_symbol(",")?;
        }
    }

    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn is_word(&self, at: usize, keyword: &str) -> bool {
        matches!(self.tokens.get(at).map(|token| &token.kind),
            Some(Kind::Word(word)) if word.eq_ignore_ascii_case(keyword))
    }

    fn word(&mut self, keyword: &str) -> bool {
        let found = self.is_word(self.at, keyword);
        self.at += usize::from(found);
        found
    }

    fn symbol(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Kind::Symbol(symbol)) if *symbol == wanted);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, keyword: &str) -> Parsed<()> {
        if self.word(keyword) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn expect_symbol(&mut self, symbol: &str) -> Parsed<()> {
        if self.symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn name(&mut self) -> Parsed<String> {
        let name = match self.peek() {
            Some(Kind::Word(name) | Kind::Name(name)) => name.clone(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(name)
    }

    fn unexpected(&self) -> LanguageError {
        match self.tokens.get(self.at) {
            None => LanguageError::Syntax("syntax error - unexpected end of statement".into()),
            Some(token) => {
                let near: String = self.text[token.at..].chars().take(20).collect();
                LanguageError::syntax_at(token.at, &near)
            }
        }
    }
}

fn join(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}

/// Words that end a term instead of naming it.
fn is_reserved(word: &str) -> bool {
    const RESERVED: &[&str] = &[
        "ALL",
        "AND",
        "AS",
        "BY",
        "DELETE",
        "DISTINCT",
        "FROM",
        "GROUP",
        "HAVING",
        "IN",
        "INSERT",
        "INTO",
        "IS",
        "JOIN",
        "LET",
        "LIMIT",
        "NEST",
        "NOT",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "RAW",
        "RETURNING",
        "SELECT",
        "SET",
        "UNION",
        "UNNEST",
        "UPDATE",
        "UPSERT",
        "USE",
        "USING",
        "VALUES",
        "WHERE",
    ];
    RESERVED
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word))
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
    fn what_is_not_spoken_here_is_a_syntax_error() {
        for text in [
            "",
            "SELEC 1",
            "SELECT",
            "SELECT FROM",
            "SELECT 1 FROM",
            "SELECT 1 1",
            "SELECT DISTINCT a FROM b",
            "SELECT a FROM b JOIN c",
            "SELECT nope(1)",
            "SELECT (1",
            "SELECT [1,",
            "SELECT {\"a\" 1}",
            "INSERT INTO b VALUES",
            "INSERT INTO b VALUES ('k')",
            "DELETE b",
            "UPDATE b SET a = 1",
            "SELECT 1; SELECT 2",
        ] {
            assert!(
                matches!(parse(text), Err(LanguageError::Syntax(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn no_soup_of_pieces_makes_it_panic() {
        use rand::rngs::SmallRng;
        use rand::seq::IndexedRandom;
        use rand::{Rng, SeedableRng};
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
            let soup: String = (0..length)
                .filter_map(|_| PIECES.choose(&mut random))
                .copied()
                .collect();
            let parsed = std::panic::catch_unwind(|| parse(&soup).is_ok());
            assert!(parsed.is_ok(), "seed {seed}, round {round}: {soup:?}");
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
