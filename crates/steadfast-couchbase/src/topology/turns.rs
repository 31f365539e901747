//! Asking one after the other, without waiting for those who are slow.
//!
//! A node that is dead and whose connection has not noticed keeps silent. Waiting
//! for it holds up the question, and giving up on it early would never hear a node
//! that is merely far away. So the next is asked after a short patience, and who
//! still owes an answer goes on, also after the question is settled, and is not
//! asked again until it has said something.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// After this time another is asked as well.
const PATIENCE: Duration = Duration::from_millis(100);

type Asked<Who> = Pin<Box<dyn Future<Output = (Who, bool)> + Send>>;

/// Those who were asked and have not answered.
pub(super) struct Turns<Who> {
    owing: FuturesUnordered<Asked<Who>>,
    who: Vec<Who>,
}

impl<Who: Clone + PartialEq + Send + 'static> Turns<Who> {
    pub(super) fn new() -> Self {
        Self {
            owing: FuturesUnordered::new(),
            who: Vec::new(),
        }
    }

    /// Asks one after the other until one says yes, and says whether one did
    /// within its time. The next is asked when all before it said no, or the last
    /// has said nothing for too long.
    ///
    /// Dropping the future loses nothing: who was asked is still asked.
    pub(super) async fn ask<F: Future<Output = bool> + Send + 'static>(
        &mut self,
        turns: impl IntoIterator<Item = (Who, F)>,
    ) -> bool {
        for (who, turn) in turns {
            if self.who.contains(&who) {
                continue;
            }
            self.who.push(who.clone());
            self.owing.push(Box::pin(async move { (who, turn.await) }));
            if let Ok(true) = tokio::time::timeout(PATIENCE, self.answered()).await {
                return true;
            }
        }
        false
    }

    /// Hears those who owe an answer: true as soon as one says yes, false when all
    /// said no.
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn answered(&mut self) -> bool {
        while let Some((who, yes)) = self.owing.next().await {
            self.who.retain(|owing| *owing != who);
            if yes {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::time::Instant;

    use super::*;

    /// Those who were asked, and at which millisecond.
    type Log = Vec<(usize, u128)>;

    struct Scene {
        turns: Turns<usize>,
        start: Instant,
        log: Arc<Mutex<Log>>,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                turns: Turns::new(),
                start: Instant::now(),
                log: Arc::default(),
            }
        }

        /// Asks people who say this after so many milliseconds. Returns what came
        /// of it, and when.
        async fn ask(&mut self, people: &[(u64, bool)]) -> (bool, u128) {
            let (start, log) = (self.start, self.log.clone());
            let turns = people.iter().enumerate().map(|(who, (after, says))| {
                let (after, says, log) = (Duration::from_millis(*after), *says, log.clone());
                let turn = async move {
                    log.lock().push((who, start.elapsed().as_millis()));
                    tokio::time::sleep(after).await;
                    says
                };
                (who, turn)
            });
            let yes = self.turns.ask(turns).await;
            (yes, start.elapsed().as_millis())
        }

        fn log(&self) -> Log {
            self.log.lock().clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_yes_in_time_is_the_only_one_asked() {
        let mut scene = Scene::new();
        assert_eq!(scene.ask(&[(10, true), (0, true)]).await, (true, 10));
        assert_eq!(scene.log(), [(0, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_no_brings_the_next_at_once() {
        let mut scene = Scene::new();
        let people = [(10, false), (5, false), (7, true)];
        assert_eq!(scene.ask(&people).await, (true, 22));
        assert_eq!(scene.log(), [(0, 0), (1, 10), (2, 15)]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_dead_delays_the_next_by_the_patience_and_no_more() {
        let mut scene = Scene::new();
        assert_eq!(scene.ask(&[(2500, false), (10, true)]).await, (true, 110));
        assert_eq!(scene.log(), [(0, 0), (1, 100)]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_dead_is_not_asked_again_and_holds_up_no_further_question() {
        let mut scene = Scene::new();
        assert_eq!(scene.ask(&[(2500, false), (10, false)]).await, (false, 200));
        assert_eq!(scene.ask(&[(2500, false), (10, true)]).await, (true, 210));
        assert_eq!(scene.log(), [(0, 0), (1, 100), (1, 200)]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_far_away_is_heard_after_the_question_was_left() {
        let mut scene = Scene::new();
        assert_eq!(scene.ask(&[(250, true)]).await, (false, 100));
        assert!(scene.turns.answered().await);
        assert_eq!(scene.start.elapsed().as_millis(), 250);
        assert_eq!(scene.ask(&[(0, true)]).await, (true, 250));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_to_ask_says_no() {
        assert_eq!(Scene::new().ask(&[]).await, (false, 0));
        assert!(!Scene::new().turns.answered().await);
    }
}
