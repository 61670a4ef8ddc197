//! This node's own submissions: those that wait to be sent (`unsent`), and those in flight: numbered, and remembered until
//! the order or the group answers. Lost rollback fragments wait here, too: they are sent before any write-set.
//!
//! In: messages and drafts. Out: submissions for the group.

mod unsent;

use std::collections::{BTreeMap, BTreeSet};

use trireme_certification::Seqno;
use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, GroupAction};
use crate::action_queue::ActionQueue;
use crate::event::{ConnId, Ticket, TrxId};
use crate::message::Message;
use crate::writeset::WriteSetDraft;
use unsent::Unsent;
pub(crate) use unsent::{Dropped, Held};

/// Pause before a control message that the group refused is submitted again.
const SAY_AGAIN_MS: u64 = 100;

/// The kind of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Trx(TrxId),
    Toi(ConnId),
    /// Rollback fragment of a streaming transaction: no caller waits for it.
    Rollback(TrxId),
    StateRequest,
    /// The position of a database that may hold an action above it.
    InDoubt,
    Joined,
    Synced,
    Donated,
    /// `as_donor`: the server that asked was a donor, and knew it.
    Desync {
        ticket: Ticket,
        as_donor: bool,
    },
    /// A desync without a waiting caller.
    UnheardDesync,
    Resync,
    Applied,
    Vote(Seqno),
    LeaveOut(Incarnation),
    CaughtUp,
}

/// Numbers own submissions 1, 2, 3.. per connection.
#[derive(Debug, Default)]
pub(crate) struct Submissions {
    unsent: Unsent,
    last_number: u64,
    in_flight: BTreeMap<u64, (Sent, Seqno)>,
    /// Submissions that the group has let go of with unknown fate, but whose callers still wait.
    undecided: BTreeSet<u64>,
    /// Submissions up to this number were sent before a forced view, which has left a branch that may have committed them
    /// (rule 11).
    sent_before_fork: u64,
    /// Rises whenever a submission releases its locks before it is decided: it was abandoned with unknown fate, or
    /// aborted by brute force. Own write-sets are exempt from conflicts with each other only because of these locks. So
    /// the exemption holds within one epoch only (rule 9d).
    epoch: u64,
    /// Rollback fragments that could not be sent, or that the group has let go of.
    lost_rollbacks: Vec<TrxId>,
    /// The time before which no control message is submitted.
    again_at_ms: u64,
    /// Number of desync() calls that were granted and not taken back by resync().
    granted_desyncs: u32,
    /// The result of a donation that has ended, until the order knows of its end.
    donation_result: Option<i32>,
}

impl Submissions {
    /// Starts over for a new connection: its numbers start again.
    pub(crate) fn start_over(&mut self) {
        self.unsent.start_over();
        *self = Submissions {
            unsent: std::mem::take(&mut self.unsent),
            again_at_ms: self.again_at_ms,
            ..Submissions::default()
        };
    }

    // --- write-sets that wait

