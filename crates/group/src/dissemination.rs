//! Payloads on their way into the log: own submissions until they are delivered, everybody's until they are ordered, and bulk
//! payloads, which a majority holds before they are submitted (rule 8).
//!
//! Comes in: submissions, offers, pieces, and word of what was ordered. Goes out: messages, actions, failed submissions. Holds:
//! the parts below know nothing of each other; whatever one says that concerns another passes through here.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::bulk::BulkOutput;
use crate::event::{Action, Fate};
use crate::fetching::{Fetching, PARCEL_NUMBER_MAX, Wanted, awaits_large};
use crate::ids::{Ballot, Incarnation, ParcelId, Position, SubmissionId, TimeMs};
use crate::incoming::Incoming;
use crate::known::Known;
use crate::lasting::Lasting;
use crate::log_reader::LogReader;
use crate::message::{Message, Parcel, Source};
use crate::serving::Serving;
use crate::spreading::Spreading;
use crate::submissions::{Resent, Submissions};

/// Own submissions that were not ordered within this time are sent to the leader again.
pub(crate) const RESEND_AFTER_MS: TimeMs = 1_000;

/// What is to be done for payloads.
#[derive(Clone, Debug)]
pub(crate) enum DisseminationOutput {
    Send(Vec<Incarnation>, Message),
    Act(Action),
    /// All of a bulk payload has come from its origin.
    Fetched,
    /// The same, out of the leader's log.
    FetchedFromLog,
    /// This process has a payload no more: a checkpoint may be all that is left of it.
    AskAnew(Incarnation),
    /// Clients were told for certain that submissions have failed. The leader may order these all the same: only a new term,
    /// whose promises tell of the withdrawal, may go on from here.
    PromiseAnew,
}

type Outputs = Vec<DisseminationOutput>;

/// What this member is at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub is_primary: bool,
    pub is_leader: bool,
}

/// What the own log waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lacking<'a> {
    pub incoming: &'a Incoming,
    /// Since when the first of them misses its payload.
    pub hole_since: Option<TimeMs>,
    /// From the log of its leader a bulk payload is fetched.
    pub promised: Ballot,
}

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Dissemination {
    submissions: Submissions,
    /// Own payloads that the others are to hold before they are submitted.
    spreading: Spreading,
    /// Such payloads of the others.
    fetching: Fetching,
    serving: Serving,
    /// A bulk payload has come in, once.
    has_fetched: bool,
}

impl Dissemination {
    pub(crate) fn new(lasting: &Lasting) -> Dissemination {
        Dissemination {
            submissions: Submissions::new(lasting.withdrawn.clone()),
            ..Dissemination::default()
        }
    }

    // ---- what others may ask ----

    /// Digests and payloads of what is not ordered yet.
    pub(crate) fn submissions(&self) -> &Submissions {
        &self.submissions
    }

    /// The payload that an order record refers to, if it is here.
    pub(crate) fn payload(
        &self,
        me: Incarnation,
        id: SubmissionId,
        (len, digest): (u32, u32),
    ) -> Option<&Bytes> {
        let payload = self.submissions.payload(me, id)?;
        let is_it = payload.len() == len as usize && self.submissions.digest(id, payload) == digest;
        is_it.then_some(payload)
    }

    /// Bytes of others' bulk payloads that wait to be submitted, or are on their way, the missing ones included.
    pub(crate) fn parcels_len(&self) -> u64 {
        self.fetching.len_of_all()
    }

    /// When peers that wait for a piece are answered.
    pub(crate) fn serves_at(&self, now: TimeMs) -> Option<TimeMs> {
        self.serving.is_waited_for().then_some(now + 1)
    }

    // ---- own submissions ----

    /// This member's submission `number`, which the leader orders.
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

    /// A payload is handed in that the others are to hold before it is submitted.
    pub(crate) fn spread(&mut self, place: Place, parcel: Parcel, payload: Bytes) -> Outputs {
        let outputs = self.spreading.spread(parcel, payload, place.is_primary);
        self.settled(outputs)
    }

