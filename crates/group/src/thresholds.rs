//! Sizes at which the core goes about things otherwise.

/// Deployed nodes have the defaults. The simulator draws smaller ones, so that ordinary schedules cross them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thresholds {
    /// An `Append` message holds so many bytes at most, but for one entry ...
    pub append_bytes: usize,
    /// ... and so many entries.
    pub append_entries: u64,
    /// So much is read from the log at once to feed a member.
    pub log_slice_bytes: usize,
    /// So much of large payloads is fetched at a time from the leader's log, but for one.
    pub logged_bytes: u64,
    /// So much of large payloads is given to others in one ms: everything else waits meanwhile.
    pub given_bytes: usize,
    /// So much of the own log is read at once to append it again.
    pub read_left_bytes: usize,
    /// What one origin has submitted and is not ordered takes so much memory, but for its next submission.
    pub pending_bytes: usize,
    /// Order records whose turn has not come take so much memory, but for the first ...
    pub incoming_bytes: usize,
    /// ... and are so many at most. A correct leader's window holds half of that.
    pub incoming_records: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            append_bytes: 1 << 20,
            append_entries: 512,
            // Read in less than a ms: whoever is fed from the log holds up everything else for as long.
            log_slice_bytes: 128 << 10,
            logged_bytes: 8 << 20,
            given_bytes: 4 << 20,
            read_left_bytes: 4 << 20,
            pending_bytes: 1 << 30,
            incoming_bytes: 64 << 20,
            incoming_records: 1 << 18,
        }
    }
}
