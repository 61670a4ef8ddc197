//! How submissions are sent, taken, sent again, and withdrawn when there is no majority.

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};

use crate::codec::MAX_LIST;
use crate::event::{Action, Fate};
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Position, SubmissionId, TimeMs};
use crate::message::Parcel;
use crate::submissions::Own;

/// An origin that runs further ahead of the order than this is not believed.
const NUMBERS_AHEAD_MAX: u64 = 1 << 20;
/// Own submissions unordered for this long are sent to the sequencer again.
pub(crate) const RESEND_AFTER_MS: TimeMs = 1_000;
/// How many at a time.
const RESEND_BATCH: usize = 256;

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
        assert_eq!(
            number,
            self.submissions.last_number + 1,
            "submissions are numbered without gaps"
        );
        self.submissions.last_number = number;
        let id = SubmissionId {
            incarnation: self.me(),
            number,
        };
        let payload = payload.filter(|_| self.component.is_primary());
        let own = Own {
            payload: payload.clone(),
            parcel,
            sent_at: self.context.now(),
            certain: false,
        };
        let message = own.message(number);
        let is_parcel = own.parcel.is_some();
        self.submissions.own.insert(number, own);
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
        let now = self.context.now();
        let in_log = self.tail_number(me);
        let void = self.submissions.failed().last();
        let lives = |number: u64, own: &Own| {
            own.payload.is_some() || Some(number) == void || planted(Mutant::VoidedOneByOne)
        };
        let due: Vec<(u64, Own)> = self
            .submissions
            .own
            .iter_mut()
            .filter(|(number, own)| **number > in_log && now - own.sent_at >= older_than_ms)
            .filter(|(number, own)| lives(**number, own))
            .take(if older_than_ms == 0 {
                usize::MAX
            } else {
                RESEND_BATCH
            })
            .map(|(number, own)| {
                own.sent_at = now;
                (*number, own.clone())
            })
            .collect();
        if due.is_empty() {
            return;
        }
        if self.role.is_leader() {
            for (number, own) in due {
                self.submissions.keep(me, number, own.payload);
            }
        } else if let Some(sequencer) = self.sequencer() {
            for (number, own) in due {
                self.send(sequencer, own.message(number));
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

    /// Own submissions up to `number` lie below a checkpoint: ordered, but never to be delivered here one by one. Of those above
    /// it nothing is known for certain any more: they may have been ordered on another branch of the history (rule 11), or so
    /// long ago that their number was forgotten ([`crate::Numbers`]). A void of the last uses up the numbers of all, or
    /// the next submission would wait for them.
    pub(crate) fn fail_covered(&mut self, number: u64) {
        let later = self.submissions.own.split_off(&(number + 1));
        let covered = std::mem::replace(&mut self.submissions.own, later);
        let later = self.submissions.own.iter_mut();
        let live = later.filter_map(|(number, own)| Some((*number, own.payload.take()?)));
        let covered = covered.into_iter();
        let covered = covered.filter_map(|(number, own)| Some((number, own.payload?)));
        let failed: Vec<u64> = covered.chain(live).map(|(number, _)| number).collect();
        for number in failed {
            let id = SubmissionId {
                incarnation: self.me(),
                number,
            };
            let fate = Fate::Unknown;
            self.out.push(Action::Failed { id, fate });
        }
        let last = self.submissions.last_number;
        if number < last {
            let void = Own {
                payload: None,
                parcel: None,
                sent_at: self.context.now(),
                certain: false,
            };
            self.submissions.own.entry(last).or_insert(void);
        }
        self.resend_own(0);
    }

    /// The withdrawals that a promise lists: those of earlier connections, then those of this one.
    pub(crate) fn withdrawals(&self) -> Vec<SubmissionId> {
        let mut all: Vec<_> = self.withdrawn_before.iter().copied().collect();
        let own = self.submissions.withdrawn(self.me());
        let room = MAX_LIST.saturating_sub(all.len());
        all.extend_from_slice(&own[own.len().saturating_sub(room)..]);
        all
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
        for (number, own) in &mut self.submissions.own {
            if own.payload.take().is_some() {
                let definite = needed && *number > in_order;
                withdrawn |= definite;
                own.certain = definite;
                let fate = if definite {
                    Fate::Withdrawn
                } else {
                    Fate::Unknown
                };
                let id = SubmissionId {
                    incarnation: me,
                    number: *number,
                };
                self.out.push(Action::Failed { id, fate });
            }
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
