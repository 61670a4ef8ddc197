//! How long this node stays out of flow control when the group has left it out.

/// At least so long: nobody is served by its coming and going.
const SHORTEST_MS: u64 = 1_000;
const LONGEST_MS: u64 = 60_000;
/// Who is left out again within this time stays out twice as long.
const RELAPSE_MS: u64 = 10_000;

/// Since when, and until when.
#[derive(Debug, Default)]
pub(crate) struct Absence {
    until_ms: u64,
    for_ms: u64,
}

impl Absence {
    /// It begins.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        let relapsed = now_ms < self.until_ms + RELAPSE_MS;
        let twice = if relapsed { 2 * self.for_ms } else { 0 };
        self.for_ms = twice.clamp(SHORTEST_MS, LONGEST_MS);
        self.until_ms = now_ms + self.for_ms;
    }

    /// The node is back in flow control.
    pub(crate) fn end(&mut self, now_ms: u64) {
        self.until_ms = now_ms;
    }

    /// It may come back, if it has caught up.
    pub(crate) fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.until_ms
    }

    /// When that is.
    pub(crate) fn until_ms(&self) -> u64 {
        self.until_ms
    }
}
