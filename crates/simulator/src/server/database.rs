//! The storage engine of a running server: group commit, positions, and the reports about them.

use std::collections::{BTreeSet, VecDeque};

use trireme_replicator::{Gtid, Seqno};

use super::ctx::Ctx;
use super::datadir::{Change, Datadir, Snapshot, StreamId};
use super::plan::Flush;
use super::rows::Image;
use super::writeset::Ddl;
use crate::seen::{ClientTrx, Seen};

/// The writes of a transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    /// The transaction.
    pub writer: ClientTrx,
    /// The written rows, with their new images.
    pub rows: Vec<(u32, Image)>,
}

/// A transaction that has left commit order and is not visible yet. The server leaves commit order once the
/// transaction is in the queue of the group commit (server-contract.md#commit_order_leave).
#[derive(Debug)]
struct Queued {
    gtid: Gtid,
    /// None for a fragment: it makes nothing visible.
    writes: Option<Writes>,
    stream: Option<(StreamId, Change)>,
    applied: bool,
}

/// A database in use.
#[derive(Debug)]
pub struct Database {
    pub datadir: Datadir,
    flush: Flush,
    queue: VecDeque<Queued>,
    /// The last seqno that passed commit order. It may be above the position: a total-order action that failed sets
    /// no position (server-contract.md#to_execute_start).
    ordered: Gtid,
    /// Seqnos above `ordered` of failed fragments, which no thread takes.
    skipped: BTreeSet<Seqno>,
    /// Seqnos of failed fragments that were not reported.
    untold: BTreeSet<Seqno>,
    /// True while the server is paused: nothing may commit.
    frozen: bool,
    /// True if a write-set failed to apply: the contents differ from the cluster's, and are not reported.
    diverged: bool,
}

impl Database {
    /// Opens a data directory.
    pub fn new(datadir: Datadir, flush: Flush) -> Database {
        let ordered = datadir.position();
        Database {
            datadir,
            flush,
            queue: VecDeque::new(),
            ordered,
            skipped: BTreeSet::new(),
            untold: BTreeSet::new(),
            frozen: false,
            diverged: false,
        }
    }

    /// The position: everything up to it is committed.
    pub fn position(&self) -> Gtid {
        self.datadir.position()
    }

    /// A committed row.
    pub fn row(&self, key: u32) -> Image {
        self.datadir.rows().row(key)
    }

    /// The digest of the committed rows.
    pub fn digest(&self) -> u64 {
        self.datadir.rows().digest()
    }

    /// Number of transactions that wait for the group commit.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Continues the history above this position; its first view sets the position.
    pub fn goes_on_above(&mut self, gtid: Gtid) {
        self.ordered = gtid;
    }

    /// Stops all commits; returns the last seqno that passed commit order.
    pub fn freeze(&mut self) -> Gtid {
        self.frozen = true;
        self.ordered
    }

    /// True from [`Database::freeze`] to [`Database::thaw`].
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Notes that the write-set at this seqno was not applied, although the position moves past it.
    pub fn diverge(&mut self, gtid: Gtid) {
        self.diverged = true;
        self.datadir.diverge(gtid.seqno);
    }

    /// True from [`Database::diverge`] on.
    pub fn has_diverged(&self) -> bool {
        self.diverged
    }

    /// The last seqno that passed commit order.
    pub fn ordered(&self) -> Gtid {
        self.ordered
    }

    /// Ends [`Database::freeze`].
    pub fn thaw(&mut self) {
        self.frozen = false;
    }

    /// Puts a transaction into the queue of the group commit; its owner is inside commit order. `stream`: the change
    /// to its fragments.
    pub fn queue(
        &mut self,
        gtid: Gtid,
        writes: Writes,
        stream: Option<(StreamId, Change)>,
        applied: bool,
        ctx: &Ctx,
    ) {
        self.pass(gtid, ctx);
        self.queue.push_back(Queued {
            gtid,
            writes: Some(writes),
            stream,
            applied,
        });
    }

