//! Detects connections that went silent.
//!
//! A network can drop packets silently, and TCP then repeats them for many minutes. The
//! connection sends a probe when a response is overdue, when operations wait and nothing arrived
//! for 2.5 seconds, or when nothing arrived for ten. Any byte proves that it is alive: a slow
//! server, or a large value on its way, is not silent. If no byte arrives in time, the connection
//! is closed (decisions D46 and D56 in docs/decisions.md).
//!
//! With unordered execution, the probe is a command that the server reorders and answers
//! without looking for a document: no slow operation holds it back. But a server works on a
//! limited number of commands of a connection, and without unordered execution on one. If as
//! many operations are ahead of the probe, they may be slow for a good reason, such as a
//! replica that a durable write waits for. Then the connection is left alone until their
//! deadlines.
//!
//! Bytes can be on their way for long without a full socket: the system's buffers take megabytes,
//! and a tunnel has its own. A response proves that everything up to its request has arrived. The
//! probe has more time for the bytes behind that, as many as a slow uplink needs.
//!
//! Reads are counted, not timed: the clock is read only when a timer fires.

use std::time::{Duration, Instant};

use super::ConnectionLimits;

/// Judges whether a connection is alive.
pub(super) struct SilenceWatch {
    limits: ConnectionLimits,
    /// Counts reads that returned bytes.
    reads: u64,
    probe: Option<Probe>,
    /// The next look for bytes.
    look: Option<Look>,
}

struct Look {
    at: Instant,
    reads_before: u64,
    /// The number of looks in a row that found none.
    quiet: u32,
}

/// The number of looks in a row without a byte after which an idle connection is probed. With
/// operations, one is enough.
const LOOKS: u32 = 4;

/// The slowest uplink on which a connection with large values is not cut, in bytes per second.
const SLOWEST_UPLINK: u64 = 256 << 10;

struct Probe {
    until: Instant,
    reads_before: u64,
    /// The position in the stream at which the socket accepted no more bytes. If it
    /// moves, the peer reads, and the probe has not reached it yet.
    stuck_at: Option<u64>,
}

/// The action to take after a timer fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerAction {
    /// Nothing.
    Fine,
    /// Send a probe.
    Probe,
    /// Close the connection.
    Silent,
}

/// The progress of a connection when a timer fired.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionProgress {
    pub(super) now: Instant,
    /// An operation got no response in time.
    pub(super) overdue: bool,
    /// Whether operations have no response yet.
    pub(super) waiting: bool,
    /// The position up to which the stream was handed to the socket.
    pub(super) handed: u64,
    /// Whether the socket accepts no more bytes for now.
    pub(super) blocked: bool,
    /// Until when operations ahead of the probe may hold it back.
    pub(super) held_back_until: Option<Instant>,
    /// The number of bytes that were handed to the socket and may not have arrived.
    pub(super) on_their_way: u64,
    /// The latest deadline of the operations without a response.
    pub(super) latest_deadline: Option<Instant>,
}

