//! Detects a flush that does not end. It is reported, and leadership goes to another member. The member keeps its vote
//! and its place: it has lost nothing, and acknowledges nothing that waits for the disk (docs/guarantees.md, section
//! 4).

use trireme_group::Reminder;

/// A disk that needs so long for a flush does not answer; a slow one needs some 100 ms.
const HANG_MS: u64 = 5_000;

/// The duration of the flush that was handed out.
#[derive(Default)]
pub(crate) struct Hang {
    begun_ms: Option<u64>,
    reminder: Reminder,
    /// The hang was reported, and has not ended.
    told: bool,
}

impl Hang {
    /// Notes that a flush was handed out.
    pub(crate) fn begins(&mut self, now_ms: u64) {
        self.begun_ms = Some(now_ms);
    }

    /// Notes that the flush has ended, or was one of another log. Returns the message for the operator, if the hang was
    /// reported.
    pub(crate) fn ends(&mut self, now_ms: u64) -> Option<String> {
        let seconds = now_ms.saturating_sub(self.begun_ms.take()?) / 1_000;
        std::mem::take(&mut self.told).then(|| {
            format!("the disk of the write-set log answers again: a flush took {seconds} s")
        })
    }

    /// Returns true if the flush takes too long.
    pub(crate) fn is_long(&self, now_ms: u64) -> bool {
        self.begun_ms.is_some_and(|begun| now_ms >= begun + HANG_MS)
    }

    /// Returns the message that is due now, if any. `dir`: the log's directory.
    pub(crate) fn is_due(&mut self, now_ms: u64, dir: impl FnOnce() -> String) -> Option<String> {
        let begun_ms = self.begun_ms.filter(|_| self.is_long(now_ms))?;
        if !self.reminder.is_due(now_ms) {
            return None;
        }
        self.told = true;
        let seconds = (now_ms - begun_ms) / 1_000;
        Some(format!(
            "a flush of the write-set log in {} has not ended for {seconds} s: its disk does not answer. This node acknowledges \
             nothing that waits for it, and hands leadership over if it leads; the others go on. Check the disk and the kernel's \
             messages; if it does not come back, kill this server and restart it on a disk that works",
            dir()
        ))
    }
}
