//! Names the conditions and effects of faults: the one list for the parser's messages, `GET /` of
//! the control endpoint, and the page `docs/faults.md`.
//!
//! Tests compare the list with the page and with the types of the packages.

use steadfast_wire::{Opcode, Status};

use crate::suggest;

/// A field of a fault in JSON.
pub(crate) struct Field {
    pub name: &'static str,
    /// The option of `steadfast fault add`.
    pub option: &'static str,
    pub value: &'static str,
    pub meaning: &'static str,
}

/// An effect, with the fields that it takes.
pub(crate) struct EffectName {
    pub name: &'static str,
    pub fields: &'static str,
    pub client: &'static str,
    pub server: &'static str,
}

const fn field(
    name: &'static str,
    option: &'static str,
    value: &'static str,
    meaning: &'static str,
) -> Field {
    Field {
        name,
        option,
        value,
        meaning,
    }
}

/// The conditions. All that are given must hold.
pub(crate) const CONDITIONS: &[Field] = &[
    field("node", "--node", "a number", "only on this node"),
    field(
        "service",
        "--service",
        "kv, mgmt, query, analytics, search or views",
        "only for this service; the default is every service, or kv with an opcode or `answer`",
    ),
    field(
        "opcode",
        "--opcode",
        "a name (`SET`, or `UPSERT` as SDKs call it) or a number (`0x01`)",
        "only for this command (kv)",
    ),
    field(
        "key",
        "--key",
        "text",
        "only for this key; for an HTTP service, the path of the request",
    ),
    field(
        "key_prefix",
        "--key-prefix",
        "text",
        "only for keys or paths that begin like this",
    ),
    field("bucket", "--bucket", "text", "only in this bucket (kv)"),
    field(
        "skip",
        "--skip",
        "a number",
        "spares this many requests first",
    ),
    field(
        "times",
        "--times",
        "a number, at least 1",
        "hits at most this many requests",
    ),
    field(
        "probability",
        "--probability",
        "a number above 0, up to 1",
        "hits each request with this probability",
    ),
    field(
        "seed",
        "--seed",
        "a number",
        "replays the choices of a probability",
    ),
];

/// The fields of effects.
pub(crate) const EFFECT_FIELDS: &[Field] = &[
    field(
        "effect",
        "the subcommand",
        "a name of the list",
        "the effect",
    ),
    field(
        "delay_ms",
        "--ms",
        "a number, up to an hour",
        "the length of a delay",
    ),
    field(
        "status",
        "--status",
        "text or a number: for kv a name (`ETMPFAIL`) or a number (`0x86`), for other services an HTTP status (`503`)",
        "the status of an answer",
    ),
    field("body", "--body", "text", "the body of an answer"),
    field(
        "context",
        "--context",
        "text",
        "the context of an extended error, instead of a body (kv)",
    ),
    field(
        "garble",
        "--what",
        "magic, opaque, length or body",
        "the part of a response to damage; for HTTP the body",
    ),
];

const fn effect(
    name: &'static str,
    fields: &'static str,
    client: &'static str,
    server: &'static str,
) -> EffectName {
    EffectName {
        name,
        fields,
        client,
        server,
    }
}

/// The effects.
pub(crate) const EFFECTS: &[EffectName] = &[
    effect(
        "pass",
        "",
        "the usual response, whatever later rules say",
        "applies the request",
    ),
    effect(
        "delay",
        "delay_ms",
        "a slow response",
        "applies the request after the delay",
    ),
    effect(
        "delay-answer",
        "delay_ms",
        "a slow response",
        "applies the request at once",
    ),
    effect(
        "answer",
        "status, body or context",
        "that status",
        "applies nothing",
    ),
    effect(
        "hold",
        "",
        "nothing until the rule is removed",
        "has not applied it yet",
    ),
    effect(
        "cut-before-reading",
        "",
        "a connection reset",
        "reads nothing",
    ),
    effect(
        "cut-before-applying",
        "",
        "a connection closed without a response",
        "applies nothing",
    ),
    effect(
        "cut-after-applying",
        "",
        "a connection closed without a response",
        "**applies it**",
    ),
    effect(
        "cut-mid-response",
        "",
        "half of a response, and a closed connection",
        "**applies it**",
    ),
    effect("garble", "garble", "an invalid response", "**applies it**"),
    effect(
        "silent",
        "",
        "nothing, ever, on that connection",
        "applies nothing and sends no response",
    ),
    effect(
        "mute",
        "",
        "nothing, ever, on that connection",
        "**applies everything** and sends no response",
    ),
];

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
pub(super) fn check_field(name: &str) -> Result<&'static str, String> {
    let fields = || CONDITIONS.iter().chain(EFFECT_FIELDS);
    let found = fields().find(|field| field.name == name);
    found.map(|field| field.value).ok_or_else(|| {
        suggest::unknown(name, "a field of a fault", fields().map(|field| field.name))
    })
}