    /// It is not to be submitted any more.
    pub(crate) fn recall(&mut self, known: Known, parcel: u64) -> Outputs {
        let outputs = self.spreading.recall(known, parcel);
        self.settled(outputs)
    }

    /// It is submitted; `head` is what was missing of it.
    pub(crate) fn submit_parcel(
        &mut self,
        known: Known,
        place: Place,
        number: u64,
        (parcel, head): (u64, Bytes),
    ) -> Outputs {
        let incarnation = known.me();
        let (taken, outputs) = self.spreading.submit(incarnation, parcel);
        let mut out = self.settled(outputs);
        let Some((parcel, payload)) = taken else {
            // Forgotten with the majority.
            self.submit_own(known, place, number, (None, None), &mut out);
            return out;
        };
        let id = SubmissionId {
            incarnation,
            number,
        };
        let (payload, digest) = parcel.filled_in(payload, &head);
        out.push(self.staged_as(parcel.id(incarnation), id, (parcel.head, digest)));
        let payload = (Some(payload), Some((parcel, head)));
        self.submit_own(known, place, number, payload, &mut out);
        out
    }

    /// Without a payload: a bulk one that was forgotten with the majority.
    fn submit_own(
        &mut self,
        known: Known,
        place: Place,
        number: u64,
        (payload, parcel): (Option<Bytes>, Option<(Parcel, Bytes)>),
        out: &mut Outputs,
    ) {
        let payload = payload.filter(|_| place.is_primary);
        let is_parcel = parcel.is_some();
        let message = (self.submissions).submit(number, payload.clone(), parcel, known.now());
        let Some(payload) = payload else {
            out.push(failed(known, number, Fate::Withdrawn));
            return;
        };
        if place.is_leader {
            // Travels with its order record.
            self.submissions.keep(known.me(), number, Some(payload));
        }
        if !place.is_leader || is_parcel {
            out.push(DisseminationOutput::Send(known.others(), message));
        }
    }

    /// Sends the leader what it may not have: after a new term, a broken connection, or when something has been on its way for
    /// too long. Of what was withdrawn only the last, whose void covers all: voided one by one, an early one could be while the
    /// leader orders a later one that it has.
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

    /// Own submissions up to `number` lie below a checkpoint: nothing is known for certain of those that wait.
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

