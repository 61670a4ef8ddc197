//! How a node gets the database that belongs to its place in the order: from what it has plus the
//! missing entries (IST), or from a donor's snapshot (SST). Rules 6 and 19.

use std::collections::VecDeque;

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Checkpoint, Delivery, Incarnation, SubmissionId};

use crate::action::{Action, Answer, Code, Level};
use crate::control::Lost;
use crate::direct::Direct;
use crate::event::Ticket;
use crate::gtid::Gtid;
use crate::history::{History, Recorded};
use crate::message::Message;
use crate::order::Order;
use crate::replicator::{Replicator, Stage};
pub(crate) use crate::snapshot::SnapshotPull;
use crate::submissions::Sent;
use crate::work::{Task, WorkId};

/// A member that does not answer a pull for so long is given up for now.
const PATIENCE_MS: u64 = 1000;
/// A joiner without a donor asks again after so long.
const RETRY_MS: u64 = 1000;
/// No more is pulled while so many write-sets wait for the appliers.
const MAX_QUEUED: usize = 256;
/// So many pulls in a row without any answer, per member, end the attempt.
const MAX_ROUNDS: u32 = 5;
/// What the server logs when it gives up, and what people look for.
const NEVER: &str = "Will never receive state. Need to abort.";

/// A state transfer under way.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Last seqno that was ordered before this node was in step: no delivery brings it.
    upto: Seqno,
    pub phase: TransferPhase,
    /// What was delivered meanwhile.
    pub later: VecDeque<(Task, Option<Seqno>)>,
}

#[derive(Debug)]
pub(crate) enum TransferPhase {
    Ist(Ist),
    /// The server prepares itself to receive.
    Requesting,
    /// Nobody could send; asks again then.
    Retry { request: Bytes, at_ms: u64 },
    /// The request is on its way into the order.
    Submitted { request: Bytes },
    /// A donor sends. None: it is done, the server has still to say so.
    Receiving { donor: Option<Incarnation> },
    /// Nothing can be done.
    GivenUp,
}

/// Missing entries being pulled.
#[derive(Debug)]
pub(crate) struct Ist {
    first: Seqno,
    next: Seqno,
    /// Own log may be read: it has no entries of a fork.
    own_log: bool,
    /// Who may have them; the front one is asked.
    sources: VecDeque<Incarnation>,
    asked: bool,
    deadline_ms: u64,
    /// Pulls without any answer.
    silent: u32,
    /// Something was handed to the server: there is no way back to a snapshot.
    begun: bool,
    /// The snapshot came, this is what it lacks.
    after_snapshot: bool,
    /// Show a view at the database's position first (rule 6).
    synthetic_view: bool,
    reported_ms: u64,
}

impl Transfer {
    /// From sst_request to sst_received.
    pub(crate) fn awaits_snapshot(&self) -> bool {
        !matches!(self.phase, TransferPhase::Ist(_))
    }

    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        match &self.phase {
            TransferPhase::Ist(ist) if ist.asked => Some(ist.deadline_ms),
            TransferPhase::Retry { at_ms, .. } => Some(*at_ms),
            _ => None,
        }
    }
}

impl Replicator {
    /// The group's log begins anew: what was delivered is still applied here, but what comes next
    /// is not known without a peer's control state.
    pub(crate) fn reset(&mut self, checkpoint: &Checkpoint) {
        if matches!(self.stage, Stage::Closed | Stage::Final) || self.founding && !self.connected {
            return;
        }
        self.log(Level::Debug, format!("the log begins anew above position {}", checkpoint.position));
        if self.connected && !self.applied_history.is_nil() {
            // The queue will bring the database there.
            self.local = self.gtid_of(self.order.top());
            self.server_running = true;
            self.overrides = self.control.iter().flat_map(|c| c.forks.iter().map(|(id, _)| *id)).collect();
        }
        for sent in self.submissions.take_all() {
            self.give_up(sent, true);
        }
        for ticket in self.causal.give_up(true) {
            self.answer_sync_wait(ticket, Code::TrxFail);
        }
        self.founding = false;
        self.primary = false;
        self.synced_told = false;
        self.control = None;
        self.backlog.clear();
        self.positions.clear();
        self.order.unhold();
        self.works.remove(|task| matches!(task, Task::Synced | Task::Donate { .. }));
        self.stage = Stage::Admission(SnapshotPull::default());
    }