    /// The same for a fragment, which is only stored.
    pub fn queue_fragment(
        &mut self,
        gtid: Gtid,
        id: StreamId,
        writes: Writes,
        applied: bool,
        ctx: &Ctx,
    ) {
        self.pass(gtid, ctx);
        self.queue.push_back(Queued {
            gtid,
            writes: None,
            stream: Some((id, Change::Add(writes))),
            applied,
        });
    }

    /// Skips the place of a failed fragment, which no thread takes.
    pub fn skip(&mut self, seqno: Seqno) {
        self.skipped.insert(seqno);
        self.untold.insert(seqno);
        self.skip_over();
    }

    /// True if nothing was committed above `seqno`; skipped places do not count.
    pub fn stands_at(&self, seqno: Seqno) -> bool {
        let mut above = seqno + 1..=self.ordered.seqno;
        seqno <= self.ordered.seqno && above.all(|seqno| self.untold.contains(&seqno))
    }

    fn skip_over(&mut self) {
        while self.skipped.remove(&(self.ordered.seqno + 1)) {
            self.ordered.seqno += 1;
        }
    }

    /// Undoes a streaming transaction within a view; the position stays.
    pub fn remove_fragments(&mut self, id: StreamId, ctx: &Ctx) {
        let (now_us, position) = (ctx.now_us, self.position());
        let change = Some((id, Change::Remove));
        self.datadir
            .commit(now_us, self.flush, &[], change, position);
    }

    /// The group commit: the first thread also commits for all before it.
    pub fn commit_upto(&mut self, seqno: Seqno, ctx: &mut Ctx) {
        while self.queue.front().is_some_and(|q| q.gtid.seqno <= seqno) {
            let Some(next) = self.queue.pop_front() else {
                break;
            };
            let Queued {
                gtid,
                writes,
                stream,
                applied,
            } = next;
            let rows = writes.as_ref().map_or(&[][..], |writes| &writes.rows);
            self.write(gtid, rows, stream, ctx);
            self.tell(gtid, writes, None, applied, ctx);
        }
    }

    /// Passes a dummy: only the position moves. All earlier seqnos must be visible, else a crash would recover a
    /// wrong position.
    pub fn dummy(&mut self, gtid: Gtid, applied: bool, ctx: &mut Ctx) {
        self.dummy_with(gtid, None, applied, ctx);
    }

    /// The same; also changes the stored fragments of a streaming transaction.
    pub fn dummy_with(
        &mut self,
        gtid: Gtid,
        stream: Option<(StreamId, Change)>,
        applied: bool,
        ctx: &mut Ctx,
    ) {
        if let Some((table, writer)) = self.datadir.action_at(gtid) {
            // The provider knows that the action has been executed.
            return self.executed(gtid, table, writer, applied, ctx);
        }
        self.pass(gtid, ctx);
        self.must_be_visible(gtid);
        self.write(gtid, &[], stream, ctx);
        self.tell(gtid, None, None, applied, ctx);
    }

    /// Passes a failed total-order action, which sets no position.
    pub fn failed_action(&mut self, gtid: Gtid, ctx: &mut Ctx) {
        self.pass(gtid, ctx);
        self.must_be_visible(gtid);
        self.tell(gtid, None, None, false, ctx);
    }

    /// Executes a total-order action; its position follows. False: it was executed earlier, and a crash took only its
    /// position.
    pub fn execute(
        &mut self,
        gtid: Gtid,
        table: u32,
        writer: ClientTrx,
        ddl: Ddl,
        ctx: &mut Ctx,
    ) -> bool {
        assert!(
            !self.frozen,
            "an action is executed during a pause at {}",
            self.position()
        );
        let was_done = self.datadir.action_at(gtid).is_some();
        let is_new = ddl == Ddl::Each || !was_done;
        if was_done && is_new {
            ctx.see(Seen::Repeated {
                history: gtid.uuid,
                seqno: gtid.seqno,
            });
        }
        if is_new {
            let rows = [(table, self.row(table).with(writer))];
            let position = self.position();
            self.datadir
                .commit(ctx.now_us, self.flush, &rows, None, position);
            self.datadir.note_action(gtid, table, writer);
        }
        self.datadir.flush();
        is_new
    }

