//! Carries out the actions of group and replicator. In: actions, in the order in which the state machines gave them.
//! Out: writes to the log, events for the other state machine, and requests to [`Host`]. An entry is in the log, and
//! a promise is kept, before a message that speaks of it goes out.

use trireme_group as group;
use trireme_log::{LogError, Outcome};
use trireme_mutants::{Mutant, planted};
use trireme_replicator as replicator;
use trireme_replicator::{Action, GroupAction, HostAction, LogAction, Note};

use crate::engine::{Engine, Link};
use crate::host::{Channel, Host};
use crate::laggard::Laggard;
use crate::session::Forgotten;
use crate::storage::Storage;

impl Engine {
    /// Reports a read error of the log to the operator. The reader does without the entries, by a checkpoint or an SST,
    /// or waits.
    pub(crate) fn see_reads(&mut self, now_ms: u64, host: &mut dyn Host) {
        let link = self.link.as_mut().map(|link| &mut link.storage);
        let storage = link.or(self.failed_log.as_mut());
        let Some(error) = storage.and_then(Storage::take_read_error) else {
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

    /// Returns the log that takes notes: the connection's log, or the log of a connection that a failure has ended.
    fn noted_log(&mut self) -> Option<&mut Storage> {
        let link = self.link.as_mut().map(|link| &mut link.storage);
        link.or(self.failed_log.as_mut())
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

    pub(crate) fn group_action(&mut self, now_ms: u64, action: group::Action, host: &mut dyn Host) {
        use group::Action;
        if self.link.is_none() || self.failed.is_some() {
            return;
        }
        let delivers = matches!(
            action,
            Action::Deliver { .. } | Action::DeliverFromLog { .. }
        );
        if delivers && !self.write_before_delivery(host) {
            return;
        }
        let Some(link) = &mut self.link else { return };
        match &action {
            Action::Deliver { position, delivery } => host.delivered(*position, delivery),
            Action::DeliverFromLog { first, last } => {
                host.delivered_from_log(*first, *last, &link.storage);
            }
            _ => {}
        }
        if let Some(action) = link.undelivered.take_in(action) {
            self.carry_out_group(now_ms, action, host);
        }
    }

    pub(crate) fn carry_out_group(
        &mut self,
        now_ms: u64,
        action: group::Action,
        host: &mut dyn Host,
    ) {
        use group::Action;
        let Some(link) = self.link.as_mut().filter(|_| self.failed.is_none()) else {
            return;
        };
        match action {
            Action::Send { to, message } => send(&to, &message, host),
            Action::Append { entry } => self.append(&entry, host),
            Action::Stage {
                bulk,
                offset,
                bytes,
            } => self.stage(now_ms, bulk, offset, bytes, host),
            Action::Unstage { bulk } => link.storage.staging().drop_bulk(bulk),
            Action::Staged {
                bulk,
                id,
                head,
                digest,
            } => link.storage.staging().submit(bulk, id, head, digest),
            Action::KeepStaged { origins } => {
                let dropped = link.storage.staging().keep(&origins);
                self.not_staged(now_ms, dropped);
            }
            Action::Truncate { after } => self.truncate(after, host),
            Action::Reset { checkpoint } => self.begin_anew(now_ms, checkpoint, host),
            Action::Persist(state) => self.persist(now_ms, state.promised, host),
            Action::Deliver { position, delivery } => {
                self.deliver(now_ms, position, delivery, host)
            }
            Action::DeliverFromLog { .. } => {} // waits: see `Undelivered::take_in`
            Action::Passed { position } => {
                self.node(now_ms, replicator::Event::Passed { position })
            }
            Action::Found => self.found(now_ms, host),
            Action::Reform {
                override_id,
                from_database,
                heard,
                text,
            } => {
                host.alarm(&text);
                host.reforms(&heard);
                self.reform(now_ms, override_id, from_database, host);
            }
            Action::NonPrimary { component } => {
                self.node(now_ms, replicator::Event::NonPrimary { component })
            }
            Action::Failed { id, fate } => {
                self.node(now_ms, replicator::Event::Failed { id, fate })
            }
            Action::Spread { bulk } => self.node(now_ms, replicator::Event::Spread { bulk }),
            Action::ReadPoint { token, position } => {
                self.node(now_ms, replicator::Event::ReadPoint { token, position })
            }
            Action::ReadFailed { token } => {
                self.node(now_ms, replicator::Event::ReadFailed { token })
            }
            // The mesh stays up for a while: the others may still need this member's last message.
            Action::Left => {
                self.drop_deliveries(now_ms, host);
                self.node(now_ms, replicator::Event::Left)
            }
            Action::Refused { reason } => host.refused(reason),
            Action::Note { text } => host.note(&text),
            Action::Alarm { text } => host.alarm(&text),
        }
    }

    /// Appends an entry to the log.
    fn append(&mut self, entry: &group::Entry, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        host.appended(entry);
        // The override is noted before any entry above the fork point is delivered, and before its own configuration is
        // appended.
        let noted = match &entry.body {
            group::Body::Configuration(group::Configuration {
                override_id: Some(id),
                ..
            }) if self.replicator.database_follows() => {
                let known = link.group.overrides_in_log();
                link.storage.note_override(*id, &known)
            }
            _ => Ok(()),
        };
        let result = noted.and_then(|()| link.storage.append(entry));
        let at_once = matches!(entry.body, group::Body::Configuration(_));
        link.flushes.appended(entry.position, at_once);
        self.must_write(result);
    }

    /// Drops the log's entries above this position.
    fn truncate(&mut self, after: group::Position, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        host.truncated(after, link.group.term());
        let result = link.storage.truncate(after);
        link.flushes.truncated(after);
        self.must_write(result);
    }

    /// Begins the log anew above a checkpoint. Before, the replicator hears of everything that waits in the old log.
    fn begin_anew(&mut self, now_ms: u64, checkpoint: group::Checkpoint, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        let term = link.group.term();
        self.drop_deliveries(now_ms, host);
        host.began_anew(&checkpoint, term);
        if self.replicator.needs_log() {
            self.node(now_ms, replicator::Event::LogEnds);
            self.carry_out(now_ms, host);
        }
        let Some(link) = &mut self.link else { return };
        let dropped = link.storage.staging().bulk_payloads();
        let forgot = Forgotten::by(&link.group);
        let result = link.storage.begin(&checkpoint, forgot);
        link.flushes.forget(now_ms);
        self.not_staged(now_ms, dropped);
        self.must_write(result);
        self.tell_history(host);
        self.node(now_ms, replicator::Event::Reset(Box::new(checkpoint)));
    }

    /// Keeps a promised term, before the group may send the promise.
    fn persist(&mut self, now_ms: u64, promised: group::Term, host: &mut dyn Host) {
        self.group_dirty = true;
        let persisted = match planted(Mutant::PromiseNotPersisted) {
            true => Ok(()),
            false => host.promise(promised),
        };
        let persisted = persisted.or_else(|error| {
            let is_given = planted(Mutant::UnkeptPromiseGiven);
            is_given.then_some(()).ok_or(error)
        });
        match (persisted, &mut self.link) {
            (Ok(()), Some(link)) => {
                (link.group).handle(now_ms, group::Event::Persisted { promised })
            }
            (Ok(()), None) => {}
            (Err(error), _) => self.not_kept("the promised term cannot be written", &error),
        }
    }

    /// Tells the replicator of an entry that the group has delivered.
    pub(crate) fn deliver(
        &mut self,
        now_ms: u64,
        position: group::Position,
        delivery: group::Delivery,
        host: &mut dyn Host,
    ) {
        self.tell_history(host);
        let configuration = match &delivery {
            group::Delivery::Configuration(made) if made.override_id.is_some() => {
                Some(made.clone())
            }
            _ => None,
        };
        self.node(now_ms, replicator::Event::Delivered { position, delivery });
        host.took_in(&self.replicator);
        if let Some(configuration) = configuration {
            self.see_override(&configuration, host);
        }
    }

    /// Founds a history with the support of the other nodes, as a bootstrap does.
    fn found(&mut self, now_ms: u64, host: &mut dyn Host) {
        let link = self.link.as_mut().filter(|_| !self.replicator.is_leaving());
        let Some((link, history)) = link.and_then(|link| link.to_found.take().map(|id| (link, id)))
        else {
            return; // the node is leaving; the next process founds
        };
        let checkpoint = group::Checkpoint {
            history,
            ..group::Checkpoint::default()
        };
        link.just_founded = true;
        let begun = link.storage.begin(&checkpoint, Forgotten::default());
        self.must_write(begun);
        if self.failed.is_some() {
            return;
        }
        host.founds(history);
        self.node(now_ms, replicator::Event::Found { history });
        let event = group::Event::Bootstrap {
            history,
            overrides: Vec::new(),
            override_id: None,
        };
        self.group(now_ms, event);
    }

    /// Notes beside the log the state that a restart needs.
    pub(crate) fn note_component_state(&mut self, host: &mut dyn Host) {
        let Some(link) = self.link.as_mut().filter(|_| self.failed.is_none()) else {
            return;
        };
        let group = &link.group;
        let mut result = link.storage.note_forgotten(Forgotten::by(group));
        self.volume_failed &= group.is_amnesiac() || result.is_err();
        let in_step = link.undelivered.is_empty();
        if in_step && link.storage.wants_snapshot() && result.is_ok() {
            if let Some(control) = self.replicator.control_snapshot() {
                let state = link.group.checkpoint();
                host.kept(state, &control);
                result = link.storage.put_snapshot(state, &control);
                // No message has spoken of a log that lacks this checkpoint.
                if std::mem::take(&mut link.just_founded) && result.is_ok() {
                    result = link.storage.flush();
                }
            }
        }
        self.must_write(result);
    }

    /// Names the log in the data directory, before any message speaks of the log's entries.
    pub(crate) fn tell_log(&mut self, host: &mut dyn Host) {
        let untold = |link: &&mut Link| !link.log_told;
        let Some(link) = self.link.as_mut().filter(untold) else {
            return;
        };
        let Some(id) = link.storage.log_id() else {
            return;
        };
        link.log_told = true;
        if let Err(error) = host.in_log(id) {
            self.not_kept(
                "cannot write down which write-set log is this node's",
                &error,
            );
        }
    }

    pub(crate) fn tell_history(&mut self, host: &mut dyn Host) {
        let untold = |link: &&mut Link| !link.history_told && !link.group.history().is_nil();
        let Some(link) = self.link.as_mut().filter(untold) else {
            return;
        };
        link.history_told = true;
        host.in_history(link.group.history());
    }

    pub(crate) fn node_action(&mut self, now_ms: u64, action: Action, host: &mut dyn Host) {
        match action {
            Action::Group(action) => self.ask_group(now_ms, action, host),
            Action::SendTo { to, bytes } => {
                if self.link.is_some() {
                    host.send(&[to], Channel::Replicator, bytes);
                }
            }
            Action::Serve(pull) => self.serve(now_ms, pull, host),
            Action::Log(action) => self.tell_link_log(action, host),
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
    fn tell_link_log(&mut self, action: LogAction, host: &mut dyn Host) {
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
                let laggard = Laggard::among(&unreported, &link.group);
                let laggard = laggard.filter(|laggard| laggard.lacks_from < keep_from);
                let keep_from = laggard.as_ref().map_or(keep_from, |l| l.lacks_from);
                let result = link.storage.pin(keep_from);
                if let Some(laggard) = laggard {
                    let excess_bytes = link.storage.bytes_beyond_size();
                    let unsaid_bytes = link.storage.thresholds.excess_bytes;
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
                let log = self.noted_log();
                let result = log.map_or(Ok(()), |log| log.note_overrides(overrides));
                self.must_note(result, host);
            }
        }
    }
}

/// Sends a group's message to these peers.
fn send(to: &[group::Incarnation], message: &group::Message, host: &mut dyn Host) {
    let channel = match message {
        group::Message::Part { .. } => Channel::Bulk,
        _ => Channel::Group,
    };
    if let Some((term, position)) = message.acknowledges() {
        host.acknowledged(term, position);
    }
    host.send(to, channel, group::encode(message));
}
