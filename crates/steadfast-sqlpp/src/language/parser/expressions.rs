//! Parses expressions by operator precedence.

use serde_json::Value;

use super::super::LanguageError;
use super::super::expression::{Aggregate, AggregateKind, Expression, IsTest, Operator};
use super::super::function::Function;
use super::super::lexer::{LexemeKind, Placeholder};
use super::cursor::is_reserved;
use super::{MAX_DEPTH, Parsed, Parser};

impl Parser<'_> {
    pub(crate) fn expression(&mut self) -> Parsed<Expression> {
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
            if level <= 3
                && let Some((negated, keyword)) = self.match_keyword()
            {
                self.link()?;
                left = match keyword {
                    "LIKE" => Expression::Like(Box::new(left), Box::new(self.binary(4)?)),
                    _ => {
                        let least = self.binary(4)?;
                        self.expect_word("AND")?;
                        let most = self.binary(4)?;
                        join(
                            Operator::And,
                            join(Operator::GreaterOrEqual, left.clone(), least),
                            join(Operator::LessOrEqual, left, most),
                        )
                    }
                };
                if negated {
                    left = Expression::Not(Box::new(left));
                }
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

    /// `[NOT] LIKE` or `[NOT] BETWEEN`, if it comes next.
    fn match_keyword(&mut self) -> Option<(bool, &'static str)> {
        let negated = self.is_word(self.at, "NOT");
        let at = self.at + usize::from(negated);
        let keyword = ["LIKE", "BETWEEN"]
            .into_iter()
            .find(|keyword| self.is_word(at, keyword))?;
        self.at = at + 1;
        Some((negated, keyword))
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
                "%" => (Operator::Remainder, 6, 1),
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
                if self.is_symbol("*") || self.is_symbol(":") {
                    return Err(slice());
                }
                let index = self.expression()?;
                if self.is_symbol(":") {
                    return Err(slice());
                }
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
            LexemeKind::Symbol("(") if self.is_word(self.at, "SELECT") => {
                Err(LanguageError::Unsupported("a subquery".into()))
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
                "UUID" => self.expect_symbol(")").map(|()| Expression::Uuid),
                _ => self.call(&upper),
            };
        }
        match upper.as_str() {
            "CASE" | "EXISTS" | "ANY" | "EVERY" | "SOME" => {
                self.at -= 1;
                Err(self.unexpected())
            }
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

fn slice() -> LanguageError {
    LanguageError::Unsupported("a slice of an array".into())
}

impl Parser<'_> {
    /// A call of a function, behind its opening parenthesis.
    fn call(&mut self, name: &str) -> Parsed<Expression> {
        let kind = match name {
            "COUNT" => Some(AggregateKind::Count),
            "SUM" => Some(AggregateKind::Sum),
            "AVG" => Some(AggregateKind::Average),
            "MIN" => Some(AggregateKind::Least),
            "MAX" => Some(AggregateKind::Greatest),
            "ARRAY_AGG" => Some(AggregateKind::Array),
            _ => None,
        };
        let Some(kind) = kind else {
            let function = Function::from_name(name)
                .ok_or_else(|| LanguageError::Unsupported(format!("the function {name}")))?;
            let arguments = self.list(")", Self::expression)?;
            function.check(arguments.len())?;
            return Ok(Expression::Call(function, arguments));
        };
        let distinct = self.word("DISTINCT");
        let all = kind == AggregateKind::Count && !distinct && self.symbol("*");
        let of = match all {
            true => None,
            false => Some(Box::new(self.expression()?)),
        };
        self.expect_symbol(")")?;
        Ok(Expression::Aggregate(Aggregate { kind, distinct }, of))
    }
}

fn join(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}
