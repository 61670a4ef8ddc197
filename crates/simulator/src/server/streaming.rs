//! Streaming replication, as wsrep-lib does it above a provider (server-contract-callbacks.md#streaming).
//!
//! A client sends its rows in fragments before it commits. Every server stores the fragments in a table and keeps the
//! transaction open: on the origin in the client's session, elsewhere in a *streaming applier*, which holds the row
//! locks between fragments. The last fragment makes all rows visible. A rollback fragment, or a view without the
//! origin, undoes them.

use trireme_group::Incarnation;
use trireme_replicator::{Answer, Apply, Code, Event, Gtid, Owner, Ticket, TrxId, View, flags};

use super::applier::Applier;
use super::client::{Client, Stage};
use super::conflict::CLOSED_BY_VIEW;
use super::ctx::{Ctx, GO_ON, Next, Stride, ThreadId};
use super::database::Writes;
use super::datadir::{Change, StreamId};
use super::server::Server;
use super::writeset::{self, table_of};

/// Maximum number of streaming appliers of a server.
pub(super) const STREAMS: usize = 64;

/// The role of an entry in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The transaction goes on.
    Fragment,
    /// The transaction commits with this entry.
    Last,
    /// This entry undoes the transaction.
    Rollback,
}

/// A streaming applier. It has its own thread number for its locks.
#[derive(Debug)]
pub(super) struct Stream {
    pub id: StreamId,
    pub writes: Writes,
}

impl Server {
    // --- the client

    /// The id of the client's transaction on all servers.
    fn stream_of(&self, c: usize) -> StreamId {
        (self.me, self.clients[c].id)
    }

    /// The rows that it has written and not sent.
    pub(super) fn unsent(client: &Client) -> Writes {
        Writes {
            writer: client.writes.writer,
            rows: client.writes.rows[client.sent..].to_vec(),
        }
    }

    /// The change of its commit to its fragments.
    pub(super) fn ends_stream(&self, c: usize) -> Option<(StreamId, Change)> {
        let streaming = self.clients[c].streaming;
        streaming.then(|| (self.stream_of(c), Change::Remove))
    }

    pub(super) fn step_fragment(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        match self.clients[c].stage {
            Stage::FragmentCalling => {
                self.wait_for_replayers(c)?;
                self.send_pending_rollbacks(ctx);
                let client = &mut self.clients[c];
                client.stage = Stage::FragmentCertifying;
                let (trx, conn) = (client.id, who as u64);
                let flags = match client.streaming {
                    true => 0,
                    false => flags::TRX_START,
                };
                let draft = writeset::of_part(trx, conn, &Self::unsent(client), flags);
                self.ask(who, "certify (fragment)", ctx, |ticket| Event::Certify {
                    ticket,
                    trx,
                    conn,
                    draft,
                })
            }
            Stage::FragmentCertifying => self.fragment_certified(c, ctx),
            Stage::FragmentCertified => {
                let owner = Owner::Trx(self.clients[c].id);
                self.clients[c].stage = Stage::FragmentEntering;
                self.ask(who, "commit_order_enter (fragment)", ctx, |ticket| {
                    Event::CommitOrderEnter { ticket, owner }
                })
            }
            Stage::FragmentEntering => {
                let code = self.await_answer(who)?.code;
                match code {
                    Code::Ok => {
                        self.clients[c].stage = Stage::FragmentInside;
                        ctx.breath(self.plan.speed.stage_us)
                    }
                    Code::TrxFail if self.clients[c].must_abort => self.fragment_failed(c, ctx),
                    _ => panic!("commit_order_enter() answers {code:?} to a fragment"),
                }
            }
            Stage::FragmentInside => {
                let gtid = self.clients[c].gtid.expect("it is ordered");
                let id = self.stream_of(c);
                let client = &mut self.clients[c];
                let (owner, writes) = (Owner::Trx(client.id), Self::unsent(client));
                client.stage = Stage::FragmentQueued;
                self.db.queue_fragment(gtid, id, writes, false, ctx);
                self.tell(ctx, |ticket| Event::CommitOrderLeave {
                    ticket,
                    owner,
                    error: None,
                });
                ctx.breath(self.plan.speed.stage_us)
            }
            Stage::FragmentQueued => {
                let client = &mut self.clients[c];
                let (trx, gtid) = (client.id, client.gtid.expect("it is ordered"));
                client.stage = Stage::FragmentReleasing;
                self.db.commit_upto(gtid.seqno, ctx);
                self.ask(who, "release (fragment)", ctx, |ticket| Event::Release {
                    ticket,
                    trx,
                })
            }
            _ => {
                let answer = self.await_answer(who)?;
                let client = &mut self.clients[c];
                client.sent = client.writes.rows.len();
                client.gtid = None;
                assert!(answer.lives_on, "a fragment ends its transaction");
                match answer.code {
                    Code::Ok if !client.must_abort => {
                        client.stage = Stage::Locking;
                        ctx.sleep(self.plan.speed.statement_us)
                    }
                    Code::Ok | Code::BfAbort if client.must_abort => self.fragment_failed(c, ctx),
                    code => panic!("release() answers {code:?} to a fragment"),
                }
            }
        }
    }

