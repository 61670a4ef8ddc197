//! Carries out the host effects of a node's engine.

use bytes::Bytes;
use trireme_engine::{Channel, Host, HostAction, NotKept, ServeJob, StageJob, Storage};
use trireme_group::{
    Body, Checkpoint, Configuration, Delivery, Entry, Incarnation, Position, Term, Uuid,
};
use trireme_log::{FlushJob, MemoryDisk, Outcome};
use trireme_replicator::{ControlDigest, Gtid, History, Replicator};

use super::control::{see_kept, see_taken_in};
use crate::digest;
use crate::doom::Doom;
use crate::machine::{Progress, VotesFail};
use crate::saved_state::SavedState;
use crate::seen::{NodeId, Seen, TimeUs};
use crate::server::Server;
use crate::sketch::{self, Sketch};
use crate::watch::Watch;

/// The error of a promise for which there is no room.
pub(super) const NO_ROOM: &str = "simulated lack of room";

/// The parts of the world and of a node that the engine's host effects need.
pub struct Outlet<'a> {
    pub now_us: TimeUs,
    pub node: NodeId,
    pub incarnation: Incarnation,
    pub server: &'a mut Server,
    pub progress: &'a mut Progress,
    pub promised: &'a mut Term,
    pub last_log: &'a mut Uuid,
    pub saved: &'a mut SavedState,
    /// Why writing the file of promises fails, if it does.
    pub votes_fail: Option<VotesFail>,
    pub outbox: &'a mut Vec<(Incarnation, Bytes)>,
    pub doom: &'a Doom,
    pub disk: &'a MemoryDisk,
    pub configurations: &'a mut Vec<(Position, Configuration)>,
    /// Position of the control state at the last report to the invariants.
    pub control_shown: &'a mut Position,
    /// The delivered configurations, for the world.
    pub views: &'a mut Vec<(Position, Configuration)>,
    pub watch: &'a mut Watch,
}

impl Outlet<'_> {
    fn see(&mut self, what: Seen) {
        self.watch.see(self.now_us, self.node, what);
    }

    /// Adds an output of the node to the digest.
    fn leaves(&mut self, channel: digest::Channel, what: impl FnOnce() -> Sketch) {
        self.watch.leaves(self.now_us, self.node, channel, what);
    }

    fn writes_votes(&self) -> Result<(), NotKept> {
        let error = |text: &str, is_lack| NotKept {
            text: text.to_owned(),
            is_lack,
        };
        match self.votes_fail {
            Some(VotesFail::Error) => Err(error("simulated failure", false)),
            Some(VotesFail::NoRoom) => Err(error(NO_ROOM, true)),
            None => Ok(()),
        }
    }
}

/// A sketch of a frame: group messages by their content, messages between replicators as payloads.
fn sketch_frame(channel: Channel, bytes: &Bytes) -> Sketch {
    match channel {
        Channel::Replicator => Sketch::of(100).and(bytes),
        Channel::Group | Channel::Bulk => match trireme_group::decode(bytes.clone()) {
            Ok(message) => sketch::message(&message),
            Err(_) => Sketch::of(0),
        },
    }
}

