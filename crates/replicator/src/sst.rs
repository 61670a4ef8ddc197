//! Snapshot state transfer, the joiner's side: the server asks, a donor is chosen in the order, its
//! server sends.

use std::collections::VecDeque;

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Incarnation, SubmissionId};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, Level};
use crate::control::Control;
use crate::effect::Lost;
use crate::event::Ticket;
use crate::gtid::Gtid;
use crate::ist::Ist;
use crate::joiner::{Transfer, TransferPhase, never_received};
use crate::message::Message;
use crate::progress::Course;
use crate::replicator::{Replicator, Stage};
use crate::submissions::Sent;
use crate::work::{Task, WorkId};

/// A joiner without a donor asks again after so long.
const RETRY_MS: u64 = 1000;

impl Replicator {
    pub(crate) fn request_snapshot(&mut self) {
        self.log(Level::Info, "Gap in state sequence. Need state transfer.");
        self.executor.push_last(Task::SstRequest);
    }

    /// The server is ready to receive.
    pub(crate) fn sst_requested(&mut self, work: WorkId, request: Option<Bytes>) {
        if self.executor.done(work).is_none() {
            return; // the answer of a connection that is over
        }
        match &mut self.interrupted {
            Some(phase @ TransferPhase::Requesting) => *phase = TransferPhase::Prepared { request },
            _ => self.prepared(request),
        }
    }

    fn prepared(&mut self, request: Option<Bytes>) {
        let is_script = self.awaits_script();
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        if !matches!(transfer.phase, TransferPhase::Requesting) {
            return;
        }
        let upto = transfer.upto;
        // Whoever set wsrep_sst_method=skip says that the database is right as it is.
        let is_trivial = |request: &Bytes| request.starts_with(b"trivial\0");
        match request {
            Some(request) if is_script && (request.is_empty() || is_trivial(&request)) => {
                self.script_is_not_wanted()
            }
            None => self.give_up_snapshot(
                "The server could not prepare for a state transfer: its own messages say why.",
            ),
            Some(request) if request.is_empty() => self.needs_restart(),
            Some(request) if is_trivial(&request) => self.snapshot_is_here(upto - 1, upto),
            Some(request) => {
                transfer.phase = TransferPhase::Retry {
                    request,
                    at_ms: self.context.now_ms(),
                    given_up: false,
                };
                if !is_script {
                    self.forget_action();
                    self.out.push(Action::MarkUnsafe);
                }
            }
        }
    }

    pub(crate) fn retry_state_request(&mut self) {
        let (local, preference) = (
            self.database.local(),
            self.context.options().sst_donor.clone(),
        );
        let (primary, now_ms) = (self.lifecycle.takes_part(), self.context.now_ms());
        let bypass = self.awaits_script();
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        let TransferPhase::Retry { request, at_ms, .. } = &transfer.phase else {
            return;
        };
        if !primary || now_ms < *at_ms {
            return;
        }
        let request = request.clone();
        transfer.phase = TransferPhase::Submitted {
            request: request.clone(),
        };
        self.submit(
            Sent::StateRequest,
            &Message::StateRequest {
                request,
                local,
                preference,
                bypass,
            },
        );
    }

    /// The request was not ordered, as far as this branch goes (`given_up`), or no donor was found; it is made again.
    pub(crate) fn state_request_failed(&mut self, given_up: bool) {
        let at_ms = self.context.now_ms() + RETRY_MS;
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        if let TransferPhase::Submitted { request } = &transfer.phase {
            transfer.phase = TransferPhase::Retry {
                request: request.clone(),
                at_ms,
                given_up,
            };
        }
    }

    /// The donor that is asked for again and again will not come of itself: says so, once.
    fn tell_nobody_has_database(&mut self) {
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        let nobody_has = (self.context.control()).is_some_and(Control::nobody_has_database);
        if !nobody_has || std::mem::replace(&mut transfer.told_nobody_has, true) {
            return;
        }
        let text = format!(
            "no node of the cluster has a database that is whole (this one's was at {}): start one that has. If there \
             is none, an operator has to decide: stop all nodes, arbitrators too; find the node whose database is \
             furthest (mariadbd --wsrep-recover); write its position and safe_to_bootstrap: 1 into its grastate.dat, \
             and start it with --wsrep-new-cluster, then the others. What was committed above that position is lost",
            self.database.local()
        );
        self.log(Level::Warn, text);
    }

