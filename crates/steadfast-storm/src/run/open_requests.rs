//! The requests that have started and not ended.

use std::sync::Arc;

use steadfast::{Orchestrator, RetryStrategy};

pub(super) type ClientRequest = Orchestrator<Arc<dyn RetryStrategy>>;

/// All open requests. Slots are reused, so that memory is bounded by the number of
/// requests that are open at the same time.
#[derive(Default)]
pub(super) struct OpenRequests {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// Identifies what a request currently waits for. An event for an earlier wait, such as
/// the response to an abandoned attempt, is stale and finds no request.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitId {
    slot: u32,
    generation: u32,
}

#[derive(Default)]
struct Slot {
    /// Grows with each wait, and is not reset when the slot is reused.
    generation: u32,
    request: Option<OpenRequest>,
}

pub(super) struct OpenRequest {
    /// In nanoseconds.
    pub(super) started: u64,
    /// In nanoseconds; `u64::MAX` without a deadline.
    pub(super) deadline: u64,
    pub(super) client: u32,
    pub(super) endpoint: u32,
    pub(super) request: ClientRequest,
}

impl OpenRequests {
    pub(super) fn insert(&mut self, request: OpenRequest) -> WaitId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).expect("fewer than 2³² requests are open")
        });
        self.slots[slot as usize].request = Some(request);
        self.next_generation(slot)
    }

    /// Returns the request if it still waits for this.
    pub(super) fn get(&mut self, wait: WaitId) -> Option<&mut OpenRequest> {
        let slot = &mut self.slots[wait.slot as usize];
        let current = slot.generation == wait.generation;
        slot.request.as_mut().filter(|_| current)
    }

    /// Makes all earlier waits of the request stale.
    pub(super) fn next_wait(&mut self, wait: WaitId) -> WaitId {
        self.next_generation(wait.slot)
    }

    pub(super) fn remove(&mut self, wait: WaitId) -> Option<OpenRequest> {
        self.next_generation(wait.slot);
        self.free.push(wait.slot);
        self.slots[wait.slot as usize].request.take()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    #[cfg(test)]
    pub(super) fn any_wait(&self) -> WaitId {
        WaitId {
            slot: 0,
            generation: 0,
        }
    }

    fn next_generation(&mut self, slot: u32) -> WaitId {
        let generation = &mut self.slots[slot as usize].generation;
        *generation = generation.wrapping_add(1);
        WaitId {
            slot,
            generation: *generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::{BestEffort, Call};

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
        let strategy: Arc<dyn RetryStrategy> = Arc::new(BestEffort::default());
        requests.insert(OpenRequest {
            started: 0,
            deadline: u64::MAX,
            client: 0,
            endpoint: 0,
            request: Orchestrator::new(strategy, Call::new("get")),
        })
    }
}
