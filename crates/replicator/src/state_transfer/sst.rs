//! The joiner's side of a snapshot state transfer: how far the server is between sst_request and sst_received.

use bytes::Bytes;
use trireme_group::Incarnation;

use super::{Phase, Place, Stage, StateTransfer};
use crate::control::Control;
use crate::gtid::Gtid;

/// A joiner without a donor asks again after so long.
const RETRY_MS: u64 = 1000;

#[derive(Debug)]
pub(crate) enum SstPhase {
    /// The server prepares itself to receive.
    Requesting,
    /// Nobody could send; asks again then.
    Retry {
        request: Bytes,
        at_ms: u64,
        /// An earlier request was given up. On another branch it may have been ordered after all, and a donor sends.
        given_up: bool,
    },
    /// The request is on its way into the order.
    Submitted { request: Bytes },
    /// A donor sends. None: it is done, the server has still to say so.
    Receiving { donor: Option<Incarnation> },
    /// The server is prepared; what the order holds is not known again yet.
    Prepared { request: Option<Bytes> },
    /// The server has the snapshot; what the order holds is not known again yet.
    Brought { gtid: Gtid, rcode: i32 },
    /// Nothing can be done.
    GivenUp,
}

impl SstPhase {
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        match self {
            SstPhase::Retry { at_ms, .. } => Some(*at_ms),
            _ => None,
        }
    }

    /// The server waits for a snapshot.
    fn is_prepared(&self) -> bool {
        matches!(
            self,
            SstPhase::Retry { .. } | SstPhase::Submitted { .. } | SstPhase::Receiving { .. }
        )
    }
}

/// Result of [`StateTransfer::server_prepared`].
#[derive(Debug, PartialEq)]
pub(crate) enum Prepared {
    /// It is gone on with when the control state is known again.
    Kept,
    Now(Option<Bytes>),
    /// Nobody has asked.
    Unasked,
}

/// Result of [`StateTransfer::server_received`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// It is gone on with when the control state is known again.
    Kept,
    Now,
    /// The server waits for no snapshot.
    Unasked,
}

/// The next step when a transfer is gone on with.
#[derive(Debug, PartialEq)]
pub(crate) enum Resumed {
    /// The history has forked meanwhile: the snapshot may hold what is dropped here, or never come (rule 11).
    Forked,
    /// The donor has left meanwhile.
    DonorLost(Incarnation),
    /// The donor has failed meanwhile.
    Failed,
    Prepared(Option<Bytes>),
    Brought {
        gtid: Gtid,
        rcode: i32,
    },
    /// The transfer goes on by itself.
    GoesOn,
}

impl StateTransfer {
    /// Between sst_request and sst_received; None: no such transfer is under way.
    pub(crate) fn sst(&self) -> Option<&SstPhase> {
        match &self.transfer()?.phase {
            Phase::Sst(phase) => Some(phase),
            Phase::Ist(_) => None,
        }
    }

    fn sst_mut(&mut self) -> Option<&mut SstPhase> {
        match &mut self.stage {
            Stage::Transfer(transfer) => match &mut transfer.phase {
                Phase::Sst(phase) => Some(phase),
                Phase::Ist(_) => None,
            },
            _ => None,
        }
    }

    /// Between sst_request and sst_received, known to the order or not: no view callback (rule 19).
    pub(crate) fn is_with_scripts(&self) -> bool {
        self.interrupted.is_some() || self.sst().is_some()
    }

    /// A snapshot is to take the place of the database: from sst_request to sst_received.
    pub(crate) fn awaits_snapshot(&self) -> bool {
        self.sst().is_some() && !self.awaits_script()
    }

    fn set_phase(&mut self, phase: SstPhase) {
        if let Stage::Transfer(transfer) = &mut self.stage {
            transfer.phase = Phase::Sst(phase);
        }
    }

    /// The server is asked to prepare itself.
    pub(crate) fn request(&mut self) {
        self.set_phase(SstPhase::Requesting);
    }

    /// Nothing can be done.
    pub(crate) fn give_up(&mut self) {
        self.set_phase(SstPhase::GivenUp);
    }

    /// The server has prepared itself, or could not.
    pub(crate) fn server_prepared(&mut self, request: Option<Bytes>) -> Prepared {
        match &mut self.interrupted {
            Some(phase @ SstPhase::Requesting) => {
                *phase = SstPhase::Prepared { request };
                Prepared::Kept
            }
            _ => match self.sst() {
                Some(SstPhase::Requesting) => Prepared::Now(request),
                _ => Prepared::Unasked,
            },
        }
    }

    /// The order is to be asked for a donor.
    pub(crate) fn ask_donor(&mut self, request: Bytes, now_ms: u64) {
        self.set_phase(SstPhase::Retry {
            request,
            at_ms: now_ms,
            given_up: false,
        });
    }

