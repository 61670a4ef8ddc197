//! The state machine of an SST, or of the script before an IST: from sst_request to sst_received. Without a donor the
//! request is repeated each second. `joiner/sst.rs` carries its steps out.

use bytes::Bytes;
use trireme_group::Incarnation;

use super::{Phase, Place, Script, Stage, StateTransfer};
use crate::control::Control;
use crate::gtid::Gtid;

/// Time after which a joiner without a donor asks again.
const RETRY_MS: u64 = 1000;

#[derive(Debug)]
pub(crate) enum SstPhase {
    /// The server prepares itself to receive.
    Requesting,
    /// No member could send; the request is repeated at `at_ms`.
    Retry {
        request: Bytes,
        at_ms: u64,
        /// An earlier request was given up, and its fate is unknown: a donor may have been chosen.
        given_up: bool,
    },
    /// The request is submitted, and not ordered yet.
    Submitted { request: Bytes, given_up: bool },
    /// The server has the SST, and the request is not ordered here yet: the donor may be on another branch.
    Early { gtid: Gtid },
    /// A donor sends, or has sent (`is_sent`) and the server has not reported yet. None: it is not known any more.
    Receiving {
        donor: Option<Incarnation>,
        is_sent: bool,
    },
    /// The server is prepared; the control state is not known again yet.
    Prepared { request: Option<Bytes> },
    /// The server has the SST; the control state is not known again yet.
    Brought { gtid: Gtid, rcode: i32 },
    /// The SST was given up.
    GivenUp,
}

impl SstPhase {
    /// A donor sends; None: it has finished, or is gone.
    fn receiving(donor: Option<Incarnation>) -> SstPhase {
        SstPhase::Receiving {
            donor,
            is_sent: donor.is_none(),
        }
    }

    pub(super) fn deadline_ms(&self) -> Option<u64> {
        match self {
            SstPhase::Retry { at_ms, .. } => Some(*at_ms),
            _ => None,
        }
    }

    /// Returns true if the server waits for an SST.
    fn is_prepared(&self) -> bool {
        matches!(
            self,
            SstPhase::Retry { .. } | SstPhase::Submitted { .. } | SstPhase::Receiving { .. }
        )
    }

    /// Returns true if an earlier request was given up: a donor may have been chosen.
    fn may_have_donor(&self) -> bool {
        matches!(
            self,
            SstPhase::Retry { given_up: true, .. } | SstPhase::Submitted { given_up: true, .. }
        )
    }

    /// Returns true if a request is under way to the order, or may be.
    fn is_open(&self) -> bool {
        self.may_have_donor() || matches!(self, SstPhase::Submitted { .. } | SstPhase::Early { .. })
    }
}

/// Result of [`StateTransfer::server_prepared`].
#[derive(Debug, PartialEq)]
pub(crate) enum Prepared {
    /// It is handled when the control state is known again.
    Kept,
    Now(Option<Bytes>),
    /// The server was not asked.
    Unasked,
}

/// Result of [`StateTransfer::server_received`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// It is handled when the control state is known again.
    Kept,
    Now,
    /// The SST may be of another branch (rule 11): this one has chosen no donor.
    Foreign,
    /// The server waits for no SST.
    Unasked,
}

/// The next step when a transfer is continued.
#[derive(Debug, PartialEq)]
pub(crate) enum Resumed {
    /// The history has forked meanwhile: the SST may hold entries that are dropped here, or never come (rule 11).
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
    /// The transfer continues by itself.
    GoesOn,
}

impl StateTransfer {
    /// Returns the phase between sst_request and sst_received; None: no such transfer is running.
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

    /// Returns true between sst_request and sst_received, known to the order or not: no view callback (rule 19).
    pub(crate) fn is_with_scripts(&self) -> bool {
        self.interrupted.is_some() || self.sst().is_some()
    }

    /// Returns true if an SST will replace the database: from sst_request to sst_received.
    pub(crate) fn awaits_snapshot(&self) -> bool {
        self.sst().is_some() && !self.awaits_script()
    }

