//! The contents of `grastate.dat` (server-contract.md#init), without a file.

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
    /// True if the file exists.
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
    /// The state that the next process reads from the file: the memory of the old process is gone.
    pub fn reopened(&self) -> SavedState {
        SavedState {
            position: self.written,
            unsafe_count: 0,
            corrupt: false,
            ..self.clone()
        }
    }

    /// Notes how the process ended.
    pub fn ended(&mut self, clean: bool) {
        self.killed = !clean;
    }

    /// True if the process was killed after it saved a position and before its database was closed: the database may
    /// lack unflushed writes below that position. Galera has the same gap: such a server must recover its position
    /// before it starts.
    pub fn is_doubtful(&self) -> bool {
        self.killed && self.written.seqno != UNKNOWN
    }

    /// True if the file names a history: the next process may rely on the database's position.
    pub fn names_history(&self) -> bool {
        self.written.uuid != Gtid::UNDEFINED.uuid
    }

    /// True if the node may found a cluster without an operator's edit.
    pub fn safe_to_bootstrap(&self) -> bool {
        self.safe_to_bootstrap
    }

    /// The position of the database, from the position that the server recovered (`--wsrep-start-position`), or None
    /// if it was started without. `disk` has the notes of the process before.
    pub fn starting_position(&self, server: Option<Gtid>, disk: &MemoryDisk) -> Gtid {
        let interrupted = match self.exists {
            true => Storage::interrupted_action(disk).unwrap_or(Gtid::UNDEFINED),
            false => Gtid::UNDEFINED,
        };
        starting_position(self.written, server.unwrap_or(Gtid::UNDEFINED), interrupted)
    }

    /// The same for a node that is bootstrapped after its file was removed. None: the file exists, or nothing is known.
    pub fn unvouched_position(&self, server: Option<Gtid>, disk: &MemoryDisk) -> Option<Gtid> {
        let server = server.filter(|_| !self.exists)?;
        let log = Storage::history_on(disk).unwrap_or(None);
        Some(unvouched_position(server, log)).filter(|at| at.is_known())
    }

    /// Carries out SaveState.
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

    /// Takes out a seqno that the database's position, `local`, refutes (`Grastate::refute`): the process may end before it
    /// saves another one.
    pub fn refute(&mut self, local: Gtid) {
        let is_refuted = self.written.uuid == local.uuid && self.written.seqno != local.seqno;
        if is_refuted && self.written.is_known() {
            let uuid = local.uuid;
            let seqno = UNKNOWN;
            self.set(Gtid { uuid, seqno }, self.safe_to_bootstrap);
        }
    }

    /// Carries out MarkUnsafe.
    pub fn mark_unsafe(&mut self) {
        self.exists = true;
        self.unsafe_count += 1;
        self.written = Gtid::UNDEFINED;
    }

    /// Carries out MarkSafe.
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

    /// Carries out MarkCorrupt.
    pub fn mark_corrupt(&mut self) {
        self.exists = true;
        self.corrupt = true;
        self.position = Gtid::UNDEFINED;
        self.written = Gtid::UNDEFINED;
    }

    /// Carries out MarkUncorrupt.
    pub fn mark_uncorrupt(&mut self) {
        self.corrupt = false;
    }
}
