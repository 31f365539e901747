//! Names of conditions, effects, opcodes and statuses.
//!
//! `tables.md` has the rows of the page `docs/faults.md`. The parser's messages and `GET /` of the
//! control endpoint come from it, and tests compare it with the page and with the types of the
//! packages.

use steadfast_wire::{Opcode, Status};

use crate::suggest;

/// Three tables, with empty lines between them: conditions (name, option, value, meaning),
/// effects (name, fields, what the client sees, what the server does), and fields of effects,
/// which have the columns of conditions.
const TABLES: &str = include_str!("tables.md");

/// The cells of a table's rows, without Markdown.
fn table(number: usize) -> impl Iterator<Item = [String; 4]> {
    let rows = TABLES.split("\n\n").nth(number).into_iter();
    rows.flat_map(str::lines).map(|row| {
        let mut cells = row.trim_matches('|').split('|');
        std::array::from_fn(|_| {
            cells
                .next()
                .unwrap_or_default()
                .trim()
                .replace(['`', '*'], "")
        })
    })
}

fn conditions() -> impl Iterator<Item = [String; 4]> {
    table(0)
}

pub(super) fn effects() -> impl Iterator<Item = [String; 4]> {
    table(1)
}

/// The fields of a fault in JSON.
fn fields() -> impl Iterator<Item = [String; 4]> {
    conditions().chain(table(2))
}

/// Names of SDKs, and the opcodes that they send.
const OPCODES_OF_SDKS: &[(&str, Opcode)] = &[
    ("INSERT", Opcode::Add),
    ("UPSERT", Opcode::Set),
    ("REMOVE", Opcode::Delete),
    ("GET_AND_LOCK", Opcode::GetLocked),
    ("GET_AND_TOUCH", Opcode::GetAndTouch),
    ("UNLOCK", Opcode::UnlockKey),
    ("LOOKUP_IN", Opcode::SubdocMultiLookup),
    ("MUTATE_IN", Opcode::SubdocMultiMutation),
];

/// Names of SDKs, and the statuses that they stand for.
const STATUSES_OF_SDKS: &[(&str, Status)] = &[
    ("DOCUMENT_NOT_FOUND", Status::KeyNotFound),
    ("DOCUMENT_EXISTS", Status::KeyExists),
    ("DOCUMENT_LOCKED", Status::Locked),
    ("TEMPORARY_FAILURE", Status::TemporaryFailure),
    ("VALUE_TOO_LARGE", Status::TooBig),
    ("DURABILITY_IMPOSSIBLE", Status::DurabilityImpossible),
];

/// Reads an opcode: its name, the name that SDKs have for it, or its number.
///
/// # Errors
/// A sentence with the nearest name.
pub fn parse_opcode(text: &str) -> Result<Opcode, String> {
    if let Some(number) = parse_number(text).and_then(|number| u8::try_from(number).ok()) {
        return Ok(Opcode::from_code(number));
    }
    let known = Opcode::KNOWN
        .iter()
        .filter_map(|known| Some((known.name()?, *known)));
    find(
        text,
        "an opcode",
        known.chain(OPCODES_OF_SDKS.iter().copied()),
    )
}

/// Reads a status of key-value like [`parse_opcode`].
///
/// # Errors
/// A sentence with the nearest name.
pub fn parse_status(text: &str) -> Result<u16, String> {
    if let Some(number) = parse_number(text).and_then(|number| u16::try_from(number).ok()) {
        return Ok(number);
    }
    let known = Status::KNOWN
        .iter()
        .filter_map(|known| Some((known.name()?, *known)));
    let found = find(
        text,
        "a status",
        known.chain(STATUSES_OF_SDKS.iter().copied()),
    );
    found.map(Status::code)
}

fn find<'a, T: Copy>(
    text: &str,
    kind: &str,
    known: impl Iterator<Item = (&'a str, T)>,
) -> Result<T, String> {
    let known: Vec<(&str, T)> = known.collect();
    let plain = text.replace('-', "_");
    let found = known
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(&plain));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        match suggest::nearest(text, &names) {
            Some(name) => format!("{text:?} is not {kind}; did you mean {name}?"),
            None => format!(
                "{text:?} is not {kind}: give a name such as {}, or a number",
                names[1]
            ),
        }
    })
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns what a field takes, or which field was meant.
pub(super) fn check_field(name: &str) -> Result<String, String> {
    let found = fields().find(|[known, ..]| known == name);
    found
        .map(|[_, _, value, _]| value)
        .ok_or_else(|| unknown(name, "a field of a fault", fields()))
}