    fn set_phase(&mut self, phase: SstPhase) {
        if let Stage::Transfer(transfer) = &mut self.stage {
            transfer.phase = Phase::Sst(phase);
        }
    }

    /// Notes that the server is asked to prepare itself.
    pub(crate) fn request(&mut self) {
        self.set_phase(SstPhase::Requesting);
    }

    /// Gives the SST up.
    pub(crate) fn give_up(&mut self) {
        self.set_phase(SstPhase::GivenUp);
    }

    /// Takes in that the server has prepared itself, or could not.
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

    /// Makes the node request a donor from the order.
    pub(crate) fn ask_donor(&mut self, request: Bytes, now_ms: u64) {
        if let Script::Runs { request: told, .. } = &mut self.script {
            *told = Some(request.clone());
        }
        self.set_phase(SstPhase::Retry {
            request,
            at_ms: now_ms,
            given_up: false,
        });
    }

    /// Returns the request that must be submitted now.
    pub(crate) fn due_request(&mut self, now_ms: u64) -> Option<Bytes> {
        let phase = self.sst_mut()?;
        let (request, given_up) = match phase {
            SstPhase::Retry {
                request,
                at_ms,
                given_up,
            } if now_ms >= *at_ms => (request.clone(), *given_up),
            _ => return None,
        };
        *phase = SstPhase::Submitted {
            request: request.clone(),
            given_up,
        };
        Some(request)
    }

    /// Notes that the request was not ordered, or that it may have been (`given_up`), or that no donor was found. It is
    /// repeated.
    pub(crate) fn request_failed(&mut self, given_up: bool, now_ms: u64) {
        if let Some(phase) = self.sst_mut() {
            if let SstPhase::Submitted {
                request,
                given_up: before,
            } = phase
            {
                *phase = SstPhase::Retry {
                    request: request.clone(),
                    at_ms: now_ms + RETRY_MS,
                    given_up: given_up || *before,
                };
            }
        }
    }

    /// Returns true if a donor sends, or has sent, or may have been chosen to.
    pub(crate) fn is_sent(&self) -> bool {
        self.sst().is_some_and(|phase| {
            phase.may_have_donor()
                || matches!(phase, SstPhase::Receiving { .. } | SstPhase::Early { .. })
        })
    }

    /// Returns true if a request for an SST is under way to the order, or may be, known to the order here or not.
    /// Another branch may order it, too.
    pub(crate) fn is_request_open(&self) -> bool {
        let phase = self.interrupted.as_ref().or(self.sst());
        phase.is_some_and(SstPhase::is_open) && !self.awaits_script()
    }