    /// wait_for_replayers(): a victim that must be replayed has released its locks. Another transaction that got
    /// these locks may have seen the places of the victim's fragments; then certification does not find the conflict.
    /// So that transaction must not be sent before the victim has its locks again.
    pub(super) fn wait_for_replayers(&self, c: usize) -> Stride {
        const AGAIN_US: u64 = 200;
        let is_modelled = self.plan.load.streaming_percent > 0;
        let replays = |client: &Client| {
            client.replaying || matches!(client.stage, Stage::RolledBack | Stage::Replaying)
        };
        let any = is_modelled && self.clients.iter().any(replays);
        match any && !self.clients[c].must_abort {
            true => Stride::Break(Next::After(AGAIN_US)),
            false => GO_ON,
        }
    }

    fn fragment_certified(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let answer = self.await_answer(self.thread_of_client(c))?;
        let ordered = answer.gtid != Gtid::UNDEFINED;
        let client = &mut self.clients[c];
        match (answer.code, ordered) {
            (Code::Ok, true) => {
                client.streaming = true;
                client.gtid = Some(answer.gtid);
                client.stage = Stage::FragmentCertified;
                ctx.breath(self.plan.speed.stage_us)
            }
            (Code::TrxFail, _) => {
                // The fragment may have passed all the same, so a rollback fragment is sent in any case.
                client.streaming = true;
                self.fragment_failed(c, ctx)
            }
            (Code::ConnFail | Code::NodeFail, false) => self.fragment_failed(c, ctx),
            _ => panic!("certify() answers {answer:?} to a fragment"),
        }
    }

    fn fragment_failed(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        self.roll_back(c, ctx);
        self.end(c, Code::TrxFail, true, ctx)
    }

    /// streaming_rollback(): must come before the release of any lock.
    pub(super) fn end_stream(&mut self, c: usize, ctx: &mut Ctx) {
        let id = self.stream_of(c);
        let client = &mut self.clients[c];
        if !std::mem::take(&mut client.streaming) {
            return;
        }
        if client.total_order {
            return self.db.remove_fragments(id, ctx);
        }
        // An applier without locks takes over the fragments.
        let writer = client.writes.writer;
        self.add_stream(Stream {
            id,
            writes: Writes {
                writer,
                rows: Vec::new(),
            },
        });
        self.send_rollback(id.1, ctx);
    }

    fn send_rollback(&mut self, trx: TrxId, ctx: &mut Ctx) {
        let ticket = self.tell(ctx, |ticket| Event::Rollback { ticket, trx });
        self.rollbacks.push((ticket, trx));
    }

    /// Sends the pending rollback fragments: before anything else, and when the node is synced again.
    pub(super) fn send_pending_rollbacks(&mut self, ctx: &mut Ctx) {
        for trx in std::mem::take(&mut self.pending_rollbacks) {
            self.send_rollback(trx, ctx);
        }
    }

