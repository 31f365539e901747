//! The patterns of LIKE.

use serde_json::Value;

/// `%` stands for any text, `_` for one character, and a backslash takes their meaning away.
pub(crate) fn like(text: Option<Value>, pattern: Option<Value>) -> Option<Value> {
    let (text, pattern) = (text?, pattern?);
    let (Value::String(text), Value::String(pattern)) = (text, pattern) else {
        return Some(Value::Null);
    };
    #[derive(PartialEq)]
    enum Piece {
        Any,
        One,
        Letter(char),
    }
    let mut pieces = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        pieces.push(match letter {
            '%' => Piece::Any,
            '_' => Piece::One,
            '\\' => Piece::Letter(letters.next().unwrap_or('\\')),
            letter => Piece::Letter(letter),
        });
    }
    // `reached[n]`: the first n pieces match the text so far.
    let mut reached = vec![false; pieces.len() + 1];
    reached[0] = true;
    let skip_any = |reached: &mut Vec<bool>| {
        for (at, piece) in pieces.iter().enumerate() {
            if reached[at] && *piece == Piece::Any {
                reached[at + 1] = true;
            }
        }
    };
    skip_any(&mut reached);
    for letter in text.chars() {
        let mut next = vec![false; pieces.len() + 1];
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                _ if !reached[at] => {}
                Piece::Any => next[at] = true,
                Piece::One => next[at + 1] = true,
                Piece::Letter(wanted) => next[at + 1] |= *wanted == letter,
            }
        }
        skip_any(&mut next);
        reached = next;
    }
    Some(Value::Bool(reached[pieces.len()]))
}
