//! Large payloads of others: fetched in parts from their origins, at the pace of the one who needs them, so that a
//! connection carries everything else beside them (rule 8). What has been ordered already is fetched from the
//! sequencer's log (logged); what others fetch from here: serving.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;

use crate::event::Action;
use crate::fetch::Fetch;
use crate::group::Group;
use crate::ids::{Incarnation, ParcelId, Position, SubmissionId};
use crate::message::{Message, Parcel, Source};

/// The longest payload of a submission, in bytes: what is longer is not believed, and must not be submitted. With what
/// comes around it, it fits into a record of the log (asserted in the engine).
pub const PAYLOAD_MAX: u32 = (1 << 31) - (64 << 10);
/// The longest head that is believed.
pub(crate) const HEAD_MAX: u32 = 4096;
/// The longest part that is asked for or given.
pub(crate) const PART_MAX: u32 = 1 << 20;
/// Parcels of one origin at a time: those that it may submit, and the next.
const PARCELS_MAX: usize = 64;

/// Payloads on their way here.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Fetching {
    /// Complete ones wait for their submission.
    parcels: BTreeMap<ParcelId, Fetch>,
    /// The payloads of the first order records without one, from a log.
    pub logged: BTreeMap<Position, Fetch>,
}

impl Fetching {
    fn len_of_all(&self) -> u64 {
        let lengths = self
            .parcels
            .values()
            .map(|fetch| u64::from(fetch.parcel.len));
        lengths.sum()
    }

    /// What comes in from this origin, or waits to be submitted.
    pub fn of_origin(&self, origin: Incarnation) -> impl Iterator<Item = &Fetch> {
        let numbered = |number| ParcelId { origin, number };
        let parcels = self.parcels.range(numbered(0)..=numbered(u64::MAX));
        parcels.map(|(_, fetch)| fetch)
    }

    /// What is submitted under this number and still comes in from its origin.
    pub fn of_submission(&self, id: SubmissionId) -> Option<&Fetch> {
        self.of_origin(id.incarnation).find(|f| {
            f.submitted
                .as_ref()
                .is_some_and(|(number, _)| *number == id.number)
        })
    }
}

impl Group {
    pub(crate) fn is_large(&self, len: usize) -> bool {
        len > self.context.config().large_bytes
    }

    fn forget_parcels(&mut self, which: impl Fn(ParcelId, &Fetch) -> bool) {
        let out = &mut self.out;
        self.fetching.parcels.retain(|id, fetch| {
            let gone = which(*id, fetch);
            if gone {
                out.push(Action::Unstage { parcel: *id });
            }
            !gone
        });
    }

    /// A configuration is committed: nobody else submits anything any more.
    pub(crate) fn forget_parcels_beside(&mut self, members: Vec<Incarnation>) {
        self.forget_parcels(|id, _| !members.contains(&id.origin));
        let fetched = self.counters.parcels + self.counters.logged > 0;
        if fetched || self.spreading.has_spread() {
            self.out.push(Action::KeepStaged { origins: members });
        }
    }

    /// Everything of an origin up to this number is in the log.
    pub(crate) fn forget_parcels_upto(&mut self, id: SubmissionId) {
        if self.fetching.parcels.is_empty() {
            return;
        }
        self.forget_parcels(|parcel, fetch| {
            let submitted = fetch.submitted.as_ref().map(|(number, _)| *number);
            parcel.origin == id.incarnation && submitted.is_some_and(|number| number <= id.number)
        });
    }

    /// A member offers a parcel, and says which of its older ones are not wanted any more.
    pub(crate) fn offered(&mut self, from: Incarnation, oldest: u64, parcel: Option<Parcel>) {
        if self.log.latest().member(from).is_none() {
            return;
        }
        self.forget_parcels(|id, fetch| {
            id.origin == from && id.number < oldest && fetch.submitted.is_none()
        });
        let Some(parcel) = parcel else { return };
        let known = self.fetching.parcels.get(&parcel.id(from));
        if known.is_some_and(Fetch::is_complete) {
            let parcel = parcel.number;
            self.send(from, Message::Held { parcel });
        } else if known.is_none() && self.has_room(from, &parcel) {
            self.begin_fetch(from, parcel, None);
        }
    }

