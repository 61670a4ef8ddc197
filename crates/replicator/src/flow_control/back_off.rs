//! The desync back-off: how long this node stays out of flow control after the group has left it out.

/// Minimum of the back-off: quick changes help no member.
const SHORTEST_MS: u64 = 1_000;
/// Maximum of the back-off: a longer absence would cost the group its bound, and coming back to be left out again costs
/// writers little.
const LONGEST_MS: u64 = 8_000;
/// A node that is left out again within this time stays out twice as long, and stops no writer first.
const RELAPSE_MS: u64 = 30_000;

/// The last back-off: its end and its length.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    until_ms: u64,
    for_ms: u64,
}

impl BackOff {
    /// Begins a back-off.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        let twice = if self.is_remembered(now_ms) {
            2 * self.for_ms
        } else {
            0
        };
        self.for_ms = twice.clamp(SHORTEST_MS, LONGEST_MS);
        self.until_ms = now_ms + self.for_ms;
    }

    /// Notes that the node is back in flow control.
    pub(crate) fn end(&mut self, now_ms: u64) {
        self.until_ms = now_ms;
    }

    /// Returns true if the node may come back, once it has caught up.
    pub(crate) fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.until_ms
    }

    /// Returns true if the last back-off was not long ago.
    pub(crate) fn is_remembered(&self, now_ms: u64) -> bool {
        self.for_ms > 0 && now_ms < self.until_ms + RELAPSE_MS
    }

    /// Returns the end of the back-off.
    pub(crate) fn until_ms(&self) -> u64 {
        self.until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_left_out_again_soon_stays_out_longer() {
        let mut back_off = BackOff::default();
        let mut now_ms = 100_000;
        let mut lasted = Vec::new();
        for pause_ms in [0, 500, 9_000, 29_999, 30_000, 1] {
            now_ms += pause_ms;
            back_off.begin(now_ms);
            let begun_ms = now_ms;
            while !back_off.is_over(now_ms) {
                now_ms += 100;
            }
            lasted.push(now_ms - begun_ms);
            back_off.end(now_ms);
        }
        assert_eq!(lasted, [1_000, 2_000, 4_000, 8_000, 1_000, 2_000]);
    }
}