    /// Returns the number of write-sets that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.unsent.len()
    }

    /// Returns true if a write-set waits for flow control.
    pub(crate) fn is_any_held(&self) -> bool {
        self.unsent.is_any_held()
    }

    /// Makes a write-set wait for flow control, behind all that wait already.
    pub(crate) fn hold(&mut self, held: Held) {
        self.unsent.hold(held);
    }

    /// Takes the first write-set that waits for flow control.
    pub(crate) fn next_held(&mut self) -> Option<Held> {
        self.unsent.next_held()
    }

    /// Hands a large write-set to the others.
    pub(crate) fn spread(&mut self, sent: Sent, draft: WriteSetDraft) -> Action {
        self.unsent.spread(sent, draft)
    }

    /// Takes the write-set of a bulk payload that a majority holds; None: it was given up meanwhile.
    pub(crate) fn is_spread(&mut self, bulk: u64) -> Option<Held> {
        self.unsent.is_spread(bulk)
    }

    /// Drops a write-set whose caller no longer waits. Returns the bulk payloads to recall.
    pub(crate) fn recall(&mut self, sent: Sent) -> Vec<u64> {
        self.unsent.recall(sent)
    }

    /// Gives up all write-sets that wait.
    pub(crate) fn give_up_waiting(&mut self) -> Vec<Dropped> {
        self.unsent.give_up()
    }

    // --- in flight

    /// Submits a control message.
    pub(crate) fn submit(&mut self, sent: Sent, message: &Message) -> Action {
        let number = self.send(sent, Seqno::MAX);
        let payload = message.encode();
        Action::Group(GroupAction::Submit { number, payload })
    }

    /// As [`Self::submit`], unless the message is in flight already, or the group has just refused one.
    pub(crate) fn submit_once(
        &mut self,
        now_ms: u64,
        sent: Sent,
        message: &Message,
        out: &mut ActionQueue,
    ) {
        if self.may_say(now_ms) && !self.is_in_flight(sent) {
            out.push(self.submit(sent, message));
        }
    }

    /// Submits a write-set. `previous`: see [`crate::writeset::WriteSet::previous`].
    pub(crate) fn write_set(
        &mut self,
        sent: Sent,
        draft: WriteSetDraft,
        last_seen: Seqno,
        previous: Seqno,
    ) -> Action {
        let bulk = draft.bulk();
        let payload = draft.finish(last_seen, self.epoch, previous);
        let number = self.send(sent, last_seen);
        match bulk {
            Some(bulk) => Action::Group(GroupAction::SubmitBulk {
                number,
                bulk,
                head: payload,
            }),
            None => Action::Group(GroupAction::Submit { number, payload }),
        }
    }

    /// Submits a rollback fragment. `last_seen`: everything up to it is released.
    pub(crate) fn rollback(&mut self, trx: TrxId, last_seen: Seqno) -> Option<Action> {
        let draft = WriteSetDraft::rollback(trx);
        let is_sent = !planted(Mutant::RollbackNotSent);
        is_sent.then(|| self.write_set(Sent::Rollback(trx), draft, last_seen, -1))
    }

    /// Notes a rollback fragment that could not be sent, or that the group has let go of.
    pub(crate) fn lose_rollback(&mut self, trx: TrxId) {
        self.lost_rollbacks.push(trx);
    }

    /// Submits the rollback fragments that could not be sent, or that the group let go of when it lost the majority,
    /// whatever their fate. The next view may leave their transactions open, and one rollback too many does no harm.
    /// Returns true if a write-set or total-order action may follow: it may hold the locks of these transactions, so
    /// none overtakes a lost rollback (rule 7). `may_write`: the order would take them. `low`: see
    /// [`Self::rollback`].
    pub(crate) fn rollbacks_are_sent(
        &mut self,
        now_ms: u64,
        may_write: impl FnOnce() -> bool,
        low: Seqno,
        out: &mut ActionQueue,
    ) -> bool {
        if !self.lost_rollbacks.is_empty() && may_write() {
            out.extend(self.lost_rollbacks(now_ms, low));
        }
        self.lost_rollbacks.is_empty()
    }

    /// Submits the lost rollback fragments, unless the group has just refused a submission.
    fn lost_rollbacks(&mut self, now_ms: u64, last_seen: Seqno) -> Vec<Action> {
        if !self.may_say(now_ms) {
            return Vec::new();
        }
        let lost = std::mem::take(&mut self.lost_rollbacks).into_iter();
        lost.filter_map(|trx| self.rollback(trx, last_seen))
            .collect()
    }

    /// Notes that the group takes nothing at the moment: an immediate repetition would go on for ever.
    pub(crate) fn refused(&mut self, now_ms: u64) {
        self.again_at_ms = now_ms + SAY_AGAIN_MS;
    }

    /// Returns false for a while after the group has refused a submission.
    pub(crate) fn may_say(&self, now_ms: u64) -> bool {
        now_ms >= self.again_at_ms
    }

    /// Returns the time from which control messages may be submitted again; None: now.
    pub(crate) fn again_at_ms(&self, now_ms: u64) -> Option<u64> {
        (!self.may_say(now_ms)).then_some(self.again_at_ms)
    }

    /// Raises the epoch, because a submission releases its locks before it is decided.
    pub(crate) fn raise_epoch(&mut self) {
        self.epoch += 1;
    }

    /// Takes the next number. `last_seen`: of a write-set; otherwise the greatest seqno there is.
    fn send(&mut self, sent: Sent, last_seen: Seqno) -> u64 {
        self.last_number += 1;
        self.in_flight.insert(self.last_number, (sent, last_seen));
        self.last_number
    }

    /// Takes a submission that was ordered, or failed. None: it was given up before.
    pub(crate) fn take(&mut self, number: u64) -> Option<Sent> {
        self.undecided.remove(&number);
        self.in_flight.remove(&number).map(|(sent, _)| sent)
    }

    /// Keeps a submission in flight that the group has let go of: it may come all the same.
    pub(crate) fn keep_undecided(&mut self, number: u64, sent: Sent) {
        self.in_flight.insert(number, (sent, Seqno::MAX));
        self.undecided.insert(number);
    }

    pub(crate) fn has_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }

    /// Takes the undecided submissions below `number`, which was ordered: they never will be on this branch, since an
    /// origin's submissions are ordered by their numbers. True: another branch may have committed it.
    pub(crate) fn take_overtaken(&mut self, number: u64) -> Vec<(Sent, bool)> {
        let later = self.undecided.split_off(&number);
        let overtaken = std::mem::replace(&mut self.undecided, later).into_iter();
        let before_fork = self.sent_before_fork;
        overtaken
            .filter_map(|number| Some((self.take(number)?, number <= before_fork)))
            .collect()
    }

    /// Notes that a forced view is in force: the branch that it has left may have committed all that was sent before.
    pub(crate) fn history_forks(&mut self) {
        self.sent_before_fork = self.last_number;
    }

    /// Takes all submissions, to give them up.
    pub(crate) fn take_all(&mut self) -> Vec<(u64, Sent)> {
        self.undecided.clear();
        let all = std::mem::take(&mut self.in_flight).into_iter();
        all.map(|(number, (sent, _))| (number, sent)).collect()
    }

    /// Notes that the caller of desync() has gone.
    pub(crate) fn abandon_desync(&mut self, ticket: Ticket) {
        for (sent, _) in self.in_flight.values_mut() {
            if matches!(sent, Sent::Desync { ticket: of, .. } if *of == ticket) {
                *sent = Sent::UnheardDesync;
            }
        }
    }

    /// Withdraws all desyncs in flight, so that none is granted. Returns their callers.
    pub(crate) fn abandon_desyncs(&mut self) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        for (sent, _) in self.in_flight.values_mut() {
            if let Sent::Desync { ticket, .. } = *sent {
                tickets.push(ticket);
                *sent = Sent::UnheardDesync;
            }
        }
        tickets
    }

    /// Grants a desync to its caller.
    pub(crate) fn grant_desync(&mut self) {
        self.granted_desyncs += 1;
    }

    /// Takes back a granted desync: resync().
    pub(crate) fn take_back_desync(&mut self) {
        self.granted_desyncs = self.granted_desyncs.saturating_sub(1);
    }

    /// Takes back all granted desyncs; returns true if there was one.
    pub(crate) fn take_back_desyncs(&mut self) -> bool {
        std::mem::take(&mut self.granted_desyncs) > 0
    }

    /// Returns the submission that brings this node's desyncs in the order closer to the granted ones; None if both
    /// numbers are equal, or such a submission is in flight.
    pub(crate) fn missing_desync(&self, counted: u32) -> Option<Sent> {
        // Called at every event: the numbers are nearly always equal.
        if counted == self.granted_desyncs || self.changes_desyncs() {
            return None;
        }
        Some(match counted > self.granted_desyncs {
            true => Sent::Resync,
            false => Sent::UnheardDesync,
        })
    }

    /// Notes the result of a donation that has ended.
    pub(crate) fn donation_ended(&mut self, rcode: i32) {
        self.donation_result = Some(rcode);
    }

    /// Returns the result of a donation of whose end the order does not know.
    pub(crate) fn donation_result(&self) -> Option<i32> {
        self.donation_result
    }

    /// Forgets the donation: the order knows of its end.
    pub(crate) fn forget_donation(&mut self) {
        self.donation_result = None;
    }

    /// Returns true if a desync or resync is in flight.
    fn changes_desyncs(&self) -> bool {
        let changes = |sent: &Sent| {
            matches!(
                sent,
                Sent::Desync { .. } | Sent::UnheardDesync | Sent::Resync
            )
        };
        self.in_flight.values().any(|(sent, _)| changes(sent))
    }

    /// Returns the number of the last rollback fragment in flight.
    pub(crate) fn last_rollback(&self) -> Option<u64> {
        let mut latest_first = self.in_flight.iter().rev();
        latest_first
            .find(|(_, (sent, _))| matches!(sent, Sent::Rollback(_)))
            .map(|(number, _)| *number)
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.in_flight.contains_key(&number)
    }

    fn is_in_flight(&self, what: Sent) -> bool {
        self.in_flight.values().any(|(sent, _)| *sent == what)
    }

    /// Returns the least last_seen among own write-sets in flight.
    pub(crate) fn least_seen(&self) -> Option<Seqno> {
        self.in_flight.values().map(|(_, seen)| *seen).min()
    }
}