    /// True if this was the answer to a rollback().
    pub(super) fn rollback_answered(&mut self, ticket: Ticket, answer: &Answer) -> bool {
        let Some(at) = self
            .rollbacks
            .iter()
            .position(|(asked, _)| *asked == ticket)
        else {
            return false;
        };
        let (_, trx) = self.rollbacks.swap_remove(at);
        match answer.code {
            Code::Ok => {}
            Code::TrxFail => self.pending_rollbacks.push(trx),
            code => panic!("rollback() answers {code:?}"),
        }
        true
    }

    /// Skips the place of a failed fragment, which the provider has used up
    /// (server-contract-traps.md#failed-fragments).
    pub(super) fn place_used_up(&mut self, who: ThreadId, answer: &Answer) {
        use Stage::{FragmentCertifying, FragmentEntering};
        let stage = self.client_of(who).map(|c| self.clients[c].stage);
        let is_fragment = matches!(stage, Some(FragmentCertifying | FragmentEntering));
        if is_fragment && answer.code == Code::TrxFail && answer.gtid != Gtid::UNDEFINED {
            self.db.skip(answer.gtid.seqno);
        }
    }

    // --- appliers

    fn slot_of(&self, id: StreamId) -> Option<usize> {
        let is_it = |stream: &Option<Stream>| stream.as_ref().is_some_and(|s| s.id == id);
        self.streams.iter().position(is_it)
    }

    /// The thread number that holds the locks of a streaming applier.
    fn thread_of_stream(&self, slot: usize) -> ThreadId {
        self.threads.len() + slot
    }

    fn add_stream(&mut self, stream: Stream) -> usize {
        let free = self.streams.iter().position(Option::is_none);
        let slot = free.expect("a slot for each streaming transaction");
        self.streams[slot] = Some(stream);
        slot
    }

    /// Removes a streaming applier: releases its locks, and drops its writes.
    fn drop_stream(&mut self, slot: usize) -> Option<Stream> {
        let stream = self.streams[slot].take()?;
        let who = self.thread_of_stream(slot);
        let rows = stream.writes.rows.iter().map(|(key, _)| *key);
        self.locks.release_rows(rows, who);
        self.locks.release_tables(who);
        Some(stream)
    }

    /// Assigns the entry of an applier to its streaming transaction; None if it belongs to none.
    ///
    /// # Panics
    /// If the transaction is missing: wsrep-lib would skip the fragment and lose it. Or if another applier still
    /// works on a part of the transaction: the two would use one session of the server at once.
    pub(super) fn part_of(&mut self, apply: &Apply, ctx: &Ctx) -> Option<(StreamId, Part)> {
        let has = |flag: u32| apply.flags & flag != 0;
        if has(flags::ISOLATION) || has(flags::TRX_START) && has(flags::TRX_END | flags::ROLLBACK) {
            return None;
        }
        let id = (apply.source, apply.trx);
        let slot = self.slot_of(id);
        let is_at_it = |applier: &Applier| applier.is_busy() && applier.streams(id);
        let other = self.appliers.iter().find(|applier| is_at_it(applier));
        assert!(
            other.is_none(),
            "{} is applied while an earlier part of {id:?} is: {}",
            apply.gtid,
            other.map(Applier::describe).unwrap_or_default()
        );
        if has(flags::ROLLBACK) {
            // A second rollback fragment does no harm.
            let stream = self.drop_stream(slot?)?;
            return Some((stream.id, Part::Rollback));
        }
        if has(flags::TRX_START) {
            assert!(slot.is_none(), "a second first fragment of {id:?}");
            let writes = Writes::default();
            self.add_stream(Stream { id, writes });
            return Some((id, Part::Fragment));
        }
        let known = slot.is_some() || self.db.has_diverged() || ctx.is_inconsistent();
        assert!(known, "{} finds no transaction {id:?}", apply.gtid);
        let last = has(flags::TRX_END);
        slot.map(|_| (id, if last { Part::Last } else { Part::Fragment }))
    }