/// Returns the message about an unknown effect.
pub(super) fn unknown_effect(name: &str) -> String {
    unknown(name, "an effect", effects())
}

fn unknown(name: &str, kind: &str, known: impl Iterator<Item = [String; 4]>) -> String {
    let known: Vec<String> = known.map(|[name, ..]| name).collect();
    suggest::unknown(name, kind, known.iter().map(String::as_str))
}

/// Lists conditions and effects for `GET /` of the control endpoint.
pub(crate) fn help() -> String {
    let mut text = "\nConditions of a fault, all of which must hold:\n".to_owned();
    for [name, option, value, meaning] in conditions() {
        text.push_str(&format!("  {name:<12} {option:<14} {value}: {meaning}\n"));
    }
    text.push_str("\nEffects of a fault, with their fields:\n");
    for [name, fields, client, server] in effects() {
        let fields = match &*fields {
            "" => fields,
            fields => format!(" ({fields})"),
        };
        text.push_str(&format!(
            "  {name}{fields}: the client sees {client}; the server {server}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/faults.md");
    const NODE_TYPES: &str = include_str!("../../../../packages/npm/index.d.ts");
    const GO_TYPES: &str = include_str!("../../../../packages/go/fault.go");
    const RULE: &str = include_str!("rule.rs");

    #[test]
    fn the_page_has_every_condition_and_every_effect() {
        for row in TABLES.lines() {
            assert!(PAGE.contains(row), "docs/faults.md lacks:\n{row}");
        }
    }

    #[test]
    fn the_types_of_the_packages_have_every_field_and_every_effect() {
        for [name, ..] in fields().filter(|[name, ..]| name != "effect") {
            // `key_prefix` is `keyPrefix`.
            let mut words = name.split('_');
            let mut camel = words.next().unwrap().to_owned();
            for word in words {
                camel += &word[..1].to_uppercase();
                camel += &word[1..];
            }
            assert!(
                NODE_TYPES.contains(&format!("  {camel}?:")),
                "index.d.ts lacks {camel}"
            );
            assert!(
                GO_TYPES.contains(&format!("json:\"{name},")),
                "fault.go lacks {name}"
            );
        }
        let opcodes = Opcode::KNOWN.iter().filter_map(|known| known.name());
        let opcodes = opcodes.chain(OPCODES_OF_SDKS.iter().map(|(name, _)| *name));
        for name in opcodes
            .map(str::to_owned)
            .chain(effects().map(|[name, ..]| name))
        {
            let quoted = format!("'{name}'");
            assert!(NODE_TYPES.contains(&quoted), "index.d.ts lacks {quoted}");
        }
    }

    #[test]
    fn the_table_has_every_effect_of_the_code() {
        let of_enum = RULE
            .split("pub enum Effect {")
            .nth(1)
            .and_then(|rest| rest.split("\n}").next());
        let variants = of_enum.into_iter().flat_map(str::lines);
        let variants = variants.filter(|line| line.starts_with("    ") && !line.contains("///"));
        assert_eq!(variants.count(), effects().count());
    }

    #[test]
    fn names_of_sdks_are_known_and_others_are_suggested() {
        assert_eq!(parse_opcode("insert"), Ok(Opcode::Add));
        assert_eq!(parse_opcode("mutate-in"), Ok(Opcode::SubdocMultiMutation));
        assert_eq!(parse_status("temporary_failure"), Ok(0x86));
        let wrong = parse_opcode("INCRMENT").unwrap_err();
        assert!(wrong.ends_with("did you mean INCREMENT?"), "{wrong}");
        let wrong = parse_status("ETMPFIAL").unwrap_err();
        assert!(wrong.ends_with("did you mean ETMPFAIL?"), "{wrong}");
        assert!(unknown_effect("cut-after-appling").ends_with("did you mean cut-after-applying?"));
        assert!(
            check_field("sevrice")
                .unwrap_err()
                .ends_with("did you mean service?")
        );
    }
}
