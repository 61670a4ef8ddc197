//! A machine's own clock: it never goes back, but has an offset, drifts, and may jump ahead.

use crate::seen::TimeUs;

/// CLOCK_BOOTTIME of one machine.
#[derive(Clone, Debug)]
pub struct Clock {
    offset_us: u64,
    drift_ppm: i64,
}

impl Clock {
    /// A clock that shows `offset_us` when the world begins, and gains `drift_ppm` us per second.
    pub fn new(offset_us: u64, drift_ppm: i64) -> Clock {
        Clock {
            offset_us,
            drift_ppm,
        }
    }

    /// The clock's reading at this time of the world.
    pub fn now_ms(&self, world_us: TimeUs) -> u64 {
        let gained = world_us as i64 * self.drift_ppm / 1_000_000;
        (self.offset_us + world_us).saturating_add_signed(gained) / 1000
    }

    /// The first time of the world, up to a millisecond, at which the clock shows `ms`.
    pub fn world_us(&self, ms: u64) -> TimeUs {
        let shown = (ms * 1000).saturating_sub(self.offset_us);
        (shown as i64 * 1_000_000 / (1_000_000 + self.drift_ppm)) as u64 + 1
    }

    /// Lets the clock jump ahead.
    pub fn jump(&mut self, us: u64) {
        self.offset_us += us;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_met_when_the_clock_shows_it() {
        for drift in [-200, 0, 200, 30_000] {
            let clock = Clock::new(123_456_789, drift);
            for ms in [123_457, 123_999, 150_000, 999_999] {
                let at = clock.world_us(ms);
                assert!(clock.now_ms(at + 2) >= ms, "{drift} {ms}");
                assert!(at < 1000 || clock.now_ms(at - 1000) < ms, "{drift} {ms}");
            }
        }
    }

    #[test]
    fn it_never_goes_back() {
        let mut clock = Clock::new(0, -500);
        let before = clock.now_ms(5_000_000);
        clock.jump(3_000_000);
        assert!(clock.now_ms(5_000_000) >= before + 3000);
    }
}
