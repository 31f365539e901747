//! Prepared statements, and their loss on demand.
//!
//! A client prepares a statement once and then sends its name. When a node restarts or
//! its cache is full, the node no longer knows the name. The client must then prepare
//! the statement again and retry. On a real cluster this is rare; here a test requests
//! it: see [`PreparedPlans::lose`].

use std::collections::{HashMap, VecDeque};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use crate::error::QueryError;

/// How many plans are kept; the oldest go first, and are then no longer known.
const MAX_PLANS: usize = 16_384;

/// The way in which plans are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanLoss {
    /// It is unknown: error 4040, unless the client sends its encoded plan.
    Forgotten,
    /// It is there and cannot be used: error 4050, until it is prepared again.
    Unrecognizable,
    /// It cannot be decoded: error 4070, until it is prepared again.
    Undecodable,
}

/// All plans of a cluster. Real query nodes share their plans, too.
#[derive(Debug, Default)]
pub struct PreparedPlans {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    plans: HashMap<String, Plan>,
    order: VecDeque<String>,
}

#[derive(Debug, Clone)]
struct Plan {
    statement: String,
    lost: Option<PlanLoss>,
}

/// An encoded plan, with which a client can restore a lost plan.
#[derive(Serialize, Deserialize)]
struct Encoded {
    name: String,
    statement: String,
}

impl PreparedPlans {
    /// Loses all plans, and says how many there were.
    pub fn lose(&self, how: PlanLoss) -> usize {
        let mut inner = self.inner.lock();
        let count = inner.plans.len();
        match how {
            PlanLoss::Forgotten => *inner = Inner::default(),
            PlanLoss::Unrecognizable | PlanLoss::Undecodable => {
                for plan in inner.plans.values_mut() {
                    plan.lost = Some(how);
                }
            }
        }
        count
    }

    /// Returns how many plans there are, usable or not.
    pub fn count(&self) -> usize {
        self.inner.lock().plans.len()
    }

    /// The statement behind a name, lost or not.
    pub fn peek(&self, name: &str) -> Option<String> {
        let inner = self.inner.lock();
        inner.plans.get(name).map(|plan| plan.statement.clone())
    }

    /// Keeps a statement; says its name, which is made from it if it was given none, and its
    /// encoded plan.
    pub(crate) fn prepare(&self, name: Option<String>, statement: &str) -> (String, String) {
        let name = name.unwrap_or_else(|| name_of(statement));
        let plan = Plan {
            statement: statement.to_owned(),
            lost: None,
        };
        let mut inner = self.inner.lock();
        if inner.plans.insert(name.clone(), plan).is_none() {
            inner.order.push_back(name.clone());
        }
        if inner.order.len() > MAX_PLANS
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.plans.remove(&oldest);
        }
        let encoded = serde_json::json!({"name": name, "statement": statement});
        (name, STANDARD.encode(encoded.to_string()))
    }

    /// The statement behind a name, or behind the encoded plan that came with it.
    pub(crate) fn statement(
        &self,
        name: &str,
        encoded: Option<&str>,
    ) -> Result<String, QueryError> {
        if let Some(plan) = self.inner.lock().plans.get(name) {
            return match plan.lost {
                None => Ok(plan.statement.clone()),
                Some(PlanLoss::Forgotten) => Err(QueryError::no_such_plan(name)),
                Some(PlanLoss::Unrecognizable) => Err(QueryError::unrecognizable_plan(name)),
                Some(PlanLoss::Undecodable) => Err(QueryError::undecodable_plan(name)),
            };
        }
        let encoded = encoded.ok_or_else(|| QueryError::no_such_plan(name))?;
        let decoded: Encoded = STANDARD
            .decode(encoded)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .ok_or_else(|| QueryError::undecodable_plan(name))?;
        if decoded.name != name {
            let message = format!("Prepared name in encoded plan parameter is not {name}");
            return Err(QueryError::new(4080, message));
        }
        self.prepare(Some(decoded.name), &decoded.statement);
        Ok(decoded.statement)
    }
}

/// The same statement always has the same name, so that preparing it again brings it back.
fn name_of(statement: &str) -> String {
    let digest = Sha1::digest(statement.as_bytes());
    let hex: String = digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<String, QueryError>) -> u32 {
        result.unwrap_err().code
    }

    #[test]
    fn a_plan_is_found_lost_in_three_ways_and_brought_back() {
        let plans = PreparedPlans::default();
        let (name, encoded) = plans.prepare(None, "SELECT 1");
        assert_eq!(plans.statement(&name, None).unwrap(), "SELECT 1");
        assert_eq!(plans.lose(PlanLoss::Unrecognizable), 1);
        assert_eq!(code(plans.statement(&name, Some(&encoded))), 4050);
        plans.lose(PlanLoss::Undecodable);
        assert_eq!(code(plans.statement(&name, None)), 4070);
        assert_eq!(plans.prepare(None, "SELECT 1").0, name);
        assert!(plans.statement(&name, None).is_ok());
        plans.lose(PlanLoss::Forgotten);
        assert_eq!(code(plans.statement(&name, None)), 4040);
        assert_eq!(code(plans.statement(&name, Some("!"))), 4070);
        assert_eq!(code(plans.statement("other", Some(&encoded))), 4080);
        assert!(plans.statement(&name, Some(&encoded)).is_ok());
        assert!(plans.statement(&name, None).is_ok(), "it is known again");
    }

    #[test]
    fn the_number_of_plans_is_bounded() {
        let plans = PreparedPlans::default();
        let (first, _) = plans.prepare(None, "SELECT 0");
        for at in 1..=MAX_PLANS {
            plans.prepare(None, &format!("SELECT {at}"));
        }
        assert_eq!(plans.count(), MAX_PLANS);
        assert_eq!(code(plans.statement(&first, None)), 4040);
    }
}
