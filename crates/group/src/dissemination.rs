//! Payloads on their way into the log: own submissions until they are delivered, those of others until they are
//! ordered, and bulk payloads, which a majority holds before they are submitted (rule 8).
//!
//! In: submissions, offers, parts, and ordered entries. Out: messages, actions, failed submissions. `submissions`,
//! `own_bulk`, `fetching` and `serving` know nothing of each other: this module passes an output of one to another.

mod own;

use bytes::Bytes;

use crate::bulk::BulkOutput;
use crate::event::Action;
use crate::fetching::{BULK_NUMBER_MAX, Fetching, Wanted, awaits_large};
use crate::ids::{BulkId, Incarnation, Position, SubmissionId, Term, TimeMs};
use crate::incoming::Incoming;
use crate::known::Known;
use crate::lasting::Lasting;
use crate::log_reader::LogReader;
use crate::message::{BulkPayload, Message, Source};
use crate::own_bulk::OwnBulk;
use crate::serving::Serving;
use crate::submissions::Submissions;

/// Own submissions that were not ordered within this time are sent to the leader again.
pub(crate) const RESEND_AFTER_MS: TimeMs = 1_000;

/// A request to the coordinator.
#[derive(Clone, Debug)]
pub(crate) enum DisseminationOutput {
    Send(Vec<Incarnation>, Message),
    Act(Action),
    /// A bulk payload has come in completely from its origin.
    Fetched,
    /// A bulk payload has come in completely from the leader's log.
    FetchedFromLog,
    /// This process no longer has a payload: only a log checkpoint may be left of it.
    AskAnew(Incarnation),
    /// Clients were told that submissions have failed for certain. The leader may still order these: this member must
    /// acknowledge only in a new term, whose promises list the withdrawals.
    PromiseAnew,
}

type Outputs = Vec<DisseminationOutput>;

/// The component state and the role of this member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub is_primary: bool,
    pub is_leader: bool,
}

/// The order records that wait for their payloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lacking<'a> {
    pub incoming: &'a Incoming,
    /// Since when the first of them has waited for its payload.
    pub hole_since: Option<TimeMs>,
    /// The promised term: bulk payloads are fetched from the log of its leader.
    pub promised: Term,
}

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Dissemination {
    submissions: Submissions,
    /// Own bulk payloads, until they are submitted.
    own_bulk: OwnBulk,
    /// Bulk payloads of the others.
    fetching: Fetching,
    serving: Serving,
    /// True once a bulk payload has come in.
    has_fetched: bool,
}

impl Dissemination {
    pub(crate) fn new(lasting: &Lasting) -> Dissemination {
        Dissemination {
            submissions: Submissions::new(lasting.withdrawn.clone()),
            ..Dissemination::default()
        }
    }

    // ---- queries ----

    /// The payloads of submissions that are not ordered yet, and their digests.
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
    pub(crate) fn bulk_payloads_len(&self) -> u64 {
        self.fetching.len_of_all()
    }

    /// When the next part can be sent to peers that wait for one; None: no peer waits.
    pub(crate) fn serves_at(&self, now: TimeMs) -> Option<TimeMs> {
        self.serving.is_waited_for().then_some(now + 1)
    }

    // ---- submissions of all members ----

    /// Keeps the submission of a member, within bounds.
    pub(crate) fn take(&mut self, known: Known, id: SubmissionId, payload: Option<Bytes>) {
        let most_bytes = known.context.config().thresholds.pending_bytes;
        if known.expects_submission(id, payload.is_none()) {
            (self.submissions).keep_within(most_bytes, id.incarnation, id.number, payload);
        }
    }

    /// The client of this submission was told that it failed: the leader orders only its number, even if the payload
    /// still comes in.
    pub(crate) fn void(&mut self, id: SubmissionId) {
        self.submissions.keep(id.incarnation, id.number, None);
    }

    /// Removes and returns the number up to which `origin` has withdrawn its submissions, if it is above `last`.
    pub(crate) fn take_void(&mut self, origin: Incarnation, last: u64) -> Option<u64> {
        self.submissions.take_void(origin, last)
    }

    /// Removes and returns the next submission of `origin` after `last`: a voided one that covers it, or else the one
    /// that follows.
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

