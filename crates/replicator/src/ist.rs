//! Incremental state transfer: the missing entries, from the own log or pulled from members.

use std::collections::VecDeque;

use trireme_certification::Seqno;
use trireme_group::{Delivery, Incarnation, Member};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Level};
use crate::direct::Direct;
use crate::history::{History, Recorded, RecordedPart};
use crate::ist_partial::Partial;
use crate::ist_script::Script;
use crate::joiner::{Transfer, TransferPhase, never_received};
use crate::message::Message;
use crate::payload::Payload;
use crate::replicator::{Replicator, Stage};
use crate::streaming::is_same;
use crate::work::{Apply, Task};

/// A member that does not answer a pull for so long is given up for now.
const PATIENCE_MS: u64 = 1000;
/// How much has come in is told so often at most.
const REPORT_MS: u64 = 10_000;
/// So many pulls in a row without any answer, per member, end the attempt.
const MAX_ROUNDS: u32 = 5;

/// Whether members have what this node lacks. It is asked before anything is handed to a server that can still take a
/// snapshot: one that is left with a gap behind what it has taken can only restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    NotBegun,
    /// Members are asked for this entry.
    Asks(Seqno),
    Done,
}

/// Missing entries being pulled.
#[derive(Debug)]
pub(crate) struct Ist {
    first: Seqno,
    next: Seqno,
    /// Own log may be read: it has no entries of a fork.
    pub own_log: bool,
    /// Who may have them; the front one is asked.
    sources: VecDeque<Incarnation>,
    asked: bool,
    deadline_ms: u64,
    /// Pulls without any answer.
    silent: u32,
    /// What this node has does not go without a gap up to what members have, as far as is known: the entry that one of
    /// them must show first. It is not kept.
    probe: Probe,
    /// Something was handed to the server: there is no way back to a snapshot. A view at the database's
    /// position is the first (rule 6).
    pub begun: bool,
    /// The snapshot came, this is what it lacks.
    pub after_snapshot: bool,
    reported_ms: u64,
    /// What has come of the next entry, if that comes in parts.
    partial: Option<Box<Partial>>,
    /// What has come of it did not fit together once.
    anew: bool,
}

impl Ist {
    /// Everything from `first` on is missing.
    pub(crate) fn new(first: Seqno, sources: VecDeque<Incarnation>, now_ms: u64) -> Self {
        Ist {
            first,
            next: first,
            own_log: true,
            sources,
            asked: false,
            deadline_ms: 0,
            silent: 0,
            probe: Probe::NotBegun,
            begun: true,
            after_snapshot: false,
            reported_ms: now_ms,
            partial: None,
            anew: false,
        }
    }

    /// The entry that members are asked for.
    fn wanted(&self) -> Seqno {
        match self.probe {
            Probe::Asks(seqno) => seqno,
            Probe::NotBegun | Probe::Done => self.next,
        }
    }

    /// True if this member was asked for what follows, beginning with `next`.
    fn awaits(&self, from: Incarnation, next: Seqno) -> bool {
        self.asked && next == self.wanted() && self.sources.front() == Some(&from)
    }

    /// Bytes that have come of the next entry.
    fn received(&self) -> u32 {
        self.partial
            .as_ref()
            .map_or(0, |partial| partial.received())
    }

    /// When the member that was asked is given up.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.asked.then_some(self.deadline_ms)
    }
}

impl Stage {
    /// The missing entries being pulled, if that is what the connection is at.
    fn ist(&mut self) -> Option<&mut Ist> {
        match self {
            Stage::Transfer(Transfer {
                phase: TransferPhase::Ist(ist),
                ..
            }) => Some(ist),
            _ => None,
        }
    }
}

/// In Galera's words: so many of the missing entries are here.
pub(crate) fn received_ist(done: Seqno, total: Seqno) -> String {
    let percent = done as f64 * 100.0 / total as f64;
    format!("Receiving IST... {percent:.1}% ({done}/{total} events) complete.")
}

impl Replicator {
    /// Who may have missing entries; the first is asked first.
    pub(crate) fn ist_sources(&self, first: Option<Incarnation>) -> VecDeque<Incarnation> {
        let mut members = self.context.configuration().members;
        members.retain(|m| m.incarnation != self.context.me());
        if planted(Mutant::ArbitratorServesNothing) {
            members.retain(|m| !m.arbitrator);
        }
        // Arbitrators last: they may be far away.
        members.sort_by_key(|m| (Some(m.incarnation) != first, m.arbitrator));
        members.into_iter().map(|m| m.incarnation).collect()
    }

