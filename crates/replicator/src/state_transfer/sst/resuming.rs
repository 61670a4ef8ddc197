//! An SST goes on after the group's log has begun anew: the control state tells its place in the order.

use bytes::Bytes;
use trireme_group::Incarnation;

use super::SstPhase;
use crate::control::Control;
use crate::gtid::Gtid;
use crate::state_transfer::{Phase, Script, StateTransfer};

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
        let counts_at_once = self.counts_at_once();
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
            SstPhase::Early { gtid, donor: None } => match chosen {
                Some(_) if counts_at_once => {
                    let resumed = Resumed::Brought { gtid, rcode: 0 };
                    (SstPhase::receiving(chosen), resumed)
                }
                donor @ Some(_) => (SstPhase::Early { gtid, donor }, Resumed::GoesOn),
                None => (SstPhase::receiving(None), Resumed::Forked),
            },
            SstPhase::Early { gtid, donor } => match received_meanwhile(control, me, donor) {
                (SstPhase::Receiving { donor, .. }, Resumed::GoesOn) => match donor {
                    Some(_) => (SstPhase::Early { gtid, donor }, Resumed::GoesOn),
                    None => (
                        SstPhase::receiving(None),
                        Resumed::Brought { gtid, rcode: 0 },
                    ),
                },
                failed => failed,
            },
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
