//! The name and the uuid of the cluster, as labels of spans and metrics.

use std::sync::Arc;

use steadfast_wire::config::ClusterConfig;

/// The longest label. Names come from the server, which may send anything.
const LONGEST: usize = 128;

/// The names of a cluster, as its config has them: servers since 7.6.4 send them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterLabels {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) uuid: Option<Arc<str>>,
}

impl ClusterLabels {
    /// Returns the labels in a config, `None` if it has none.
    pub(crate) fn of(config: &ClusterConfig) -> Option<Self> {
        let labels = Self {
            name: config.cluster_name.as_deref().and_then(bounded),
            uuid: config.cluster_uuid.as_deref().and_then(bounded),
        };
        (labels != Self::default()).then_some(labels)
    }
}

/// Bounds a text from the server, and keeps it on one line.
fn bounded(text: &str) -> Option<Arc<str>> {
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().take(LONGEST).map(one_line).collect();
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_on_one_line() {
        assert_eq!(bounded(""), None);
        assert_eq!(bounded("a\nb").as_deref(), Some("a b"));
        assert_eq!(bounded(&"x".repeat(500)).unwrap().len(), LONGEST);
    }
}