    /// No more is pulled for now. What was delivered meanwhile may take all the room: one piece is pulled
    /// even so.
    fn has_enough_queued(&self) -> bool {
        let (applies, bytes) = (self.executor.waiting_applies(), self.payload_bytes());
        applies >= self.context.options().thresholds.pulled_entries
            || applies > 0 && bytes >= self.context.options().queue_bytes
    }

    /// Takes one step; false if it has to wait.
    pub(crate) fn pursue_ist(&mut self, history: &dyn History) -> bool {
        let may_not = self.lifecycle.is_leaving() || self.is_held_still();
        if may_not || self.has_enough_queued() || !self.doubt_is_settled() {
            return false;
        }
        let now_ms = self.context.now_ms();
        let Stage::Transfer(Transfer {
            upto,
            phase: TransferPhase::Ist(ist),
            ..
        }) = &mut self.stage
        else {
            return false;
        };
        let next = ist.next;
        if next > *upto {
            self.finish_transfer();
            return false;
        }
        if ist.asked {
            if now_ms < ist.deadline_ms {
                return false;
            }
            ist.asked = false;
            ist.silent += 1;
            ist.sources.rotate_left(1);
            if ist.silent > MAX_ROUNDS * ist.sources.len() as u32 {
                ist.sources.clear();
            }
        }
        let (own_log, in_parts) = (ist.own_log, ist.partial.is_some());
        if ist.probe == Probe::NotBegun {
            self.begin_probe(history);
        }
        if let Some(Probe::Asks(seqno)) = self.stage.ist().map(|ist| ist.probe) {
            self.pull(seqno);
            return false;
        }
        if self.owes_script() {
            self.request_script();
            return false;
        }
        // A view that is remembered need not be pulled.
        if let Some(configuration) = self
            .context
            .control()
            .and_then(|c| c.views.with(next).cloned())
        {
            let view = self.primary_view(next, &configuration);
            let task = Task::View(view);
            self.ist_begins(&task);
            self.ist_entry(task, Payload::None);
            self.database.enters(next, configuration);
            return true;
        }
        // Of what comes in parts it has been read, in vain.
        if own_log && !in_parts {
            if self.log_reader.again_ms().is_some() {
                return false;
            }
            let Ok(records) = history.read(next, self.context.options().ist_chunk_bytes) else {
                self.log_reader.wait(now_ms);
                return false;
            };
            if self.take_records(&records) {
                return true;
            }
        }
        self.pull(next);
        false
    }

    /// Finds the first entry that this node lacks behind some that it has.
    fn begin_probe(&mut self, history: &dyn History) {
        let owes_script = self.owes_script() && !planted(Mutant::ScriptBeforeProbe);
        let views = self.context.control().map(|c| &c.views);
        let Stage::Transfer(Transfer {
            upto,
            phase: TransferPhase::Ist(ist),
            ..
        }) = &mut self.stage
        else {
            return;
        };
        let is_here = |seqno: &Seqno| {
            ist.own_log && history.has(*seqno) || views.is_some_and(|v| v.with(*seqno).is_some())
        };
        let lacking = (ist.next..=*upto).find(|seqno| !is_here(seqno));
        // The first of all is asked for before anything is handed over, and kept; but before a script nothing is.
        let asks = lacking.filter(|seqno| !ist.begun && (owes_script || *seqno > ist.next));
        ist.probe = asks.map_or(Probe::Done, Probe::Asks);
    }

    /// Asks a member for this entry and what follows it.
    fn pull(&mut self, seqno: Seqno) {
        let now_ms = self.context.now_ms();
        let Some(ist) = self.stage.ist() else { return };
        let Some(source) = ist.sources.front().copied() else {
            return self.ist_impossible();
        };
        (ist.asked, ist.deadline_ms) = (true, now_ms + PATIENCE_MS);
        let pull = match ist.received() {
            0 => Direct::IstPull { from: seqno },
            offset => Direct::IstPullPart {
                from: seqno,
                offset,
            },
        };
        self.send(source, &pull);
    }

