//! Event counters of the group core.

/// Counts for status variables and the simulator's coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Times that this member became leader.
    pub leaderships_taken: u64,
    /// Transfers of leadership by this member that succeeded.
    pub leaderships_handed: u64,
    /// Times that this member became leader although the old leader was alive and had not offered leadership.
    pub leaderships_needless: u64,
    /// Transfers of leadership by this member that failed: the successor did not stand in time.
    pub leaderships_kept: u64,
    /// Log suffixes dropped.
    pub truncations: u64,
    /// Summaries sent: requests for catch-up.
    pub summaries_sent: u64,
    /// Checkpoints installed.
    pub installs: u64,
    /// Withdrawn submissions that this leader replaced by voided submissions.
    pub voided: u64,
    /// Bulk payloads fetched from their origins.
    pub bulk_payloads: u64,
    /// Bulk payloads fetched from a leader's log.
    pub logged: u64,
    /// Reports of a split brain to the operator.
    pub splits: u64,
}
