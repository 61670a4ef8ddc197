//! What group and replicator ask for.

use trireme_group as group;
use trireme_log::{LogError, Outcome};
use trireme_mutants::{Mutant, planted};
use trireme_replicator as replicator;

use crate::engine::{Engine, Link};
use crate::outside::{Channel, Outside};

impl Engine {
    /// Writes what was appended. True if the group has learnt something by it.
    pub(crate) fn write_log(&mut self, now_ms: u64, outside: &mut dyn Outside) -> bool {
        let Some(link) = &mut self.link else {
            return false;
        };
        let mut result = link.storage.write_out();
        let unflushed = link.unflushed.take();
        let flush_now = std::mem::take(&mut link.flush_now);
        if (unflushed.is_some() || flush_now) && result.is_ok() {
            result = link.storage.flush();
        }
        self.must_write(result, outside);
        match unflushed {
            Some(position) if !self.failed => {
                self.group(now_ms, group::Event::Appended { position });
                true
            }
            _ => false,
        }
    }

    /// A log that cannot be written ends this process's part in the cluster: going on would
    /// acknowledge what is not kept (rule 23: a failed write is never retried).
    fn must_write(&mut self, result: Result<(), LogError>, outside: &mut dyn Outside) {
        if let Err(error) = result {
            self.failed = true;
            outside.fail(&format!("the write-set log cannot be written: {error}"));
        }
    }

    pub(crate) fn group_action(
        &mut self,
        now_ms: u64,
        action: group::Action,
        outside: &mut dyn Outside,
    ) {
        use group::Action;
        let Some(link) = self.link.as_mut().filter(|_| !self.failed) else {
            return;
        };
        match action {
            Action::Send { to, message } => {
                outside.send(&to, Channel::Group, group::encode(&message))
            }
            Action::Append { entry } => {
                outside.appended(&entry);
                // Noted before anything above the fork is delivered; the fork itself follows.
                let noted = match &entry.body {
                    group::Body::Configuration(group::Configuration {
                        override_id: Some(id),
                        ..
                    }) if self.replicator.database_follows() => link.storage.note_override(*id),
                    _ => Ok(()),
                };
                let result = noted.and_then(|()| link.storage.append(&entry));
                link.flush_now |= matches!(entry.body, group::Body::Configuration(_));
                if link.flush_appends {
                    link.unflushed = Some(entry.position);
                }
                self.must_write(result, outside);
            }
            Action::Truncate { after } => {
                outside.truncated(after);
                let result = link.storage.truncate(after);
                // A completion must not speak of entries that are gone.
                link.unflushed = link.unflushed.map(|position| position.min(after));
                self.must_write(result, outside);
            }
            Action::Reset { checkpoint } => {
                outside.began_anew(&checkpoint);
                let result = link.storage.begin(&checkpoint, link.group.is_amnesiac());
                link.unflushed = None;
                self.must_write(result, outside);
                self.tell_history(outside);
                self.node(now_ms, replicator::Event::Reset(Box::new(checkpoint)));
            }
            Action::Persist(state) => {
                let promised = state.promised;
                self.group_dirty = true;
                let persisted = match planted(Mutant::PromiseNotPersisted) {
                    true => Ok(()),
                    false => outside.promise(promised),
                };
                match persisted {
                    Ok(()) => (link.group).handle(now_ms, group::Event::Persisted { promised }),
                    Err(error) => {
                        self.failed = true;
                        outside.fail(&format!("the promised ballot cannot be written: {error}"));
                    }
                }
            }
            Action::Deliver { position, delivery } => {
                outside.delivered(position, &delivery);
                self.tell_history(outside);
                self.node(now_ms, replicator::Event::Delivered { position, delivery });
            }
            Action::NonPrimary { component } => {
                self.node(now_ms, replicator::Event::NonPrimary { component })
            }
            Action::Failed { id, fate } => {
                self.node(now_ms, replicator::Event::Failed { id, fate })
            }
            Action::ReadPoint { token, position } => {
                self.node(now_ms, replicator::Event::ReadPoint { token, position })
            }
            Action::ReadFailed { token } => {
                self.node(now_ms, replicator::Event::ReadFailed { token })
            }
            // The mesh stays up for a while: the others may still need this member's last word.
            Action::Left => self.node(now_ms, replicator::Event::Left),
            Action::Refused { reason } => outside.refused(reason),
            Action::Note { text } => outside.note(&text),
        }
    }

    /// Notes beside the log what a restart must know.
    pub(crate) fn note_standing(&mut self, outside: &mut dyn Outside) {
        let Some(link) = self.link.as_mut().filter(|_| !self.failed) else {
            return;
        };
        let mut result = link.storage.note_amnesia(link.group.is_amnesiac());
        if link.storage.wants_snapshot() && result.is_ok() {
            if let Some(control) = self.replicator.control_snapshot() {
                let state = link.group.checkpoint();
                result = link.storage.put_snapshot(state, &control);
            }
        }
        self.must_write(result, outside);
    }

    pub(crate) fn tell_history(&mut self, outside: &mut dyn Outside) {
        let untold = |link: &&mut Link| !link.history_told && !link.group.history().is_nil();
        let Some(link) = self.link.as_mut().filter(untold) else {
            return;
        };
        link.history_told = true;
        outside.in_history(link.group.history());
    }

    pub(crate) fn node_action(
        &mut self,
        now_ms: u64,
        action: replicator::Action,
        outside: &mut dyn Outside,
    ) {
        use replicator::Action;
        let Some(link) = &mut self.link else {
            match action {
                Action::Leave => self.node(now_ms, replicator::Event::Left),
                Action::Submit { .. }
                | Action::SendTo { .. }
                | Action::Read { .. }
                | Action::SetJoined { .. }
                | Action::RecordOutcome { .. }
                | Action::NoteAction { .. }
                | Action::NoteOverrides { .. }
                | Action::PinLog { .. } => {} // mean nothing without a connection
                other => outside.act(other),
            }
            return;
        };
        match action {
            Action::Submit { number, payload } => {
                self.group_dirty = true;
                link.group.submit(now_ms, number, payload);
            }
            Action::SendTo { to, bytes } => outside.send(&[to], Channel::Replicator, bytes),
            Action::Read { token } => self.group(now_ms, group::Event::Read { token }),
            Action::SetJoined { position, members } => {
                self.group(now_ms, group::Event::Joined { position, members })
            }
            Action::Leave => self.group(now_ms, group::Event::Leave),
            Action::RecordOutcome {
                position,
                seqno,
                depends_on,
                failed,
            } => {
                let outcome = Outcome {
                    seqno,
                    flags: match failed && !planted(Mutant::OutcomeOfFailedLost) {
                        true => Outcome::FAILED,
                        false => 0,
                    },
                    depends_on,
                };
                let result = link.storage.set_outcome(position, outcome);
                self.must_write(result, outside);
            }
            Action::NoteAction { gtid } => {
                let result = link.storage.note_action(gtid);
                self.must_write(result, outside);
            }
            Action::NoteOverrides { overrides } => {
                let result = link.storage.note_overrides(overrides);
                self.must_write(result, outside);
            }
            Action::PinLog { keep_from } => {
                let result = link.storage.pin(keep_from);
                self.must_write(result, outside);
            }
            other => outside.act(other),
        }
    }
}
