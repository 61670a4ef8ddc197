//! Payloads on their way into the log: own submissions until they are delivered, everybody's until they are ordered, and bulk
//! payloads, which a majority holds before they are submitted (rule 8).
//!
//! Comes in: submissions, offers, pieces, and word of what was ordered. Goes out: messages, actions, failed submissions. Holds:
//! the parts below know nothing of each other; whatever one says that concerns another passes through here.

mod own;

use bytes::Bytes;

use crate::bulk::BulkOutput;
use crate::event::Action;
use crate::fetching::{Fetching, PARCEL_NUMBER_MAX, Wanted, awaits_large};
use crate::ids::{Ballot, Incarnation, ParcelId, Position, SubmissionId, TimeMs};
use crate::incoming::Incoming;
use crate::known::Known;
use crate::lasting::Lasting;
use crate::log_reader::LogReader;
use crate::message::{Message, Parcel, Source};
use crate::serving::Serving;
use crate::spreading::Spreading;
use crate::submissions::Submissions;

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

#[cfg(test)]
mod tests;
