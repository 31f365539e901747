//! The requests that have started and not ended.

use std::sync::Arc;
use std::time::Duration;

use steadfast::{Call, Orchestrator, RetryStrategy};

pub(super) type ClientRequest = Orchestrator<Arc<dyn RetryStrategy>>;

/// All open requests. Slots are reused, so that memory is bounded by the number of
/// requests that are open at the same time.
#[derive(Default)]
pub(super) struct OpenRequests {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

/// Identifies what a request currently waits for. An event for an earlier wait, such as
/// the response to an abandoned attempt, is stale and finds no request.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitId {
    slot: usize,
    generation: u64,
}

#[derive(Default)]
struct Slot {
    /// Grows with each wait, and is not reset when the slot is reused.
    generation: u64,
    request: Option<OpenRequest>,
}

pub(super) struct OpenRequest {
    pub(super) started: Duration,
    pub(super) request: ClientRequest,
}

impl OpenRequests {
    pub(super) fn insert(
        &mut self,
        strategy: Arc<dyn RetryStrategy>,
        call: Call,
        started: Duration,
    ) -> WaitId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let request = Orchestrator::new(strategy, call);
        self.slots[slot].request = Some(OpenRequest { started, request });
        self.next_generation(slot)
    }

    /// Returns the request if it still waits for this.
    pub(super) fn get(&mut self, wait: WaitId) -> Option<&mut OpenRequest> {
        let slot = &mut self.slots[wait.slot];
        let current = slot.generation == wait.generation;
        slot.request.as_mut().filter(|_| current)
    }

    /// Makes all earlier waits of the request stale.
    pub(super) fn next_wait(&mut self, wait: WaitId) -> WaitId {
        self.next_generation(wait.slot)
    }

    pub(super) fn remove(&mut self, wait: WaitId) {
        self.next_generation(wait.slot);
        self.slots[wait.slot].request = None;
        self.free.push(wait.slot);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    fn next_generation(&mut self, slot: usize) -> WaitId {
        self.slots[slot].generation += 1;
        let generation = self.slots[slot].generation;
        WaitId { slot, generation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::BestEffort;

    #[test]
    fn an_event_for_an_earlier_wait_finds_no_request() {
        let mut requests = OpenRequests::default();
        let first = insert(&mut requests);
        assert!(!requests.is_empty());
        let second = requests.next_wait(first);
        assert!(requests.get(first).is_none());
        assert!(requests.get(second).is_some());
        requests.remove(second);
        assert!(requests.is_empty());
        let other = insert(&mut requests);
        assert_eq!(other.slot, first.slot, "the slot is reused");
        assert!(requests.get(second).is_none());
        assert!(requests.get(other).is_some());
    }

    fn insert(requests: &mut OpenRequests) -> WaitId {
        let strategy = Arc::new(BestEffort::default());
        requests.insert(strategy, Call::new("get"), Duration::ZERO)
    }
}
