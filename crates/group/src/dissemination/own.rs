//! This member's own submissions, from the client to the leader, and the answers to the clients of failed ones (rule
//! 7).

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{Dissemination, DisseminationOutput, Outputs, Place};
use crate::event::{Action, Fate};
use crate::ids::{Incarnation, SubmissionId, TimeMs};
use crate::incoming::Incoming;
use crate::known::Known;
use crate::message::BulkPayload;
use crate::submissions::Resent;

impl Dissemination {
    /// Sends this member's submission `number`, for the leader to order.
    pub(crate) fn submit(
        &mut self,
        known: Known,
        place: Place,
        number: u64,
        payload: Bytes,
    ) -> Outputs {
        let mut out = Vec::new();
        self.submit_own(known, place, number, (Some(payload), None), &mut out);
        out
    }

    /// Takes a bulk payload, which the others must hold before it is submitted.
    pub(crate) fn spread(&mut self, place: Place, bulk: BulkPayload, payload: Bytes) -> Outputs {
        let outputs = self.own_bulk.spread(bulk, payload, place.is_primary);
        self.settled(outputs)
    }

    /// Gives up an own bulk payload that is not submitted.
    pub(crate) fn recall(&mut self, known: Known, bulk: u64) -> Outputs {
        let outputs = self.own_bulk.recall(known, bulk);
        self.settled(outputs)
    }

    /// Submits an own bulk payload; `head`: its final first bytes.
    pub(crate) fn submit_bulk(
        &mut self,
        known: Known,
        place: Place,
        number: u64,
        (bulk, head): (u64, Bytes),
    ) -> Outputs {
        let incarnation = known.me();
        let (taken, outputs) = self.own_bulk.submit(incarnation, bulk);
        let mut out = self.settled(outputs);
        let Some((bulk, payload)) = taken else {
            // This member forgot it when it lost the majority.
            self.submit_own(known, place, number, (None, None), &mut out);
            return out;
        };
        let id = SubmissionId {
            incarnation,
            number,
        };
        let (payload, digest) = bulk.filled_in(payload, &head);
        out.push(self.staged_as(bulk.id(incarnation), id, (bulk.head, digest)));
        let payload = (Some(payload), Some((bulk, head)));
        self.submit_own(known, place, number, payload, &mut out);
        out
    }

    /// Without a payload, it is a bulk payload that this member forgot when it lost the majority.
    fn submit_own(
        &mut self,
        known: Known,
        place: Place,
        number: u64,
        (payload, bulk): (Option<Bytes>, Option<(BulkPayload, Bytes)>),
        out: &mut Outputs,
    ) {
        let payload = payload.filter(|_| place.is_primary);
        let is_bulk = bulk.is_some();
        let branch = known.log.branch();
        let message = (self.submissions).submit(number, payload.clone(), bulk, branch, known.now());
        let Some(payload) = payload else {
            out.push(failed(known, number, Fate::Withdrawn));
            return;
        };
        if place.is_leader {
            // The leader's own payload travels with its append.
            self.submissions.keep(known.me(), number, Some(payload));
        }
        if !place.is_leader || is_bulk {
            out.push(DisseminationOutput::Send(known.others(), message));
        }
    }

    /// Sends the leader the submissions that it may not have: after a new term or a broken connection, or when one has
    /// waited for too long. Of the withdrawn ones it sends only the last, whose void covers all. If the leader voided
    /// them one by one, it could void an early one and still order a later one that it has.
    pub(crate) fn resend(
        &mut self,
        known: Known,
        leader: Option<Incarnation>,
        older_than_ms: TimeMs,
    ) -> Outputs {
        let me = known.me();
        let in_log = known.tail_number(me);
        let due = (self.submissions).resend(in_log, older_than_ms, known.now());
        let Some(leader) = leader else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for Resent {
            number,
            payload,
            message,
        } in due
        {
            match leader == me {
                true => self.submissions.keep(me, number, payload),
                false => out.push(DisseminationOutput::Send(vec![leader], message)),
            }
        }
        out
    }

    /// Own submissions up to `number` lie below a log checkpoint: the fate of those that wait is unknown.
    pub(crate) fn cover(
        &mut self,
        known: Known,
        leader: Option<Incarnation>,
        number: u64,
    ) -> Outputs {
        let covered = self.submissions.cover(number, known.now()).into_iter();
        let mut out: Outputs = covered
            .map(|number| failed(known, number, Fate::Unknown))
            .collect();
        out.extend(self.resend(known, leader, 0));
        out
    }

    /// The majority is lost: answers every waiting client, as far as the fate of its submission is known (rule 7).
    /// `incoming`: order records that wait for payloads.
    pub(crate) fn withdraw(&mut self, known: Known, incoming: &Incoming) -> Outputs {
        let me = known.me();
        let ids = incoming.iter().filter_map(|entry| entry.submission());
        let own = ids.filter(|id| id.incarnation == me).map(|id| id.number);
        let in_order = own.fold(known.tail_number(me), u64::max);
        // `needed`: without this member's vote nothing can have been committed on this branch, and it acknowledges no more
        // in this term.
        let needed = known.log.in_every_configuration(|configuration| {
            let own = configuration
                .member(me)
                .map_or(0, |member| u64::from(member.weight));
            !configuration.is_majority(configuration.total_weight() - own)
        });
        let branch = known.log.branch();
        let withdrawn = self.submissions.withdraw(branch, needed, in_order);
        let is_any_certain = withdrawn.iter().any(|(_, is_certain)| *is_certain);
        let tell = |(number, is_certain)| match is_certain {
            true => failed(known, number, Fate::Withdrawn),
            false => failed(known, number, Fate::Unknown),
        };
        let mut out: Outputs = withdrawn.into_iter().map(tell).collect();
        self.submissions.retain_origins(|origin| origin != me);
        let outputs = self.own_bulk.give_up(known);
        self.settle(outputs, &mut out);
        if is_any_certain {
            out.push(DisseminationOutput::PromiseAnew);
        }
        out
    }

    /// The withdrawals that a promise lists.
    pub(crate) fn withdrawals(&self, me: Incarnation) -> Vec<SubmissionId> {
        self.submissions.withdrawals(me)
    }

    /// The withdrawals that clients were told for certain, in this connection and in earlier ones.
    pub(crate) fn certain_withdrawals(&self, me: Incarnation) -> BTreeSet<SubmissionId> {
        self.submissions.certain_withdrawals(me)
    }

    /// A view lists this process: entries above it under earlier incarnations are void (rule 9).
    pub(crate) fn seated(&mut self) {
        self.submissions.seated();
    }
}

fn failed(known: Known, number: u64, fate: Fate) -> DisseminationOutput {
    let incarnation = known.me();
    let id = SubmissionId {
        incarnation,
        number,
    };
    DisseminationOutput::Act(Action::Failed { id, fate })
}