    /// The request that is to be submitted now.
    pub(crate) fn due_request(&mut self, now_ms: u64) -> Option<Bytes> {
        let phase = self.sst_mut()?;
        let request = match phase {
            SstPhase::Retry { request, at_ms, .. } if now_ms >= *at_ms => request.clone(),
            _ => return None,
        };
        *phase = SstPhase::Submitted {
            request: request.clone(),
        };
        Some(request)
    }

    /// The request was not ordered, as far as this branch goes (`given_up`), or no donor was found; it is made again.
    pub(crate) fn request_failed(&mut self, given_up: bool, now_ms: u64) {
        if let Some(phase) = self.sst_mut() {
            if let SstPhase::Submitted { request } = phase {
                *phase = SstPhase::Retry {
                    request: request.clone(),
                    at_ms: now_ms + RETRY_MS,
                    given_up,
                };
            }
        }
    }

    /// An earlier request was given up. On another branch a donor may have been chosen.
    pub(crate) fn may_have_donor(&self) -> bool {
        matches!(self.sst(), Some(SstPhase::Retry { given_up: true, .. }))
    }

    /// True once in a transfer: to say that no node has a database to give.
    pub(crate) fn tells_nobody_has(&mut self) -> bool {
        match &mut self.stage {
            Stage::Transfer(transfer) => !std::mem::replace(&mut transfer.told_nobody_has, true),
            _ => false,
        }
    }

    /// A donor was chosen.
    pub(crate) fn donor_chosen(&mut self, donor: Incarnation) {
        if let Some(phase) = self.sst_mut() {
            // Retry: an earlier request, given up as lost, was ordered after all.
            if let SstPhase::Submitted { .. } | SstPhase::Retry { .. } = phase {
                *phase = SstPhase::Receiving { donor: Some(donor) };
            }
        }
    }

    /// The donor that sends.
    pub(crate) fn receives_from(&self) -> Option<Incarnation> {
        match self.sst() {
            Some(SstPhase::Receiving { donor }) => *donor,
            _ => None,
        }
    }

    /// A donor has told this joiner that it is done; false if it is not the one that sends.
    pub(crate) fn donor_is_done(&mut self, from: Incarnation) -> bool {
        match self.sst_mut() {
            Some(SstPhase::Receiving { donor }) if *donor == Some(from) => {
                *donor = None;
                true
            }
            _ => false,
        }
    }

    /// sst_received()
    pub(crate) fn server_received(&mut self, gtid: Gtid, rcode: i32) -> Received {
        if self.sst().is_some_and(SstPhase::is_prepared) {
            return Received::Now;
        }
        let is_admission = self.place() == Place::Admission;
        match &mut self.interrupted {
            Some(phase) if is_admission && phase.is_prepared() => {
                *phase = SstPhase::Brought { gtid, rcode };
                Received::Kept
            }
            _ => Received::Unasked,
        }
    }

    /// A snapshot transfer was interrupted by a log that began anew.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    /// In step with the group again: goes on with the snapshot transfer that was interrupted. `is_forked`: the history has
    /// forked since.
    pub(crate) fn resume(
        &mut self,
        control: &Control,
        me: Incarnation,
        is_forked: bool,
        now_ms: u64,
    ) -> Resumed {
        let Some(phase) = self.interrupted.take() else {
            return Resumed::GoesOn;
        };
        let under_way = matches!(
            phase,
            SstPhase::Retry { given_up: true, .. }
                | SstPhase::Submitted { .. }
                | SstPhase::Receiving { .. }
                | SstPhase::Brought { .. }
        );
        let (phase, resumed) = match phase {
            SstPhase::Retry { request, .. } | SstPhase::Submitted { request } => {
                let retry = SstPhase::Retry {
                    request,
                    at_ms: now_ms,
                    given_up: under_way,
                };
                (retry, Resumed::GoesOn)
            }
            SstPhase::Receiving { donor } => received_meanwhile(control, me, donor),
            SstPhase::Prepared { request } => (SstPhase::Requesting, Resumed::Prepared(request)),
            SstPhase::Brought { gtid, rcode } => {
                let resumed = Resumed::Brought { gtid, rcode };
                (SstPhase::Receiving { donor: None }, resumed)
            }
            same @ (SstPhase::Requesting | SstPhase::GivenUp) => (same, Resumed::GoesOn),
        };
        self.begin(control.seqno(), Phase::Sst(phase));
        match under_way && is_forked {
            true => Resumed::Forked,
            false => resumed,
        }
    }
}

/// A donor was sending when the log began anew.
fn received_meanwhile(
    control: &Control,
    me: Incarnation,
    donor: Option<Incarnation>,
) -> (SstPhase, Resumed) {
    let is_member = |donor: Incarnation| control.members.contains_key(&donor);
    let sends = |donor: &Incarnation| {
        (control.members.get(donor)).is_some_and(|m| m.donates_to == Some(me))
    };
    let resumed = match donor.filter(|donor| !is_member(*donor)) {
        Some(lost) => Resumed::DonorLost(lost),
        None if control.failed.contains(&me) => Resumed::Failed,
        None => Resumed::GoesOn,
    };
    let donor = donor.filter(sends);
    (SstPhase::Receiving { donor }, resumed)
}