    /// This submission is committed at this position.
    pub(crate) fn committed(
        &mut self,
        me: Incarnation,
        id: SubmissionId,
        position: Position,
    ) -> Outputs {
        let out = self.ordered(id);
        if id.incarnation == me {
            if let Some(bulk) = self.submissions.bulk_of(id.number) {
                self.serving.note_ordered(bulk, position, id);
            }
            self.submissions.delivered(id.number);
        }
        out
    }

    /// The log is on another branch from now on (rule 11). The submissions that wait rest on commits of the former one:
    /// nobody orders them. An origin that is on this branch, too, sends them again.
    pub(crate) fn leave_branch(&mut self) -> Outputs {
        self.submissions.leave_branch();
        let outputs = self.fetching.leave_branch();
        self.settled(outputs)
    }

    /// A configuration is committed: only its members, and those of pending ones, submit from now on.
    pub(crate) fn configured(&mut self, members: Vec<Incarnation>) -> Outputs {
        (self.submissions).retain_origins(|origin| members.contains(&origin));
        let outputs = self.fetching.keep_origins(&members);
        let mut out = self.settled(outputs);
        if self.has_fetched || self.own_bulk.has_any() {
            let origins = members;
            out.push(DisseminationOutput::Act(Action::KeepStaged { origins }));
        }
        out
    }

    // ---- bulk payloads ----

    /// With every batch: reports the bulk payloads that may be submitted, and offers the next. `leader`: the leader, if
    /// known.
    pub(crate) fn pursue(
        &mut self,
        known: Known,
        leader: impl FnOnce() -> Option<Incarnation>,
    ) -> Outputs {
        if !self.own_bulk.is_waiting() {
            return Vec::new();
        }
        let outputs = self.own_bulk.pursue(known, leader());
        self.settled(outputs)
    }

    /// With every heartbeat: repeats offers and requests, because these and their answers may be lost.
    pub(crate) fn go_on(&mut self, known: Known, leader: Option<Incarnation>) -> Outputs {
        let outputs = self.own_bulk.offer_again(known);
        let mut out = self.settled(outputs);
        let outputs = self.fetching.ask_again(known, leader);
        self.settle(outputs, &mut out);
        out
    }

    /// A connection is new, or has lost messages: offers again to this peer.
    pub(crate) fn offer_anew(&mut self, known: Known, peer: Incarnation) -> Outputs {
        let offer = self.own_bulk.offer_anew(known, peer);
        self.settled(offer)
    }

    /// A member holds an own bulk payload completely.
    pub(crate) fn held(&mut self, from: Incarnation, bulk: u64) -> Outputs {
        let outputs = self.own_bulk.held(from, bulk);
        self.settled(outputs)
    }

    /// A member offers a bulk payload. `oldest`: its older ones may be dropped.
    pub(crate) fn offered(
        &mut self,
        known: Known,
        from: Incarnation,
        oldest: u64,
        bulk: Option<BulkPayload>,
    ) -> Outputs {
        let of_origin = self.submissions.bytes_of(from);
        let outputs = (self.fetching).offered(known, from, oldest, (bulk, of_origin));
        self.settled(outputs)
    }

    /// The origin submits one of its bulk payloads.
    pub(crate) fn take_bulk(
        &mut self,
        known: Known,
        id: SubmissionId,
        bulk: BulkPayload,
        head: Bytes,
    ) -> Outputs {
        let origin = id.incarnation;
        let is_here = self.submissions.payload(known.me(), id).is_some();
        if !known.expects_submission(id, false) || known.tail_number(origin) >= id.number || is_here
        {
            return Vec::new();
        }
        // The origin's next submission is always admitted; the origin submits the others again.
        let is_next = known.is_next_submission(id);
        let of_origin = self.submissions.bytes_of(origin);
        let outputs = (self.fetching).submitted(known, id, (bulk, head), (is_next, of_origin));
        self.settled(outputs)
    }

    /// Takes a part of a payload that this member has requested.
    pub(crate) fn part(
        &mut self,
        known: Known,
        from: Incarnation,
        source: Source,
        (offset, bytes): (u32, Bytes),
    ) -> Outputs {
        let part = (offset, bytes);
        let outputs = match source {
            Source::Offered { bulk } => (self.fetching).offered_part(known, from, bulk, part),
            Source::Logged { position, id } => {
                (self.fetching).logged_part(known, from, (position, id), part)
            }
        };
        self.settled(outputs)
    }

