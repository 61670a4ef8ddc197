//! Carries out the replicator's actions, in their order. Out: events for the group, notes and outcomes in the log,
//! entries for peers, and requests to [`Host`].

use trireme_group as group;
use trireme_log::{LogError, Outcome};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{
    self as replicator, Action, GroupAction, HostAction, LogAction, Note, Pull,
};

use crate::engine::Engine;
use crate::host::{Channel, Host};
use crate::laggard::Laggard;
use crate::serving::{NextStep, ServeDone, Served};
use crate::storage::Storage;

impl Engine {
    pub(super) fn node_action(&mut self, now_ms: u64, action: Action, host: &mut dyn Host) {
        match action {
            Action::Group(action) => self.ask_group(now_ms, action, host),
            Action::SendTo { to, bytes } => {
                if self.link.is_some() {
                    host.send(&[to], Channel::Replicator, bytes);
                }
            }
            Action::Serve(pull) => self.serve(now_ms, pull, host),
            Action::SendControlState { to, parts } => {
                if let Some(link) = &mut self.link {
                    link.control_states.begin(to, parts);
                    self.send_control_states(now_ms, host);
                }
            }
            Action::Log(action) => self.tell_link_log(now_ms, action, host),
            Action::Note(note) => self.note(note, host),
            Action::Host(action) => {
                match action {
                    HostAction::MarkCorrupt => self.note_diverged(true),
                    HostAction::MarkUncorrupt => self.note_diverged(false),
                    _ => {}
                }
                host.act(action);
            }
        }
    }

    /// Passes a request of the replicator to the group. Without a connection only the request to leave has an effect.
    fn ask_group(&mut self, now_ms: u64, action: GroupAction, host: &mut dyn Host) {
        let Some(link) = &mut self.link else {
            if let GroupAction::Leave = action {
                self.node(now_ms, replicator::Event::Left);
            }
            return;
        };
        match action {
            GroupAction::Submit { number, payload } => {
                self.group_dirty = true;
                host.submitted(number, &payload);
                link.group.submit(now_ms, number, payload);
            }
            GroupAction::Spread {
                bulk,
                payload,
                head,
                digest,
            } => {
                self.group_dirty = true;
                link.group.spread(now_ms, bulk, payload, head, digest);
            }
            GroupAction::Recall { bulk } => {
                self.group_dirty = true;
                link.group.recall(bulk);
            }
            GroupAction::SubmitBulk { number, bulk, head } => {
                self.group_dirty = true;
                host.submitted(number, &head);
                link.group.submit_bulk(now_ms, number, bulk, head);
            }
            GroupAction::Read { token } => self.group(now_ms, group::Event::Read { token }),
            GroupAction::SetJoined { position, members } => {
                self.group(now_ms, group::Event::Joined { position, members })
            }
            GroupAction::Leave => self.group(now_ms, group::Event::Leave),
        }
    }

    /// Passes a request of the replicator to the connection's log.
    fn tell_link_log(&mut self, now_ms: u64, action: LogAction, host: &mut dyn Host) {
        let Some(link) = &mut self.link else {
            return;
        };
        let result = match action {
            LogAction::RecordOutcome {
                position,
                seqno,
                depends_on,
                failed,
            } => {
                let is_noted = failed && !planted(Mutant::OutcomeOfFailedLost);
                let outcome = Outcome {
                    seqno,
                    flags: if is_noted { Outcome::FAILED } else { 0 },
                    depends_on,
                };
                host.noted(position, outcome);
                link.storage.set_outcome(position, outcome)
            }
            LogAction::Pin {
                keep_from,
                unreported,
            } => {
                let held_by = |member| link.group.held_by(member);
                (link.words).hear(now_ms, link.group.term(), &unreported, held_by);
                let laggard = Laggard::among(&unreported, &link.words);
                let laggard = laggard.filter(|laggard| laggard.lacks_from < keep_from);
                let keep_from = laggard.as_ref().map_or(keep_from, |l| l.lacks_from);
                let result = link.storage.pin(keep_from);
                if let Some(laggard) = laggard {
                    let excess_bytes = link.storage.bytes_beyond_size();
                    let unsaid_bytes = link.storage.thresholds().excess_bytes;
                    let told = &mut link.laggard_told;
                    let told = told.grows(excess_bytes, unsaid_bytes, &laggard, &link.group);
                    self.notes.extend(told);
                }
                result
            }
        };
        self.must_write(result);
    }

