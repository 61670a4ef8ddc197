//! Counters of the executor, behind [`crate::Status`].

use trireme_certification::Seqno;

use crate::counters::{Average, QueueMeter};

#[derive(Debug, Default)]
pub(crate) struct ExecutorCounters {
    pub local_commits: u64,
    pub local_cert_failures: u64,
    pub local_replays: u64,
    /// Write-sets that came before all that they depend on was released.
    pub apply_waits: u64,
    pub out_of_order_entered: Average,
    pub out_of_order_left: Average,
    pub window: Average,
    /// Write-sets that wait to be applied.
    pub recv_queue: QueueMeter,
}

impl ExecutorCounters {
    /// A write-set was queued: so many wait now.
    pub(super) fn queued(&mut self, waits: bool, length: usize) {
        self.apply_waits += u64::from(waits);
        self.recv_queue.queued(length);
    }

    /// A thread begins to apply a write-set. `low`: everything up to here is released.
    pub(super) fn entered(&mut self, seqno: Seqno, low: Seqno) {
        let is_early = seqno > low + 1;
        self.out_of_order_entered.add(f64::from(u8::from(is_early)));
        self.window.add((seqno - low) as f64);
    }

    pub(super) fn released(&mut self, in_order: bool) {
        self.out_of_order_left.add(f64::from(u8::from(!in_order)));
    }
}