    /// Gives a part to the database, within commit order.
    pub(super) fn queue_part(
        &mut self,
        gtid: Gtid,
        (id, part): (StreamId, Part),
        writes: Writes,
        ctx: &Ctx,
    ) {
        if part == Part::Fragment {
            return self.db.queue_fragment(gtid, id, writes, true, ctx);
        }
        let stream = self
            .slot_of(id)
            .and_then(|slot| self.streams[slot].as_ref());
        let mut all = stream.expect("it commits").writes.clone();
        all.writer = writes.writer;
        all.rows.extend(writes.rows);
        let ends = Some((id, Change::Remove));
        self.db.queue(gtid, all, ends, true, ctx);
    }

    /// The part of applier `a` is committed: the transaction keeps its locks, or has ended.
    pub(super) fn part_applied(&mut self, a: ThreadId, (id, part): (StreamId, Part)) {
        let Some(slot) = self.slot_of(id) else { return };
        if part != Part::Fragment {
            self.drop_stream(slot);
            return;
        }
        let rows = self.appliers[a].writes.rows.clone();
        self.lock_for_stream(slot, a, &rows);
        if let Some(stream) = &mut self.streams[slot] {
            stream.writes.writer = self.appliers[a].writes.writer;
            stream.writes.rows.extend(rows);
        }
    }

    /// Passes locks of `from` to a streaming applier.
    fn lock_for_stream(&mut self, slot: usize, from: ThreadId, rows: &[(u32, super::rows::Image)]) {
        let to = self.thread_of_stream(slot);
        for (key, _) in rows {
            self.locks.share_table(table_of(*key), to, true);
            self.locks.hand_over(*key, from, to);
        }
    }

    // --- views

    /// Undoes the streaming transactions that cannot go on, within the view's callback. False: a client of this
    /// server is still ending its transaction.
    pub(super) fn close_streams(&mut self, view: &View, ctx: &mut Ctx) -> bool {
        self.recover_streams();
        let members: Vec<Incarnation> = view.members.iter().map(|m| m.incarnation).collect();
        let closes_all = self.last_members.as_ref() == Some(&members);
        if closes_all || !members.contains(&self.me) {
            let mut any = false;
            for c in 0..self.clients.len() {
                let client = &self.clients[c];
                if client.streaming || client.stage == Stage::FragmentCertifying {
                    any = true;
                    let who = self.thread_of_client(c);
                    self.abort_at(who, view.number, CLOSED_BY_VIEW, ctx);
                }
            }
            if any {
                return false;
            }
        }
        for slot in 0..STREAMS {
            let origin = self.streams[slot].as_ref().map(|stream| stream.id.0);
            let closes = |origin: Incarnation| closes_all || !members.contains(&origin);
            if origin.is_some_and(closes) {
                if let Some(stream) = self.drop_stream(slot) {
                    self.db.remove_fragments(stream.id, ctx);
                }
            }
        }
        self.db.datadir.set_members(members.clone());
        self.last_members = Some(members);
        true
    }

    /// A server that has just started, or connected anew, reads its streaming appliers from their table.
    pub(super) fn recover_streams(&mut self) {
        if std::mem::replace(&mut self.streams_recovered, true) {
            return;
        }
        for (id, fragments) in self.db.datadir.fragments().clone() {
            let rows = fragments.iter().flat_map(|part| part.rows.clone());
            let writes = Writes {
                writer: fragments.first().map_or(0, |part| part.writer),
                rows: rows.collect(),
            };
            let keys: Vec<u32> = writes.rows.iter().map(|(key, _)| *key).collect();
            let slot = self.add_stream(Stream { id, writes });
            let who = self.thread_of_stream(slot);
            for key in keys {
                self.locks.share_table(table_of(key), who, true);
                let got = self.locks.row(key, who, true);
                assert!(got.is_ok(), "row {key} of {id:?} is locked at the start");
            }
        }
    }

    /// Closes the streaming appliers at the end of a connection; their fragments stay.
    pub(super) fn forget_streams(&mut self) {
        for slot in 0..STREAMS {
            self.drop_stream(slot);
        }
        self.streams_recovered = false;
    }
}
