//! Limits reports: repeated rejections of one address are reported once a minute.

use std::collections::BTreeMap;

use crate::RejectReason;

/// Time within which a repeated rejection is not reported.
const QUIET_MS: u64 = 60_000;
/// Maximum of remembered addresses; a flood of callers from more addresses is not reported.
const MAX_REMEMBERED: usize = 1024;

/// Remembers the reports and their times.
#[derive(Debug, Default)]
pub(crate) struct Rejections(BTreeMap<(String, RejectReason), u64>);

impl Rejections {
    /// Returns true if the rejection should be reported now.
    pub fn is_news(&mut self, address: &str, reason: RejectReason, now_ms: u64) -> bool {
        if self.0.len() >= MAX_REMEMBERED {
            self.0
                .retain(|_, said_ms| now_ms.saturating_sub(*said_ms) < QUIET_MS);
        }
        let key = (address.to_owned(), reason);
        let room = self.0.len() < MAX_REMEMBERED;
        match self.0.get_mut(&key) {
            Some(said_ms) if now_ms.saturating_sub(*said_ms) < QUIET_MS => false,
            Some(said_ms) => {
                *said_ms = now_ms;
                true
            }
            None if room => self.0.insert(key, now_ms).is_none(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_minute_per_address_and_reason() {
        let mut said = Rejections::default();
        assert!(said.is_news("a", RejectReason::Version, 0));
        assert!(!said.is_news("a", RejectReason::Version, 59_999));
        assert!(said.is_news("b", RejectReason::Version, 1));
        assert!(said.is_news("a", RejectReason::History, 1));
        assert!(said.is_news("a", RejectReason::Version, 60_000));
        for i in 0..10_000 {
            said.is_news(&i.to_string(), RejectReason::Timeout, 60_001);
        }
        assert!(said.0.len() <= MAX_REMEMBERED);
    }
}
