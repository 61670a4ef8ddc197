//! Bulk payloads on their way: what the parts that spread, fetch and serve them ask for is carried out.

use bytes::Bytes;

use crate::event::Action;
use crate::fetching::{PARCEL_NUMBER_MAX, Wanted};
use crate::group::Group;
use crate::ids::{Incarnation, ParcelId, SubmissionId, TimeMs};
use crate::known::known;
use crate::message::{Message, Parcel, Source};

/// What is to be done for a bulk payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BulkOutput {
    Send(Vec<Incarnation>, Message),
    /// The log may write these bytes ahead of their entry.
    Stage {
        parcel: ParcelId,
        offset: u32,
        bytes: Bytes,
    },
    /// It is not wanted any more.
    Unstage(ParcelId),
    /// An own one may be submitted: a majority and the leader hold it, or the majority is lost.
    MaySubmit(u64),
    /// All of one has come from its origin.
    Fetched,
    /// This is the payload of a submission: what was staged as the parcel, but for its first bytes.
    Ready {
        parcel: ParcelId,
        id: SubmissionId,
        head: u32,
        digest: u32,
        payload: Bytes,
    },
    /// The same, out of the leader's log.
    ReadyFromLog {
        parcel: ParcelId,
        id: SubmissionId,
        digest: u32,
        payload: Bytes,
    },
    /// This process, which was asked, has it no more: a checkpoint may be all that is left.
    AskAnew(Incarnation),
}

impl Group {
    pub(crate) fn carry_out_bulk(&mut self, outputs: Vec<BulkOutput>) {
        for output in outputs {
            match output {
                BulkOutput::Send(to, message) => self.send_all(to, message),
                BulkOutput::Stage {
                    parcel,
                    offset,
                    bytes,
                } => self.out.push(Action::Stage {
                    parcel,
                    offset,
                    bytes,
                }),
                BulkOutput::Unstage(parcel) => self.out.push(Action::Unstage { parcel }),
                BulkOutput::MaySubmit(parcel) => self.out.push(Action::Spread { parcel }),
                BulkOutput::Fetched => self.out.count(|c| c.parcels += 1),
                BulkOutput::Ready {
                    parcel,
                    id,
                    head,
                    digest,
                    payload,
                } => {
                    self.staged(parcel, id, head, digest);
                    (self.submissions).keep(id.incarnation, id.number, Some(payload));
                }
                BulkOutput::ReadyFromLog {
                    parcel,
                    id,
                    digest,
                    payload,
                } => {
                    self.out.count(|c| c.logged += 1);
                    self.staged(parcel, id, 0, digest);
                    (self.submissions).keep(id.incarnation, id.number, Some(payload));
                }
                BulkOutput::AskAnew(of) => {
                    self.matching.drop_incoming();
                    self.ask_catch_up(of);
                }
            }
        }
    }

    /// What was staged as this parcel is the payload of that submission.
    fn staged(&mut self, parcel: ParcelId, id: SubmissionId, head: u32, digest: u32) {
        self.submissions.note_digest(id, digest);
        self.out.push(Action::Staged {
            parcel,
            id,
            head,
            digest,
        });
    }

    // ---- own ones ----

    /// Hands in a large payload, which the others are to hold before it is submitted: this member's
    /// parcel `number` (ascending). Its first `head` bytes come with the submission; `digest` is the
    /// CRC-32C of the rest. [`Action::Spread`] says that it may be submitted: also if the majority is
    /// lost; then it is forgotten, and its submission fails.
    pub fn spread(&mut self, now: TimeMs, number: u64, payload: Bytes, head: u32, digest: u32) {
        self.context.advance(now);
        let parcel = Parcel {
            number,
            len: u32::try_from(payload.len()).expect("wsrep bounds a write-set at 2 GiB"),
            head,
            digest,
        };
        let is_primary = self.component.is_primary();
        let outputs = self.spreading.spread(parcel, payload, is_primary);
        self.carry_out_bulk(outputs);
    }

    /// A parcel is not to be submitted any more.
    pub fn recall(&mut self, number: u64) {
        let outputs = self.spreading.recall(known!(self), number);
        self.carry_out_bulk(outputs);
    }

    /// Submits a parcel as this member's submission `number` (see [`Group::submit`]). `head` is what
    /// was missing of it.
    pub fn submit_parcel(&mut self, now: TimeMs, number: u64, parcel: u64, head: Bytes) {
        let me = self.me();
        let (taken, outputs) = self.spreading.submit(me, parcel);
        self.carry_out_bulk(outputs);
        let Some((parcel, payload)) = taken else {
            // Forgotten with the majority.
            return self.submit_own(now, number, None, None);
        };
        let id = SubmissionId {
            incarnation: me,
            number,
        };
        let (payload, digest) = parcel.filled_in(payload, &head);
        self.staged(parcel.id(me), id, parcel.head, digest);
        self.submit_own(now, number, Some(payload), Some((parcel, head)));
    }