    /// Returns true if the SST is here before the request is ordered.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self.sst(), Some(SstPhase::Early { .. }))
    }

    /// Returns true once in a transfer: for the warning that no node has a database to give.
    pub(crate) fn tells_nobody_has(&mut self) -> bool {
        match &mut self.stage {
            Stage::Transfer(transfer) => !std::mem::replace(&mut transfer.told_nobody_has, true),
            _ => false,
        }
    }

    /// Notes that a donor was chosen. Returns the position of its SST, if that is here already.
    pub(crate) fn donor_chosen(&mut self, donor: Incarnation) -> Option<Gtid> {
        let phase = self.sst_mut()?;
        let early = match phase {
            // Retry: an earlier request, which was given up as lost, was ordered after all.
            SstPhase::Submitted { .. } | SstPhase::Retry { .. } => None,
            SstPhase::Early { gtid } => Some(*gtid),
            _ => return None,
        };
        *phase = SstPhase::Receiving {
            donor: Some(donor),
            is_sent: false,
        };
        early
    }

    /// Returns the donor that sends.
    pub(crate) fn receives_from(&self) -> Option<Incarnation> {
        match self.sst() {
            Some(SstPhase::Receiving { donor, is_sent }) => donor.filter(|_| !is_sent),
            _ => None,
        }
    }

    /// Returns the donor that sends, or has sent.
    pub(crate) fn donor(&self) -> Option<Incarnation> {
        match self.sst() {
            Some(SstPhase::Receiving { donor, .. }) => *donor,
            _ => None,
        }
    }

    /// Notes that a donor has told this joiner that it has finished. Returns false if it is not the one that sends.
    pub(crate) fn donor_is_done(&mut self, from: Incarnation) -> bool {
        match self.sst_mut() {
            Some(SstPhase::Receiving { donor, is_sent }) if *donor == Some(from) => {
                !std::mem::replace(is_sent, true)
            }
            _ => false,
        }
    }

    /// Handles sst_received().
    pub(crate) fn server_received(&mut self, gtid: Gtid, rcode: i32) -> Received {
        if let Some(phase) = self.sst_mut().filter(|phase| phase.is_prepared()) {
            return match phase {
                SstPhase::Receiving { .. } => Received::Now,
                _ if rcode != 0 => Received::Now,
                SstPhase::Submitted {
                    given_up: false, ..
                } => {
                    *phase = SstPhase::Early { gtid };
                    Received::Kept
                }
                // This branch may have done without the request.
                _ => Received::Foreign,
            };
        }
        let is_admission = self.place() == Place::Admission;
        match &mut self.interrupted {
            Some(phase) if is_admission && phase.is_prepared() => {
                *phase = match phase {
                    SstPhase::Submitted { .. } | SstPhase::Retry { .. } if rcode == 0 => {
                        SstPhase::Early { gtid }
                    }
                    _ => SstPhase::Brought { gtid, rcode },
                };
                Received::Kept
            }
            _ => Received::Unasked,
        }
    }

    /// Returns true if a log that began anew has interrupted an SST.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Makes an SST of an interrupted script before an IST: the server has prepared itself for either. Returns false if
    /// a donor may have been chosen: the position that it passes on could not be told from the end of an SST.
    pub(crate) fn script_becomes_snapshot(&mut self) -> bool {
        let has_no_donor = matches!(
            self.interrupted,
            Some(SstPhase::Requesting | SstPhase::Prepared { .. } | SstPhase::GivenUp)
        );
        if has_no_donor {
            self.script = Script::Over;
        }
        has_no_donor
    }

    /// Continues an interrupted SST, when the node is in step with the group again. `is_forked`: the history has forked
    /// since.
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
                | SstPhase::Early { .. }
                | SstPhase::Receiving { .. }
                | SstPhase::Brought { .. }
        );
        let chosen = control.members.donor_of(me);
        let (phase, resumed) = match phase {
            SstPhase::Retry { .. } | SstPhase::Submitted { .. } if chosen.is_some() => {
                (SstPhase::receiving(chosen), Resumed::GoesOn)
            }
            SstPhase::Retry { request, .. } | SstPhase::Submitted { request, .. } => {
                let retry = SstPhase::Retry {
                    request,
                    at_ms: now_ms,
                    given_up: under_way,
                };
                (retry, Resumed::GoesOn)
            }
            SstPhase::Early { gtid } => {
                let resumed = match chosen {
                    Some(_) => Resumed::Brought { gtid, rcode: 0 },
                    None => Resumed::Forked,
                };
                (SstPhase::receiving(chosen), resumed)
            }
            SstPhase::Receiving { donor, is_sent } => {
                received_meanwhile(control, me, donor.filter(|_| !is_sent))
            }
            SstPhase::Prepared { request } => (SstPhase::Requesting, Resumed::Prepared(request)),
            SstPhase::Brought { gtid, rcode } => {
                let resumed = Resumed::Brought { gtid, rcode };
                (SstPhase::receiving(None), resumed)
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

/// Returns the next step, if a donor was sending when the log began anew.
fn received_meanwhile(
    control: &Control,
    me: Incarnation,
    donor: Option<Incarnation>,
) -> (SstPhase, Resumed) {
    let is_member = |donor: Incarnation| control.members.get(donor).is_some();
    let sends = |donor: &Incarnation| control.members.donor_of(me) == Some(*donor);
    let resumed = match donor.filter(|donor| !is_member(*donor)) {
        Some(lost) => Resumed::DonorLost(lost),
        None if control.members.failed().contains(&me) => Resumed::Failed,
        None => Resumed::GoesOn,
    };
    (SstPhase::receiving(donor.filter(sends)), resumed)
}