    /// Somebody's request was ordered: a donor was chosen, the same on all nodes, or none.
    pub(crate) fn state_requested(
        &mut self,
        id: SubmissionId,
        donor: Option<Incarnation>,
        (request, bypass): (Bytes, Option<Gtid>),
        preference: &str,
    ) {
        let joiner = self.context.name_of(id.incarnation);
        let wanted = if preference.is_empty() {
            "*any*"
        } else {
            preference
        };
        let text = format!("Member {joiner} requested state transfer from '{wanted}'");
        match donor {
            Some(donor) => {
                let donor = self.context.name_of(donor);
                self.log(Level::Info, format!("{text}. Selected {donor}(SYNCED) as donor."));
            }
            None => self.log(
                Level::Warn,
                format!("{text}, but it is impossible to select State Transfer donor: Resource temporarily unavailable"),
            ),
        }
        if donor == Some(self.context.me()) {
            self.begin_donation(request, bypass);
        }
        if id.incarnation != self.context.me() {
            return;
        }
        self.submissions.take(id.number);
        match donor {
            None if self.awaits_script() && !self.has_donor() => self.give_up_snapshot(
                "No member is left that could run a donor's script before the IST. Start this node again.",
            ),
            None => {
                self.state_request_failed(false);
                let text = "Requesting state transfer failed: -11(Resource temporarily unavailable). \
                            Will keep retrying every 1 second(s)";
                self.log(Level::Info, text);
                if !self.awaits_script() {
                    self.tell_nobody_has_database();
                }
            }
            Some(_) => {
                if let Stage::Transfer(transfer) = &mut self.stage {
                    // Retry: an earlier request, given up as lost, was ordered after all.
                    if let TransferPhase::Submitted { .. } | TransferPhase::Retry { .. } =
                        transfer.phase
                    {
                        transfer.phase = TransferPhase::Receiving { donor };
                    }
                }
            }
        }
    }

    /// A donor says that it is done.
    pub(crate) fn donor_done(&mut self, id: SubmissionId, joiner: Option<Incarnation>, rcode: i32) {
        if id.incarnation == self.context.me() {
            self.submissions.take(id.number);
            self.announcements.forget_synced();
        }
        if joiner == Some(self.context.me()) {
            self.state_is_whole();
        }
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        let TransferPhase::Receiving { donor } = &mut transfer.phase else {
            return;
        };
        if joiner != Some(self.context.me()) || *donor != Some(id.incarnation) {
            return;
        }
        *donor = None;
        if rcode < 0 {
            let name = self.context.name_of(id.incarnation);
            self.give_up_snapshot(&format!("State transfer from {name} failed: {rcode}."));
        }
    }

    /// Donors left in the middle.
    pub(crate) fn donors_lost(&mut self, lost: &[Lost]) {
        let me = self.context.me();
        if lost.iter().any(|lost| lost.joiner == me) {
            self.state_is_whole();
        }
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        let TransferPhase::Receiving { donor: Some(donor) } = transfer.phase else {
            return;
        };
        if lost.contains(&Lost { donor, joiner: me }) && !planted(Mutant::DonorLossIgnored) {
            self.donor_lost(donor);
        }
    }

    fn donor_lost(&mut self, donor: Incarnation) {
        self.give_up_snapshot(&format!(
            "Donor {donor} is no longer in the group. State transfer cannot be completed."
        ));
    }

    /// The server awaits what will never come.
    fn give_up_snapshot(&mut self, why: &str) {
        if let Stage::Transfer(transfer) = &mut self.stage {
            transfer.phase = TransferPhase::GivenUp;
        }
        self.fatal(never_received(why));
    }

