//! Counters behind [`crate::Status`].

use trireme_certification::{Outcome, Seqno, Verdict};

use crate::status::QueueLength;
use crate::writeset::WriteSetDraft;

/// Sum and number of samples.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Average {
    sum: f64,
    count: u64,
}

impl Average {
    pub(crate) fn add(&mut self, sample: f64) {
        self.sum += sample;
        self.count += 1;
    }

    pub(crate) fn get(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum / self.count as f64
        }
    }
}

/// A queue's length, taken at every insertion.
#[derive(Debug, Default)]
pub(crate) struct QueueMeter {
    average: Average,
    max: u64,
    /// None: nothing was inserted.
    min: Option<u64>,
}

impl QueueMeter {
    /// Counts an insertion; the queue has this length now.
    pub(crate) fn queued(&mut self, length: usize) {
        let length = length as u64;
        self.average.add(length as f64);
        self.max = self.max.max(length);
        // It was shortest right before an insertion.
        let before = length.saturating_sub(1);
        self.min = Some(self.min.map_or(before, |min| min.min(before)));
    }

    pub(crate) fn length(&self, now: usize) -> QueueLength {
        let now = now as u64;
        QueueLength {
            now,
            max: self.max.max(now),
            min: self.min.map_or(now, |min| min.min(now)),
            avg: self.average.get(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub replicated: u64,
    pub replicated_bytes: u64,
    pub repl_keys: u64,
    pub repl_keys_bytes: u64,
    pub repl_data_bytes: u64,
    pub repl_other_bytes: u64,
    pub received: u64,
    pub received_bytes: u64,
    pub too_wide: u64,
    pub causal_reads: u64,
    pub deps_distance: Average,
    pub cert_interval: Average,
    /// Own write-sets that wait to be submitted.
    pub send_queue: QueueMeter,
    /// The time when the counters began; None: no connection has begun yet.
    since_ms: Option<u64>,
}

impl Counters {
    pub(crate) fn reset(&mut self, now_ms: u64) {
        *self = Counters {
            since_ms: Some(now_ms),
            ..Counters::default()
        };
    }

    /// Begins a connection; the counters go on.
    pub(crate) fn connect(&mut self, now_ms: u64) {
        self.since_ms.get_or_insert(now_ms);
    }

    /// Returns the time for which the counters have counted.
    pub(crate) fn elapsed_ms(&self, now_ms: u64) -> u64 {
        let elapsed = |since_ms| now_ms.saturating_sub(since_ms);
        self.since_ms.map_or(0, elapsed)
    }

    /// Counts a write-set that is submitted.
    pub(crate) fn replicated(&mut self, draft: &WriteSetDraft) {
        let [keys, keys_bytes, data_bytes, other_bytes] = draft.sizes();
        self.replicated += 1;
        self.replicated_bytes += draft.len_bytes() as u64;
        self.repl_keys += keys;
        self.repl_keys_bytes += keys_bytes;
        self.repl_data_bytes += data_bytes;
        self.repl_other_bytes += other_bytes;
    }

    /// Counts a write-set or view that the server gets from others.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.received += 1;
        self.received_bytes += bytes as u64;
    }

    pub(crate) fn certified(&mut self, seqno: Seqno, last_seen: Seqno, outcome: &Outcome) {
        self.too_wide += u64::from(outcome.verdict == Verdict::TooWide);
        self.deps_distance.add((seqno - outcome.depends_on) as f64);
        self.cert_interval
            .add((seqno - last_seen - 1).max(0) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_queue_has_a_least_length() {
        let mut meter = QueueMeter::default();
        assert_eq!(meter.length(5).min, 5);
        meter.queued(8);
        meter.queued(10);
        let length = meter.length(9);
        assert_eq!((length.min, length.max, length.now), (7, 10, 9));
        assert_eq!(meter.length(3).min, 3);
    }
}
