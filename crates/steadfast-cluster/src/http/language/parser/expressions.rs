//! Parses expressions by operator precedence.

use serde_json::Value;

use super::super::LanguageError;
use super::super::expression::{Expression, IsTest, Operator};
use super::super::lexer::{LexemeKind, Placeholder};
use super::cursor::is_reserved;
use super::{MAX_DEPTH, Parsed, Parser};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
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
            LexemeKind::Symbol(symbol) => match *symbol {
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
            LexemeKind::Word(word) => match word.to_ascii_uppercase().as_str() {
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
            IsTest::Null
        } else if self.word("MISSING") {
            IsTest::Missing
        } else if self.word("VALUED") || self.word("KNOWN") {
            IsTest::Valued
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
                self.lexemes.get(self.at + 1).map(|lexeme| &lexeme.kind),
                Some(LexemeKind::Symbol("*"))
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
            LexemeKind::Text(text) => Ok(Expression::Literal(text.into())),
            LexemeKind::Number(number) => Ok(Expression::Literal(Value::Number(number))),
            LexemeKind::Parameter(Placeholder::Named(name)) => Ok(Expression::Named(name)),
            LexemeKind::Parameter(Placeholder::Numbered(number)) => {
                Ok(Expression::Positional(number))
            }
            LexemeKind::Parameter(Placeholder::Next) => {
                self.placeholders += 1;
                Ok(Expression::Positional(self.placeholders))
            }
            LexemeKind::Symbol("(") => {
                let inner = self.expression()?;
                self.expect_symbol(")")?;
                Ok(inner)
            }
            LexemeKind::Symbol("[") => self.list("]", Self::expression).map(Expression::Array),
            LexemeKind::Symbol("{") => self
                .list("}", |parser| {
                    let name = match parser.peek().cloned() {
                        Some(LexemeKind::Text(name)) => {
                            parser.at += 1;
                            name
                        }
                        _ => parser.name()?,
                    };
                    parser.expect_symbol(":")?;
                    Ok((name, parser.expression()?))
                })
                .map(Expression::Object),
            LexemeKind::Name(name) => Ok(Expression::Name(name)),
            LexemeKind::Word(word) => self.word_expression(&word),
            LexemeKind::Symbol(_) => {
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
}

fn join(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}