    /// Notes something that a restart must know.
    fn note(&mut self, note: Note, host: &mut dyn Host) {
        match note {
            Note::Action { gtid, ended } => {
                if !ended {
                    self.flush_before_note();
                }
                let log = self.noted_log();
                let result = log.map_or(Ok(()), |log| log.note_action(gtid, ended));
                self.must_note(result, host);
            }
            Note::Applying => {
                let link = self.link.as_mut().filter(|_| self.failed.is_none());
                let result = link.map_or(Ok(()), |link| link.storage.note_applying());
                self.must_write(result);
            }
            Note::Overrides { overrides } => {
                self.flush_before_note();
                let log = self.noted_log();
                let result = log.map_or(Ok(()), |log| log.note_overrides(overrides));
                self.must_note(result, host);
            }
        }
    }

    /// Flushes the entries that a note presumes. A log that has failed, or was closed, does without.
    fn flush_before_note(&mut self) {
        let link = self.link.as_mut().filter(|_| self.failed.is_none());
        let flushed = link.map_or(Ok(()), |link| link.storage.flush_before_note());
        self.must_write(flushed);
    }

    /// Returns the log that takes notes: the connection's log, or the log of the connection that ended last.
    fn noted_log(&mut self) -> Option<&mut Storage> {
        let link = self.link.as_mut().map(|link| &mut link.storage);
        link.or(self.ended_log.as_mut())
    }

    /// Ends the node's part in the cluster if a note failed. The note had to be written before the action that it
    /// announces.
    fn must_note(&mut self, result: Result<(), LogError>, host: &mut dyn Host) {
        if let Err(error) = result {
            if let Some(log) = self.noted_log() {
                log.note_failure(!error.is_of_volume());
            }
            let text = format!(
                "cannot write crash-recovery state to trireme-state.log: {error}; this process ends, because a restart \
                 would rely on the old state"
            );
            host.act(HostAction::Fatal { text });
        }
    }

    /// Notes that the database has diverged. If the note fails the node goes on: grastate.dat says the same.
    fn note_diverged(&mut self, diverged: bool) {
        let log = self.noted_log();
        if let Some(Err(error)) = log.map(|log| log.note_diverged(diverged)) {
            self.notes.push(format!(
                "cannot write beside the write-set log whether the database has diverged ({error}): only grastate.dat \
                 tells it"
            ));
        }
    }

    /// Reports a read error of the log to the operator. The reader does without the entries, by a checkpoint or an SST,
    /// or waits.
    pub(super) fn see_reads(&mut self, now_ms: u64, host: &mut dyn Host) {
        let Some(error) = self.noted_log().and_then(Storage::take_read_error) else {
            return;
        };
        if !error.is_shortage() {
            host.warn(&format!(
                "entries of the write-set log cannot be read, others may need a full state transfer: {error}"
            ));
        } else if self.shortage_reminder.is_due(now_ms) {
            host.warn(&format!("the write-set log: {error}"));
        }
    }

    // ---- entries for peers ----

    /// A peer has pulled entries.
    fn serve(&mut self, now_ms: u64, pull: Pull, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        let apart = link.flushes.are_apart();
        match link.serving.pulled(pull, &link.storage, apart) {
            Some(NextStep::Job(job)) => host.serve(job),
            Some(NextStep::Served(served)) => self.answer_pull(now_ms, served, host),
            None => {}
        }
    }

    /// A job that [`Host::serve`] was given has ended. Its answer is sent by the next [`Engine::pump`].
    pub fn served(&mut self, done: ServeDone) {
        if let Some(link) = &mut self.link {
            link.serving.job_ended(done);
        }
    }

    pub(super) fn answer_pulls(&mut self, now_ms: u64, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        for served in link.serving.take_answers(&link.storage) {
            self.answer_pull(now_ms, served, host);
        }
    }

    /// Sends the parts of control states that have room in the send queues.
    pub(super) fn send_control_states(&mut self, now_ms: u64, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        let messages = (link.control_states).next(now_ms, |peer| host.queued_bytes(peer));
        for (to, bytes) in messages {
            host.send(&[to], Channel::Replicator, bytes);
        }
    }

    fn answer_pull(&mut self, now_ms: u64, served: Served, host: &mut dyn Host) {
        match served {
            Served::Answer(pull, bytes) => host.send(&[pull.to], Channel::Replicator, bytes),
            Served::Lost(Pull { to, seqno, .. }) => {
                self.node(now_ms, replicator::Event::Unserved { to, seqno })
            }
            Served::NotNow => {}
        }
    }
}
