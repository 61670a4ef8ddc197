//! What is counted.

/// Counts for status variables and the simulator's coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Times that this member took the office.
    pub offices_taken: u64,
    /// Times that it handed the office over and was relieved of it.
    pub offices_handed: u64,
    /// Times that it took the office from a sequencer that was alive and had not offered it.
    pub offices_needless: u64,
    /// Hand-overs that the successor did not take up in time.
    pub offices_kept: u64,
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
    /// Large payloads fetched from a sequencer's log.
    pub logged: u64,
    /// Times that an operator was told of a split brain.
    pub splits: u64,
}
