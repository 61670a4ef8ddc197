//! The joiner's side of an IST. The entries that an [`Ist`] finds go to the executor; they come from the local log,
//! from remembered views, or from members. Before the first entry the server may need a view, or a script.
//!
//! The script of a state transfer runs even if all missing entries come from logs: operators rely on its work beside the
//! copy, and a server learns its GTID domain (`wsrep_gtid_mode`) only from the script. The joiner's server starts its
//! script, a donor's script passes on the position of the joiner's database (bypass), and then the entries are handed
//! over.

use std::collections::VecDeque;

use trireme_certification::Seqno;
use trireme_group::{Configuration, Delivery, Incarnation, Member};
use trireme_mutants::{Mutant, planted};

use super::{Joiner, never_received};
use crate::action::Level;
use crate::gtid::Gtid;
use crate::history::{History, Recorded, RecordedPart};
use crate::message::Message;
use crate::options::ScriptBeforeIst;
use crate::payload::Payload;
use crate::state_transfer::{Answered, DeadEnd, Ist, Next, PartTaken};
use crate::streaming::{is_abandoned_fragment, is_same};
use crate::work::{Apply, Task};

/// The result of [`Joiner::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It took a step, and may take another one.
    Taken,
    /// It has to wait.
    Waits,
    /// All missing entries are queued: the transfer ends.
    Over,
}

