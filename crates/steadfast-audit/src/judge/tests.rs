//! Rules, for arrivals that are written down.

use std::time::Duration;

use super::{CaseRun, Rating, judge};
use crate::cases::{AuditCase, FAULTS, RequestKind, Times};
use crate::command::{ClientEnd, ExitCause};
use crate::journal::HttpArrival;

/// A case, and what arrived in it.
struct Scene {
    case: AuditCase,
    run: CaseRun,
}

impl Scene {
    fn new(method: &str, fault: &str, times: Times) -> Self {
        let keyed = method.ends_with("+key");
        let method = method.trim_end_matches("+key").to_owned();
        let fault = FAULTS.iter().copied().flatten().find(|row| row.id == fault);
        let case = AuditCase {
            kind: RequestKind { method, keyed },
            fault: fault.expect("a fault of the table"),
            times,
        };
        let run = CaseRun {
            arrivals: Vec::new(),
            ends: Vec::new(),
        };
        Self { case, run }.ended(ExitCause::Exited(1))
    }

    /// Attempts that fail, at these milliseconds.
    fn failing(mut self, at: &[u64]) -> Self {
        for at in at {
            self = self.arrives(*at, true);
        }
        self
    }

    /// An attempt that succeeds.
    fn succeeding(self, at: u64) -> Self {
        self.arrives(at, false)
    }

    fn arrives(mut self, at: u64, failed: bool) -> Self {
        let at = Duration::from_millis(at);
        let key = self.case.kind.keyed.then(|| "k".to_owned());
        self.run.arrivals.push(HttpArrival {
            at,
            over: Some(at),
            command: 0,
            method: Some(self.case.kind.method.clone()),
            key,
            failed,
            ..HttpArrival::unread()
        });
        self
    }

    /// The last attempt has another key, or none.
    fn with_key(mut self, key: Option<&str>) -> Self {
        if let Some(last) = self.run.arrivals.last_mut() {
            last.key = key.map(str::to_owned);
        }
        self
    }

    fn ended(mut self, cause: ExitCause) -> Self {
        let after = Duration::from_secs(20);
        let (left_processes, stderr) = (false, String::new());
        self.run.ends = vec![ClientEnd {
            cause,
            left_processes,
            stderr,
            after,
        }];
        self
    }

    #[track_caller]
    fn is(self, rating: Rating) {
        let judged = judge(&self.case, &self.run);
        assert_eq!(
            judged.rating,
            rating,
            "{}: {}",
            self.case.id(),
            judged.reason
        );
    }
}

use Rating::{GivesUpEarly, Good, NotSeen, Rude, Storm, Unsafe};
use Times::{Always, Once, Thrice};

#[test]
fn a_post_is_not_sent_again_after_it_may_have_been_applied() {
    for fault in [
        "closed-unread",
        "closed",
        "reset",
        "cut",
        "silent",
        "500",
        "502",
        "503",
        "504",
        "520",
        "503-after-2",
        "303",
        "early",
        "drip",
    ] {
        Scene::new("POST", fault, Once)
            .failing(&[0])
            .succeeding(5000)
            .is(Unsafe);
        Scene::new("POST", fault, Once).failing(&[0]).is(Good);
        Scene::new("PATCH", fault, Always)
            .failing(&[0, 5000])
            .is(Unsafe);
    }
}

#[test]
fn a_post_may_be_sent_again_if_it_was_not_applied() {
    for fault in ["425", "429", "307", "408", "429-after-2"] {
        Scene::new("POST", fault, Once)
            .failing(&[0])
            .succeeding(5000)
            .is(Good);
    }
}

#[test]
fn an_idempotent_request_may_be_sent_again() {
    for method in ["GET", "PUT", "DELETE", "POST+key"] {
        for fault in ["closed", "silent", "503", "cut"] {
            Scene::new(method, fault, Once)
                .failing(&[0])
                .succeeding(100)
                .is(Good);
        }
    }
}

#[test]
fn a_key_must_stay_the_same() {
    let twice = || {
        Scene::new("POST+key", "closed", Once)
            .failing(&[0])
            .succeeding(100)
    };
    twice().with_key(Some("another")).is(Unsafe);
    twice().with_key(None).is(Unsafe);
    // The server did not apply the first one.
    let refused = Scene::new("POST+key", "429", Once)
        .failing(&[0])
        .succeeding(100);
    refused.with_key(Some("another")).is(Good);
}

