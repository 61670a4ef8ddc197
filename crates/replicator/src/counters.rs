//! Counters behind [`crate::Status`].

use trireme_certification::{Outcome, Seqno, Verdict};

use crate::status::QueueLength;

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
    pub local_commits: u64,
    pub local_cert_failures: u64,
    pub local_replays: u64,
    pub too_wide: u64,
    pub causal_reads: u64,
    pub apply_waits: u64,
    pub deps_distance: Average,
    pub cert_interval: Average,
    pub out_of_order_entered: Average,
    pub out_of_order_left: Average,
    pub window: Average,
    recv_queue: Average,
    recv_queue_max: u64,
    recv_queue_min: u64,
    /// When these began to count.
    pub since_ms: u64,
}

impl Counters {
    pub(crate) fn reset(&mut self, now_ms: u64) {
        *self = Counters {
            since_ms: now_ms,
            ..Counters::default()
        };
    }

    /// An apply was queued.
    pub(crate) fn queued(&mut self, length: usize) {
        let length = length as u64;
        self.recv_queue.add(length as f64);
        self.recv_queue_max = self.recv_queue_max.max(length);
        self.recv_queue_min = self.recv_queue_min.min(length);
    }

    pub(crate) fn recv_queue(&self, now: usize) -> QueueLength {
        let (now, avg) = (now as u64, self.recv_queue.get());
        QueueLength {
            now,
            max: self.recv_queue_max.max(now),
            min: self.recv_queue_min.min(now),
            avg,
        }
    }

    pub(crate) fn certified(&mut self, seqno: Seqno, last_seen: Seqno, outcome: &Outcome) {
        self.too_wide += u64::from(outcome.verdict == Verdict::TooWide);
        self.deps_distance.add((seqno - outcome.depends_on) as f64);
        self.cert_interval
            .add((seqno - last_seen - 1).max(0) as f64);
    }
}