impl Host for Outlet<'_> {
    fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes) {
        self.progress.acted = true;
        if self.watch.digest.is_some() {
            let sketch = sketch_frame(channel, &bytes);
            for peer in to {
                self.leaves(digest::Channel::Peer(*peer), || sketch);
            }
        }
        let mut frame = Vec::with_capacity(1 + bytes.len());
        frame.push(channel.byte());
        frame.extend_from_slice(&bytes);
        let frame = Bytes::from(frame);
        for peer in to {
            self.outbox.push((*peer, frame.clone()));
        }
    }

    /// The network takes everything at once: what waits is what this input has sent.
    fn queued_bytes(&self, peer: Incarnation) -> Option<usize> {
        let to_peer = self.outbox.iter().filter(|(to, _)| *to == peer);
        Some(to_peer.map(|(_, frame)| frame.len()).sum())
    }

    fn promise(&mut self, term: Term) -> Result<(), NotKept> {
        self.writes_votes()?;
        self.leaves(digest::Channel::Log, || Sketch::of(1).and(&term));
        self.progress.waited = true;
        if self.doom.step() {
            *self.promised = term;
        }
        let by = self.incarnation;
        self.see(Seen::Promised { by, term });
        Ok(())
    }

    fn in_log(&mut self, id: Uuid) -> Result<(), NotKept> {
        self.writes_votes()?;
        self.leaves(digest::Channel::Log, || Sketch::of(2).and(&id));
        if self.doom.step() {
            *self.last_log = id;
        }
        Ok(())
    }

    fn in_history(&mut self, history: Uuid) {
        self.progress.history = history;
    }

    fn refused(&mut self, reason: String) {
        self.progress.refused = Some(reason);
    }

    fn note(&mut self, text: &str) {
        let node = self.node;
        // These notes are the only sign of a hang and of its end.
        if text.contains("its disk does not answer") {
            self.progress.hangs += 1;
            self.progress.is_hanging = true;
        } else if text.contains("the disk here does not answer") {
            self.progress.handed_for_hang += 1;
        } else if text.contains("answers again") {
            self.progress.is_hanging = false;
        }
        if text.starts_with("waiting for a majority") {
            self.progress.excluded = text.contains("To join them: stop this node");
        }
        if let Some((_, advice)) = text.split_once("to go on without them") {
            let mut words = advice.split(|c: char| !c.is_alphanumeric());
            self.progress.advised = words.find_map(|word| word.strip_prefix('n')?.parse().ok());
        }
        self.watch
            .tell(self.now_us, || format!("n{} notes: {text}", node + 1));
    }

    fn flush(&mut self, job: FlushJob) {
        self.progress.flushes.push(job);
    }

    fn stage(&mut self, job: StageJob) {
        self.progress.stages.push(job);
    }

    fn serve(&mut self, job: ServeJob) {
        self.progress.serves.push(job);
    }

    fn fail(&mut self, text: &str) {
        self.progress.failed = Some(text.to_owned());
        // No output of this step may leave the process.
        self.outbox.clear();
        self.progress.acknowledged = None;
    }

    fn act(&mut self, action: HostAction) {
        self.progress.acted = true;
        if self.watch.digest.is_some() {
            self.leaves(digest::Channel::Host, || sketch::action(&action));
        }
        if !self.doom.step() {
            return;
        }
        match action {
            HostAction::Answer { ticket, answer } => self.server.answered(ticket, answer),
            HostAction::WakeAppliers { n } => self.server.wake_appliers(n),
            HostAction::Log { level, text } => {
                // The log line is the only sign of these events.
                self.progress.ists += u64::from(text.starts_with("Receiving IST"));
                self.progress.forks += u64::from(text.contains("have gone on without each other"));
                let node = self.node;
                self.watch.tell(self.now_us, || {
                    format!("n{} logs ({level:?}): {text}", node + 1)
                });
            }
            HostAction::Fatal { text } => {
                self.progress.fatal.get_or_insert(text);
            }
            HostAction::Admitted => {
                self.progress.admitted = true;
                self.server.admitted();
            }
            HostAction::Closed => self.progress.closed = true,
            HostAction::SaveState {
                gtid,
                safe_to_bootstrap,
            } => self.saved.set(gtid, safe_to_bootstrap),
            HostAction::MarkUnsafe => self.saved.mark_unsafe(),
            HostAction::MarkSafe => self.saved.mark_safe(),
            HostAction::MarkCorrupt => self.saved.mark_corrupt(),
            HostAction::MarkUncorrupt => self.saved.mark_uncorrupt(),
        }
    }

    fn appended(&mut self, entry: &Entry) {
        self.progress.appended = true;
        self.leaves(digest::Channel::Log, || sketch::entry(entry));
        if let Body::Configuration(configuration) = &entry.body {
            self.progress.waited = true;
            (self.configurations).push((entry.position, configuration.clone()));
        }
        self.see(Seen::Appended {
            entry: entry.clone(),
        });
    }

    fn acknowledged(&mut self, term: Term, position: Position) {
        // The acknowledgement has not left the process yet.
        let said = &mut self.progress.acknowledged;
        *said = (*said).max(Some((term, position)));
    }

    fn truncated(&mut self, after: Position, term: Term) {
        self.leaves(digest::Channel::Log, || Sketch::of(3).and(&(after, term)));
        self.see(Seen::InForce { term });
        self.configurations.retain(|(at, _)| *at <= after);
        self.see(Seen::Truncated { after });
    }

    fn began_anew(&mut self, checkpoint: &Checkpoint, term: Term) {
        self.leaves(digest::Channel::Log, || {
            Sketch::of(4).and(&(checkpoint, term))
        });
        self.see(Seen::InForce { term });
        self.progress.is_hanging = false; // the hanging flush was one of the old log
        self.configurations.clear();
        *self.control_shown = 0;
        self.see(Seen::BeganAnew {
            checkpoint: checkpoint.clone(),
        });
    }

    fn founds(&mut self, history: Uuid) {
        self.see(Seen::Supported { history });
        self.see(Seen::Founded { history, seqno: 0 });
        self.server.founds(Gtid {
            uuid: Uuid::NIL,
            seqno: 0,
        });
    }

    fn reforms(&mut self, heard: &[Incarnation]) {
        self.progress.reforms_with = heard.to_vec();
    }

    fn founds_on(&mut self, database: Gtid) {
        let Gtid { uuid, seqno } = database;
        self.see(Seen::Founded {
            history: uuid,
            seqno,
        });
        self.server.founds(database);
    }

    fn delivered(&mut self, position: Position, delivery: &Delivery) {
        self.leaves(digest::Channel::Order, || {
            sketch::delivery(position, delivery)
        });
        if let Delivery::Configuration(configuration) = delivery {
            self.views.push((position, configuration.clone()));
        }
        self.see(Seen::Delivered {
            position,
            delivery: delivery.clone(),
        });
    }

    fn delivered_from_log(&mut self, first: Position, last: Position, log: &Storage) {
        // The disk may be failing: then the replicator gets none of these entries, but the group has delivered them.
        let found = (self.disk).readable(|| log.read_back(first, last, usize::MAX));
        for (position, delivery) in found.into_iter().flatten() {
            self.delivered(position, &delivery);
        }
    }

    fn took_in(&mut self, node: &Replicator) {
        see_taken_in(self.watch, self.now_us, self.node, node, self.control_shown);
    }

    fn noted(&mut self, position: Position, outcome: Outcome) {
        let (seqno, flags, depends_on) = (outcome.seqno, outcome.flags, outcome.depends_on);
        self.leaves(digest::Channel::Log, || {
            Sketch::of(5).and(&(position, seqno, flags, depends_on))
        });
        self.see(Seen::Noted { position, outcome });
    }

    fn kept(&mut self, state: &Checkpoint, control: &Bytes) {
        self.leaves(digest::Channel::Log, || Sketch::of(6).and(state));
        let digest = ControlDigest::of_snapshot(control);
        see_kept(self.watch, self.now_us, self.node, state, digest);
    }
}
