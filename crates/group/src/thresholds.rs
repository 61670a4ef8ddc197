//! Limits that the simulator makes smaller, so that ordinary schedules reach them.

/// The sizes. Deployed nodes have the defaults. The simulator draws smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thresholds {
    /// Greatest number of bytes in an `Append` message, except that one entry always fits.
    pub append_bytes: usize,
    /// Greatest number of entries in an `Append` message.
    pub append_entries: u64,
    /// Bytes read from the log at once for a member's catch-up.
    pub log_slice_bytes: usize,
    /// Bytes of bulk payloads fetched at a time from the leader's log, except that one payload always fits.
    pub logged_bytes: u64,
    /// Bytes of bulk payloads sent to others in one ms: everything else waits meanwhile.
    pub given_bytes: usize,
    /// Bytes of the local log read at once by a candidate, to append the entries again.
    pub read_left_bytes: usize,
    /// Memory for one origin's submissions that are not ordered, in bytes, except that its next submission always fits.
    pub pending_bytes: usize,
    /// Memory for order records that wait for a payload, in bytes, except that the first always fits.
    pub incoming_bytes: usize,
    /// Greatest number of order records that wait for a payload. A correct leader's window holds half as many.
    pub incoming_records: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            append_bytes: 1 << 20,
            append_entries: 512,
            // The read takes less than a ms, during which everything else waits.
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
