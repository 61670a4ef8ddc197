//! The state machine of an SST, or of the script before an IST: from sst_request to sst_received. Without a donor the
//! request is repeated each second. `joiner/sst.rs` carries its steps out.

use bytes::Bytes;
use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use super::{Phase, Place, Script, Stage, StateTransfer};
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
    /// The server has the SST, and the order here has not chosen its donor yet (None), or knows of no end of the donation:
    /// the donor may be on another branch.
    Early {
        gtid: Gtid,
        donor: Option<Incarnation>,
    },
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

    /// Returns true if the SST is here before the request is ordered.
    fn is_early(&self) -> bool {
        matches!(self, SstPhase::Early { donor: None, .. })
    }

    /// Returns true if a request is under way to the order, or may be.
    fn is_open(&self) -> bool {
        self.may_have_donor() || self.is_early() || matches!(self, SstPhase::Submitted { .. })
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
    /// It is handled when the order here knows of the donation's end, or when the control state is known again.
    Kept,
    Now,
    /// The SST may be of another branch (rule 11): this one has chosen no donor.
    Foreign,
    /// The server waits for no SST.
    Unasked,
}

/// Result of [`StateTransfer::donor_is_done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It is the donor's end, and the server has not reported yet.
    Sent,
    /// It is the donor's end, and the server has the SST.
    Here(Gtid),
    /// Another node's end, or a second report.
    Unasked,
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

    /// Returns true if a request waits to be submitted.
    pub(crate) fn has_request(&self) -> bool {
        matches!(self.sst(), Some(SstPhase::Retry { .. }))
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
        self.sst().is_some_and(SstPhase::is_early)
    }

    /// Returns true once in a transfer: for the warning that no node has a database to give.
    pub(crate) fn tells_nobody_has(&mut self) -> bool {
        match &mut self.stage {
            Stage::Transfer(transfer) => !std::mem::replace(&mut transfer.told_nobody_has, true),
            _ => false,
        }
    }

    /// Notes that a donor was chosen. Returns the position that its script has passed on, if that is here already.
    pub(crate) fn donor_chosen(&mut self, donor: Incarnation) -> Option<Gtid> {
        let counts_at_once = self.counts_at_once();
        let phase = self.sst_mut()?;
        let early = match phase {
            // Retry: an earlier request, which was given up as lost, was ordered after all.
            SstPhase::Submitted { .. } | SstPhase::Retry { .. } => None,
            SstPhase::Early { gtid, donor: None } => Some(*gtid),
            _ => return None,
        };
        *phase = match early.filter(|_| !counts_at_once) {
            Some(gtid) => SstPhase::Early {
                gtid,
                donor: Some(donor),
            },
            None => SstPhase::receiving(Some(donor)),
        };
        early.filter(|_| counts_at_once)
    }

    /// Returns true if the server's report counts before the donor's. A script before an IST moves no rows; an SST may
    /// come from a donor that is cut off here, and has gone on elsewhere by a forced view (simulator, seed 3600337149 of
    /// `mistakes`): a report that is ordered here shows that the donor is of this branch.
    fn counts_at_once(&self) -> bool {
        self.awaits_script() || planted(Mutant::DonorsReportNotAwaited)
    }

    /// Returns the donor that sends, or has not told of its end.
    pub(crate) fn receives_from(&self) -> Option<Incarnation> {
        match self.sst() {
            Some(SstPhase::Receiving { donor, is_sent }) => donor.filter(|_| !is_sent),
            Some(SstPhase::Early { donor, .. }) => *donor,
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

    /// Notes that a donor has told this joiner that it has finished.
    pub(crate) fn donor_is_done(&mut self, from: Incarnation) -> Done {
        if self.receives_from() != Some(from) {
            return Done::Unasked;
        }
        let done = match self.sst() {
            Some(SstPhase::Early { gtid, .. }) => Done::Here(*gtid),
            _ => Done::Sent,
        };
        self.set_phase(SstPhase::Receiving {
            donor: Some(from),
            is_sent: true,
        });
        done
    }

    /// Handles sst_received().
    pub(crate) fn server_received(&mut self, gtid: Gtid, rcode: i32) -> Received {
        let awaits_report = rcode == 0 && !self.counts_at_once();
        if let Some(phase) = self.sst_mut().filter(|phase| phase.is_prepared()) {
            return match phase {
                _ if rcode != 0 => Received::Now,
                &mut SstPhase::Receiving {
                    donor,
                    is_sent: false,
                } if awaits_report => {
                    *phase = SstPhase::Early { gtid, donor };
                    Received::Kept
                }
                SstPhase::Receiving { .. } => Received::Now,
                SstPhase::Submitted {
                    given_up: false, ..
                } => {
                    *phase = SstPhase::Early { gtid, donor: None };
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
                        SstPhase::Early { gtid, donor: None }
                    }
                    &mut SstPhase::Receiving {
                        donor,
                        is_sent: false,
                    } if awaits_report => SstPhase::Early { gtid, donor },
                    _ => SstPhase::Brought { gtid, rcode },
                };
                Received::Kept
            }
            _ => Received::Unasked,
        }
    }
}

pub(super) mod resuming;