    /// No majority: every waiting client learns what can be known (rule 7). `incoming`: order records that wait for payloads.
    pub(crate) fn withdraw(&mut self, known: Known, incoming: &Incoming) -> Outputs {
        let me = known.me();
        let ids = incoming.iter().filter_map(|entry| entry.submission());
        let own = ids.filter(|id| id.incarnation == me).map(|id| id.number);
        let in_order = own.fold(known.tail_number(me), u64::max);
        // Without this member's vote nothing can have been committed, and it gives none any more.
        let needed = known.log.in_every_configuration(|configuration| {
            let own = configuration
                .member(me)
                .map_or(0, |member| u64::from(member.weight));
            !configuration.is_majority(configuration.total_weight() - own)
        });
        let withdrawn = self.submissions.withdraw(needed, in_order);
        let is_any_certain = withdrawn.iter().any(|(_, is_certain)| *is_certain);
        let tell = |(number, is_certain)| match is_certain {
            true => failed(known, number, Fate::Withdrawn),
            false => failed(known, number, Fate::Unknown),
        };
        let mut out: Outputs = withdrawn.into_iter().map(tell).collect();
        self.submissions.retain_origins(|origin| origin != me);
        let outputs = self.spreading.give_up(known);
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

    /// Those of which clients were told for certain, here and in earlier connections.
    pub(crate) fn certain_withdrawals(&self, me: Incarnation) -> BTreeSet<SubmissionId> {
        self.submissions.certain_withdrawals(me)
    }

    /// A view seats this process: entries above it under the earlier names are void (rule 9).
    pub(crate) fn seated(&mut self) {
        self.submissions.seated();
    }

    // ---- everybody's ----

    /// A member submits.
    pub(crate) fn take(&mut self, known: Known, id: SubmissionId, payload: Option<Bytes>) {
        let most_bytes = known.context.config().thresholds.pending_bytes;
        if known.expects_submission(id) {
            (self.submissions).keep_within(most_bytes, id.incarnation, id.number, payload);
        }
    }

    /// Of this submission only the number is ordered, whose client was told that it failed.
    pub(crate) fn void(&mut self, id: SubmissionId) {
        self.submissions.keep(id.incarnation, id.number, None);
    }

    /// The next submission of `origin` after `last`, removed: the one that follows, or a void that covers it.
    pub(crate) fn take_next(
        &mut self,
        origin: Incarnation,
        last: u64,
    ) -> Option<(u64, Option<Bytes>)> {
        self.submissions.take_next(origin, last)
    }

    /// Everything of an origin up to this number is in the log.
    pub(crate) fn ordered(&mut self, id: SubmissionId) -> Outputs {
        self.submissions.ordered(id);
        let outputs = self.fetching.ordered(id);
        self.settled(outputs)
    }

    /// And it is committed, at this position.
    pub(crate) fn committed(
        &mut self,
        me: Incarnation,
        id: SubmissionId,
        position: Position,
    ) -> Outputs {
        let out = self.ordered(id);
        if id.incarnation == me {
            if let Some(parcel) = self.submissions.parcel_of(id.number) {
                self.serving.note_ordered(parcel, position, id);
            }
            self.submissions.delivered(id.number);
        }
        out
    }

    /// A configuration is committed: nobody else submits anything any more.
    pub(crate) fn configured(&mut self, members: Vec<Incarnation>) -> Outputs {
        (self.submissions).retain_origins(|origin| members.contains(&origin));
        let outputs = self.fetching.keep_origins(&members);
        let mut out = self.settled(outputs);
        if self.has_fetched || self.spreading.has_spread() {
            let origins = members;
            out.push(DisseminationOutput::Act(Action::KeepStaged { origins }));
        }
        out
    }

    // ---- bulk payloads ----

    /// With every batch: says what may be submitted, and offers the next. `leader`: the one that leads.
    pub(crate) fn pursue(
        &mut self,
        known: Known,
        leader: impl FnOnce() -> Option<Incarnation>,
    ) -> Outputs {
        if !self.spreading.is_waiting() {
            return Vec::new();
        }
        let outputs = self.spreading.pursue(known, leader());
        self.settled(outputs)
    }

    /// With every heartbeat: offers and what came of them, requests and answers may be lost.
    pub(crate) fn go_on(&mut self, known: Known, leader: Option<Incarnation>) -> Outputs {
        let outputs = self.spreading.offer_again(known);
        let mut out = self.settled(outputs);
        let outputs = self.fetching.ask_again(known, leader);
        self.settle(outputs, &mut out);
        out
    }

    /// A connection is new, or lost something.
    pub(crate) fn offer_anew(&mut self, known: Known, peer: Incarnation) -> Outputs {
        let offer = self.spreading.offer_anew(known, peer);
        self.settled(offer)
    }

    /// A member has all of an own one.
    pub(crate) fn held(&mut self, from: Incarnation, parcel: u64) {
        self.spreading.held(from, parcel);
    }

    /// A member offers one, and says which of its older ones are not wanted any more.
    pub(crate) fn offered(
        &mut self,
        known: Known,
        from: Incarnation,
        oldest: u64,
        parcel: Option<Parcel>,
    ) -> Outputs {
        let of_origin = self.submissions.bytes_of(from);
        let outputs = (self.fetching).offered(known, from, oldest, (parcel, of_origin));
        self.settled(outputs)
    }

    /// The origin submits one of its own.
    pub(crate) fn take_parcel(
        &mut self,
        known: Known,
        id: SubmissionId,
        parcel: Parcel,
        head: Bytes,
    ) -> Outputs {
        let origin = id.incarnation;
        let is_here = self.submissions.payload(known.me(), id).is_some();
        if !known.expects_submission(id) || known.tail_number(origin) >= id.number || is_here {
            return Vec::new();
        }
        // What is next in its order is never kept waiting; the others are submitted again.
        let is_next = known.is_next_submission(id);
        let of_origin = self.submissions.bytes_of(origin);
        let outputs = (self.fetching).submitted(known, id, (parcel, head), (is_next, of_origin));
        self.settled(outputs)
    }

    /// A piece of a payload that was asked for.
    pub(crate) fn part(
        &mut self,
        known: Known,
        from: Incarnation,
        source: Source,
        (offset, bytes): (u32, Bytes),
    ) -> Outputs {
        let part = (offset, bytes);
        let outputs = match source {
            Source::Offered { parcel } => (self.fetching).offered_part(known, from, parcel, part),
            Source::Logged { position, id } => {
                (self.fetching).logged_part(known, from, (position, id), part)
            }
        };
        self.settled(outputs)
    }

    /// Pieces of a payload were staged.
    pub(crate) fn staged_up_to(&mut self, known: Known, parcel: ParcelId, until: u32) -> Outputs {
        let outputs = if parcel.number > PARCEL_NUMBER_MAX {
            self.fetching.logged_staged(known, parcel, until)
        } else if parcel.origin == known.me() {
            self.spreading.staged(parcel.number, until);
            Vec::new()
        } else {
            self.fetching.offered_staged(known, parcel, until)
        };
        self.settled(outputs)
    }

    /// Fetches what the first order records lack from the leader's log, unless it is on its way from its origin.
    pub(crate) fn fetch_logged(&mut self, known: Known, lacking: Lacking) -> Outputs {
        let wanted = Wanted {
            incoming: lacking.incoming,
            hole_since: lacking.hole_since,
            submissions: &self.submissions,
            promised: lacking.promised,
        };
        let outputs = self.fetching.fetch_logged(known, wanted);
        self.settled(outputs)
    }

    /// True if the first order record waits for a bulk payload, which is not fed but fetched.
    pub(crate) fn awaits_large(known: Known, incoming: &Incoming) -> bool {
        awaits_large(known, incoming)
    }

    /// A peer asks for a piece: it is answered at the end of the batch, when the log can be read.
    pub(crate) fn ask(
        &mut self,
        known: Known,
        from: Incarnation,
        source: Source,
        piece: (u32, u32),
    ) {
        self.serving.asked(known, from, source, piece);
    }

    /// With every batch: answers those that wait, within bounds.
    pub(crate) fn serve(&mut self, known: Known, log: &dyn LogReader) -> Outputs {
        let mut out = Vec::new();
        while let Some(request) = self.serving.next(known) {
            if let Some((parcel, offset, len)) = request.of_own() {
                let staged = self.spreading.stage(known, parcel, offset, len);
                self.settle(staged, &mut out);
            }
            let (spreading, submissions) = (&self.spreading, &self.submissions);
            let own = |parcel| {
                let submitted = || submissions.own_parcel(parcel);
                spreading.payload(parcel).or_else(submitted)
            };
            if let Some(message) = self.serving.answer(known, request, own, log) {
                out.push(DisseminationOutput::Send(vec![request.from()], message));
            }
        }
        out
    }

    // ---- what one part says to another ----

    fn settled(&mut self, outputs: impl IntoIterator<Item = BulkOutput>) -> Outputs {
        let mut out = Vec::new();
        self.settle(outputs, &mut out);
        out
    }

    fn settle(&mut self, outputs: impl IntoIterator<Item = BulkOutput>, out: &mut Outputs) {
        for output in outputs {
            match output {
                BulkOutput::Send(to, message) => out.push(DisseminationOutput::Send(to, message)),
                BulkOutput::Stage {
                    parcel,
                    offset,
                    bytes,
                } => out.push(DisseminationOutput::Act(Action::Stage {
                    parcel,
                    offset,
                    bytes,
                })),
                BulkOutput::Unstage(parcel) => {
                    out.push(DisseminationOutput::Act(Action::Unstage { parcel }));
                }
                BulkOutput::MaySubmit(parcel) => {
                    out.push(DisseminationOutput::Act(Action::Spread { parcel }));
                }
                BulkOutput::Fetched => {
                    self.has_fetched = true;
                    out.push(DisseminationOutput::Fetched);
                }
                BulkOutput::Ready {
                    parcel,
                    id,
                    head,
                    digest,
                    payload,
                } => {
                    out.push(self.staged_as(parcel, id, (head, digest)));
                    (self.submissions).keep(id.incarnation, id.number, Some(payload));
                }
                BulkOutput::ReadyFromLog {
                    parcel,
                    id,
                    digest,
                    payload,
                } => {
                    self.has_fetched = true;
                    out.push(DisseminationOutput::FetchedFromLog);
                    out.push(self.staged_as(parcel, id, (0, digest)));
                    (self.submissions).keep(id.incarnation, id.number, Some(payload));
                }
                BulkOutput::AskAnew(of) => out.push(DisseminationOutput::AskAnew(of)),
            }
        }
    }

    /// What was staged as this parcel is the payload of that submission.
    fn staged_as(
        &mut self,
        parcel: ParcelId,
        id: SubmissionId,
        (head, digest): (u32, u32),
    ) -> DisseminationOutput {
        self.submissions.note_digest(id, digest);
        DisseminationOutput::Act(Action::Staged {
            parcel,
            id,
            head,
            digest,
        })
    }

    /// Ages of stamps, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn sent_at(&mut self) -> impl Iterator<Item = &mut TimeMs> {
        self.submissions.sent_at()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, member};

