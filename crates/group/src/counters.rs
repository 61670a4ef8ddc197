//! What is counted.

/// Counts for status variables and the simulator's coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Times that this member took leadership.
    pub leaderships_taken: u64,
    /// Times that it handed leadership over and was relieved of it.
    pub leaderships_handed: u64,
    /// Times that it took leadership from a leader that was alive and had not offered it.
    pub leaderships_needless: u64,
    /// Hand-overs that the successor did not take up in time.
    pub leaderships_kept: u64,
    /// Log suffixes dropped.
    pub truncations: u64,
    /// Log catch-ups asked for.
    pub summaries_sent: u64,
    /// Checkpoints installed.
    pub installs: u64,
    /// Withdrawn submissions replaced by voids.
    pub voided: u64,
    /// Large payloads fetched from their origins.
    pub parcels: u64,
    /// Large payloads fetched from a leader's log.
    pub logged: u64,
    /// Times that an operator was told of a split brain.
    pub splits: u64,
}
