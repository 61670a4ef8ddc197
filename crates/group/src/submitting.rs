//! How submissions are sent, taken, sent again, and withdrawn when there is no majority.

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};

use crate::event::{Action, Fate};
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Position, SubmissionId, TimeMs};
use crate::message::Parcel;
use crate::submissions::Resent;

/// An origin that runs further ahead of the order than this is not believed.
const NUMBERS_AHEAD_MAX: u64 = 1 << 20;
/// Own submissions unordered for this long are sent to the sequencer again.
pub(crate) const RESEND_AFTER_MS: TimeMs = 1_000;

impl Group {
    /// Submits `payload` as this member's submission `number` (1, 2, 3, ... per incarnation). It
    /// comes back as a delivery or as [`Action::Failed`].
    pub fn submit(&mut self, now: TimeMs, number: u64, payload: Bytes) {
        self.submit_own(now, number, Some(payload), None);
    }

    /// None: a parcel that was forgotten with the majority.
    pub(crate) fn submit_own(
        &mut self,
        now: TimeMs,
        number: u64,
        payload: Option<Bytes>,
        parcel: Option<(Parcel, Bytes)>,
    ) {
        self.context.advance(now);
        let id = SubmissionId {
            incarnation: self.me(),
            number,
        };
        let payload = payload.filter(|_| self.component.is_primary());
        let is_parcel = parcel.is_some();
        let now = self.context.now();
        let message = (self.submissions).submit(number, payload.clone(), parcel, now);
        let Some(payload) = payload else {
            self.out.push(Action::Failed {
                id,
                fate: Fate::Withdrawn,
            });
            return;
        };
        let orders = self.role.is_leader();
        if orders {
            // Travels with its order record.
            self.submissions.keep(id.incarnation, number, Some(payload));
        }
        if !orders || is_parcel {
            self.send_all(self.known().others(), message);
        }
    }

    pub(crate) fn take_submission(
        &mut self,
        from: Incarnation,
        number: u64,
        payload: Option<Bytes>,
    ) {
        let most_bytes = self.context.config().thresholds.pending_bytes;
        if self.is_expected(from, number) {
            (self.submissions).keep_within(most_bytes, from, number, payload);
        }
    }

    /// True for a submission of a member that is not ordered yet, as far as is known.
    pub(crate) fn is_expected(&self, from: Incarnation, number: u64) -> bool {
        let Some(replica) = self.peers.replica_of(from) else {
            return false; // `message` has looked it up
        };
        let ordered = self.log.committed().last_number(replica, from).unwrap_or(0);
        let believable = number > ordered && number <= ordered + NUMBERS_AHEAD_MAX;
        let seated = self.log.latest().member(from).is_some();
        believable && (seated || planted(Mutant::EvictedDelivered))
    }

    /// True for what is ordered before everything else of its origin.
    pub(crate) fn is_next_of(&self, from: Incarnation, number: u64) -> bool {
        let replica = self.peers.replica_of(from);
        let committed = replica.and_then(|replica| self.log.committed().last_number(replica, from));
        number <= committed.unwrap_or(0).max(self.tail_number(from)) + 1
    }

    /// Sends the sequencer what it may not have: after a new ballot, a broken connection, or when
    /// something has been on its way for too long. Of what was withdrawn only the last, whose void covers
    /// all: voided one by one, an early one could be while the sequencer orders a later one that it has.
    pub(crate) fn resend_own(&mut self, older_than_ms: TimeMs) {
        let me = self.me();
        let in_log = self.tail_number(me);
        let now = self.context.now();
        let due = self.submissions.resend(in_log, older_than_ms, now);
        if due.is_empty() {
            return;
        }
        if self.role.is_leader() {
            for Resent {
                number, payload, ..
            } in due
            {
                self.submissions.keep(me, number, payload);
            }
        } else if let Some(sequencer) = self.sequencer() {
            for Resent { message, .. } in due {
                self.send(sequencer, message);
            }
        }
    }

    pub(crate) fn resend_overdue(&mut self) {
        self.resend_own(RESEND_AFTER_MS);
    }

    /// The last of `origin`'s numbers in the own log.
    pub(crate) fn tail_number(&self, origin: Incarnation) -> u64 {
        let committed = self
            .log
            .committed()
            .last_number(self.my_replica(), origin)
            .unwrap_or(0);
        let in_tail = self
            .log
            .tail()
            .above(self.log.committed().position)
            .filter_map(|entry| entry.submission());
        in_tail
            .filter(|id| id.incarnation == origin)
            .map(|id| id.number)
            .fold(committed, u64::max)
    }

    /// Own submissions up to `number` lie below a checkpoint: nothing is known for certain of those that wait.
    pub(crate) fn fail_covered(&mut self, number: u64) {
        for number in self.submissions.cover(number, self.context.now()) {
            self.submission_failed(number, Fate::Unknown);
        }
        self.resend_own(0);
    }

    fn submission_failed(&mut self, number: u64, fate: Fate) {
        let id = SubmissionId {
            incarnation: self.me(),
            number,
        };
        self.out.push(Action::Failed { id, fate });
    }

    /// No majority: every waiting client learns what can be known (rule 7).
    pub(crate) fn withdraw_own(&mut self) {
        let me = self.me();
        let in_log = self.tail_number(me);
        let in_order: Position = self
            .matching
            .incoming()
            .iter()
            .filter_map(|entry| entry.submission())
            .filter(|id| id.incarnation == me)
            .map(|id| id.number)
            .fold(in_log, u64::max);
        // Without this member's vote nothing can have been committed, and it gives none any more.
        let needed = self.log.in_every_configuration(|configuration| {
            let own = configuration
                .member(me)
                .map_or(0, |member| u64::from(member.weight));
            !configuration.is_majority(configuration.total_weight() - own)
        });
        let mut withdrawn = false;
        for (number, is_certain) in self.submissions.withdraw(needed, in_order) {
            withdrawn |= is_certain;
            let fate = match is_certain {
                true => Fate::Withdrawn,
                false => Fate::Unknown,
            };
            self.submission_failed(number, fate);
        }
        self.submissions.retain_origins(|origin| origin != me);
        self.give_up_spreading();
        if withdrawn {
            // The sequencer may have ordered it all the same: only a new ballot, whose promises
            // tell of the withdrawal, may go on from here.
            let number = self.vote.next_number();
            self.promise_ballot(Ballot {
                number,
                replica: self.my_replica(),
            });
        }
    }
}
