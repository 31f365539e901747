//! Responses with one long JSON array, written row by row.
//!
//! Query, analytics, search and views respond with a head, rows, and a tail with the
//! result. A row can fail after the status line was sent, so clients must look for
//! errors in the tail. A response here ends in one of three ways: complete, with an
//! error in the tail, or cut off in the middle.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use hyper::body::Bytes;
use serde_json::Value;

use super::HttpResponse;
use super::faults::broken_off;

/// How much is put together before it is written.
const PIECE_BYTES: usize = 16 * 1024;

/// An early end of the rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Break {
    /// An error, as the tail is to show it.
    Error(Value),
    /// The connection ends here.
    Cut,
}

/// Rows that are made as they are written.
pub(super) type Rows = Box<dyn Iterator<Item = Result<Value, Break>> + Send>;

/// Makes the end of an answer from how its rows went.
pub(super) type Tail = Box<dyn FnOnce(&RowsSummary) -> String + Send>;

/// A summary of the rows written.
#[derive(Debug, Default)]
pub(super) struct RowsSummary {
    /// How many there were.
    pub rows: u64,
    /// How many bytes they had.
    pub bytes: u64,
    /// The error that ended them, if one did.
    pub error: Option<Value>,
}

/// The text around the rows.
pub(super) struct Envelope {
    /// Everything up to and with the opening bracket.
    pub head: String,
    /// Makes everything from the closing bracket on.
    pub tail: Tail,
}

/// An answer whose rows are made and written one after the other, with a pause before each if
/// there is one to make.
pub(super) fn respond(
    status: u16,
    envelope: Envelope,
    rows: Rows,
    pause: Duration,
) -> HttpResponse {
    let writer = Writer {
        ready: VecDeque::from([envelope.head]),
        tail: Some(envelope.tail),
        rows,
        summary: RowsSummary::default(),
        pause,
        cut: false,
    };
    let pieces = stream::unfold(writer, |mut writer| async move {
        let piece = writer.next().await?;
        Some((piece, writer))
    });
    // The end of a cut is its own stream, because it must let go for a moment.
    let pieces = pieces.flat_map(|piece| match piece {
        Piece::Text(text) => stream::iter([Ok(Bytes::from(text))]).left_stream(),
        Piece::Cut => broken_off().right_stream(),
    });
    HttpResponse::stream(status, Box::pin(pieces))
}

enum Piece {
    Text(String),
    Cut,
}

struct Writer {
    ready: VecDeque<String>,
    tail: Option<Tail>,
    rows: Rows,
    summary: RowsSummary,
    pause: Duration,
    cut: bool,
}

impl Writer {
    async fn next(&mut self) -> Option<Piece> {
        if std::mem::take(&mut self.cut) {
            return Some(Piece::Cut);
        }
        let paced = !self.pause.is_zero();
        if paced && let Some(text) = self.ready.pop_front() {
            return Some(Piece::Text(text));
        }
        self.tail.as_ref()?;
        if paced {
            tokio::time::sleep(self.pause).await;
        }
        let mut piece = self.ready.pop_front().unwrap_or_default();
        while self.tail.is_some() && piece.len() < PIECE_BYTES {
            match self.rows.next() {
                Some(Ok(row)) => self.write(&row, &mut piece),
                Some(Err(Break::Cut)) => {
                    self.tail = None;
                    self.cut = true;
                }
                Some(Err(Break::Error(error))) => {
                    self.summary.error = Some(error);
                    self.finish(&mut piece);
                }
                None => self.finish(&mut piece),
            }
            if paced {
                break;
            }
        }
        Some(Piece::Text(piece))
    }

    fn write(&mut self, row: &Value, piece: &mut String) {
        let text = row.to_string();
        if self.summary.rows > 0 {
            piece.push_str(",\n");
        }
        self.summary.rows += 1;
        self.summary.bytes += text.len() as u64;
        piece.push_str(&text);
    }

    fn finish(&mut self, piece: &mut String) {
        if let Some(tail) = self.tail.take() {
            piece.push_str(&tail(&self.summary));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{BrokenOff, ResponseBody};
    use super::*;
    use serde_json::json;

    async fn written(rows: Vec<Result<Value, Break>>) -> (String, Option<BrokenOff>) {
        let envelope = Envelope {
            head: "[".into(),
            tail: Box::new(|summary| format!("] {} {:?}", summary.rows, summary.error)),
        };
        let response = respond(200, envelope, Box::new(rows.into_iter()), Duration::ZERO);
        let ResponseBody::Stream(mut pieces) = response.body else {
            panic!("rows stream")
        };
        let mut text = String::new();
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(piece) => text.push_str(std::str::from_utf8(&piece).unwrap()),
                Err(broken) => return (text, Some(broken)),
            }
        }
        (text, None)
    }

    #[tokio::test]
    async fn an_answer_ends_whole_with_an_error_or_in_the_middle() {
        let row = || Ok(json!(1));
        assert_eq!(written(vec![]).await, ("[] 0 None".into(), None));
        assert_eq!(
            written(vec![row(), row()]).await,
            ("[1,\n1] 2 None".into(), None)
        );
        let failed = written(vec![row(), Err(Break::Error(json!("x"))), row()]).await;
        assert_eq!(failed.0, "[1] 1 Some(String(\"x\"))");
        let cut = written(vec![row(), Err(Break::Cut), row()]).await;
        assert_eq!(cut, ("[1".into(), Some(BrokenOff)));
    }

    #[tokio::test]
    async fn many_rows_come_in_pieces() {
        let rows: Vec<_> = (0..10_000).map(|at| Ok(json!(at))).collect();
        let (text, _) = written(rows).await;
        assert!(text.starts_with("[0,\n1,\n2") && text.ends_with("9999] 10000 None"));
    }
}
