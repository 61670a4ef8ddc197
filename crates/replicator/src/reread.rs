//! Reading back what was not kept in memory while it waited.

use trireme_group::{Delivery, Position};
use trireme_mutants::{Mutant, planted};

use crate::history::{History, Unread};
use crate::payload::{Memory, Missing, Payload};
use crate::replicator::{Replicator, Stage};
use crate::work::{Apply, Task};

/// When it is tried again where the log cannot be read at the moment.
const RETRY_MS: u64 = 100;

impl Replicator {
    /// Bytes of the payloads that are in memory until they are processed or applied. Those that are in the
    /// log, too, are kept within [`crate::Options::queue_bytes`], but for the last one.
    pub fn payload_bytes(&self) -> usize {
        self.memory.taken_bytes()
    }

    /// How many payloads were read back since the process began.
    pub fn read_back_count(&self) -> u64 {
        self.read_back_count
    }

    /// True if something that waits is in the log only: the log must stay readable.
    pub fn needs_log(&self) -> bool {
        self.works.missing().is_some()
    }

    /// A write-set is to be applied that is in the log at this position: it waits with its payload, which
    /// takes so many bytes, or without.
    pub(crate) fn push_apply(&mut self, mut apply: Apply, position: Position, bytes: usize) {
        let none_before = match &self.stage {
            Stage::Closed | Stage::Admission(_) | Stage::Final => return,
            // Whatever waits without its payload, all after it does, too: it is read back in order.
            Stage::Transfer(transfer) => !transfer.spilled,
            Stage::Active => self.works.missing().is_none(),
        };
        // Whatever its size: what is read back later holds up everything for as long as that takes.
        let fits = self.memory.taken_bytes() < self.context.options().queue_bytes
            || planted(Mutant::QueueKeepsAll);
        let payload = match (apply.data.is_empty(), none_before && fits) {
            (true, _) => Payload::None,
            (false, true) => Payload::here(&self.memory, bytes),
            (false, false) => {
                apply.data = bytes::Bytes::new();
                Payload::InLog { position, bytes }
            }
        };
        let seqno = apply.gtid.seqno;
        self.push_task(Task::Apply(Box::new(apply)), Some(seqno), payload);
    }

    /// Reads back what the appliers come to next, a piece ahead of them.
    pub(crate) fn fetch_works(&mut self, history: &dyn History) {
        let Some(missing) = self.works.missing() else {
            return;
        };
        let room = self.room();
        let enough = missing.bytes.max(self.piece());
        if room < enough && !missing.is_next || self.log_again_ms.is_some() {
            return;
        }
        let memory = self.memory.clone();
        self.fetch_into_works(missing, self.piece().min(room), history, &memory);
    }

    /// The log begins anew: what waits without its payload gets it, whatever room there is. It does not
    /// count: nothing that comes later may have to wait for it.
    pub(crate) fn fetch_all(&mut self, history: &dyn History) {
        while let Some(missing) = self.works.missing() {
            let most_bytes = self.context.options().thresholds.read_back_bytes;
            if !self.fetch_into_works(missing, most_bytes, history, &Memory::default()) {
                break;
            }
        }
        if let Some(missing) = self.works.missing().filter(|_| self.log_again_ms.is_some()) {
            // There is no later: the log is given up now.
            let lost = Err(Unread::Lost("the log could not be read in time".to_owned()));
            self.must_be_read(missing.first, lost);
        }
    }

    /// The log cannot be read at the moment.
    pub(crate) fn read_log_later(&mut self) {
        self.log_again_ms = Some(self.context.now_ms() + RETRY_MS);
    }

    /// What could not be read is tried again when the time has come.
    pub(crate) fn try_log_again(&mut self) {
        self.log_again_ms = self.log_again_ms.filter(|at| *at > self.context.now_ms());
    }

    fn fetch_into_works(
        &mut self,
        missing: Missing,
        max_bytes: usize,
        history: &dyn History,
        memory: &Memory,
    ) -> bool {
        let found = self.read_back(missing, max_bytes, history);
        let restored = found.and_then(|found| {
            let restored = self.works.restore(found, memory);
            (restored > 0).then_some(restored).ok_or_else(not_there)
        });
        self.must_be_read(missing.first, restored)
    }

    /// Reads back what is to be processed next; gives how much, None if it cannot be.
    pub(crate) fn fetch_backlog(&mut self, history: &dyn History) -> Option<usize> {
        let missing = (self.backlog.missing()).filter(|_| self.log_again_ms.is_none())?;
        let before = self.memory.taken_bytes();
        let found = self.read_back(missing, self.piece().min(self.room()), history);
        let restored = found.and_then(|found| {
            let restored = self.backlog.restore(found, &self.memory);
            (restored > 0).then_some(restored).ok_or_else(not_there)
        });
        self.must_be_read(missing.first, restored)
            .then(|| self.memory.taken_bytes() - before)
    }

    /// Enough was read back for once.
    pub(crate) fn is_a_slice(&self, bytes: usize) -> bool {
        let slice_bytes = self.context.options().thresholds.slice_bytes;
        bytes >= slice_bytes.min(self.context.options().queue_bytes).max(1)
    }

    /// More of the backlog is to be read back and processed at once.
    pub(crate) fn has_more_backlog(&self) -> bool {
        self.context.control().is_some() && self.backlog.next_is_missing()
    }

    /// What came last is not kept if there is no room.
    pub(crate) fn shed_backlog(&mut self) {
        let is_full = self.memory.taken_bytes() > self.context.options().queue_bytes;
        self.backlog
            .shed(is_full && !planted(Mutant::QueueKeepsAll));
    }

    fn room(&self) -> usize {
        let taken = self.memory.taken_bytes();
        self.context.options().queue_bytes.saturating_sub(taken)
    }

    /// What is read at once.
    fn piece(&self) -> usize {
        let most_bytes = self.context.options().thresholds.read_back_bytes;
        most_bytes.min(self.context.options().queue_bytes / 4)
    }

    fn read_back(
        &self,
        missing: Missing,
        max_bytes: usize,
        history: &dyn History,
    ) -> Result<Vec<(Position, Delivery)>, Unread> {
        let Missing { first, last, .. } = missing;
        if planted(Mutant::AnotherReadBack) {
            return history.read_back(first, last, 1 << 20).map(swap_first);
        }
        history.read_back(first, last, max_bytes)
    }

    /// There is no other place to have it from in this process: the next one takes it from its log, or
    /// from others.
    fn must_be_read(&mut self, position: Position, result: Result<usize, Unread>) -> bool {
        let error = match result {
            Ok(restored) => {
                self.read_back_count += restored as u64;
                return true;
            }
            Err(Unread::NotNow) => {
                self.read_log_later();
                return false;
            }
            Err(Unread::Lost(error)) => error,
        };
        self.fatal(format!(
            "a write-set that waited to be applied cannot be read back from the write-set log, position {position}: {error}. \
             Nothing wrong was applied; check the disk, and restart this node: it gets what it lacks from the others"
        ));
        false
    }
}

fn not_there() -> Unread {
    Unread::Lost("it is not there".to_owned())
}

/// The mistake of [`Mutant::AnotherReadBack`].
fn swap_first(mut found: Vec<(Position, Delivery)>) -> Vec<(Position, Delivery)> {
    if let [(_, first), (_, second), ..] = found.as_mut_slice() {
        std::mem::swap(first, second);
    }
    found
}
