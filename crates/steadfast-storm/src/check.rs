//! Expectations of a fleet, checked by simulation: the file of `steadfast storm check`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use steadfast::config::StrategyConfig;

use crate::model::Scenario;
use crate::policies::Policy;
use crate::quiet::{self, QuietRow, Usefulness};
use crate::report::{Comparison, wrapped};
use crate::scenarios;
use crate::trials::Trials;

/// Strategies, scenarios and expectations, as a file has them.
///
/// ```
/// use steadfast_storm::check::FleetCheck;
///
/// let check: FleetCheck = toml::from_str(r#"
///     scenarios = ["brownout"]        # named scenarios
///     clients = [50, 10000]           # sizes of the fleet
///     seeds = 20
///     policies = ["grpc"]             # named policies to compare with
///
///     [strategies.ours]               # as in a configuration of the engine
///     strategy = "standard"
///     preset = "guidance"
///     budget = { capacity = 50 }
///
///     [[expect]]                      # what is left out holds for all
///     policy = "ours"
///     clients = 10000
///     recovers = 0.95                 # the share of the seeds
///     within_s = 30
///     load_at_most = 1.2              # attempts per request in the fault
///
///     [[expect]]
///     policy = "ours"
///     lone_client = { first_error = 0.99, restart = 0.9 } # shares of one client
/// "#)?;
/// assert_eq!(check.expect.len(), 2);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FleetCheck {
    /// The names of scenarios.
    pub scenarios: Vec<String>,
    /// Scenarios of one's own.
    pub scenario: Vec<Scenario>,
    /// The sizes of the fleet. Empty: each scenario's own.
    pub clients: Vec<u32>,
    /// The number of seeds.
    pub seeds: u64,
    /// The names of policies.
    pub policies: Vec<String>,
    /// Strategies, by name.
    pub strategies: BTreeMap<String, StrategyConfig>,
    /// The expectations.
    pub expect: Vec<FleetExpectation>,
}

/// An expectation. A condition that is left out holds for all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FleetExpectation {
    /// The policy that it is about.
    pub policy: Option<String>,
    /// The scenario that it is about.
    pub scenario: Option<String>,
    /// The size of the fleet that it is about.
    pub clients: Option<u32>,
    /// The least share of the seeds that recover.
    pub recovers: Option<f64>,
    /// The time within which they recover.
    pub within_s: Option<f64>,
    /// The highest mean load in the fault.
    pub load_at_most: Option<f64>,
    /// The lowest mean share of requests that succeed.
    pub success_at_least: Option<f64>,
    /// The least shares of a client that is alone with its peer. What is left out is not
    /// expected.
    pub lone_client: Option<Usefulness>,
}

/// A check that cannot be run. The text names the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCheck(String);

impl fmt::Display for InvalidCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidCheck {}

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedFleet {
    /// One for each expectation and each case that it is about.
    pub findings: Vec<CheckedCase>,
    /// The scenarios in which an expectation failed, for a picture.
    pub broken: Vec<Comparison>,
}

/// An expectation in one case.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedCase {
    /// The scenario, the policy and the size of the fleet.
    pub case: String,
    /// What is expected, and what was found.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
}

impl fmt::Display for CheckedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.holds { '✔' } else { '✘' };
        let line = format!("{mark} {}: {}", self.case, self.text);
        f.write_str(&wrapped(&line, 2))
    }
}

impl FleetCheck {
    /// Runs the scenarios and checks the expectations.
    ///
    /// # Errors
    /// If a name is unknown, or a scenario or a strategy is invalid.
    pub fn run(&self) -> Result<CheckedFleet, InvalidCheck> {
        let (policies, scenarios) = (self.policies()?, self.scenarios()?);
        self.check_expectations(&policies, &scenarios)?;
        let mut findings = Vec::new();
        let mut broken = Vec::new();
        for scenario in scenarios {
            let mut fleets = Vec::new();
            for clients in self.sizes(&scenario) {
                let fleet = scenario.clone().with_clients(clients);
                let trials = fleet.compare(&policies, 0..self.seeds.max(1));
                fleets.push(trials.map_err(|error| invalid(&scenario.name, error))?);
            }
            let before = findings.len();
            for trials in fleets.iter().flatten() {
                for expectation in &self.expect {
                    findings.extend(expectation.check(&scenario, trials));
                }
            }
            if findings[before..].iter().any(|finding| !finding.holds) {
                broken.push(Comparison::new(&scenario, fleets));
            }
        }
        findings.extend(self.check_lone_clients(&policies));
        Ok(CheckedFleet { findings, broken })
    }

    /// Checks what is expected of a client that is alone with its peer.
    fn check_lone_clients(&self, policies: &[Policy]) -> Vec<CheckedCase> {
        let is_expected = |policy: &&Policy| {
            let mut expected = self.expect.iter().filter(|it| it.lone_client.is_some());
            expected.any(|it| it.is_about_policy(policy.name()))
        };
        let measured: Vec<Policy> = policies.iter().filter(is_expected).cloned().collect();
        let rows = quiet::measure(&measured, QUIET_RUNS);
        let findings = self
            .expect
            .iter()
            .flat_map(|it| rows.iter().map(move |row| it.check_lone_client(row)));
        findings.flatten().collect()
    }