    /// The log has staged a payload up to this byte.
    pub(crate) fn staged_up_to(&mut self, known: Known, bulk: BulkId, until: u32) -> Outputs {
        let outputs = if bulk.number > BULK_NUMBER_MAX {
            self.fetching.logged_staged(known, bulk, until)
        } else if bulk.origin == known.me() {
            self.own_bulk.staged(bulk.number, until);
            Vec::new()
        } else {
            self.fetching.offered_staged(known, bulk, until)
        };
        self.settled(outputs)
    }

    /// Fetches the payloads of the first order records from the leader's log, unless they are on their way from their
    /// origins.
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

    /// True if the first order record waits for a bulk payload: this member fetches it, and needs no catch-up.
    pub(crate) fn awaits_large(known: Known, incoming: &Incoming) -> bool {
        awaits_large(known, incoming)
    }

    /// A peer requests a part. [`Self::serve`] answers at the end of the batch, when the log can be read.
    pub(crate) fn ask(
        &mut self,
        known: Known,
        from: Incarnation,
        source: Source,
        piece: (u32, u32),
    ) {
        self.serving.asked(known, from, source, piece);
    }

    /// With every batch: answers waiting requests for parts, within bounds.
    pub(crate) fn serve(&mut self, known: Known, log: &dyn LogReader) -> Outputs {
        let mut out = Vec::new();
        while let Some(request) = self.serving.next(known) {
            if let Some((bulk, offset, len)) = request.of_own() {
                let staged = self.own_bulk.stage(known, bulk, offset, len);
                self.settle(staged, &mut out);
            }
            let (own_bulk, submissions) = (&self.own_bulk, &self.submissions);
            let own = |bulk| {
                let submitted = || submissions.own_bulk(bulk);
                own_bulk.payload(bulk).or_else(submitted)
            };
            if let Some(message) = self.serving.answer(known, request, own, log) {
                out.push(DisseminationOutput::Send(vec![request.from()], message));
            }
        }
        out
    }

    // ---- outputs from one part to another ----

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
                    bulk,
                    offset,
                    bytes,
                } => out.push(DisseminationOutput::Act(Action::Stage {
                    bulk,
                    offset,
                    bytes,
                })),
                BulkOutput::Unstage(bulk) => {
                    out.push(DisseminationOutput::Act(Action::Unstage { bulk }));
                }
                BulkOutput::MaySubmit(bulk) => {
                    out.push(DisseminationOutput::Act(Action::Spread { bulk }));
                }
                BulkOutput::Fetched => {
                    self.has_fetched = true;
                    out.push(DisseminationOutput::Fetched);
                }
                BulkOutput::Ready {
                    bulk,
                    id,
                    head,
                    digest,
                    payload,
                } => {
                    out.push(self.staged_as(bulk, id, (head, digest)));
                    (self.submissions).keep(id.incarnation, id.number, Some(payload));
                }
                BulkOutput::ReadyFromLog {
                    bulk,
                    id,
                    digest,
                    payload,
                } => {
                    self.has_fetched = true;
                    out.push(DisseminationOutput::FetchedFromLog);
                    out.push(self.staged_as(bulk, id, (0, digest)));
                    (self.submissions).keep(id.incarnation, id.number, Some(payload));
                }
                BulkOutput::AskAnew(of) => out.push(DisseminationOutput::AskAnew(of)),
            }
        }
    }

    /// The bytes staged under this bulk payload's id are the payload of that submission.
    fn staged_as(
        &mut self,
        bulk: BulkId,
        id: SubmissionId,
        (head, digest): (u32, u32),
    ) -> DisseminationOutput {
        self.submissions.note_digest(id, digest);
        DisseminationOutput::Act(Action::Staged {
            bulk,
            id,
            head,
            digest,
        })
    }

    /// The time stamps, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn sent_at(&mut self) -> impl Iterator<Item = &mut TimeMs> {
        self.submissions.sent_at()
    }
}

#[cfg(test)]
mod tests;