impl Joiner<'_> {
    /// Returns the members that may have missing entries, in the order in which they are asked: `first`, then those of
    /// this node's segment. Members that are never donors, and arbitrators, come last.
    pub(super) fn ist_sources(&self, first: Option<Incarnation>) -> VecDeque<Incarnation> {
        let segment = self.context.my_member().segment;
        let mut members = self.context.configuration().members;
        members.retain(|m| m.incarnation != self.context.me());
        if planted(Mutant::ArbitratorServesNothing) {
            members.retain(|m| !m.arbitrator);
        }
        let is_first = |m: &Member| Some(m.incarnation) == first;
        members.sort_by_key(|m| {
            let is_last = m.arbitrator || m.never_donor;
            (!is_first(m), is_last, m.segment != segment)
        });
        members.into_iter().map(|m| m.incarnation).collect()
    }

    /// Handles a new view within an IST: its members are asked from now on.
    pub(crate) fn sources_follow_view(&mut self) {
        let Some(first) = self.transfer.ist().map(Ist::asks_first) else {
            return;
        };
        let sources = self.ist_sources(first);
        if let Some(ist) = self.transfer.ist_mut() {
            ist.follow_view(sources);
        }
    }

    /// Returns true if no more entries should be pulled for now. Entries delivered meanwhile may take all the room: one
    /// piece is pulled even then.
    fn has_enough_queued(&self) -> bool {
        let (applies, bytes) = (
            self.executor.waiting_applies(),
            self.log_reader.memory().taken_bytes(),
        );
        applies >= self.context.options().thresholds.pulled_entries
            || applies > 0 && bytes >= self.context.options().queue_bytes
    }

    /// Takes the next step of an IST.
    pub(crate) fn step(&mut self, history: &dyn History) -> Step {
        let place = self.transfer.place();
        let held_still = (self.callers).holds_server_still(place, self.lifecycle);
        let may_not = self.lifecycle.is_leaving() || held_still;
        if may_not || self.has_enough_queued() || !self.doubt_is_settled() {
            return Step::Waits;
        }
        let now_ms = self.context.now_ms();
        match self.transfer.ist_mut().map(|ist| ist.next(now_ms)) {
            None | Some(Next::Waits) => Step::Waits,
            Some(Next::Over) => Step::Over,
            Some(Next::Entry(next)) if self.finds(next, history) => Step::Taken,
            Some(Next::Entry(_)) => Step::Waits,
        }
    }

    /// Looks for the next entry, and queues it if it is here. Returns false if a member, or the server, is asked first.
    fn finds(&mut self, next: Seqno, history: &dyn History) -> bool {
        let owes_script = self.owes_script();
        let before_script = owes_script && !planted(Mutant::ScriptBeforeProbe);
        if (self.transfer.ist()).is_some_and(|ist| ist.is_to_probe(before_script)) {
            self.begin_probe(before_script, history);
        }
        if self.transfer.ist().and_then(Ist::probed).is_some() {
            self.pull();
            return false;
        }
        if owes_script && self.donor_lives() {
            self.request_script();
            return false;
        }
        if owes_script && self.greet_donor() {
            self.pull();
            return false;
        }
        if self.take_remembered_view(next) {
            return true;
        }
        if self.transfer.ist().is_some_and(Ist::looks_into_own_log) {
            if self.log_reader.again_ms().is_some() {
                return false;
            }
            let Ok(records) = history.read(next, self.context.options().ist_chunk_bytes) else {
                self.log_reader.wait(self.context.now_ms());
                return false;
            };
            if self.take_records(&records) {
                return true;
            }
        }
        self.pull();
        false
    }

    /// Takes the next entry from the remembered views, if it is a view: then it need not be pulled.
    fn take_remembered_view(&mut self, next: Seqno) -> bool {
        let views = self.context.control().map(|control| &control.views);
        let Some(configuration) = views.and_then(|views| views.with(next).cloned()) else {
            return false;
        };
        let task = Task::View(self.primary_view(next, &configuration));
        self.ist_begins(&task);
        self.ist_entry(task, Payload::None, 0);
        self.database.enters(next, configuration);
        true
    }

    /// Finds the first entry that this node lacks behind some that it has.
    fn begin_probe(&mut self, before_script: bool, history: &dyn History) {
        let donor = self.free_donor().filter(|_| before_script);
        let views = self.context.control().map(|c| &c.views);
        let Some(ist) = self.transfer.ist_mut() else {
            return;
        };
        if let Some(donor) = donor {
            ist.prefer(donor);
        }
        let own_log = ist.may_read_own_log();
        ist.begin_probe(before_script, |seqno| {
            own_log && history.has(seqno) || views.is_some_and(|v| v.with(seqno).is_some())
        });
    }

    /// Asks a member for the wanted entry. Without a majority nobody is asked: a member that cannot be reached would
    /// count as one that does not answer.
    fn pull(&mut self) {
        if !self.lifecycle.is_primary() {
            return;
        }
        let now_ms = self.context.now_ms();
        let Some(ist) = self.transfer.ist_mut() else {
            return;
        };
        match ist.pull(now_ms) {
            Some((source, pull)) => self.out.send(source, &pull),
            None => self.ist_impossible(),
        }
    }

    /// Before the first entry: shows the server the view of its database, if it needs one.
    fn ist_begins(&mut self, first: &Task) {
        let Some(ist) = self.transfer.ist_mut() else {
            return;
        };
        let at = ist.first() - 1;
        if !ist.begin() {
            return;
        }
        // After a script the server is in the last view that its tables contain. That view may be above the database's
        // position: a crash may have come between the two.
        let is_elsewhere = self.transfer.script_is_over() && !planted(Mutant::ViewOfTablesBelieved);
        let unprepared = planted(Mutant::MissedFragmentsUnprepared);
        let is_view = matches!(first, Task::View(_));
        if self.lifecycle.is_server_running() && (unprepared || is_view && !is_elsewhere) {
            return;
        }
        let starts = !self.lifecycle.is_server_running();
        if is_view && (at == 0 || starts && self.is_below_all_views(at)) {
            // The database has seen no view before the first: a founder's has not kept it.
            self.lifecycle.server_runs();
            return;
        }
        self.show_own_view(at);
    }

    /// Returns true if the first view of all is the one after `at`, and the database's own view is not known.
    fn is_below_all_views(&self, at: Seqno) -> bool {
        let control = self.context.control();
        let nearest = control.and_then(|control| self.database.view_at(control, at));
        nearest.is_some_and(|(seqno, _)| *seqno == at + 1)
    }

    /// Shows the server the view of its database. A server that has just started needs it to bring up its storage
    /// engines and write its checkpoint again. A server that runs, and has connected anew, has closed its streaming
    /// appliers without undoing anything. It recovers them at a primary view, which must come before more of their
    /// transactions. It undoes them all at a view with the same members as the one before. With both of this process's
    /// names among its members, this view differs from every view before it. The next view may repeat the members of
    /// the view here, so that the others undo all these transactions. Then this node shows the view here, too, so that
    /// both are alike here as well. Or it may repeat the members shown, if this process had no name before. Then the
    /// view here must stand between the two, so that this node undoes nothing that the others keep.
    fn show_own_view(&mut self, at: Seqno) {
        let control = self.context.control();
        let here = match planted(Mutant::ReplayBeginsInLaterView) {
            true => control.and_then(|c| c.views.last()),
            false => control.and_then(|control| self.database.view_at(control, at)),
        };
        let here = here.map(|(_, c)| c.clone()).unwrap_or_default();
        let next = control.and_then(|c| c.views.after(at));
        let is_running = self.lifecycle.is_server_running();
        let shown = match is_running {
            true => self.with_own_names(here.clone()),
            false => here.clone(),
        };
        let repeats = |next: &Configuration| is_same(next, &here) || is_same(next, &shown);
        let is_hidden = planted(Mutant::RepeatedViewHidden);
        let repeats = is_running && next.is_some_and(repeats) && !is_hidden;
        self.lifecycle.server_runs();
        let first = self.primary_view(at, &shown);
        let second = repeats.then(|| self.primary_view(at, &here));
        self.executor
            .show_first(at, [first].into_iter().chain(second));
    }

    /// Returns this view, with both names of this process among its members.
    fn with_own_names(&self, mut view: Configuration) -> Configuration {
        for incarnation in [self.context.me(), self.context.me_before()] {
            if view.index_of(incarnation).is_none() && !incarnation.0.is_nil() {
                view.members.push(Member {
                    incarnation,
                    ..self.context.my_member().clone()
                });
            }
        }
        view.sort();
        view
    }

    fn ist_entry(&mut self, task: Task, payload: Payload, len_bytes: usize) {
        let Some(ist) = self.transfer.ist_mut() else {
            return;
        };
        let seqno = ist.took_next();
        self.counters.received(len_bytes);
        self.executor.enqueue(task, Some(seqno), payload);
    }

    /// Queues the next entries. Returns false if the first of them is not the next.
    fn take_records(&mut self, records: &[Recorded]) -> bool {
        let mut any = false;
        for record in records {
            if !(self.transfer.ist()).is_some_and(|ist| ist.expects(record)) {
                break;
            }
            let Some((task, payload)) = self.task_of(record) else {
                break;
            };
            self.ist_begins(&task);
            let len_bytes = match &record.delivery {
                Delivery::Submission { payload, .. } => payload.len(),
                Delivery::Configuration(_) => 0,
            };
            self.ist_entry(task, payload, len_bytes);
            if let Delivery::Configuration(configuration) = &record.delivery {
                (self.database).enters(record.seqno, configuration.clone());
            }
            any = true;
        }
        any
    }

    /// Returns the callback for the next entry; None: the entry has no seqno.
    fn task_of(&mut self, record: &Recorded) -> Option<(Task, Payload)> {
        let (id, payload) = match &record.delivery {
            Delivery::Configuration(configuration) => {
                let view = self.primary_view(record.seqno, configuration);
                return Some((Task::View(view), Payload::None));
            }
            Delivery::Submission { id, payload } => (*id, payload),
        };
        let Ok(Message::WriteSet(write_set)) = Message::decode(payload) else {
            return None;
        };
        let seqno = record.seqno;
        let is_first = self.transfer.ist().is_some_and(|ist| seqno == ist.first());
        let skipped = planted(Mutant::IstSkipsOne) && is_first;
        let failed = record.failed && !planted(Mutant::IstRepeatsFailed);
        let commits = !failed && write_set.commits_stream();
        let failed = failed || is_abandoned_fragment(self.context, id, &write_set);
        if failed {
            self.voting.passed_as_dummy(seqno, commits);
        }
        let executed = write_set.is_isolation() && self.database.in_doubt().was_executed(seqno);
        let passed = failed || skipped || executed;
        let gtid = self.executor.ordered_gtid(self.context, seqno);
        let apply = Apply::of(&write_set, id.incarnation, gtid, record.depends_on, passed);
        if let Some(text) = self.database.in_doubt().repetition(&apply) {
            self.out.log(Level::Warn, text);
        }
        let bytes = if passed { 0 } else { payload.len() };
        let payload = Payload::here(self.log_reader.memory(), bytes);
        Some((Task::Apply(Box::new(apply)), payload))
    }

    /// Takes in a part of a long entry, which answers a pull.
    pub(crate) fn ist_part(&mut self, from: Incarnation, part: &RecordedPart) {
        let Some(ist) = self.transfer.ist_mut() else {
            return;
        };
        match ist.take_part(from, part) {
            PartTaken::Goes => {}
            PartTaken::Ends(whole) => self.ist_chunk(from, part.record.seqno, whole.as_slice()),
        }
    }

    /// Takes in the answer to a pull.
    pub(crate) fn ist_chunk(&mut self, from: Incarnation, at: Seqno, records: &[Recorded]) {
        let Some(ist) = self.transfer.ist_mut() else {
            return;
        };
        let shown = records.first().map(|record| record.seqno);
        let lacks = match ist.answered(from, at, shown) {
            Answered::Unasked | Answered::ProbeOver => return,
            Answered::Lacks(wanted) => Some(wanted),
            Answered::Take => (!self.take_records(records)).then_some(at),
        };
        let now_ms = self.context.now_ms();
        let Some(ist) = self.transfer.ist_mut() else {
            return;
        };
        let text = match lacks {
            Some(seqno) => {
                ist.drop_source(from);
                Some(format!("{from} does not have seqno {seqno} any more"))
            }
            None => ist.report(now_ms),
        };
        if let Some(text) = text {
            self.out.log(Level::Info, text);
        }
    }

    /// Handles that no member has the missing entries.
    fn ist_impossible(&mut self) {
        let Some(dead_end) = self.transfer.ist().map(Ist::dead_end) else {
            return;
        };
        match dead_end {
            DeadEnd::BehindSnapshot(seqno) => {
                self.transfer.give_up();
                self.out.fatal(never_received(&format!(
                    "The snapshot ends at {seqno}, and no member has the entries that follow."
                )));
            }
            DeadEnd::NotBegun if !self.transfer.script_is_over() => {
                // Nothing was applied to the database: an SST may replace it.
                self.transfer.request();
                self.executor.forget_history();
                self.request_snapshot();
            }
            DeadEnd::Begun | DeadEnd::NotBegun => self.needs_restart(),
        }
    }

    pub(super) fn needs_restart(&mut self) {
        let text = "no member has the entries that this node lacks: state transfer needs a restart";
        self.abandon_transfer(Level::Error, text);
    }

    // --- the script before it

    /// Returns true if the script must run before the first entry is handed over. The server does without the script if
    /// no member could run the donor's: all were down, and come back with their logs.
    fn owes_script(&self) -> bool {
        if !self.transfer.has_run_no_script() || self.lifecycle.is_server_running() {
            return false;
        }
        match self.context.options().script_before_ist {
            ScriptBeforeIst::Never => false,
            ScriptBeforeIst::IfDonorIsFree => self.free_donor().is_some(),
            ScriptBeforeIst::Always => self.has_donor(),
        }
    }

    /// Returns the donor that a request would get now.
    fn free_donor(&self) -> Option<Incarnation> {
        let preference = &self.context.options().sst_donor;
        let control = self.context.control()?;
        control.members.choose_donor(self.context.me(), preference)
    }

    /// Returns true if the donor has answered just now; otherwise it may be dead, with nobody having noticed yet. Also
    /// true for a server whose script always runs: it waits for its donor, and cannot go on without.
    fn donor_lives(&self) -> bool {
        let must_wait = self.context.options().script_before_ist == ScriptBeforeIst::Always;
        let answers = |donor| (self.transfer.ist()).is_some_and(|ist| ist.was_shown_by(donor));
        must_wait || self.free_donor().is_some_and(answers)
    }

    /// Returns true if a member may be chosen to run the donor's script, now or later.
    pub(super) fn has_donor(&self) -> bool {
        (self.context.control())
            .is_some_and(|control| control.members.has_donor_for(self.context.me()))
    }

    /// Asks the future donor for a sign of life. Returns false if none is free, or it was asked before.
    fn greet_donor(&mut self) -> bool {
        let donor = self.free_donor();
        (self.transfer.ist_mut().zip(donor)).is_some_and(|(ist, donor)| ist.greet(donor))
    }

    fn request_script(&mut self) {
        if !self.transfer.run_script() {
            return;
        }
        let text = "the script of the state transfer runs before the IST (repl.ist_script, wsrep_gtid_mode)";
        self.out.log(Level::Info, text);
        self.executor.push_last(Task::SstRequest);
    }

    /// Takes in that the server has the position from the script, and its storage engine is up.
    pub(super) fn script_has_told(&mut self, gtid: Gtid) {
        let at = self.executor.top();
        if gtid.seqno != at {
            let seqno = gtid.seqno;
            let text = format!(
                "the server's storage engine stands at seqno {seqno}, the IST goes on from {at}"
            );
            self.out.log(Level::Warn, text);
        }
        self.lifecycle.server_runs();
        self.begin_ist_after_script();
    }

    /// Begins the IST after the script, or if the server has no use for one (wsrep_sst_method=skip).
    pub(super) fn begin_ist_after_script(&mut self) {
        let own_log = self.transfer.end_script();
        let Some(upto) = self.transfer.upto() else {
            return;
        };
        let entries = (self.executor.top() + 1, upto);
        let (sources, now_ms) = (
            self.ist_sources(self.transfer.donor()),
            self.context.now_ms(),
        );
        let ist = Ist::of_database(entries, sources, own_log, false, now_ms);
        self.transfer.go_on_with(ist);
    }
}
