//! The cases, from `cases.json`: a fault, the operations that meet it, and what an RFC expects.

use serde::Deserialize;
use serde_json::Value;

/// The file.
const FILE: &str = include_str!("cases.json");

/// The cases and the definitions that the server's error map has for them.
#[derive(Debug, Deserialize)]
pub(super) struct SdkCases {
    pub(super) error_map: Value,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    rule: String,
    name: String,
    operations: Vec<String>,
    fault: Option<Value>,
    script: Option<Value>,
    connect: Option<ConnectChange>,
    vbucket: Option<VbucketMove>,
    timeout_ms: u64,
    expect: SdkExpectation,
}

/// What is different about the connection, which is made for the case.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConnectChange {
    /// Fields of the command `connect`.
    pub(super) fields: Value,
    /// Whether it uses TLS. The driver does not know the certificate.
    pub(super) tls: bool,
    /// A fault while it is made.
    pub(super) fault: Option<Value>,
}

/// A move of the document's vbucket to the other node. Only requests to the old node, which
/// refuses them, count as attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum VbucketMove {
    /// It has moved, and nothing but the response of the old node says so.
    Unannounced,
    /// The fast-forward map names the next node, which has the vbucket some time later.
    Planned,
}

/// One operation that meets one fault.
#[derive(Clone, Debug)]
pub(super) struct SdkCase {
    /// The document that asks for the behaviour.
    pub(super) rule: String,
    pub(super) name: String,
    pub(super) operation: String,
    pub(super) fault: SdkFault,
    pub(super) timeout_ms: u64,
    pub(super) expect: SdkExpectation,
}

/// A fault in the words of the cluster.
#[derive(Clone, Debug)]
pub(super) enum SdkFault {
    Rule(Value),
    Script(Value),
    Connect(ConnectChange),
    Move(VbucketMove),
}

/// What an RFC expects.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SdkExpectation {
    /// Whether the operation succeeds, if the RFC leaves no choice.
    pub(super) ok: Option<bool>,
    /// The least and the largest number of attempts that arrive.
    pub(super) sent: [u64; 2],
    /// How often a failed write is applied.
    pub(super) applied: Option<usize>,
    /// The least delays between attempts.
    #[serde(default)]
    pub(super) gaps_ms: Vec<u64>,
    /// Whether an error that says how the operation ended must say that nothing was applied.
    #[serde(default)]
    pub(super) unambiguous: bool,
    /// When the answer comes at the latest, if that is before the timeout.
    pub(super) within_ms: Option<u64>,
}

impl SdkCases {
    pub(super) fn load() -> Self {
        serde_json::from_str(FILE).expect("a test reads the file")
    }

    pub(super) fn list(self) -> (Value, Vec<SdkCase>) {
        let case = |row: &Row, operation: &String| SdkCase {
            rule: row.rule.clone(),
            name: row.name.clone(),
            operation: operation.clone(),
            fault: match (&row.fault, &row.connect, &row.vbucket, &row.script) {
                (Some(fault), ..) => SdkFault::Rule(fault.clone()),
                (_, Some(change), ..) => SdkFault::Connect(change.clone()),
                (.., Some(moves), _) => SdkFault::Move(*moves),
                (.., script) => SdkFault::Script(script.clone().unwrap_or_default()),
            },
            timeout_ms: row.timeout_ms,
            expect: row.expect.clone(),
        };
        let of_row = |row: &Row| {
            let cases = row.operations.iter().map(|operation| case(row, operation));
            cases.collect::<Vec<_>>()
        };
        let cases = self.rows.iter().flat_map(of_row).collect();
        (self.error_map, cases)
    }
}

impl SdkCase {
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.operation, self.name)
    }

    pub(super) fn is_query(&self) -> bool {
        self.operation.starts_with("query")
    }

    pub(super) fn writes(&self) -> bool {
        !matches!(
            self.operation.as_str(),
            "get" | "exists" | "lookup" | "query-readonly"
        )
    }

    /// Decides whether the fault leaves it open whether the request was applied.
    pub(super) fn cuts(&self) -> bool {
        let SdkFault::Rule(rule) = &self.fault else {
            return false;
        };
        let effect = rule["effect"].as_str().unwrap_or_default();
        effect.starts_with("cut") || matches!(effect, "garble" | "hold" | "silent" | "mute")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_cluster::fault::Fault;

    #[test]
    fn every_case_is_valid_for_the_cluster() {
        let (map, cases) = SdkCases::load().list();
        steadfast_wire::error_map::ErrorMap::parse(map.to_string().as_bytes()).unwrap();
        assert!(cases.len() > 70, "{}", cases.len());
        for case in cases {
            match &case.fault {
                SdkFault::Rule(rule) => {
                    serde_json::from_value::<Fault>(rule.clone()).unwrap();
                }
                SdkFault::Connect(change) => {
                    if let Some(fault) = &change.fault {
                        serde_json::from_value::<Fault>(fault.clone()).unwrap();
                    }
                }
                SdkFault::Move(_) => {}
                SdkFault::Script(script) => {
                    serde_json::from_value::<steadfast_cluster::script::ScriptSpec>(script.clone())
                        .unwrap();
                }
            }
        }
    }
}
