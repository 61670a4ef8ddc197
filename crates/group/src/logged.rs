//! Large payloads that were ordered before they came in from their origin: fetched from the sequencer's log.

use std::collections::btree_map::Entry;

use bytes::Bytes;

use crate::event::Action;
use crate::fetch::{Fetch, PATIENCE_MS};
use crate::group::Group;
use crate::ids::{Incarnation, ParcelId, Position, SubmissionId};
use crate::matching::HOLE_PATIENCE_MS;
use crate::message::{Parcel, Source, WireBody, WireEntry};
use crate::peer::Peer;

/// Numbers of parcels above this are not believed: payloads out of a log are staged under them.
pub(crate) const PARCEL_NUMBER_MAX: u64 = u64::MAX >> 1;

/// The name under which such a payload is staged.
fn staged_as(id: SubmissionId) -> ParcelId {
    ParcelId {
        origin: id.incarnation,
        number: !PARCEL_NUMBER_MAX | id.number,
    }
}

impl Group {
    /// True if the first order record waits for a large payload, which is not fed but fetched.
    pub(crate) fn awaits_large(&self) -> bool {
        let front = self.matching.incoming().front();
        front.is_some_and(|entry| self.large_reference(entry).is_some())
    }

    /// The submission that an order record refers to, if it is a large one, and its payload.
    fn large_reference(&self, entry: &WireEntry) -> Option<(SubmissionId, Parcel)> {
        match entry.body {
            WireBody::Reference { id, len, digest } if self.is_large(len as usize) => {
                let parcel = Parcel {
                    len,
                    digest,
                    ..Parcel::default()
                };
                Some((id, parcel))
            }
            _ => None,
        }
    }

    /// Fetches what the first order records lack from the sequencer's log, unless it is on its way from
    /// its origin.
    pub(crate) fn fetch_logged(&mut self) {
        let first = self.log.tail().end() + 1;
        let last = first + self.matching.incoming().len() as Position;
        let is_needless = |position: &Position| !(first..last).contains(position);
        let logged = self.fetching.logged.keys().copied();
        for position in logged.filter(is_needless).collect::<Vec<_>>() {
            let fetch = self.fetching.logged.remove(&position);
            self.unstage_logged(fetch);
        }
        if !self.awaits_large() {
            return;
        }
        let Some(sequencer) = self.sequencer_in_office() else {
            return;
        };
        let mut bytes = 0;
        let mut due = Vec::new();
        for entry in self.matching.incoming().iter() {
            let Some((id, parcel)) = self.large_reference(entry) else {
                continue;
            };
            if self.submissions.payload(self.me(), id).is_some() {
                if bytes > 0 {
                    bytes += u64::from(parcel.len); // it waits for one before it, in memory
                }
                continue;
            }
            if self.comes_from_origin(id, &parcel) {
                continue;
            }
            if bytes > 0
                && bytes + u64::from(parcel.len) > self.context.config().thresholds.logged_bytes
            {
                break;
            }
            bytes += u64::from(parcel.len);
            let source = Source::Logged {
                position: entry.position,
                id,
            };
            let known = self.fetching.logged.get(&entry.position);
            if known.is_none_or(|fetch| fetch.source != source) {
                let fetch = self.new_fetch(source, sequencer, parcel);
                due.push((entry.position, fetch));
            }
        }
        for (position, mut fetch) in due {
            self.ask_parts(&mut fetch);
            let before = self.fetching.logged.insert(position, fetch);
            self.unstage_logged(before);
        }
    }

    /// What comes in is not wanted any more.
    fn unstage_logged(&mut self, fetch: Option<Fetch>) {
        if let Some(Source::Logged { id, .. }) = fetch.map(|fetch| fetch.source) {
            let parcel = staged_as(id);
            self.out.push(Action::Unstage { parcel });
        }
    }

    /// True if this member gets a payload from its origin: it goes on coming in, or what may be it has
    /// come in and is about to be submitted.
    fn comes_from_origin(&self, id: SubmissionId, payload: &Parcel) -> bool {
        let patience_ms = match self.fetching.of_submission(id) {
            Some(_) => PATIENCE_MS,
            None => HOLE_PATIENCE_MS,
        };
        let mut fetches = self.fetching.of_origin(id.incarnation);
        let up = |peer: &Peer| peer.up;
        self.peers.get(id.incarnation).is_some_and(up)
            && fetches.any(|fetch| {
                let submitted = fetch.submitted.as_ref().map(|(number, _)| *number);
                let may_be = submitted.is_none_or(|number| number == id.number);
                let since = match (submitted, self.matching.hole_since()) {
                    (None, Some(since)) => since.max(fetch.progress_at),
                    _ => fetch.progress_at,
                };
                let is_silent = self.context.now() >= since + patience_ms && !fetch.awaits_disk();
                may_be && fetch.parcel.len == payload.len && !is_silent
            })
    }

    pub(crate) fn logged_part(
        &mut self,
        from: Incarnation,
        position: Position,
        id: SubmissionId,
        offset: u32,
        bytes: Bytes,
    ) {
        let source = Source::Logged { position, id };
        let expected =
            |fetch: &Fetch| fetch.source == source && fetch.from == from && !fetch.is_received();
        let mut fetch = match self.fetching.logged.entry(position) {
            Entry::Occupied(found) if expected(found.get()) => found.remove(),
            _ => return, // a late one, or one of who was asked before
        };
        if bytes.is_empty() {
            // A checkpoint may be all that is left.
            self.unstage_logged(Some(fetch));
            self.matching.drop_incoming();
            return self.ask_catch_up(from);
        }
        self.take_part(&mut fetch, staged_as(id), offset, bytes);
        self.put_logged(position, id, fetch);
    }

    pub(crate) fn logged_staged(&mut self, parcel: ParcelId, until: u32) {
        let id_of = |fetch: &Fetch| match fetch.source {
            Source::Logged { id, .. } => Some(id).filter(|id| staged_as(*id) == parcel),
            Source::Offered { .. } => None,
        };
        let mut logged = self.fetching.logged.iter();
        let found = logged.find_map(|(position, fetch)| Some((*position, id_of(fetch)?)));
        let Some((position, id)) = found else { return };
        if let Some(mut fetch) = self.fetching.logged.remove(&position) {
            self.go_on(&mut fetch, until);
            self.put_logged(position, id, fetch);
        }
    }

    /// A piece more of it is here, or staged.
    fn put_logged(&mut self, position: Position, id: SubmissionId, fetch: Fetch) {
        if !fetch.is_complete() {
            self.fetching.logged.insert(position, fetch);
            return;
        }
        self.counters.logged += 1;
        let (payload, digest) = (fetch.bytes.freeze(), fetch.digest);
        self.submissions.note_digest(id, digest);
        self.out.push(Action::Staged {
            parcel: staged_as(id),
            id,
            head: 0,
            digest,
        });
        (self.submissions).keep(id.incarnation, id.number, Some(payload));
    }

    /// With every heartbeat: asks again for what does not come.
    pub(crate) fn fetch_logged_again(&mut self) {
        let now = self.context.now();
        let mut logged = std::mem::take(&mut self.fetching.logged);
        for fetch in logged.values_mut().filter(|f| f.is_stuck(now)) {
            fetch.from = self.sequencer_in_office().unwrap_or(fetch.from);
            self.ask_again(fetch);
        }
        self.fetching.logged = logged;
    }
}
