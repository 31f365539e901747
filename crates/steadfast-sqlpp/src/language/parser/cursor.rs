//! The parser's position in the lexemes.

use super::super::LanguageError;
use super::super::lexer::LexemeKind;
use super::{MAX_LINKS, Parsed, Parser};

impl Parser<'_> {
    pub(crate) fn link(&mut self) -> Parsed<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(LanguageError::Syntax(format!(
                "syntax error - more than {MAX_LINKS} operators"
            )));
        }
        Ok(())
    }

    pub(crate) fn list<T>(
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

    pub(crate) fn peek(&self) -> Option<&LexemeKind> {
        self.lexemes.get(self.at).map(|lexeme| &lexeme.kind)
    }

    pub(crate) fn is_word(&self, at: usize, keyword: &str) -> bool {
        matches!(self.lexemes.get(at).map(|lexeme| &lexeme.kind),
            Some(LexemeKind::Word(word)) if word.eq_ignore_ascii_case(keyword))
    }

    pub(crate) fn word(&mut self, keyword: &str) -> bool {
        let found = self.is_word(self.at, keyword);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn is_symbol(&self, wanted: &str) -> bool {
        matches!(self.peek(), Some(LexemeKind::Symbol(symbol)) if *symbol == wanted)
    }

    pub(crate) fn symbol(&mut self, wanted: &str) -> bool {
        let found = self.is_symbol(wanted);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect_word(&mut self, keyword: &str) -> Parsed<()> {
        if self.word(keyword) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    pub(crate) fn expect_symbol(&mut self, symbol: &str) -> Parsed<()> {
        if self.symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    pub(crate) fn name(&mut self) -> Parsed<String> {
        let name = match self.peek() {
            Some(LexemeKind::Word(name) | LexemeKind::Name(name)) => name.clone(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(name)
    }

    pub(crate) fn unexpected(&self) -> LanguageError {
        match self.lexemes.get(self.at) {
            None => LanguageError::Syntax("syntax error - unexpected end of statement".into()),
            Some(lexeme) => {
                if let LexemeKind::Word(word) = &lexeme.kind
                    && is_unsupported(word)
                {
                    return LanguageError::Unsupported(word.to_ascii_uppercase());
                }
                let near: String = self.text[lexeme.at..].chars().take(20).collect();
                LanguageError::syntax_at(lexeme.at, &near)
            }
        }
    }
}

/// Words of SQL++ that this subset does not have.
fn is_unsupported(word: &str) -> bool {
    const UNSUPPORTED: &str = "\
        ADVISE ALTER ANALYZE ANY ARRAY CALL CASE CAST COLLATE CONNECT COPY CORRELATED COVER \
        CREATE CYCLE DECLARE DESCRIBE DISCONNECT DROP EACH ELSE END ESCAPE EVERY EXCEPT \
        EXCLUDE EXISTS EXPLAIN FETCH FILTER FIRST FLATTEN FLATTEN_KEYS FLUSH FOLLOWING FOR \
        FTS FUNCTION GRANT GROUPS IGNORE ILIKE INCLUDE INFER INLINE INNER INTERSECT JOIN \
        LANGUAGE LAST LATERAL LEFT LET LETTING LOAD MAPPING MATCHED MERGE NEST NEXTVAL NL \
        NULLS OBJECT OPTIONS OUTER OVER PRECEDING PREVVAL PROCEDURE RANGE RECURSIVE RENAME \
        REPLACE RESPECT RETURN REVOKE RIGHT ROW ROWS SATISFIES SELECT SELF SEQUENCE SET SOME \
        STATISTICS THEN TRUNCATE UNBOUNDED UNION UNIQUE UNKNOWN UNNEST UPDATE VIEW WHEN \
        WHILE WINDOW WITH WITHIN XOR";
    is_one_of(UNSUPPORTED, word)
}

/// Words that end a term instead of naming it.
pub(crate) fn is_reserved(word: &str) -> bool {
    const RESERVED: &str = "\
        ALL AND AS ASC BETWEEN BY DELETE DESC DISTINCT EXCEPT FROM GROUP HAVING IN INNER \
        INSERT INTERSECT INTO IS JOIN LEFT LET LETTING LIKE LIMIT NEST NOT OFFSET ON OR \
        ORDER RAW RETURNING RIGHT SELECT SET UNION UNNEST UNSET UPDATE UPSERT USE USING \
        VALUES WHERE WITH";
    is_one_of(RESERVED, word)
}

fn is_one_of(words: &str, word: &str) -> bool {
    let mut words = words.split(' ');
    words.any(|known| known.eq_ignore_ascii_case(word))
}
