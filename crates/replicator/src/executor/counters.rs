//! Counters of the executor, behind [`crate::Status`].

use trireme_certification::Seqno;

use crate::counters::{Average, QueueMeter};

#[derive(Debug, Default)]
pub(crate) struct ExecutorCounters {
    pub local_commits: u64,
    pub local_cert_failures: u64,
    pub local_replays: u64,
    /// Write-sets that were queued before all their dependencies were released.
    pub apply_waits: u64,
    pub out_of_order_entered: Average,
    pub out_of_order_left: Average,
    pub window: Average,
    /// Write-sets that wait to be applied.
    pub recv_queue: QueueMeter,
}

impl ExecutorCounters {
    /// Counts a queued write-set; `length`: the number that wait now.
    pub(super) fn queued(&mut self, waits: bool, length: usize) {
        self.apply_waits += u64::from(waits);
        self.recv_queue.queued(length);
    }

    /// Counts a write-set that a thread begins to apply. `low`: everything up to it is released.
    pub(super) fn entered(&mut self, seqno: Seqno, low: Seqno) {
        let is_early = seqno > low + 1;
        self.out_of_order_entered.add(f64::from(u8::from(is_early)));
        self.window.add((seqno - low) as f64);
    }

    pub(super) fn released(&mut self, in_order: bool) {
        self.out_of_order_left.add(f64::from(u8::from(!in_order)));
    }
}