    /// The majority is lost.
    pub(crate) fn give_up_spreading(&mut self) {
        let outputs = self.spreading.give_up(known!(self));
        self.carry_out_bulk(outputs);
    }

    /// Says what may be submitted, and offers the next.
    pub(crate) fn pursue_spreading(&mut self) {
        if !self.spreading.is_waiting() {
            return;
        }
        let leader = match self.role.is_leader() {
            true => Some(self.me()),
            false => self.sequencer_in_office(),
        };
        let outputs = self.spreading.pursue(known!(self), leader);
        self.carry_out_bulk(outputs);
    }

    /// Called by the tick: offers and what came of them may be lost.
    pub(crate) fn offer_again(&mut self) {
        let outputs = self.spreading.offer_again(known!(self));
        self.carry_out_bulk(outputs);
    }

    /// A connection is new, or lost something.
    pub(crate) fn offer_anew(&mut self, peer: Incarnation) {
        let offer = self.spreading.offer_anew(known!(self), peer);
        self.carry_out_bulk(offer.into_iter().collect());
    }

    // ---- the others' ----

    /// A configuration is committed: nobody else submits anything any more.
    pub(crate) fn forget_parcels_beside(&mut self, members: Vec<Incarnation>) {
        let outputs = self.fetching.keep_origins(&members);
        self.carry_out_bulk(outputs);
        let counters = self.out.counters();
        let fetched = counters.parcels + counters.logged > 0;
        if fetched || self.spreading.has_spread() {
            self.out.push(Action::KeepStaged { origins: members });
        }
    }

    /// Everything of an origin up to this number is in the log.
    pub(crate) fn forget_parcels_upto(&mut self, id: SubmissionId) {
        let outputs = self.fetching.ordered(id);
        self.carry_out_bulk(outputs);
    }

    /// A member offers a parcel, and says which of its older ones are not wanted any more.
    pub(crate) fn offered(&mut self, from: Incarnation, oldest: u64, parcel: Option<Parcel>) {
        let of_origin = self.submissions.bytes_of(from);
        let outputs = (self.fetching).offered(known!(self), from, oldest, (parcel, of_origin));
        self.carry_out_bulk(outputs);
    }

    /// The origin submits a parcel of its own.
    pub(crate) fn take_parcel(
        &mut self,
        from: Incarnation,
        number: u64,
        parcel: Parcel,
        head: Bytes,
    ) {
        let id = SubmissionId {
            incarnation: from,
            number,
        };
        let known = self.submissions.payload(self.me(), id).is_some();
        if !self.is_expected(from, number) || self.tail_number(from) >= number || known {
            return;
        }
        // What is next in its order is never kept waiting; the others are submitted again.
        let is_next = self.is_next_of(from, number);
        let of_origin = self.submissions.bytes_of(from);
        let outputs =
            (self.fetching).submitted(known!(self), id, (parcel, head), (is_next, of_origin));
        self.carry_out_bulk(outputs);
    }

    /// A piece of a payload that was asked for.
    pub(crate) fn part(&mut self, from: Incarnation, source: Source, offset: u32, bytes: Bytes) {
        let outputs = match source {
            Source::Offered { parcel } => {
                (self.fetching).offered_part(known!(self), from, parcel, (offset, bytes))
            }
            Source::Logged { position, id } => {
                (self.fetching).logged_part(known!(self), from, (position, id), (offset, bytes))
            }
        };
        self.carry_out_bulk(outputs);
    }

    /// Pieces of a payload were staged.
    pub(crate) fn staged_up_to(&mut self, parcel: ParcelId, until: u32) {
        let outputs = if parcel.number > PARCEL_NUMBER_MAX {
            self.fetching.logged_staged(known!(self), parcel, until)
        } else if parcel.origin == self.me() {
            return self.spreading.staged(parcel.number, until);
        } else {
            self.fetching.offered_staged(known!(self), parcel, until)
        };
        self.carry_out_bulk(outputs);
    }

    /// Fetches what the first order records lack from the leader's log, unless it is on its way from its origin.
    pub(crate) fn fetch_logged(&mut self) {
        let wanted = Wanted {
            incoming: self.matching.incoming(),
            hole_since: self.matching.hole_since(),
            submissions: &self.submissions,
            promised: self.vote.promised(),
        };
        let outputs = self.fetching.fetch_logged(known!(self), wanted);
        self.carry_out_bulk(outputs);
    }

    /// With every heartbeat: asks again for what does not come.
    pub(crate) fn fetch_again(&mut self) {
        let leader = self.sequencer_in_office();
        let outputs = self.fetching.ask_again(known!(self), leader);
        self.carry_out_bulk(outputs);
    }

    /// Bytes of others' payloads that wait to be submitted, or are on their way, the missing ones included.
    pub fn parcels_len(&self) -> u64 {
        self.fetching.len_of_all()
    }
}