impl SilenceWatch {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            reads: 0,
            probe: None,
            look: None,
        }
    }

    /// Records that bytes arrived.
    #[inline]
    pub(super) fn heard(&mut self) {
        self.reads = self.reads.wrapping_add(1);
    }

    /// Starts to look for bytes. Does nothing the second time.
    #[inline]
    pub(super) fn begin(&mut self, now: impl FnOnce() -> Instant) {
        if self.look.is_none() {
            self.look = Some(Look {
                at: now() + self.limits.idle / LOOKS,
                reads_before: self.reads,
                quiet: 0,
            });
        }
    }

    /// The next time at which [`judge`](Self::judge) has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.probe {
            Some(probe) => Some(probe.until),
            None => self.look.as_ref().map(|look| look.at),
        }
    }

    /// Judges the connection after a timer fired.
    pub(super) fn judge(&mut self, progress: ConnectionProgress) -> TimerAction {
        let ConnectionProgress { now, .. } = progress;
        if let Some(probe) = &mut self.probe {
            if probe.reads_before != self.reads {
                self.probe = None;
            } else if now < probe.until {
                return TimerAction::Fine;
            } else if let Some(until) = progress.held_back_until.filter(|until| *until > now) {
                probe.until = until;
                return TimerAction::Fine;
            } else if probe.stuck_at.is_some_and(|at| at < progress.handed) {
                self.probe = Some(self.probe(progress));
                return TimerAction::Fine;
            } else {
                return TimerAction::Silent;
            }
        }
        let mut is_due = progress.overdue;
        if let Some(look) = &mut self.look
            && look.at <= now
        {
            let is_quiet = look.reads_before == self.reads;
            look.quiet = if is_quiet { look.quiet + 1 } else { 0 };
            is_due |= look.quiet >= LOOKS || is_quiet && progress.waiting;
            look.at = now + self.limits.idle / LOOKS;
            look.reads_before = self.reads;
        }
        if !is_due {
            return TimerAction::Fine;
        }
        self.probe = Some(self.probe(progress));
        TimerAction::Probe
    }

    fn probe(&self, progress: ConnectionProgress) -> Probe {
        // No longer than an operation can gain from it.
        let latest = progress.latest_deadline.unwrap_or(progress.now);
        let slowest = Duration::from_millis(progress.on_their_way * 1000 / SLOWEST_UPLINK);
        let travels = slowest.min(latest.saturating_duration_since(progress.now));
        Probe {
            until: progress.now + self.limits.probe_timeout + travels,
            reads_before: self.reads,
            stuck_at: progress.blocked.then_some(progress.handed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    struct Watched {
        watch: SilenceWatch,
        start: Instant,
        handed: u64,
        blocked: bool,
        waiting: bool,
        held_back_until: Option<u32>,
        on_their_way: u64,
        latest_deadline: Option<u32>,
    }

    impl Watched {
        fn new() -> Self {
            let start = Instant::now();
            let mut watch = SilenceWatch::new(ConnectionLimits::default());
            watch.begin(|| start);
            Self {
                watch,
                start,
                handed: 0,
                blocked: false,
                waiting: false,
                held_back_until: None,
                on_their_way: 0,
                latest_deadline: None,
            }
        }

        fn at(&self, millis: u32) -> Instant {
            self.start + MS * millis
        }

        fn judge(&mut self, millis: u32, overdue: bool) -> TimerAction {
            self.watch.judge(ConnectionProgress {
                now: self.at(millis),
                overdue,
                handed: self.handed,
                blocked: self.blocked,
                waiting: self.waiting,
                held_back_until: self.held_back_until.map(|millis| self.at(millis)),
                on_their_way: self.on_their_way,
                latest_deadline: self.latest_deadline.map(|millis| self.at(millis)),
            })
        }
    }

    #[test]
    fn an_overdue_response_sends_a_probe_and_silence_after_it_closes() {
        let mut it = Watched::new();
        it.watch.heard();
        assert_eq!(it.judge(100, false), TimerAction::Fine);
        assert_eq!(it.judge(100, true), TimerAction::Probe);
        assert_eq!(it.judge(200, true), TimerAction::Fine);
        assert_eq!(it.watch.next(), Some(it.start + 500 * MS));
        assert_eq!(it.judge(499, true), TimerAction::Fine);
        assert_eq!(it.judge(500, false), TimerAction::Silent);
    }

    #[test]
    fn any_byte_after_the_probe_proves_that_the_connection_is_alive() {
        let mut it = Watched::new();
        for millis in [0, 500, 1000] {
            assert_eq!(it.judge(millis, true), TimerAction::Probe);
            it.watch.heard();
            assert_eq!(it.judge(millis + 400, false), TimerAction::Fine);
        }
        // A byte from before the probe proves nothing.
        assert_eq!(it.judge(2000, true), TimerAction::Probe);
        assert_eq!(it.judge(2400, false), TimerAction::Silent);
    }

    #[test]
    fn a_peer_that_still_reads_is_not_silent_until_it_stops() {
        let mut it = Watched::new();
        (it.handed, it.blocked) = (100, true);
        assert_eq!(it.judge(0, true), TimerAction::Probe);
        it.handed = 200;
        assert_eq!(it.judge(400, false), TimerAction::Fine);
        assert_eq!(it.watch.next(), Some(it.start + 800 * MS));
        assert_eq!(it.judge(800, false), TimerAction::Silent);
        // Bytes that a socket accepts without being full say nothing about the peer.
        let mut it = Watched::new();
        assert_eq!(it.judge(0, true), TimerAction::Probe);
        it.handed = 200;
        assert_eq!(it.judge(400, false), TimerAction::Silent);
    }

    #[test]
    fn a_probe_that_operations_hold_back_has_until_their_deadline() {
        let mut it = Watched::new();
        it.held_back_until = Some(3000);
        assert_eq!(it.judge(0, true), TimerAction::Probe);
        assert_eq!(it.judge(400, false), TimerAction::Fine);
        assert_eq!(it.watch.next(), Some(it.start + 3000 * MS));
        assert_eq!(it.judge(3000, true), TimerAction::Silent);
        // A byte ends the wait, and the next silence is another one.
        let mut it = Watched::new();
        it.held_back_until = Some(3000);
        assert_eq!(it.judge(0, true), TimerAction::Probe);
        assert_eq!(it.judge(400, false), TimerAction::Fine);
        it.watch.heard();
        it.held_back_until = None;
        assert_eq!(it.judge(1000, true), TimerAction::Probe);
        assert_eq!(it.judge(1400, false), TimerAction::Silent);
    }

    #[test]
    fn a_probe_behind_many_bytes_has_time_until_the_latest_deadline() {
        for (latest, until) in [(None, 400), (Some(1500), 1900), (Some(9000), 4400)] {
            let mut it = Watched::new();
            it.on_their_way = 1 << 20;
            it.latest_deadline = latest;
            assert_eq!(it.judge(0, true), TimerAction::Probe);
            assert_eq!(it.watch.next(), Some(it.at(until)), "{latest:?}");
            assert_eq!(it.judge(until, false), TimerAction::Silent);
        }
    }

    #[test]
    fn an_idle_connection_is_probed_now_and_then() {
        let mut it = Watched::new();
        assert_eq!(it.watch.next(), Some(it.start + 2500 * MS));
        it.watch.heard();
        for millis in [2500, 5000, 7500, 10_000] {
            assert_eq!(it.judge(millis, false), TimerAction::Fine);
        }
        assert_eq!(it.judge(12_500, false), TimerAction::Probe);
        it.watch.heard();
        // The response was heard.
        for millis in [12_900, 15_000, 17_500, 20_000, 22_500] {
            assert_eq!(it.judge(millis, false), TimerAction::Fine);
        }
        assert_eq!(it.judge(25_000, false), TimerAction::Probe);
        assert_eq!(it.judge(25_400, false), TimerAction::Silent);
    }

    #[test]
    fn a_connection_with_operations_is_probed_sooner() {
        let mut it = Watched::new();
        it.watch.heard();
        it.waiting = true;
        assert_eq!(it.judge(2500, false), TimerAction::Fine);
        assert_eq!(it.judge(5000, false), TimerAction::Probe);
        assert_eq!(it.judge(5400, false), TimerAction::Silent);
    }
}