    /// In step with the group from here on: decides how the database follows.
    /// `sender` of the control state is asked first for missing entries.
    pub(crate) fn begin_transfer(&mut self, sender: Option<Incarnation>) {
        let Some(control) = &self.control else { return };
        let (history, upto) = (control.history, control.seqno());
        let is_resumed = self.connected;
        let unknown_fork = |(id, _): &&(trireme_group::Uuid, Seqno)| !self.overrides.contains(id);
        let fork = control.forks.iter().filter(unknown_fork).map(|(_, seqno)| *seqno).min();
        let local = self.local;
        let forked = fork.is_some_and(|fork| local.seqno > fork);
        let usable = local.uuid == history && (0..=upto).contains(&local.seqno) && !forked;
        let sources = self.ist_sources(sender);
        self.primary = true;
        self.out.push(Action::Admitted);
        if forked {
            let text = format!("the database at {local} is beyond a fork of its history: all above {fork:?} is dropped");
            self.log(Level::Warn, text);
        }
        let phase = if usable {
            if !is_resumed {
                self.order = Order::new(local.seqno);
                self.applied_history = history;
            }
            TransferPhase::Ist(Ist {
                first: local.seqno + 1,
                next: local.seqno + 1,
                own_log: fork.is_none(),
                sources,
                asked: false,
                deadline_ms: 0,
                silent: 0,
                begun: is_resumed,
                after_snapshot: false,
                synthetic_view: !self.server_running,
                reported_ms: self.now_ms,
            })
        } else {
            TransferPhase::Requesting
        };
        let needs_snapshot = matches!(phase, TransferPhase::Requesting);
        self.stage = Stage::Transfer(Transfer { upto, phase, later: VecDeque::new() });
        self.show_connected();
        if needs_snapshot {
            self.request_snapshot();
        }
    }

    /// Moves on whatever transfer is under way.
    pub(crate) fn pursue_state(&mut self, history: &dyn History) {
        self.pursue_snapshot();
        self.process_backlog();
        self.retry_state_request();
        while self.pursue_ist(history) {}
        self.pursue_membership();
    }

    // --- incremental state transfer

    /// Who may have missing entries; the first is asked first.
    fn ist_sources(&self, first: Option<Incarnation>) -> VecDeque<Incarnation> {
        let members = self.configuration().members.into_iter();
        let others = members.filter(|m| m.incarnation != self.me && !m.arbitrator);
        let mut sources: Vec<Incarnation> = others.map(|m| m.incarnation).collect();
        sources.sort_by_key(|m| Some(*m) != first);
        sources.into()
    }