    /// sst_received()
    pub(crate) fn sst_received(&mut self, ticket: Ticket, gtid: Gtid, rcode: i32) {
        let is_prepared = |phase: &TransferPhase| {
            matches!(
                phase,
                TransferPhase::Retry { .. }
                    | TransferPhase::Submitted { .. }
                    | TransferPhase::Receiving { .. }
            )
        };
        let expected = match (&self.stage, &self.interrupted) {
            (Stage::Transfer(transfer), _) => is_prepared(&transfer.phase),
            (Stage::Admission(_), Some(phase)) => is_prepared(phase),
            _ => false,
        };
        if !expected {
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        self.answer(ticket, Answer::unordered(Code::Ok));
        match &mut self.interrupted {
            Some(phase) => *phase = TransferPhase::Brought { gtid, rcode },
            None => self.brought(gtid, rcode),
        }
    }

    fn brought(&mut self, gtid: Gtid, rcode: i32) {
        let history = self.context.history().unwrap_or_default();
        if rcode != 0 || gtid.seqno < 0 {
            return self.fatal(never_received(&format!("State transfer failed: {rcode}.")));
        }
        if gtid.uuid != history {
            return self.fatal(never_received(&format!(
                "State transfer brought {gtid}, the group's history is {history}."
            )));
        }
        let Stage::Transfer(transfer) = &self.stage else {
            return;
        };
        if self.awaits_script() {
            return self.script_has_told(gtid);
        }
        let upto = transfer.upto;
        self.out.push(Action::MarkUncorrupt);
        self.out.push(Action::MarkSafe);
        self.out.push(Action::SaveState {
            gtid: Gtid {
                uuid: history,
                seqno: -1,
            },
            safe_to_bootstrap: self.lifecycle.is_safe_to_bootstrap(),
        });
        self.snapshot_is_here(gtid.seqno, upto);
    }

    /// A donor was, or may have been, chosen on another branch: the snapshot may hold what is dropped here, or never
    /// come (rule 11).
    fn forked_in_transfer(&mut self) {
        self.give_up_snapshot("An override has forked the history during a state transfer.");
    }

    /// An override has made this node primary while its server awaits a snapshot.
    pub(crate) fn overridden_in_transfer(&mut self) {
        let Stage::Transfer(transfer) = &self.stage else {
            return;
        };
        // A donor that is known sends what this branch has, or is lost.
        if matches!(transfer.phase, TransferPhase::Retry { given_up: true, .. }) {
            self.forked_in_transfer();
        }
    }

    /// In step with the group again, after its log began anew while the server was being given a
    /// snapshot: it goes on from there, since the server can be asked only once.
    pub(crate) fn resume_snapshot(&mut self, phase: TransferPhase) {
        let Some(control) = self.context.control() else {
            return;
        };
        let upto = control.seqno();
        let me = self.context.me();
        let under_way = matches!(
            phase,
            TransferPhase::Retry { given_up: true, .. }
                | TransferPhase::Submitted { .. }
                | TransferPhase::Receiving { .. }
                | TransferPhase::Brought { .. }
        );
        let forked = self.database.has_forked_since_reset(control);
        let forked = under_way && forked && !planted(Mutant::OldBranchSnapshotTaken);
        let is_member = |donor: Incarnation| control.members.contains_key(&donor);
        let receives = matches!(phase, TransferPhase::Receiving { .. });
        let failed = receives && control.failed.contains(&me);
        let (mut lost, mut prepared, mut brought) = (None, None, None);
        let phase = match phase {
            TransferPhase::Retry { request, .. } | TransferPhase::Submitted { request } => {
                TransferPhase::Retry {
                    request,
                    at_ms: self.context.now_ms(),
                    given_up: under_way,
                }
            }
            TransferPhase::Receiving { donor } => {
                lost = donor.filter(|donor| !is_member(*donor));
                let sends = |donor: &Incarnation| {
                    (control.members.get(donor)).is_some_and(|m| m.donates_to == Some(me))
                };
                TransferPhase::Receiving {
                    donor: donor.filter(sends),
                }
            }
            TransferPhase::Prepared { request } => {
                prepared = Some(request);
                TransferPhase::Requesting
            }
            TransferPhase::Brought { gtid, rcode } => {
                brought = Some((gtid, rcode));
                TransferPhase::Receiving { donor: None }
            }
            same @ (TransferPhase::Requesting | TransferPhase::GivenUp) => same,
            TransferPhase::Ist(_) => unreachable!("not within a snapshot"),
        };
        self.lifecycle.enter_primary();
        self.out.push(Action::Admitted);
        self.stage = Stage::Transfer(Transfer {
            upto,
            phase,
            later: VecDeque::new(),
            spilled: false,
            told_nobody_has: false,
        });
        if forked {
            return self.forked_in_transfer();
        }
        if let Some(donor) = lost {
            self.donor_lost(donor);
        } else if failed {
            self.give_up_snapshot(
                "State transfer failed while this node was cut off from the group.",
            );
        }
        if let Some(request) = prepared {
            self.prepared(request);
        }
        if let Some((gtid, rcode)) = brought {
            self.brought(gtid, rcode);
        }
    }

    /// The database is at `seqno`: what was delivered at or below it is left out, what it lacks is
    /// pulled.
    fn snapshot_is_here(&mut self, seqno: Seqno, upto: Seqno) {
        let outputs = self.voting.snapshot_taken(seqno);
        self.carry_out_voting(outputs);
        self.forget_action();
        self.note_overrides();
        let skipped = Seqno::from(planted(Mutant::SnapshotSkipsOne) && seqno < upto);
        let history = self.context.history().unwrap_or_default();
        self.executor.begin_at(history, seqno + skipped);
        self.lifecycle.server_runs();
        let (sources, now_ms) = (self.ist_sources(None), self.context.now_ms());
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        transfer.upto = upto;
        let mut ist = Ist::new(seqno + 1 + skipped, sources, now_ms);
        ist.after_snapshot = true;
        transfer.phase = TransferPhase::Ist(ist);
        self.course = Some(Course::new(seqno, now_ms));
    }
}
