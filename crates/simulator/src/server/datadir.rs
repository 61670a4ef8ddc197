//! The state of a server that survives its process: rows and position, and the part of them that a crash takes.
//!
//! The storage engine's redo log is sequential: a crash takes a suffix of the commits and leaves a prefix. DDL
//! flushes the log by itself, but its position follows as a separate commit (server-contract.md#to_execute_start). A
//! crash between the two leaves an executed action above the position.

use std::collections::{BTreeMap, VecDeque};

use trireme_group::Incarnation;
use trireme_replicator::{Gtid, Seqno, TrxId};

use super::database::Writes;
use super::plan::Flush;
use super::rows::{Image, Rows};
use crate::random::Random;
use crate::seen::{ClientTrx, NodeId, TimeUs};

/// Maximum age of a commit before it is flushed in the background.
const FLUSHED_AFTER_US: TimeUs = 1_000_000;

/// The id of a streaming transaction: its origin, and its number there.
pub type StreamId = (Incarnation, TrxId);

/// The contents of `mysql.wsrep_streaming_log`: the fragments of unfinished transactions.
pub type Fragments = BTreeMap<StreamId, Vec<Writes>>;

/// The change of a commit to the fragments of its transaction.
#[derive(Clone, Debug)]
pub enum Change {
    /// Adds a fragment.
    Add(Writes),
    /// Removes all fragments: the transaction has ended.
    Remove,
}

/// A copy of a database at a position.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The node whose database it is.
    pub(super) donor: NodeId,
    pub(super) rows: Rows,
    pub(super) position: Gtid,
    fragments: Fragments,
    members: Option<Vec<Incarnation>>,
}

/// One commit in the redo log that can still be lost.
#[derive(Clone, Debug)]
struct Redo {
    at_us: TimeUs,
    /// The images of the changed rows before it.
    before: Vec<(u32, Image)>,
    /// The changed fragments before it.
    stream: Option<(StreamId, Option<Vec<Writes>>)>,
    /// The position before it.
    position: Gtid,
}

/// The database of a data directory.
#[derive(Clone, Debug)]
pub struct Datadir {
    rows: Rows,
    position: Gtid,
    fragments: Fragments,
    /// The members of the last view that was shown to the server (`mysql.wsrep_cluster_members`).
    members: Option<Vec<Incarnation>>,
    unflushed: VecDeque<Redo>,
    /// The last executed total-order action, with its table and writer.
    action: Option<(Gtid, u32, ClientTrx)>,
    /// The first seqno whose write-set was not applied although the position moved past it.
    diverged_at: Option<Seqno>,
}

impl Default for Datadir {
    fn default() -> Self {
        Datadir::new()
    }
}

impl Datadir {
    /// An empty database: no rows, no position.
    pub fn new() -> Datadir {
        Datadir {
            rows: Rows::default(),
            position: Gtid::UNDEFINED,
            fragments: Fragments::new(),
            members: None,
            unflushed: VecDeque::new(),
            action: None,
            diverged_at: None,
        }
    }

    /// The position that `--wsrep-recover` finds.
    pub fn position(&self) -> Gtid {
        self.position
    }

    /// The position up to which it really holds everything; undefined if it has diverged.
    pub fn holds(&self) -> Gtid {
        match self.diverged_at {
            None => self.position,
            Some(_) => Gtid::UNDEFINED,
        }
    }

    /// Notes that the write-set at this seqno is not applied, although the position moves past it.
    pub(super) fn diverge(&mut self, seqno: Seqno) {
        self.diverged_at = self.diverged_at.or(Some(seqno));
    }

    /// The rows.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The fragments of unfinished transactions.
    pub(super) fn fragments(&self) -> &Fragments {
        &self.fragments
    }

    /// The members of the last view that was shown.
    pub(super) fn members(&self) -> Option<&[Incarnation]> {
        self.members.as_deref()
    }

    /// Stores the members of a view.
    pub(super) fn set_members(&mut self, members: Vec<Incarnation>) {
        self.members = Some(members);
    }

    /// Changes the fragments of a transaction; returns the old ones.
    fn change(&mut self, id: StreamId, change: Change) -> Option<Vec<Writes>> {
        match change {
            Change::Remove => self.fragments.remove(&id),
            Change::Add(writes) => {
                let fragments = self.fragments.entry(id).or_default();
                let before = (!fragments.is_empty()).then(|| fragments.clone());
                fragments.push(writes);
                before
            }
        }
    }

    /// Changes rows and fragments and moves the position, atomically.
    pub(super) fn commit(
        &mut self,
        now_us: TimeUs,
        flush: Flush,
        writes: &[(u32, Image)],
        stream: Option<(StreamId, Change)>,
        position: Gtid,
    ) {
        let stream = stream.map(|(id, change)| (id, self.change(id, change)));
        let put = |(key, image): &(u32, Image)| (*key, self.rows.put(*key, *image));
        let before = writes.iter().map(put).collect();
        let redo = Redo {
            at_us: now_us,
            before,
            stream,
            position: std::mem::replace(&mut self.position, position),
        };
        let is_old = |redo: &Redo| redo.at_us + FLUSHED_AFTER_US <= now_us;
        while self.unflushed.front().is_some_and(is_old) {
            self.unflushed.pop_front();
        }
        if flush != Flush::EachCommit {
            self.unflushed.push_back(redo);
        }
    }