    /// Takes one step; false if it has to wait.
    fn pursue_ist(&mut self, history: &dyn History) -> bool {
        if self.leaving || self.works.applies() >= MAX_QUEUED {
            return false;
        }
        let now_ms = self.now_ms;
        let Stage::Transfer(Transfer { upto, phase: TransferPhase::Ist(ist), .. }) = &mut self.stage else {
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
        // A view that is remembered need not be pulled.
        if let Some(configuration) = self.control.as_ref().and_then(|c| c.view_with(next).cloned()) {
            self.ist_begins();
            let view = self.primary_view(next, &configuration);
            self.ist_entry(Task::View(view));
            return true;
        }
        if ist.own_log {
            let records = history.read(next, self.options.ist_chunk_bytes);
            if self.take_records(&records) {
                return true;
            }
        }
        let Stage::Transfer(Transfer { phase: TransferPhase::Ist(ist), .. }) = &mut self.stage else { return false };
        let Some(source) = ist.sources.front().copied() else {
            self.ist_impossible();
            return false;
        };
        (ist.asked, ist.deadline_ms) = (true, now_ms + PATIENCE_MS);
        self.send(source, &Direct::IstPull { from: next });
        false
    }

    /// Before the first entry: shows a server that has just started the view that its database was
    /// in, so that it brings up its storage engines and writes its checkpoint again.
    fn ist_begins(&mut self) {
        let Stage::Transfer(Transfer { phase: TransferPhase::Ist(ist), .. }) = &mut self.stage else { return };
        if std::mem::replace(&mut ist.begun, true) || !ist.synthetic_view {
            return;
        }
        let at = ist.first - 1;
        let configuration = self.control.as_ref().and_then(|c| c.view_at(at)).map(|(_, c)| c.clone());
        let view = self.primary_view(at, &configuration.unwrap_or_default());
        self.shown_low = Some(at - 1);
        self.works.push(Task::View(view), at);
    }

    fn ist_entry(&mut self, task: Task) {
        let Stage::Transfer(Transfer { phase: TransferPhase::Ist(ist), .. }) = &mut self.stage else { return };
        let seqno = ist.next;
        ist.next += 1;
        self.counters.received += 1;
        self.enqueue(task, Some(seqno));
    }

    /// Queues entries that are next; false if the first is not.
    fn take_records(&mut self, records: &[Recorded]) -> bool {
        let mut any = false;
        for record in records {
            let Stage::Transfer(Transfer { upto, phase: TransferPhase::Ist(ist), .. }) = &self.stage else { break };
            if record.seqno != ist.next || record.seqno > *upto || record.depends_on >= record.seqno {
                break;
            }
            let task = match &record.delivery {
                Delivery::Configuration(c) => Task::View(self.primary_view(record.seqno, c)),
                Delivery::Submission { id, payload } => match Message::decode(payload) {
                    Ok(Message::WriteSet(ws)) => {
                        let (seqno, depends_on) = (record.seqno, record.depends_on);
                        let apply = self.apply_task(id.incarnation, &ws, seqno, depends_on, record.failed);
                        Task::Apply(Box::new(apply))
                    }
                    _ => break,
                },
            };
            self.ist_begins();
            self.ist_entry(task);
            any = true;
        }
        any
    }

    /// A member answers a pull.
    pub(crate) fn ist_chunk(&mut self, from: Incarnation, at: Seqno, records: &[Recorded]) {
        let Stage::Transfer(Transfer { upto, phase: TransferPhase::Ist(ist), .. }) = &mut self.stage else { return };
        if !ist.asked || at != ist.next || ist.sources.front() != Some(&from) {
            return;
        }
        ist.asked = false;
        ist.silent = 0;
        let (first, upto) = (ist.first, *upto);
        if !self.take_records(records) {
            let Stage::Transfer(Transfer { phase: TransferPhase::Ist(ist), .. }) = &mut self.stage else { return };
            ist.sources.pop_front();
            return self.log(Level::Info, format!("{from} does not have seqno {at} any more"));
        }
        let Stage::Transfer(Transfer { phase: TransferPhase::Ist(ist), .. }) = &mut self.stage else { return };
        let (done, total) = (ist.next - first, upto - first + 1);
        if done == total || self.now_ms >= ist.reported_ms + PATIENCE_MS {
            ist.reported_ms = self.now_ms;
            let percent = done as f64 * 100.0 / total as f64;
            self.log(Level::Info, format!("Receiving IST... {percent:.1}% ({done}/{total} events) complete."));
        }
    }

    /// Nobody has the missing entries.
    fn ist_impossible(&mut self) {
        let Stage::Transfer(transfer) = &mut self.stage else { return };
        let TransferPhase::Ist(ist) = &transfer.phase else { return };
        if ist.after_snapshot {
            let text = format!("the snapshot ends at {}, and nobody has what follows. {NEVER}", ist.next - 1);
            transfer.phase = TransferPhase::GivenUp;
            return self.fatal(text);
        }
        if ist.begun {
            return self.needs_restart();
        }
        // Nothing was applied on top of it: the database makes room for a snapshot.
        transfer.phase = TransferPhase::Requesting;
        self.applied_history = trireme_group::Uuid::NIL;
        self.request_snapshot();
    }

    fn needs_restart(&mut self) {
        if let Stage::Transfer(transfer) = &mut self.stage {
            transfer.phase = TransferPhase::GivenUp;
        }
        self.log(Level::Error, "nobody has the entries that this node misses: state transfer needs a restart");
        if !std::mem::replace(&mut self.leaving, true) {
            self.out.push(Action::Leave);
        }
    }

    /// The database has caught up with the order: what was delivered meanwhile follows.
    fn finish_transfer(&mut self) {
        let Stage::Transfer(transfer) = std::mem::replace(&mut self.stage, Stage::Active) else { return };
        self.joined_at = self.order.top();
        for (task, seqno) in transfer.later {
            self.enqueue(task, seqno);
        }
        self.tell_synced();
    }

    // --- snapshot state transfer

    fn request_snapshot(&mut self) {
        self.log(Level::Info, "Gap in state sequence. Need state transfer.");
        let top = self.order.top();
        self.works.push(Task::SstRequest, top);
    }

    /// The server is ready to receive.
    pub(crate) fn sst_requested(&mut self, work: WorkId, request: Option<Bytes>) {
        self.works.done(work);
        let Stage::Transfer(transfer) = &mut self.stage else { return };
        if !matches!(transfer.phase, TransferPhase::Requesting) {
            return;
        }
        let upto = transfer.upto;
        match request {
            None => {
                transfer.phase = TransferPhase::GivenUp;
                self.fatal(format!("the server could not prepare for a state transfer. {NEVER}"));
            }
            Some(request) if request.is_empty() => self.needs_restart(),
            // Whoever set wsrep_sst_method=skip says that the database is right as it is.
            Some(request) if request.starts_with(b"trivial\0") => self.snapshot_is_here(upto - 1, upto),
            Some(request) => {
                self.out.push(Action::MarkUnsafe);
                transfer.phase = TransferPhase::Retry { request, at_ms: self.now_ms };
            }
        }
    }

    fn retry_state_request(&mut self) {
        let (local, preference) = (self.local, self.options.sst_donor.clone());
        let (primary, now_ms) = (self.primary && !self.leaving, self.now_ms);
        let Stage::Transfer(transfer) = &mut self.stage else { return };
        let TransferPhase::Retry { request, at_ms } = &transfer.phase else { return };
        if !primary || now_ms < *at_ms {
            return;
        }
        let request = request.clone();
        transfer.phase = TransferPhase::Submitted { request: request.clone() };
        self.submit(Sent::StateRequest, &Message::StateRequest { request, local, preference });
    }

    /// The request was not ordered; it is made again.
    pub(crate) fn state_request_failed(&mut self) {
        let at_ms = self.now_ms + RETRY_MS;
        let Stage::Transfer(transfer) = &mut self.stage else { return };
        if let TransferPhase::Submitted { request } = &transfer.phase {
            transfer.phase = TransferPhase::Retry { request: request.clone(), at_ms };
        }
    }

    /// Somebody's request was ordered: a donor was chosen, the same on all nodes, or none.
    pub(crate) fn state_requested(
        &mut self,
        id: SubmissionId,
        donor: Option<Incarnation>,
        request: Bytes,
        preference: &str,
    ) {
        let joiner = self.name_of(id.incarnation);
        let wanted = if preference.is_empty() { "*any*" } else { preference };
        let text = format!("Member {joiner} requested state transfer from '{wanted}'");
        match donor {
            Some(donor) => {
                let donor = self.name_of(donor);
                self.log(Level::Info, format!("{text}. Selected {donor}(SYNCED) as donor."));
            }
            None => self.log(
                Level::Warn,
                format!("{text}, but it is impossible to select State Transfer donor: Resource temporarily unavailable"),
            ),
        }
        if donor == Some(self.me) {
            self.begin_donation(request);
        }
        if id.incarnation != self.me {
            return;
        }
        self.submissions.take(id.number);
        match donor {
            None => {
                self.state_request_failed();
                let text = "Requesting state transfer failed: -11(Resource temporarily unavailable). \
                            Will keep retrying every 1 second(s)";
                self.log(Level::Info, text);
            }
            Some(_) => {
                if let Stage::Transfer(transfer) = &mut self.stage {
                    // Retry: an earlier request, given up as lost, was ordered after all.
                    if let TransferPhase::Submitted { .. } | TransferPhase::Retry { .. } = transfer.phase {
                        transfer.phase = TransferPhase::Receiving { donor };
                    }
                }
            }
        }
    }

    /// A donor says that it is done.
    pub(crate) fn donor_done(&mut self, id: SubmissionId, joiner: Option<Incarnation>, rcode: i32) {
        if id.incarnation == self.me {
            self.submissions.take(id.number);
            self.synced_told = false;
        }
        let Stage::Transfer(transfer) = &mut self.stage else { return };
        let TransferPhase::Receiving { donor } = &mut transfer.phase else { return };
        if joiner != Some(self.me) || *donor != Some(id.incarnation) {
            return;
        }
        *donor = None;
        if rcode < 0 {
            transfer.phase = TransferPhase::GivenUp;
            let name = self.name_of(id.incarnation);
            self.fatal(format!("State transfer from {name} failed: {rcode}. {NEVER}"));
        }
    }

    /// Donors left in the middle.
    pub(crate) fn donors_lost(&mut self, lost: &[Lost]) {
        let me = self.me;
        let Stage::Transfer(transfer) = &mut self.stage else { return };
        let TransferPhase::Receiving { donor: Some(donor) } = transfer.phase else { return };
        if lost.contains(&Lost { donor, joiner: me }) {
            transfer.phase = TransferPhase::GivenUp;
            self.fatal(format!("Donor {donor} is no longer in the group. State transfer cannot be completed. {NEVER}"));
        }
    }

    /// sst_received()
    pub(crate) fn sst_received(&mut self, ticket: Ticket, gtid: Gtid, rcode: i32) {
        let expected = match &self.stage {
            Stage::Transfer(t) => {
                t.awaits_snapshot() && !matches!(t.phase, TransferPhase::Requesting | TransferPhase::GivenUp)
            }
            _ => false,
        };
        if !expected {
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        self.answer(ticket, Answer::unordered(Code::Ok));
        let history = self.control.as_ref().map(|c| c.history).unwrap_or_default();
        if rcode != 0 || gtid.seqno < 0 {
            return self.fatal(format!("State transfer failed: {rcode}. {NEVER}"));
        }
        if gtid.uuid != history {
            return self.fatal(format!("State transfer brought {gtid}, the group's history is {history}. {NEVER}"));
        }
        let Stage::Transfer(transfer) = &self.stage else { return };
        let upto = transfer.upto;
        self.out.push(Action::MarkUncorrupt);
        self.out.push(Action::MarkSafe);
        self.out.push(Action::SaveState {
            gtid: Gtid { uuid: history, seqno: -1 },
            safe_to_bootstrap: self.safe_to_bootstrap,
        });
        self.snapshot_is_here(gtid.seqno, upto);
    }

    /// The database is at `seqno`: what was delivered at or below it is left out, what it lacks is
    /// pulled.
    fn snapshot_is_here(&mut self, seqno: Seqno, upto: Seqno) {
        self.applied_history = self.control.as_ref().map(|c| c.history).unwrap_or_default();
        self.order = Order::new(seqno);
        let sources = self.ist_sources(None);
        let Stage::Transfer(transfer) = &mut self.stage else { return };
        transfer.upto = upto;
        transfer.phase = TransferPhase::Ist(Ist {
            first: seqno + 1,
            next: seqno + 1,
            own_log: true,
            sources,
            asked: false,
            deadline_ms: 0,
            silent: 0,
            begun: true,
            after_snapshot: true,
            synthetic_view: false,
            reported_ms: self.now_ms,
        });
    }
}
