//! The joiner's side of an SST: the server makes a request, the order chooses a donor, and the donor's server sends.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Incarnation, SubmissionId};
use trireme_mutants::{Mutant, planted};

use super::{Joiner, never_received};
use crate::action::{Action, Answer, Code, GroupAction, HostAction, Level};
use crate::effect::Lost;
use crate::event::Ticket;
use crate::gtid::Gtid;
use crate::membership::CANCELED;
use crate::message::Message;
use crate::state_transfer::{Done, Ist, Prepared, Received, Resumed};
use crate::submissions::Sent;
use crate::work::{Task, WorkId};

impl Joiner<'_> {
    pub(crate) fn request_snapshot(&mut self) {
        self.out
            .log(Level::Info, "Gap in state sequence. Need state transfer.");
        self.executor.push_last(Task::SstRequest);
    }

    /// Handles that the server is ready to receive.
    pub(crate) fn sst_requested(&mut self, work: WorkId, request: Option<Bytes>) {
        if self.executor.done(work).is_none() {
            return; // the answer belongs to an earlier connection
        }
        match self.transfer.server_prepared(request) {
            Prepared::Now(request) => self.prepared(request),
            Prepared::Kept | Prepared::Unasked => {}
        }
    }

    fn prepared(&mut self, request: Option<Bytes>) {
        let is_script = self.transfer.awaits_script();
        let Some(upto) = self.transfer.upto() else {
            return;
        };
        // With wsrep_sst_method=skip the operator declares that the database is right as it is.
        let is_trivial = |request: &Bytes| request.starts_with(b"trivial\0");
        match request {
            Some(request) if is_script && (request.is_empty() || is_trivial(&request)) => {
                self.begin_ist_after_script()
            }
            None => self.give_up_snapshot(
                "The server could not prepare for a state transfer: its own messages say why.",
            ),
            Some(request) if request.is_empty() => self.needs_restart(),
            Some(request) if is_trivial(&request) => {
                self.note_replaced();
                self.out.mark_all_safe();
                self.snapshot_is_here(upto - 1);
            }
            Some(request) => {
                self.transfer.ask_donor(request, self.context.now_ms());
                // The saved state loses its history before the note of DDL goes: alone, it would be believed.
                if !is_script {
                    self.out.mark_unsafe();
                    self.forget_action();
                }
            }
        }
    }

    pub(crate) fn retry_state_request(&mut self) {
        if !self.lifecycle.takes_part() || self.transfer.awaits_donors() {
            return;
        }
        let Some(request) = self.transfer.due_request(self.context.now_ms()) else {
            return;
        };
        let message = Message::StateRequest {
            request,
            local: self.database.local(),
            preference: self.context.options().sst_donor.clone(),
            bypass: self.transfer.awaits_script(),
        };
        self.out
            .push(self.submissions.submit(Sent::StateRequest, &message));
    }

    /// Makes this node wait for connections to all members that could give it a state, if it is about to take one.
    pub(crate) fn review_donors(&mut self) {
        // A donor whose script tells a position only is replaced when it leaves.
        let is_about_to_ask = self.transfer.has_request() && !self.transfer.awaits_script();
        let takes_state = is_about_to_ask || self.is_about_to_give_up_database();
        let waits = takes_state && !planted(Mutant::DonorNotAwaited);
        let missing = match waits {
            true => self.context.unconnected_database(),
            false => None, // nearly always
        };
        let (now_ms, options) = (self.context.now_ms(), self.context.options());
        let suspect_ms = options.suspect_timeout_ms;
        let begun = (self.transfer).review_donors(missing.is_some(), now_ms, suspect_ms);
        if let Some((longest_ms, missing)) = begun.zip(missing) {
            let text = format!(
                "this node needs a state, and has no connection to member {}, which could be chosen to send it: the \
                 request waits until that member is connected or out of the view, at most {} s",
                self.context.name_of(missing),
                longest_ms.div_ceil(1_000)
            );
            self.out.log(Level::Info, text);
        }
    }

    /// Warns once, if no member has a database: the donor that the node keeps requesting will not come by itself.
    fn tell_nobody_has_database(&mut self) {
        let nobody_has =
            (self.context.control()).is_some_and(|control| control.members.nobody_has_database());
        if !nobody_has || !self.transfer.tells_nobody_has() {
            return;
        }
        let text = format!(
            "no node of the cluster has a database that is whole (this one's was at {}): start one that has. If there \
             is none, an operator has to decide: stop all nodes, arbitrators too; find the node whose database is \
             furthest (mariadbd --wsrep-recover); write its position and safe_to_bootstrap: 1 into its grastate.dat, \
             and start it with --wsrep-new-cluster. Then start the others, with grastate.dat and trireme-*.log moved \
             away. What was committed above that position is lost",
            self.database.local()
        );
        self.out.log(Level::Warn, text);
    }

    /// Handles that the order has chosen this donor for the request of this node; None: there is none at present.
    pub(crate) fn donor_chosen(&mut self, id: SubmissionId, donor: Option<Incarnation>) {
        self.submissions.take(id.number);
        // None: an earlier request may have been ordered after all.
        match donor.or(self.context.my_donor()) {
            None if self.transfer.awaits_script() && !self.has_donor() => self.give_up_snapshot(
                "No member is left that could run a donor's script before the IST. Start this node again.",
            ),
            None if self.transfer.is_early() => self.forked_in_transfer(),
            None => {
                self.transfer.request_failed(false, self.context.now_ms());
                let text = "Requesting state transfer failed: -11(Resource temporarily unavailable). \
                            Will keep retrying every 1 second(s)";
                self.out.log(Level::Info, text);
                if !self.transfer.awaits_script() {
                    self.tell_nobody_has_database();
                }
            }
            Some(donor) => {
                if let Some(gtid) = self.transfer.donor_chosen(donor) {
                    self.brought(gtid, 0);
                }
            }
        }
    }

    /// Handles the report of a donor of this node that it has finished.
    pub(crate) fn donor_done(&mut self, donor: Incarnation, rcode: i32) {
        // Entries up to here may complete the state: its donor has undone what it abandoned.
        if let Some(seqno) = self.context.seqno() {
            self.transfer.state_is_whole(seqno);
        }
        match self.transfer.donor_is_done(donor) {
            Done::Sent | Done::Here(_) if rcode < 0 => {
                let name = self.context.name_of(donor);
                self.give_up_snapshot(&format!("State transfer from {name} failed: {rcode}."));
            }
            Done::Here(gtid) => self.brought(gtid, 0),
            Done::Sent | Done::Unasked => {}
        }
    }

    /// Handles donors that left during their donations.
    pub(crate) fn donors_lost(&mut self, lost: &[Lost]) {
        let me = self.context.me();
        let Some(donor) = self.transfer.receives_from() else {
            return;
        };
        if lost.contains(&Lost { donor, joiner: me }) && !planted(Mutant::DonorLossIgnored) {
            self.donor_lost(donor);
        }
    }

    fn donor_lost(&mut self, donor: Incarnation) {
        if self.transfer.ask_another_donor(self.context.now_ms()) {
            let text = format!(
                "Donor {donor} is no longer in the group: another one may pass the position on."
            );
            return self.out.log(Level::Info, text);
        }
        self.give_up_snapshot(&format!(
            "Donor {donor} is no longer in the group. State transfer cannot be completed."
        ));
    }

    /// Gives up the SST that the server awaits: it will never come.
    fn give_up_snapshot(&mut self, why: &str) {
        self.transfer.give_up();
        self.out.fatal(never_received(why));
    }

    /// Handles that the server ends itself within a transfer, say for an unknown variable in its configuration. It must
    /// not be killed in the middle of that.
    fn canceled(&mut self) {
        // Galera's words, which galera_mdev_31517 looks for.
        let text = "State transfer interrupted, shutting down gracefully";
        self.abandon_transfer(Level::Warn, text);
    }

    /// Makes the node leave within a transfer that will not end. The process goes on.
    pub(super) fn abandon_transfer(&mut self, level: Level, text: &str) {
        self.transfer.give_up();
        self.out.log(level, text);
        if self.lifecycle.leave() {
            self.out.push(Action::Group(GroupAction::Leave));
        }
    }

    /// Carries out sst_received().
    pub(crate) fn sst_received(&mut self, ticket: Ticket, gtid: Gtid, rcode: i32) {
        let received = self.transfer.server_received(gtid, rcode);
        let code = match received {
            Received::Unasked => Code::ConnFail,
            Received::Kept | Received::Now | Received::Foreign => Code::Ok,
        };
        self.out.answer(ticket, Answer::unordered(code));
        match received {
            Received::Now => self.brought(gtid, rcode),
            Received::Foreign => self.give_up_snapshot(
                "A state came before the order here chose a donor: it may be of another branch of the history.",
            ),
            Received::Kept | Received::Unasked => {}
        }
    }

    fn brought(&mut self, gtid: Gtid, rcode: i32) {
        let history = self.context.history().unwrap_or_default();
        if rcode == CANCELED {
            return self.canceled();
        }
        if rcode != 0 || gtid.seqno < 0 {
            return self
                .out
                .fatal(never_received(&format!("State transfer failed: {rcode}.")));
        }
        if gtid.uuid != history {
            return self.out.fatal(never_received(&format!(
                "State transfer brought {gtid}, the group's history is {history}."
            )));
        }
        if self.transfer.awaits_script() {
            return self.script_has_told(gtid);
        }
        // The notes come first: grastate.dat may vouch for the database only when they are about this one. A process that
        // dies in between leaves a file without a history, and the next one takes another SST.
        self.note_replaced();
        self.out.push(Action::Host(HostAction::MarkUncorrupt));
        self.out.mark_all_safe();
        self.out.push(Action::Host(HostAction::SaveState {
            gtid: Gtid {
                uuid: history,
                seqno: -1,
            },
            safe_to_bootstrap: self.lifecycle.is_safe_to_bootstrap(),
        }));
        self.snapshot_is_here(gtid.seqno);
    }

    /// Gives up: a donor was, or may have been, chosen on another branch. The SST may hold entries that are dropped
    /// here, or never come (rule 11), or DDL that the cluster's database holds twice (rule 13).
    pub(crate) fn forked_in_transfer(&mut self) {
        self.give_up_snapshot("An override, or a choice of one database, has forked the history during a state transfer.");
    }

    /// Handles that an override has made this node primary while its server awaits an SST.
    pub(crate) fn overridden_in_transfer(&mut self) {
        // A known donor reports on this branch, or is lost. An automatic override comes without the loss of the majority:
        // the other branch may have ordered a request that is under way.
        if self.transfer.is_request_open() {
            self.forked_in_transfer();
        }
    }

    /// Handles the loss of the majority while the server awaits an SST. A forced view may go on without this node and
    /// order its request, so that a donor of that branch sends, while the order here chooses another one (simulator,
    /// seed 72049 of `mistakes`).
    pub(crate) fn majority_lost_in_transfer(&mut self) {
        let is_open = self.transfer.is_request_open() || self.transfer.is_early();
        if is_open && !self.lifecycle.is_leaving() {
            self.give_up_snapshot(
                "The majority was lost before the request for the state transfer was ordered. Start this node again.",
            );
        }
    }

    /// Continues an SST, or the script before an IST, when the node is in step with the group again, after its log
    /// began anew meanwhile. It continues, because the server can be asked only once.
    pub(super) fn resume_snapshot(&mut self) {
        let is_usable = self.is_usable_after_script();
        let is_replaced = !is_usable && self.transfer.script_becomes_snapshot();
        let Some(control) = self.context.control() else {
            return;
        };
        let is_forked = self.database.has_forked_since_reset(control)
            && !planted(Mutant::OldBranchSnapshotTaken);
        let (me, now_ms) = (self.context.me(), self.context.now_ms());
        let resumed = self.transfer.resume(control, me, is_forked, now_ms);
        self.enter_primary();
        if is_replaced {
            self.executor.forget_history();
        } else if !is_usable {
            return self.forked_in_transfer();
        } else if self.transfer.awaits_script() {
            self.note_forks();
        }
        match resumed {
            Resumed::Forked => self.forked_in_transfer(),
            Resumed::DonorLost(donor) => self.donor_lost(donor),
            Resumed::Failed => self.give_up_snapshot(
                "State transfer failed while this node was cut off from the group.",
            ),
            Resumed::Prepared(request) => self.prepared(request),
            Resumed::Brought { gtid, rcode } => self.brought(gtid, rcode),
            Resumed::GoesOn => {}
        }
    }

    /// Returns false if a script is to leave the database in place, and the database cannot follow the control state
    /// any more: the history has forked below its end, or the order has chosen another database.
    fn is_usable_after_script(&mut self) -> bool {
        let Some(control) = (self.context.control()).filter(|_| self.transfer.awaits_script())
        else {
            return true;
        };
        let fitness = self.database.fitness(control);
        let was_not_chosen = fitness.is_usable && self.database.doubt_if_not_chosen(control);
        self.tell_unfit(&fitness, was_not_chosen);
        fitness.is_usable && !was_not_chosen
    }

    /// Notes that an SST has replaced the database: it holds no action of before, and follows the control state.
    fn note_replaced(&mut self) {
        self.forget_action();
        self.note_forks();
    }

    /// Handles that the SST has brought the database to `seqno`: deliveries up to there are dropped, and missing
    /// entries are pulled.
    fn snapshot_is_here(&mut self, seqno: Seqno) {
        let Some(upto) = self.transfer.upto() else {
            return;
        };
        self.voting.snapshot_taken(seqno);
        let skipped = Seqno::from(planted(Mutant::SnapshotSkipsOne) && seqno < upto);
        let history = self.context.history().unwrap_or_default();
        self.executor.begin_at(history, seqno + skipped);
        self.lifecycle.server_runs();
        let (sources, now_ms) = (
            self.ist_sources(self.transfer.donor()),
            self.context.now_ms(),
        );
        let ist = Ist::behind_snapshot((seqno + 1 + skipped, upto), sources, now_ms);
        self.transfer.go_on_with(ist);
        self.transfer.follow_from(seqno, now_ms);
    }

    /// Forgets the action that the database may hold: an SST replaces it.
    fn forget_action(&mut self) {
        self.database.forget_action();
        self.out.forget_action();
    }
}
