//! Own transactions that lost against another write-set.
//!
//! In come losses where they are decided; counts go out. They outlive connections.

/// How own transactions lost, counted since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConflictCounts {
    /// Write-sets that failed certification.
    pub certification: u64,
    /// Transactions that an applier rolled back before their write-set was ordered.
    pub brute_force_abort: u64,
    /// Transactions that an applier rolled back after their write-set had passed: applied anew.
    pub replay: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    counts: ConflictCounts,
}

impl Conflicts {
    pub(crate) fn counts(&self) -> ConflictCounts {
        self.counts
    }

    /// An own write-set failed certification.
    pub(crate) fn failed_certification(&mut self) {
        self.counts.certification += 1;
    }

    /// An own transaction was rolled back before its write-set was ordered.
    pub(crate) fn was_aborted(&mut self) {
        self.counts.brute_force_abort += 1;
    }

    /// An own transaction that was rolled back is applied anew.
    pub(crate) fn is_replayed(&mut self) {
        self.counts.replay += 1;
    }
}
