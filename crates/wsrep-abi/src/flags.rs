//! Bit masks: write-set flags and provider capabilities.

/// Write-set flags, as `certify` and the apply callback carry them.
pub mod flag {
    /// Last fragment: the transaction commits.
    pub const TRX_END: u32 = 1 << 0;
    /// The transaction rolls back (all its fragments).
    pub const ROLLBACK: u32 = 1 << 1;
    /// Total order isolation: nothing else applies at the same time.
    pub const ISOLATION: u32 = 1 << 2;
    /// Must not be applied in parallel with other write-sets.
    pub const PA_UNSAFE: u32 = 1 << 3;
    /// The order of application does not matter. MariaDB never sets it.
    pub const COMMUTATIVE: u32 = 1 << 4;
    /// Holds another write-set of the provider's own format. MariaDB never sets it.
    pub const NATIVE: u32 = 1 << 5;
    /// First fragment of a transaction.
    pub const TRX_START: u32 = 1 << 6;
    /// The fragment that prepares an XA transaction.
    pub const TRX_PREPARE: u32 = 1 << 7;
    /// Snapshot.
    pub const SNAPSHOT: u32 = 1 << 8;
    /// Depends on everything its origin had seen when it was sent.
    pub const IMPLICIT_DEPS: u32 = 1 << 9;
    /// Every flag that the API defines.
    pub const MASK: u32 = (IMPLICIT_DEPS << 1) - 1;
}

/// Provider capabilities, as `capabilities()` and views carry them.
pub mod cap {
    /// Writes are taken on every node.
    pub const MULTI_MASTER: u32 = 1 << 0;
    /// Conflicts are found by certification.
    pub const CERTIFICATION: u32 = 1 << 1;
    /// Write-sets are applied in parallel.
    pub const PARALLEL_APPLYING: u32 = 1 << 2;
    /// A brute-force aborted transaction can be replayed.
    pub const TRX_REPLAY: u32 = 1 << 3;
    /// Total order isolation.
    pub const ISOLATION: u32 = 1 << 4;
    /// Pause and resume.
    pub const PAUSE: u32 = 1 << 5;
    /// Causal reads (`sync_wait`).
    pub const CAUSAL_READS: u32 = 1 << 6;
    /// Causal transactions.
    pub const CAUSAL_TRX: u32 = 1 << 7;
    /// A write-set can be built piece by piece.
    pub const INCREMENTAL_WRITESET: u32 = 1 << 8;
    /// Session locks.
    pub const SESSION_LOCKS: u32 = 1 << 9;
    /// Distributed locks.
    pub const DISTRIBUTED_LOCKS: u32 = 1 << 10;
    /// Consistency voting.
    pub const CONSISTENCY_CHECK: u32 = 1 << 11;
    /// Unordered data.
    pub const UNORDERED: u32 = 1 << 12;
    /// Annotations.
    pub const ANNOTATION: u32 = 1 << 13;
    /// Preordered events.
    pub const PREORDERED: u32 = 1 << 14;
    /// Streaming replication; the server refuses fragments without it.
    pub const STREAMING: u32 = 1 << 15;
    /// Snapshots.
    pub const SNAPSHOT: u32 = 1 << 16;
    /// Non-blocking operations.
    pub const NBO: u32 = 1 << 17;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_the_values_of_the_contract() {
        assert_eq!(flag::MASK, 0x3ff);
        // TOI as appliers get it, and what the packaged Galera advertises.
        assert_eq!(flag::TRX_START | flag::TRX_END | flag::ISOLATION, 0x45);
        assert_eq!(flag::ROLLBACK | flag::PA_UNSAFE, 0x0a);
        let galera = cap::MULTI_MASTER
            | cap::CERTIFICATION
            | cap::PARALLEL_APPLYING
            | cap::TRX_REPLAY
            | cap::ISOLATION
            | cap::PAUSE
            | cap::CAUSAL_READS
            | cap::INCREMENTAL_WRITESET
            | cap::UNORDERED
            | cap::PREORDERED
            | cap::STREAMING
            | cap::NBO;
        assert_eq!(galera, 0x2d17f);
    }
}