    /// Returns the sizes of the fleet in a scenario.
    fn sizes(&self, scenario: &Scenario) -> Vec<u32> {
        match self.clients.is_empty() {
            true => vec![scenario.clients.count],
            false => self.clients.clone(),
        }
    }

    /// Rejects a check that covers less than it says.
    fn check_expectations(
        &self,
        policies: &[Policy],
        scenarios: &[Scenario],
    ) -> Result<(), InvalidCheck> {
        if self.expect.is_empty() {
            let text = "there is no [[expect]], so nothing would be checked";
            return Err(InvalidCheck(text.to_owned()));
        }
        let is_checked = |expectation: &FleetExpectation| {
            let mut policies = policies.iter().map(Policy::name);
            let about = |policy: &str| {
                expectation.is_about_policy(policy)
                    && (expectation.lone_client.is_some()
                        || scenarios.iter().any(|scenario| {
                            let mut sizes = self.sizes(scenario).into_iter();
                            sizes.any(|size| expectation.is_about(&scenario.name, policy, size))
                        }))
            };
            expectation.has_limit() && policies.any(about)
        };
        match self.expect.iter().position(|it| !is_checked(it)) {
            Some(at) => Err(InvalidCheck(format!(
                "expectation {} checks nothing: its policy, scenario or clients are not in the \
                 file, or it has no limit",
                at + 1
            ))),
            None => Ok(()),
        }
    }

    fn scenarios(&self) -> Result<Vec<Scenario>, InvalidCheck> {
        let named = self.scenarios.iter().map(|name| {
            scenarios::by_name(name).ok_or_else(|| InvalidCheck(format!("no scenario {name:?}")))
        });
        let mut all: Vec<Scenario> = named.collect::<Result<_, _>>()?;
        all.extend(self.scenario.iter().cloned());
        Ok(all)
    }

    fn policies(&self) -> Result<Vec<Policy>, InvalidCheck> {
        let named = self.policies.iter().map(|name| {
            Policy::by_name(name).ok_or_else(|| InvalidCheck(format!("no policy {name:?}")))
        });
        let mut all: Vec<Policy> = named.collect::<Result<_, _>>()?;
        for (name, config) in &self.strategies {
            config.build().map_err(|error| invalid(name, error))?;
            all.push(Policy::from_config(name, config.clone()));
        }
        Ok(all)
    }
}

fn invalid(name: &str, error: impl fmt::Display) -> InvalidCheck {
    InvalidCheck(format!("{name}: {error}"))
}

/// The runs behind each number of a lone client.
const QUIET_RUNS: u32 = 200;

impl FleetExpectation {
    fn is_about(&self, scenario: &str, policy: &str, clients: u32) -> bool {
        let about =
            |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|it| it == name);
        self.is_about_policy(policy)
            && about(&self.scenario, scenario)
            && self.clients.is_none_or(|wanted| wanted == clients)
    }

    fn is_about_policy(&self, policy: &str) -> bool {
        self.policy.as_ref().is_none_or(|it| it == policy)
    }

    fn has_limit(&self) -> bool {
        let limits = [self.recovers, self.load_at_most, self.success_at_least];
        limits.iter().any(Option::is_some) || self.lone_client.is_some()
    }

    fn check_lone_client(&self, row: &QuietRow) -> Vec<CheckedCase> {
        let least = match &self.lone_client {
            Some(least) if self.is_about_policy(&row.policy) => least.named(),
            _ => return Vec::new(),
        };
        let expected = least.into_iter().zip(row.useful.named());
        expected
            .filter(|((_, least), _)| *least > 0.0)
            .map(|((name, least), (_, share))| CheckedCase {
                case: format!("a lone client, {}", row.policy),
                text: format!(
                    "{name}: {:.1} %, expected at least {:.1} %",
                    share * 100.0,
                    least * 100.0
                ),
                holds: share >= least,
            })
            .collect()
    }

    fn check(&self, scenario: &Scenario, trials: &Trials) -> Vec<CheckedCase> {
        if !self.is_about(&scenario.name, &trials.policy, trials.clients) {
            return Vec::new();
        }
        let case = format!(
            "{}, {}, {} clients",
            scenario.name, trials.policy, trials.clients
        );
        let finding = |holds: bool, text: String| CheckedCase {
            case: case.clone(),
            text,
            holds,
        };
        let mut findings = Vec::new();
        if let Some(least) = self.recovers {
            let limit = self.within_s.unwrap_or(f64::INFINITY);
            let in_time = trials
                .runs
                .iter()
                .filter(|run| run.recovered_after.is_some_and(|after| after <= limit));
            let share = in_time.count() as f64 / trials.runs.len() as f64;
            let within = self
                .within_s
                .map_or_else(String::new, |limit| format!(" within {limit} s"));
            let text = format!(
                "{:.0} % of the seeds recover{within}, expected {:.0} %",
                share * 100.0,
                least * 100.0
            );
            findings.push(finding(share >= least, text));
        }
        if let Some(most) = self.load_at_most {
            let load = trials.load_in_trouble.unwrap_or(1.0);
            let text = format!("load {load:.2} ×, expected at most {most:.2} ×");
            findings.push(finding(load <= most, text));
        }
        if let Some(least) = self.success_at_least {
            let text = format!(
                "{:.1} % succeed, expected at least {:.1} %",
                trials.success * 100.0,
                least * 100.0
            );
            findings.push(finding(trials.success >= least, text));
        }
        findings
    }
}

#[cfg(test)]
mod tests;