    /// Memory is bounded; the first of all origins is never kept waiting, or all might wait for each
    /// other. Whoever finds no room offers again. What an origin has submitted and is not ordered counts, too, or an origin
    /// could submit one parcel after the other and leave out the first.
    fn has_room(&self, from: Incarnation, parcel: &Parcel) -> bool {
        let pending = self.submissions.bytes_of(from) + parcel.len as usize;
        if pending > self.context.config().thresholds.pending_bytes {
            return self.submissions.bytes_of(from) == 0;
        }
        let parcels = &self.fetching.parcels;
        let of_origin = self.fetching.of_origin(from);
        let all = self.fetching.len_of_all() + u64::from(parcel.len);
        let first = parcels.keys().all(|id| id.origin > from);
        of_origin.count() < PARCELS_MAX && (first || all <= self.context.config().parcels_bytes)
    }

    fn begin_fetch(&mut self, from: Incarnation, parcel: Parcel, submitted: Option<(u64, Bytes)>) {
        let source = Source::Offered {
            parcel: parcel.number,
        };
        let mut fetch = self.new_fetch(source, from, parcel);
        fetch.submitted = submitted;
        self.ask_parts(&mut fetch);
        let id = parcel.id(from);
        if self.fetching.parcels.insert(id, fetch).is_some() {
            // Its origin has given the number to another: what is staged is not this one's.
            self.out.push(Action::Unstage { parcel: id });
        }
    }

    pub(crate) fn offered_part(
        &mut self,
        from: Incarnation,
        parcel: u64,
        offset: u32,
        bytes: Bytes,
    ) {
        let id = ParcelId {
            origin: from,
            number: parcel,
        };
        let mut fetch = match self.fetching.parcels.entry(id) {
            Entry::Occupied(found) if !found.get().is_received() => found.remove(),
            _ => return, // all is here, or nothing of it is wanted
        };
        // Its origin has it no more: if it was submitted, whoever has ordered it has.
        if bytes.is_empty() {
            self.out.push(Action::Unstage { parcel: id });
            return;
        }
        if self.take_part(&mut fetch, id, offset, bytes) {
            self.put_offered(id, fetch);
        } else {
            self.fetching.parcels.insert(id, fetch);
        }
    }

    /// A piece more of a parcel is here, or staged.
    fn put_offered(&mut self, id: ParcelId, fetch: Fetch) {
        if fetch.is_complete() {
            self.counters.parcels += 1;
            let parcel = id.number;
            self.send(id.origin, Message::Held { parcel });
        }
        self.fetching.parcels.insert(id, fetch);
        self.finish_submitted(id);
    }

    pub(crate) fn offered_staged(&mut self, id: ParcelId, until: u32) {
        let mut fetch = match self.fetching.parcels.entry(id) {
            Entry::Occupied(found) if !found.get().is_complete() => found.remove(),
            _ => return,
        };
        self.go_on(&mut fetch, until);
        self.put_offered(id, fetch);
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
        let parcel_id = parcel.id(from);
        // A submission has one parcel, or a peer could name one after the other for the number that is never kept waiting.
        self.forget_parcels(|known, fetch| {
            let submitted = fetch.submitted.as_ref().map(|(number, _)| *number);
            known.origin == from && known != parcel_id && submitted == Some(number)
        });
        // What is next in its order is never kept waiting; the others are submitted again.
        let may_begin = self.is_next_of(from, number) || self.has_room(from, &parcel);
        match self.fetching.parcels.get_mut(&parcel_id) {
            Some(fetch) if fetch.parcel == parcel => {
                fetch.submitted.get_or_insert((number, head));
            }
            _ if may_begin => self.begin_fetch(from, parcel, Some((number, head))),
            _ => return,
        }
        self.finish_submitted(parcel_id);
    }

    /// A parcel that is both complete and submitted is a submission like any other.
    fn finish_submitted(&mut self, id: ParcelId) {
        let ready = |fetch: &Fetch| fetch.is_complete() && fetch.submitted.is_some();
        if !self.fetching.parcels.get(&id).is_some_and(ready) {
            return;
        }
        let Some(fetch) = self.fetching.parcels.remove(&id) else {
            return;
        };
        if let Some((number, head)) = fetch.submitted {
            let submission = SubmissionId {
                incarnation: id.origin,
                number,
            };
            let payload = self.fill_in(fetch.parcel, fetch.bytes.freeze(), submission, &head);
            self.submissions.keep(id.origin, number, Some(payload));
        }
    }

    /// With every heartbeat: asks again for what does not come.
    pub(crate) fn fetch_again(&mut self) {
        let now = self.context.now();
        let mut parcels = std::mem::take(&mut self.fetching.parcels);
        for fetch in parcels.values_mut().filter(|f| f.is_stuck(now)) {
            self.ask_again(fetch);
        }
        self.fetching.parcels = parcels;
    }

    /// Bytes of others' payloads that wait to be submitted, or are on their way, the missing ones included.
    pub fn parcels_len(&self) -> u64 {
        self.fetching.len_of_all()
    }
}
