//! Parses the statements that begin and end transactions.

use super::super::statement::TransactionStep;
use super::{Parsed, Parser};

impl Parser<'_> {
    /// Reads a step of a transaction; nothing if the statement is another one.
    pub(crate) fn transaction(&mut self) -> Parsed<Option<TransactionStep>> {
        let step = if self.word("BEGIN") || self.word("START") {
            self.transaction_word();
            if self.word("ISOLATION") {
                self.isolation_level()?;
            }
            TransactionStep::Begin
        } else if self.word("COMMIT") {
            self.transaction_word();
            TransactionStep::Commit
        } else if self.word("ROLLBACK") {
            self.transaction_word();
            if self.word("TO") {
                self.expect_word("SAVEPOINT")?;
                TransactionStep::RollbackTo(self.name()?)
            } else {
                TransactionStep::Rollback
            }
        } else if self.word("SAVEPOINT") {
            TransactionStep::Savepoint(self.name()?)
        } else if self.is_word(self.at, "SET") && self.is_word(self.at + 1, "TRANSACTION") {
            self.at += 2;
            self.expect_word("ISOLATION")?;
            self.isolation_level()?;
            TransactionStep::SetIsolation
        } else {
            return Ok(None);
        };
        Ok(Some(step))
    }

    /// A word that may follow the keyword and says nothing.
    fn transaction_word(&mut self) {
        let _ = self.word("WORK") || self.word("TRANSACTION") || self.word("TRAN");
    }

    fn isolation_level(&mut self) -> Parsed<()> {
        for word in ["LEVEL", "READ", "COMMITTED"] {
            self.expect_word(word)?;
        }
        Ok(())
    }
}