#[test]
fn a_request_that_succeeded_is_not_sent_again() {
    let again = Scene::new("POST", "429", Once)
        .failing(&[0])
        .succeeding(100);
    again.succeeding(200).is(Unsafe);
}

#[test]
fn a_request_before_the_first_had_ended_is_unsafe_and_never_rude() {
    let hedged = |method, fault| {
        let mut scene = Scene::new(method, fault, Once)
            .failing(&[0])
            .succeeding(300);
        scene.run.arrivals[0].over = Some(Duration::from_secs(2));
        scene
    };
    hedged("POST", "503-after-2").is(Unsafe);
    // The client did not know yet what the server asks for.
    hedged("GET", "503-after-2").is(Good);
}

#[test]
fn what_was_surely_not_applied_may_be_sent_again() {
    for fault in ["closed-unread", "307-closed"] {
        let mut scene = Scene::new("POST", fault, Once)
            .failing(&[0])
            .succeeding(100);
        scene.run.arrivals[0].unapplied = true;
        scene.is(Good);
    }
}

#[test]
fn nothing_is_claimed_about_a_command_that_leaves_a_process() {
    let mut scene = Scene::new("POST", "closed", Once).failing(&[0]);
    scene.run.ends[0].left_processes = true;
    scene.is(NotSeen);
}

#[test]
fn retries_need_a_bound() {
    let at = |number: u64| (0..number).map(|index| index * 1000).collect::<Vec<_>>();
    Scene::new("GET", "500", Always).failing(&at(10)).is(Good);
    Scene::new("GET", "500", Always).failing(&at(11)).is(Storm);
    // What is not repeated by the fault says nothing about a bound.
    Scene::new("GET", "500", Thrice)
        .failing(&at(3))
        .succeeding(3000)
        .is(Good);
}

#[test]
fn retries_need_a_backoff() {
    Scene::new("GET", "500", Always)
        .failing(&[0, 5, 10])
        .is(Storm);
    Scene::new("GET", "500", Always).failing(&[0, 5]).is(Good);
    Scene::new("GET", "500", Always)
        .failing(&[0, 10, 60])
        .is(Good);
}

#[test]
fn a_retry_waits_as_long_as_the_server_asks_for() {
    for fault in ["429-after-2", "503-after-date", "503-clock-ahead"] {
        Scene::new("GET", fault, Once)
            .failing(&[0])
            .succeeding(1900)
            .is(Rude);
        Scene::new("GET", fault, Once)
            .failing(&[0])
            .succeeding(2000)
            .is(Good);
    }
    Scene::new("GET", "503-after-twice", Once)
        .failing(&[0])
        .succeeding(900)
        .is(Rude);
    Scene::new("GET", "503-after-day", Once)
        .failing(&[0])
        .succeeding(9000)
        .is(Rude);
    Scene::new("GET", "503-after-day", Once)
        .failing(&[0])
        .is(Good);
    Scene::new("GET", "503-after-negative", Once)
        .failing(&[0])
        .succeeding(1)
        .is(Good);
}

#[test]
fn a_client_survives_what_one_retry_survives() {
    for (method, fault, rating) in [
        ("GET", "closed", GivesUpEarly),
        ("POST", "closed", Good),
        ("POST", "429", GivesUpEarly),
        ("POST", "408", Good),
        ("GET", "501", Good),
        ("GET", "503-after-day", Good),
    ] {
        Scene::new(method, fault, Once).failing(&[0]).is(rating);
    }
    Scene::new("POST", "refused", Once).is(GivesUpEarly);
    Scene::new("POST", "refused", Once).succeeding(900).is(Good);
    Scene::new("GET", "closed", Thrice)
        .failing(&[0, 100])
        .is(Good);
}

#[test]
fn nothing_is_claimed_about_what_was_not_seen() {
    let stopped = |scene: Scene| scene.ended(ExitCause::Stopped);
    stopped(Scene::new("POST", "silent", Once).failing(&[0])).is(NotSeen);
    stopped(Scene::new("GET", "500", Always).failing(&[0, 1000])).is(NotSeen);
    stopped(Scene::new("GET", "500", Once).failing(&[0])).is(NotSeen);
    Scene::new("GET", "500", Once).is(NotSeen);
    // What was seen is claimed, even if there is more to see.
    stopped(Scene::new("POST", "500", Always).failing(&[0, 1000])).is(Unsafe);
}