    /// The member that was asked has what this node lacks, if it has answered with `shown`.
    fn end_probe(&mut self, from: Incarnation, shown: Option<Seqno>) {
        let Some(ist) = self.stage.ist() else { return };
        let wanted = ist.wanted();
        (ist.asked, ist.silent) = (false, 0);
        if shown == Some(wanted) {
            ist.probe = Probe::Done;
            return;
        }
        ist.sources.pop_front();
        let text = format!("{from} does not have seqno {wanted} any more");
        self.log(Level::Info, text);
    }

    /// Before the first entry: shows a server that has just started the view that its database was
    /// in, so that it brings up its storage engines and writes its checkpoint again. One that runs and
    /// has connected anew has closed its streaming appliers without undoing anything, and recovers
    /// them at a primary view: before it applies more of their transactions. It undoes them all at a view
    /// with the members of the one before; with both of this process's names among them this view is like
    /// none before or after it. If the next view repeats the one that was here, at which the others undo
    /// them all, that one is shown, too: both are alike here as well.
    fn ist_begins(&mut self, first: &Task) {
        let Some(ist) = self.stage.ist() else {
            return;
        };
        if std::mem::replace(&mut ist.begun, true) {
            return;
        }
        // After a script the server is in the last view that its tables know of, which may lie above the database's
        // position: a crash may have come between the two.
        let is_elsewhere = self.script == Script::Over && !planted(Mutant::ViewOfTablesBelieved);
        let unprepared = planted(Mutant::MissedFragmentsUnprepared);
        let is_view = matches!(first, Task::View(_));
        if self.lifecycle.is_server_running() && (unprepared || is_view && !is_elsewhere) {
            return;
        }
        let at = ist.first - 1;
        if at == 0 && is_view {
            // The database of who has founded the history: it has seen no view before the first.
            self.lifecycle.server_runs();
            return;
        }
        let control = self.context.control();
        let here = match planted(Mutant::ReplayBeginsInLaterView) {
            true => control.and_then(|c| c.views.last()),
            false => control.and_then(|control| self.database.view_at(control, at)),
        };
        let here = here.map(|(_, c)| c.clone()).unwrap_or_default();
        let next = control.and_then(|c| c.views.after(at));
        let repeats =
            self.lifecycle.is_server_running() && next.is_some_and(|next| is_same(next, &here));
        let mut shown = here.clone();
        if self.lifecycle.is_server_running() {
            for incarnation in [self.context.me(), self.context.me_before()] {
                if shown.index_of(incarnation).is_none() && !incarnation.0.is_nil() {
                    let named = self.context.my_member().clone();
                    let named = Member {
                        incarnation,
                        ..named
                    };
                    shown.members.push(named);
                }
            }
            shown.sort();
        }
        self.lifecycle.server_runs();
        let repeats = repeats && !planted(Mutant::RepeatedViewHidden);
        let first = self.primary_view(at, &shown);
        let second = repeats.then(|| self.primary_view(at, &here));
        self.executor
            .show_first(at, [first].into_iter().chain(second));
    }

    fn ist_entry(&mut self, task: Task, payload: Payload) {
        let Some(ist) = self.stage.ist() else {
            return;
        };
        let seqno = ist.next;
        ist.next += 1;
        (ist.partial, ist.anew) = (None, false);
        self.counters.received += 1;
        self.enqueue(task, Some(seqno), payload);
    }

    /// Queues entries that are next; false if the first is not.
    fn take_records(&mut self, records: &[Recorded]) -> bool {
        let mut any = false;
        for record in records {
            let Stage::Transfer(Transfer {
                upto,
                phase: TransferPhase::Ist(ist),
                ..
            }) = &self.stage
            else {
                break;
            };
            if record.seqno != ist.next || record.seqno > *upto || record.depends_on >= record.seqno
            {
                break;
            }
            let (task, payload) = match &record.delivery {
                Delivery::Configuration(c) => {
                    let view = self.primary_view(record.seqno, c);
                    (Task::View(view), Payload::None)
                }
                Delivery::Submission { id, payload } => match Message::decode(payload) {
                    Ok(Message::WriteSet(ws)) => {
                        let (seqno, depends_on) = (record.seqno, record.depends_on);
                        let skipped = planted(Mutant::IstSkipsOne) && seqno == ist.first;
                        let failed = record.failed && !planted(Mutant::IstRepeatsFailed);
                        let source = id.incarnation;
                        let failed = failed || self.is_abandoned_fragment(*id, &ws);
                        if failed {
                            self.voting.passed_as_dummy(seqno);
                        }
                        let executed =
                            ws.is_isolation() && self.database.doubt().was_executed(seqno);
                        let passed = failed || skipped || executed;
                        let gtid = self.ordered_gtid(seqno);
                        let apply = Apply::of(&ws, source, gtid, depends_on, passed);
                        self.tell_repetition(&apply);
                        let bytes = if passed { 0 } else { payload.len() };
                        let payload = Payload::here(self.log_reader.memory(), bytes);
                        (Task::Apply(Box::new(apply)), payload)
                    }
                    _ => break,
                },
            };
            self.ist_begins(&task);
            self.ist_entry(task, payload);
            if let Delivery::Configuration(configuration) = &record.delivery {
                (self.database).enters(record.seqno, configuration.clone());
            }
            any = true;
        }
        any
    }

