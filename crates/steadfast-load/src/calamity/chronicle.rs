//! What befell the cluster so far.
//!
//! A run of hours plays a script after the other. Each kind of act is counted for the
//! whole of it, and the latest acts are kept one by one: what is known of a day takes no
//! more room than what is known of an hour.

use serde::Serialize;

use super::act::Act;

/// How many acts are kept one by one: those of an hour and a half.
const KEPT: usize = 2000;

/// What befell the cluster so far.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Chronicle {
    /// How often each kind of act was played, and how long in all.
    pub acts: Vec<Played>,
    /// The acts one by one, in order; the latest if there were very many.
    pub marks: Vec<Mark>,
    /// How many earlier ones are no longer among them.
    pub marks_forgotten: u64,
}

/// A kind of act, over the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// What happened.
    pub what: String,
    /// How often it did, alone or beside another.
    pub times: u64,
    /// How long it lasted in all, in seconds.
    pub duration_s: f64,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// What.
    pub what: String,
    /// When it began, in seconds of the run.
    pub from_s: f64,
    /// When it ended, if it has.
    pub until_s: Option<f64>,
}

impl Chronicle {
    /// An act begins, perhaps with another beside it.
    pub(super) fn begin(&mut self, act: Act, beside: Option<Act>, now_s: f64) {
        let what = match beside {
            Some(beside) => format!("{act}, and {beside}"),
            None => act.to_string(),
        };
        if self.marks.len() >= KEPT {
            // Half of them at once, so that this is not done for each.
            let gone = self.marks.drain(..KEPT / 2).count();
            self.marks_forgotten += gone as u64;
        }
        self.marks.push(Mark {
            what,
            from_s: now_s,
            until_s: None,
        });
    }

    /// The act that began last has ended.
    pub(super) fn end(&mut self, act: Act, beside: Option<Act>, now_s: f64) {
        let Some(mark) = self.marks.last_mut() else {
            return;
        };
        mark.until_s = Some(now_s);
        let lasted = now_s - mark.from_s;
        for what in [Some(act), beside].into_iter().flatten() {
            self.count(what.to_string(), lasted);
        }
    }

    /// What happens just now.
    pub fn now(&self) -> Option<&str> {
        let last = self.marks.last()?;
        last.until_s.is_none().then_some(&*last.what)
    }

    fn count(&mut self, what: String, lasted: f64) {
        let known = self.acts.iter_mut().find(|played| played.what == what);
        match known {
            Some(played) => {
                played.times += 1;
                played.duration_s += lasted;
            }
            None => self.acts.push(Played {
                what,
                times: 1,
                duration_s: lasted,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_told_one_by_one_and_counted_by_kind() {
        let mut chronicle = Chronicle::default();
        chronicle.begin(Act::Crash, Some(Act::SlowNode), 1.0);
        assert_eq!(chronicle.now(), Some("a node crashed, and a slow node"));
        chronicle.end(Act::Crash, Some(Act::SlowNode), 3.0);
        chronicle.begin(Act::SlowNode, None, 3.0);
        chronicle.end(Act::SlowNode, None, 4.5);
        assert_eq!(chronicle.now(), None);
        let acts = chronicle.acts.iter();
        let acts: Vec<_> = acts
            .map(|played| (&*played.what, played.times, played.duration_s))
            .collect();
        assert_eq!(acts, [("a node crashed", 1, 2.0), ("a slow node", 2, 3.5)]);
    }

    #[test]
    fn a_run_of_days_takes_no_more_room_and_counts_every_act() {
        let mut chronicle = Chronicle::default();
        for at in 0..50_000 {
            chronicle.begin(Act::Crash, None, f64::from(at));
            chronicle.end(Act::Crash, None, f64::from(at) + 0.5);
            assert!(chronicle.marks.len() <= KEPT);
        }
        assert_eq!(chronicle.acts[0].times, 50_000);
        let kept = chronicle.marks.len() as u64;
        assert_eq!(kept + chronicle.marks_forgotten, 50_000);
        assert_eq!(chronicle.marks.last().unwrap().from_s, 49_999.0);
    }
}