    const PRIMARY: Place = Place {
        is_primary: true,
        is_leader: false,
    };

    fn sent(outputs: &Outputs) -> Vec<&Message> {
        let mut messages = Vec::new();
        for output in outputs {
            if let DisseminationOutput::Send(_, message) = output {
                messages.push(message);
            }
        }
        messages
    }

    fn fates(outputs: &Outputs) -> Vec<(u64, Fate)> {
        let fate = |output: &DisseminationOutput| match output {
            DisseminationOutput::Act(Action::Failed { id, fate }) => Some((id.number, *fate)),
            _ => None,
        };
        outputs.iter().filter_map(fate).collect()
    }

    #[test]
    fn a_submission_goes_to_all_and_again_to_the_leader_alone() {
        let fixture = Fixture::of(3);
        let known = fixture.known();
        let mut dissemination = Dissemination::default();
        let payload = Bytes::from_static(b"a");
        let outputs = dissemination.submit(known, PRIMARY, 1, payload.clone());
        let message = Message::Submit {
            number: 1,
            payload: Some(payload),
        };
        assert_eq!(sent(&outputs), [&message]);
        let second = member(2).incarnation;
        let again = dissemination.resend(known, Some(second), 0);
        assert!(
            matches!(&again[..], [DisseminationOutput::Send(to, m)] if to[..] == [second] && *m == message)
        );
        assert!(dissemination.resend(known, None, 0).is_empty());
    }

    #[test]
    fn without_a_majority_a_client_hears_what_is_certain_and_a_new_term_is_promised() {
        // Of two, nothing is committed without this one.
        for (members, fate) in [(2, Fate::Withdrawn), (3, Fate::Unknown)] {
            let fixture = Fixture::of(members);
            let known = fixture.known();
            let mut dissemination = Dissemination::default();
            dissemination.submit(known, PRIMARY, 1, Bytes::from_static(b"a"));
            let outputs = dissemination.withdraw(known, &Incoming::default());
            assert_eq!(fates(&outputs), [(1, fate)]);
            let promises = matches!(outputs.last(), Some(DisseminationOutput::PromiseAnew));
            assert_eq!(promises, fate == Fate::Withdrawn);
        }
    }

    #[test]
    fn a_process_that_is_not_primary_submits_nothing() {
        let fixture = Fixture::of(3);
        let place = Place {
            is_primary: false,
            ..PRIMARY
        };
        let mut dissemination = Dissemination::default();
        let outputs = dissemination.submit(fixture.known(), place, 1, Bytes::new());
        assert_eq!(fates(&outputs), [(1, Fate::Withdrawn)]);
        assert!(sent(&outputs).is_empty());
    }
}
