//! A flush that does not end: it is told, and leadership goes elsewhere. The member keeps its vote and its place, since it has
//! forgotten nothing and acknowledges nothing that waits for the disk (docs/guarantees.md, section 4).

use trireme_group::Reminder;

/// A disk that keeps a flush for so long does not answer: what is slow takes some 100 ms.
const HANG_MS: u64 = 5_000;

/// How long the disk has kept the flush that was handed out.
#[derive(Default)]
pub(crate) struct Hang {
    begun_ms: Option<u64>,
    reminder: Reminder,
    /// It was told, and has not ended.
    told: bool,
}

impl Hang {
    /// A flush was handed out.
    pub(crate) fn begins(&mut self, now_ms: u64) {
        self.begun_ms = Some(now_ms);
    }

    /// It has ended, or was one of another log. What is to be told then.
    pub(crate) fn ends(&mut self, now_ms: u64) -> Option<String> {
        let seconds = now_ms.saturating_sub(self.begun_ms.take()?) / 1_000;
        std::mem::take(&mut self.told).then(|| {
            format!("the disk of the write-set log answers again: a flush took {seconds} s")
        })
    }

    /// True if it takes too long.
    pub(crate) fn is_long(&self, now_ms: u64) -> bool {
        self.begun_ms.is_some_and(|begun| now_ms >= begun + HANG_MS)
    }

    /// What is to be told now. `dir`: where the log lies.
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