    /// Sets the position of an executed total-order action.
    pub fn executed(
        &mut self,
        gtid: Gtid,
        table: u32,
        writer: ClientTrx,
        applied: bool,
        ctx: &mut Ctx,
    ) {
        self.pass(gtid, ctx);
        self.must_be_visible(gtid);
        self.write(gtid, &[], None, ctx);
        let rows = vec![(table, self.row(table))];
        self.tell(gtid, Some(Writes { writer, rows }), None, applied, ctx);
    }

    /// Passes a primary view: the server stores it and sets the position.
    pub fn view(&mut self, gtid: Gtid, digest: u64, ctx: &mut Ctx) {
        if gtid == self.ordered {
            // The first view after a restart or a new connection: the database holds it already.
            if gtid != self.position() {
                self.write(gtid, &[], None, ctx);
            }
            return;
        }
        if gtid.uuid == self.ordered.uuid {
            self.pass(gtid, ctx);
        } else {
            self.ordered = gtid;
        }
        self.must_be_visible(gtid);
        self.write(gtid, &[], None, ctx);
        self.tell(gtid, None, Some(digest), true, ctx);
    }

    /// Replaces the whole database by an SST.
    pub fn replace(&mut self, snapshot: Snapshot, ctx: &mut Ctx) {
        let donor = snapshot.donor;
        self.datadir.replace(snapshot);
        let Gtid { uuid, seqno } = self.position();
        self.ordered = self.position();
        self.skipped.clear();
        self.untold.clear();
        ctx.see(Seen::Snapshot {
            history: uuid,
            seqno,
            digest: self.digest(),
            donor,
        });
    }

    /// Passes a seqno in commit order. The invariant `commit-order` checks that each one passes once, in order. A
    /// node that was found inconsistent leaves some out.
    fn pass(&mut self, gtid: Gtid, ctx: &Ctx) {
        let next = self.ordered.seqno + 1;
        if gtid.seqno > next && (self.diverged || ctx.is_inconsistent()) {
            self.diverge(Gtid {
                seqno: next,
                ..gtid
            });
        }
        self.ordered = gtid;
        self.skip_over();
    }

    fn must_be_visible(&self, gtid: Gtid) {
        assert!(
            self.queue.is_empty(),
            "the position is set to {gtid} while {} is not visible yet",
            self.queue[0].gtid
        );
    }

    fn write(
        &mut self,
        gtid: Gtid,
        rows: &[(u32, Image)],
        stream: Option<(StreamId, Change)>,
        ctx: &Ctx,
    ) {
        assert!(
            !self.frozen,
            "{gtid} commits during a pause at {}",
            self.position()
        );
        self.datadir
            .commit(ctx.now_us, self.flush, rows, stream, gtid);
    }

    fn tell(
        &mut self,
        gtid: Gtid,
        writes: Option<Writes>,
        view: Option<u64>,
        applied: bool,
        ctx: &mut Ctx,
    ) {
        if self.diverged {
            return;
        }
        let Gtid {
            uuid: history,
            seqno,
        } = gtid;
        let later = self.untold.split_off(&seqno);
        for seqno in std::mem::replace(&mut self.untold, later) {
            ctx.see(Seen::Ordered {
                history,
                seqno,
                writer: None,
                view: None,
                writes: Vec::new(),
                applied: false,
            });
        }
        let keys = |w: &Writes| w.rows.iter().map(|(key, _)| *key).collect();
        ctx.see(Seen::Ordered {
            history,
            seqno,
            writer: writes.as_ref().map(|w| w.writer),
            view,
            writes: writes.as_ref().map(keys).unwrap_or_default(),
            applied,
        });
        if self.position() == gtid {
            let digest = self.digest();
            ctx.see(Seen::Database {
                history,
                seqno,
                digest,
            });
        }
    }
}
