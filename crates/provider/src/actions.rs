//! What the group and the replicator ask the node to do: log, files, peers, waiting threads.

use bytes::Bytes;
use trireme_group::{self as group, Incarnation};
use trireme_log::{LogError, Outcome};
use trireme_replicator::{self as replicator, Gtid, Level};
use trireme_transport::{Frame, Mesh, SendOutcome};

use crate::convert::uuid_to_abi;
use crate::core::{Core, TO_GROUP, TO_REPLICATOR, now_ms};
use crate::grastate::{Grastate, GrastateError};
use crate::votes::Ballot;

impl Core {
    /// Writes what was appended. True if the group has learnt something by it.
    pub(crate) fn write_log(&mut self) -> bool {
        let Some(link) = &mut self.link else {
            return false;
        };
        let mut result = link.storage.write_out();
        let unflushed = link.unflushed.take();
        if unflushed.is_some() && result.is_ok() {
            result = link.storage.flush();
        }
        self.must_write(result);
        match unflushed {
            Some(position) => {
                self.group(group::Event::Appended { position });
                true
            }
            None => false,
        }
    }

    /// A log that cannot be written ends this process's part in the cluster: going on would
    /// acknowledge what is not kept (rule 23: a failed write is never retried).
    fn must_write(&mut self, result: Result<(), LogError>) {
        if let Err(error) = result {
            self.die(&format!("the write-set log cannot be written: {error}"));
        }
    }

    fn die(&self, text: &str) -> ! {
        self.logger.error(text);
        std::process::abort();
    }

    pub(crate) fn group_action(&mut self, action: group::Action) {
        use group::Action;
        let Some(link) = &mut self.link else { return };
        match action {
            Action::Send { to, message } => {
                send(&mut link.mesh, &to, TO_GROUP, group::encode(&message))
            }
            Action::Append { entry } => {
                let result = link.storage.append(&entry);
                if link.flush_appends {
                    link.unflushed = Some(entry.position);
                }
                self.must_write(result);
            }
            Action::Truncate { after } => {
                let result = link.storage.truncate(after);
                self.must_write(result);
            }
            Action::Reset { checkpoint } => {
                let result = link.storage.begin(&checkpoint);
                self.must_write(result);
                self.tell_history();
                self.node(replicator::Event::Reset(Box::new(checkpoint)));
            }
            Action::Persist(state) => {
                let promised = state.promised;
                self.group_dirty = true;
                let ballot = Ballot {
                    number: promised.number,
                    replica: uuid_to_abi(promised.replica.0),
                };
                if let Err(error) = link.votes.promise(ballot) {
                    self.die(&format!("the promised ballot cannot be written: {error}"));
                }
                link.group
                    .handle(now_ms(), group::Event::Persisted { promised });
            }
            Action::Deliver { position, delivery } => {
                self.tell_history();
                self.node(replicator::Event::Delivered { position, delivery });
            }
            Action::NonPrimary { component } => {
                self.node(replicator::Event::NonPrimary { component })
            }
            Action::Failed { id, fate } => self.node(replicator::Event::Failed { id, fate }),
            Action::ReadPoint { token, position } => {
                self.node(replicator::Event::ReadPoint { token, position })
            }
            Action::ReadFailed { token } => self.node(replicator::Event::ReadFailed { token }),
            // The mesh stays up for a while: the others may still need this member's last word.
            Action::Left => self.node(replicator::Event::Left),
            Action::Refused { reason } => {
                self.logger
                    .error(format!("the cluster does not admit this node: {reason}"));
                self.progress.refused = Some(reason);
            }
            Action::Note { text } => self.logger.info(&text),
        }
    }

    /// Once the node is in a history, peers of another one are turned away (rule 11).
    fn tell_history(&mut self) {
        let Some(link) = &mut self.link else { return };
        if !link.history_told {
            link.history_told = true;
            link.mesh.set_history(link.group.history().0);
        }
    }

    pub(crate) fn node_action(&mut self, action: replicator::Action) {
        use replicator::Action;
        match action {
            Action::Answer { ticket, answer } => self.waiting.answer(ticket, answer),
            Action::WakeAppliers { n } => self.appliers_due = self.appliers_due.saturating_add(n),
            Action::Log { level, text } => self.log(level, &text),
            Action::Fatal { text } => self.die(&text),
            Action::Admitted => self.progress.admitted = true,
            Action::Closed => self.progress.closed = true,
            Action::Leave => match &self.link {
                Some(_) => self.group(group::Event::Leave),
                None => self.node(replicator::Event::Left),
            },
            Action::SaveState {
                gtid,
                safe_to_bootstrap,
            } => self.save_state(gtid, safe_to_bootstrap),
            Action::MarkUnsafe => self.grastate_op(Grastate::mark_unsafe),
            Action::MarkSafe => self.grastate_op(Grastate::mark_safe),
            Action::MarkCorrupt => self.grastate_op(Grastate::mark_corrupt),
            Action::MarkUncorrupt => self.grastate.mark_uncorrupt(),
            other => self.linked_action(other),
        }
    }

    /// Actions that mean nothing without a connection.
    fn linked_action(&mut self, action: replicator::Action) {
        use replicator::Action;
        let Some(link) = &mut self.link else { return };
        match action {
            Action::Submit { number, payload } => {
                self.group_dirty = true;
                link.group.submit(now_ms(), number, payload);
            }
            Action::SendTo { to, bytes } => send(&mut link.mesh, &[to], TO_REPLICATOR, bytes),
            Action::Read { token } => self.group(group::Event::Read { token }),
            Action::SetJoined { members } => self.group(group::Event::Joined { members }),
            Action::RecordOutcome {
                position,
                seqno,
                depends_on,
                failed,
            } => {
                let flags = if failed { Outcome::FAILED } else { 0 };
                let result = link.storage.set_outcome(
                    position,
                    Outcome {
                        seqno,
                        flags,
                        depends_on,
                    },
                );
                self.must_write(result);
            }
            Action::PinLog { keep_from } => {
                let result = link.storage.pin(keep_from);
                self.must_write(result);
            }
            _ => unreachable!("node_action handles the others"),
        }
    }

    fn log(&self, level: Level, text: &str) {
        match level {
            Level::Error => self.logger.error(text),
            Level::Warn => self.logger.warn(text),
            Level::Info => self.logger.info(text),
            Level::Debug => self.logger.debug(text),
        }
    }

    fn save_state(&mut self, gtid: Gtid, safe_to_bootstrap: bool) {
        self.grastate_op(|state| state.set(uuid_to_abi(gtid.uuid), gtid.seqno, safe_to_bootstrap));
    }

    fn grastate_op(&mut self, change: impl FnOnce(&mut Grastate) -> Result<(), GrastateError>) {
        if let Err(error) = change(&mut self.grastate) {
            self.logger.error(format!(
                "grastate.dat cannot be written, a restart may need a full state transfer: {error}"
            ));
        }
    }
}

fn send(mesh: &mut Mesh, to: &[Incarnation], kind: u8, bytes: Bytes) {
    // Group and replicator bound their messages far below 4 GiB.
    let Ok(frame) = Frame::new(&[kind], Some(bytes)) else {
        return;
    };
    for peer in to {
        // Dropped frames are made up for by the protocol: the peer asks again, or Drained comes.
        let _: SendOutcome = mesh.send(peer.0.0, frame.clone());
    }
}
