//! What `grastate.dat` holds (server-contract.md#init), without the file.

use trireme_engine::{Storage, starting_position, unvouched_position};
use trireme_log::MemoryDisk;
use trireme_replicator::{Gtid, Seqno};

/// A node's saved state.
#[derive(Clone, Debug)]
pub struct SavedState {
    position: Gtid,
    written: Gtid,
    safe_to_bootstrap: bool,
    unsafe_count: u32,
    corrupt: bool,
    killed: bool,
    /// The file is there.
    exists: bool,
}

impl Default for SavedState {
    fn default() -> Self {
        SavedState {
            position: Gtid::UNDEFINED,
            written: Gtid::UNDEFINED,
            safe_to_bootstrap: true,
            unsafe_count: 0,
            corrupt: false,
            killed: false,
            exists: false,
        }
    }
}

const UNKNOWN: Seqno = -1;

impl SavedState {
    /// A process ended, however: what it had in memory is gone.
    pub fn reopened(&self) -> SavedState {
        SavedState {
            position: self.written,
            unsafe_count: 0,
            corrupt: false,
            ..self.clone()
        }
    }

    /// How the process ended.
    pub fn ended(&mut self, clean: bool) {
        self.killed = !clean;
    }

    /// It was killed after it had saved a position, before its database was closed: what the database
    /// has not flushed is gone. Galera has the same gap: whoever starts such a server must recover first.
    pub fn is_doubtful(&self) -> bool {
        self.killed && self.written.seqno != UNKNOWN
    }

    /// The node may found a cluster without an operator's edit.
    pub fn safe_to_bootstrap(&self) -> bool {
        self.safe_to_bootstrap
    }

    /// Where the database stands, given what the server recovered (`--wsrep-start-position`), or None
    /// if it was started without. `disk` has the notes of the process before.
    pub fn starting_position(&self, server: Option<Gtid>, disk: &MemoryDisk) -> Gtid {
        let interrupted = match self.exists {
            true => Storage::interrupted_action(disk).unwrap_or(Gtid::UNDEFINED),
            false => Gtid::UNDEFINED,
        };
        starting_position(self.written, server.unwrap_or(Gtid::UNDEFINED), interrupted)
    }

    /// The same of a node that is bootstrapped after its file was removed. None: there is a file.
    pub fn unvouched_position(&self, server: Gtid, disk: &MemoryDisk) -> Option<Gtid> {
        let log = Storage::history_on(disk).unwrap_or(None);
        (!self.exists).then(|| unvouched_position(server, log))
    }

    /// SaveState.
    pub fn set(&mut self, gtid: Gtid, safe_to_bootstrap: bool) {
        self.exists = true;
        if self.corrupt {
            return;
        }
        self.position = gtid;
        self.safe_to_bootstrap = safe_to_bootstrap;
        if self.unsafe_count == 0 {
            self.written = gtid;
        }
    }

    /// MarkUnsafe.
    pub fn mark_unsafe(&mut self) {
        self.exists = true;
        self.unsafe_count += 1;
        self.written = Gtid::UNDEFINED;
    }

    /// MarkSafe.
    pub fn mark_safe(&mut self) {
        let was_last = self.unsafe_count == 1;
        self.unsafe_count = self.unsafe_count.saturating_sub(1);
        if was_last && !self.corrupt {
            self.written = Gtid {
                uuid: self.position.uuid,
                seqno: UNKNOWN,
            };
        }
    }

    /// MarkCorrupt.
    pub fn mark_corrupt(&mut self) {
        self.exists = true;
        self.corrupt = true;
        self.position = Gtid::UNDEFINED;
        self.written = Gtid::UNDEFINED;
    }

    /// MarkUncorrupt.
    pub fn mark_uncorrupt(&mut self) {
        self.corrupt = false;
    }
}
