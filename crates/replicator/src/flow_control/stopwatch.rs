//! Adds up the time that a state lasts.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stopwatch {
    since_ms: Option<u64>,
    total_ms: u64,
}

impl Stopwatch {
    /// Notes whether the state lasts from now on.
    pub(crate) fn set(&mut self, lasts: bool, now_ms: u64) {
        match (lasts, self.since_ms) {
            (true, None) => self.since_ms = Some(now_ms),
            (false, Some(since_ms)) => {
                self.total_ms += now_ms.saturating_sub(since_ms);
                self.since_ms = None;
            }
            _ => {}
        }
    }

    pub(crate) fn total_ms(&self, now_ms: u64) -> u64 {
        let running = |since_ms| now_ms.saturating_sub(since_ms);
        self.total_ms + self.since_ms.map_or(0, running)
    }

    /// Sets the total to 0; a state that lasts goes on.
    pub(crate) fn reset(&mut self, now_ms: u64) {
        self.total_ms = 0;
        self.since_ms = self.since_ms.map(|_| now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_that_it_lasts_counts() {
        let mut watch = Stopwatch::default();
        for (lasts, now_ms) in [(false, 5), (true, 10), (true, 20), (false, 30), (false, 40)] {
            watch.set(lasts, now_ms);
        }
        assert_eq!(watch.total_ms(50), 20);
        watch.set(true, 60);
        assert_eq!(watch.total_ms(65), 25);
        watch.reset(70);
        assert_eq!(watch.total_ms(73), 3);
    }
}