    /// Notes that a total-order action was executed; its position follows.
    pub(super) fn note_action(&mut self, gtid: Gtid, table: u32, writer: ClientTrx) {
        self.action = Some((gtid, table, writer));
    }

    /// The table and writer of the action at this position, if it was executed.
    pub(super) fn action_at(&self, gtid: Gtid) -> Option<(u32, ClientTrx)> {
        let action = self.action.filter(|(at, ..)| *at == gtid);
        action.map(|(_, table, writer)| (table, writer))
    }

    /// Flushes everything to disk.
    pub(super) fn flush(&mut self) {
        self.unflushed.clear();
    }

    /// Replaces everything by an SST.
    pub(super) fn replace(&mut self, snapshot: Snapshot) {
        self.rows = snapshot.rows;
        self.position = snapshot.position;
        self.fragments = snapshot.fragments;
        self.members = snapshot.members;
        self.action = None;
        self.diverged_at = None;
        self.unflushed.clear();
    }

    /// A copy of this node's database.
    pub(super) fn snapshot(&self, donor: NodeId) -> Snapshot {
        Snapshot {
            donor,
            rows: self.rows.clone(),
            position: self.position,
            fragments: self.fragments.clone(),
            members: self.members.clone(),
        }
    }

    /// Takes a suffix of the unflushed commits: the process was killed, or the machine lost power.
    pub(super) fn crash(
        &mut self,
        now_us: TimeUs,
        flush: Flush,
        power_loss: bool,
        random: &mut Random,
    ) {
        let is_young = |redo: &&Redo| redo.at_us + FLUSHED_AFTER_US > now_us;
        let at_risk = match (flush, power_loss) {
            (Flush::EachCommit, _) | (Flush::WriteEachCommit, false) => 0,
            _ => self.unflushed.iter().rev().take_while(is_young).count(),
        };
        for _ in 0..random.below(at_risk + 1) {
            let Some(redo) = self.unflushed.pop_back() else {
                break;
            };
            for (key, image) in redo.before {
                self.rows.put(key, image);
            }
            match redo.stream {
                Some((id, Some(before))) => drop(self.fragments.insert(id, before)),
                Some((id, None)) => drop(self.fragments.remove(&id)),
                None => {}
            }
            self.position = redo.position;
        }
        // The crash may have taken the divergence.
        let seqno = self.position.seqno;
        self.diverged_at = self.diverged_at.filter(|at| *at <= seqno);
        self.unflushed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_group::Uuid;

    fn gtid(seqno: i64) -> Gtid {
        Gtid {
            uuid: Uuid([1; 16]),
            seqno,
        }
    }

    /// Commits 1 to 20, one every 100 ms, all in one row; returns the digest after each.
    fn filled(flush: Flush) -> (Datadir, Vec<u64>) {
        let (mut dir, mut digests) = (Datadir::new(), vec![0]);
        for n in 1..=20 {
            let image = dir.rows().row(5).with(n);
            dir.commit(n * 100_000, flush, &[(5, image)], None, gtid(n as i64));
            digests.push(dir.rows().digest());
        }
        (dir, digests)
    }

    #[test]
    fn a_crash_leaves_a_prefix_and_takes_at_most_a_second() {
        let mut lost = [0; 2];
        for seed in 0..200 {
            for (flush, power_loss) in [
                (Flush::EachSecond, false),
                (Flush::EachSecond, true),
                (Flush::WriteEachCommit, true),
            ] {
                let (mut dir, digests) = filled(flush);
                dir.crash(2_000_000, flush, power_loss, &mut Random::new(seed, 0));
                let at = dir.position().seqno;
                assert!((10..=20).contains(&at), "{at}");
                assert_eq!(dir.rows().digest(), digests[at as usize]);
                lost[usize::from(at < 20)] += 1;
            }
        }
        assert!(lost[0] > 0 && lost[1] > 0, "{lost:?}");
    }

    #[test]
    fn what_was_flushed_or_written_stays() {
        for (flush, power_loss) in [
            (Flush::EachCommit, true),
            (Flush::EachCommit, false),
            (Flush::WriteEachCommit, false),
        ] {
            let (mut dir, _) = filled(flush);
            dir.crash(2_000_000, flush, power_loss, &mut Random::new(1, 0));
            assert_eq!(dir.position(), gtid(20));
        }
        let (mut dir, _) = filled(Flush::EachSecond);
        dir.flush();
        dir.crash(2_000_000, Flush::EachSecond, true, &mut Random::new(1, 0));
        assert_eq!(dir.position(), gtid(20));
    }
}