    /// A member answers a pull with a part of a long entry.
    pub(crate) fn ist_part(&mut self, from: Incarnation, part: &RecordedPart) {
        let Some(ist) = self.stage.ist() else {
            return;
        };
        let (seqno, received) = (part.record.seqno, ist.received());
        if !ist.awaits(from, seqno) || part.offset != received {
            return; // unasked, or the answer to a pull that was given up
        }
        if matches!(ist.probe, Probe::Asks(_)) {
            return self.end_probe(from, Some(seqno));
        }
        let mut partial = ist
            .partial
            .take()
            .unwrap_or_else(|| Box::new(Partial::new(part)));
        let taken = partial.take(part);
        if taken && !partial.is_whole() {
            (ist.asked, ist.silent) = (false, 0);
            ist.partial = Some(partial);
            return;
        }
        let whole = partial.into_record().filter(|_| taken);
        if whole.is_none() && !std::mem::replace(&mut ist.anew, true) {
            // Another member may be the cause, or a vote that has changed the outcome: all of it, from this one.
            ist.asked = false;
            return;
        }
        self.ist_chunk(from, seqno, whole.as_slice());
    }

    /// A member answers a pull.
    pub(crate) fn ist_chunk(&mut self, from: Incarnation, at: Seqno, records: &[Recorded]) {
        let Stage::Transfer(Transfer {
            upto,
            phase: TransferPhase::Ist(ist),
            ..
        }) = &mut self.stage
        else {
            return;
        };
        if !ist.awaits(from, at) {
            return;
        }
        if matches!(ist.probe, Probe::Asks(_)) {
            return self.end_probe(from, records.first().map(|record| record.seqno));
        }
        ist.asked = false;
        ist.silent = 0;
        let (first, upto) = (ist.first, *upto);
        let taken = self.take_records(records);
        let Some(ist) = self.stage.ist() else { return };
        if !taken {
            ist.partial = None;
            ist.sources.pop_front();
            return self.log(
                Level::Info,
                format!("{from} does not have seqno {at} any more"),
            );
        }
        let (done, total) = (ist.next - first, upto - first + 1);
        if done == total || self.context.now_ms() >= ist.reported_ms + REPORT_MS {
            ist.reported_ms = self.context.now_ms();
            self.log(Level::Info, received_ist(done, total));
        }
    }

    /// Nobody has the missing entries.
    fn ist_impossible(&mut self) {
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        let TransferPhase::Ist(ist) = &transfer.phase else {
            return;
        };
        if ist.after_snapshot {
            let text = never_received(&format!(
                "The snapshot ends at {}, and nobody has what follows.",
                ist.next - 1
            ));
            transfer.phase = TransferPhase::GivenUp;
            return self.fatal(text);
        }
        if ist.begun || self.script == Script::Over {
            return self.needs_restart();
        }
        // Nothing was applied on top of it: the database makes room for a snapshot.
        transfer.phase = TransferPhase::Requesting;
        self.executor.forget_history();
        self.request_snapshot();
    }

    pub(crate) fn needs_restart(&mut self) {
        if let Stage::Transfer(transfer) = &mut self.stage {
            transfer.phase = TransferPhase::GivenUp;
        }
        self.log(
            Level::Error,
            "nobody has the entries that this node misses: state transfer needs a restart",
        );
        if self.lifecycle.leave() {
            self.out.push(Action::Leave);
        }
    }
}