/// Returns the message about an unknown effect.
pub(super) fn unknown_effect(name: &str) -> String {
    suggest::unknown(name, "an effect", EFFECTS.iter().map(|effect| effect.name))
}

/// Lists conditions and effects for `GET /` of the control endpoint.
pub(crate) fn help() -> String {
    let mut text = "\nConditions of a fault, all of which must hold:\n".to_owned();
    let plain = |text: &str| text.replace(['*', '`'], "");
    for field in CONDITIONS {
        text.push_str(&format!(
            "  {:<12} {:<14} {}: {}\n",
            field.name,
            field.option,
            plain(field.value),
            plain(field.meaning)
        ));
    }
    text.push_str("\nEffects of a fault, with their fields:\n");
    for effect in EFFECTS {
        let fields = match effect.fields {
            "" => String::new(),
            fields => format!(" ({fields})"),
        };
        let (client, server) = (plain(effect.client), plain(effect.server));
        text.push_str(&format!(
            "  {}{fields}: the client sees {client}; the server {server}\n",
            effect.name
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

    fn fields() -> impl Iterator<Item = &'static Field> {
        CONDITIONS.iter().chain(EFFECT_FIELDS)
    }

    #[test]
    fn the_page_has_every_condition_and_every_effect() {
        let row = |field: &Field| {
            let option = match field.option.starts_with('-') {
                true => format!("`{}`", field.option),
                false => field.option.to_owned(),
            };
            format!(
                "| `{}` | {option} | {} | {} |",
                field.name, field.value, field.meaning
            )
        };
        let effects = EFFECTS.iter().map(|effect| {
            let fields = effect.fields;
            format!(
                "| `{}` | {fields} | {} | {} |",
                effect.name, effect.client, effect.server
            )
        });
        for row in fields().map(row).chain(effects) {
            let row = row.replace("|  |", "| |");
            assert!(PAGE.contains(&row), "docs/faults.md lacks:\n{row}");
        }
    }

    #[test]
    fn the_types_of_the_packages_have_every_field_and_every_effect() {
        for field in fields().filter(|field| field.name != "effect") {
            let name = field.name;
            assert!(
                NODE_TYPES.contains(&format!("  {name}?:")),
                "index.d.ts lacks {name}"
            );
            assert!(
                GO_TYPES.contains(&format!("json:\"{name},")),
                "fault.go lacks {name}"
            );
        }
        let opcodes = Opcode::KNOWN.iter().filter_map(|known| known.name());
        for name in opcodes.chain(OPCODES_OF_SDKS.iter().map(|(name, _)| *name)) {
            let quoted = format!("'{name}'");
            assert!(NODE_TYPES.contains(&quoted), "index.d.ts lacks {quoted}");
        }
        for effect in EFFECTS {
            let quoted = format!("'{}'", effect.name);
            assert!(NODE_TYPES.contains(&quoted), "index.d.ts lacks {quoted}");
        }
    }

    #[test]
    fn the_list_has_every_effect_of_the_code() {
        let of_enum = RULE
            .split("pub enum Effect {")
            .nth(1)
            .and_then(|rest| rest.split("\n}").next());
        let variants = of_enum.into_iter().flat_map(str::lines);
        let variants = variants.filter(|line| line.starts_with("    ") && !line.contains("///"));
        assert_eq!(variants.count(), EFFECTS.len());
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
