//! The node: group, replicator, mesh and log under one lock. Events go in through [`Core`]'s
//! methods; [`Core::pump`] carries out what the state machines ask for (`actions.rs`) until they are
//! content.

use bytes::Bytes;
use trireme_group::{self as group, Group, Incarnation, Position, ReplicaId};
use trireme_replicator::{self as replicator, Replicator};
use trireme_transport::{Mesh, MeshEvent, RejectReason};

use crate::grastate::Grastate;
use crate::logging::Logger;
use crate::storage::Storage;
use crate::votes::Votes;
use crate::waiting::Waiting;

/// First byte of a frame: whose message follows.
pub(crate) const TO_GROUP: u8 = 0;
pub(crate) const TO_REPLICATOR: u8 = 1;

/// What one connect() set up.
pub struct Link {
    pub group: Group,
    pub mesh: Mesh,
    pub storage: Storage,
    pub votes: Votes,
    /// True if an acknowledgement waits for the disk (`repl.durability=disk`).
    pub flush_appends: bool,
    pub(crate) unflushed: Option<Position>,
    pub(crate) history_told: bool,
}

/// How far a connect() or disconnect() has come.
#[derive(Default)]
pub struct Progress {
    /// In a view.
    pub admitted: bool,
    /// The cluster will not have this node, and why.
    pub refused: Option<String>,
    /// The node has left and told the server so.
    pub closed: bool,
}

/// Everything under the node's lock.
pub struct Core {
    pub replicator: Replicator,
    pub link: Option<Link>,
    pub waiting: Waiting,
    pub progress: Progress,
    pub grastate: Grastate,
    /// `wsrep_sst_donor` of this connection.
    pub donor: String,
    /// Member id of this connection.
    pub incarnation: group::Uuid,
    /// recv() threads to wake once the lock is released.
    pub appliers_due: usize,
    pub logger: Logger,
    /// The group has taken in something since its last flush.
    pub(crate) group_dirty: bool,
    group_actions: Vec<group::Action>,
    node_actions: Vec<replicator::Action>,
    mesh_events: Vec<MeshEvent>,
}

impl Link {
    /// A link that has just been bound.
    pub fn new(
        group: Group,
        mesh: Mesh,
        storage: Storage,
        votes: Votes,
        flush_appends: bool,
    ) -> Link {
        Link {
            group,
            mesh,
            storage,
            votes,
            flush_appends,
            unflushed: None,
            history_told: false,
        }
    }
}

impl Core {
    /// A node that is not connected.
    pub fn new(replicator: Replicator, grastate: Grastate, logger: Logger) -> Core {
        Core {
            replicator,
            link: None,
            waiting: Waiting::default(),
            progress: Progress::default(),
            grastate,
            donor: String::new(),
            incarnation: group::Uuid::NIL,
            appliers_due: 0,
            logger,
            group_dirty: false,
            group_actions: Vec::new(),
            node_actions: Vec::new(),
            mesh_events: Vec::new(),
        }
    }

    /// An event for the replicator.
    pub fn node(&mut self, event: replicator::Event) {
        let now = now_ms();
        match &self.link {
            Some(link) => self
                .replicator
                .handle(now, event, &link.storage, &mut self.node_actions),
            None => {
                self.replicator
                    .handle(now, event, &replicator::NoHistory, &mut self.node_actions)
            }
        }
    }

    /// An event for the group, if there is one.
    pub fn group(&mut self, event: group::Event) {
        if let Some(link) = &mut self.link {
            link.group.handle(now_ms(), event);
            self.group_dirty = true;
        }
    }

    /// Network readiness and time: what the reactor has seen.
    pub fn react(&mut self, ready: &mut trireme_transport::Ready) {
        let now = now_ms();
        let Some(link) = &mut self.link else { return };
        let mut events = std::mem::take(&mut self.mesh_events);
        if crate::services::isolated_by_signal() {
            link.mesh.set_isolated(true);
        }
        link.mesh.handle_ready(ready, now, &mut events);
        link.mesh.tick(now, &mut events);
        for event in events.drain(..) {
            self.mesh_event(event);
            self.carry_out();
        }
        self.mesh_events = events;
        if self
            .link
            .as_ref()
            .is_some_and(|link| now >= link.group.next_deadline())
        {
            self.group(group::Event::Tick);
        }
        if self
            .replicator
            .next_deadline_ms()
            .is_some_and(|at| now >= at)
        {
            self.node(replicator::Event::Tick);
        }
    }

    /// When [`Core::react`] is due at the latest, in ms from now.
    pub fn idle_ms(&self) -> u64 {
        let now = now_ms();
        let mut deadline = now + 100;
        if let Some(link) = &self.link {
            deadline = deadline.min(link.group.next_deadline());
            deadline = link
                .mesh
                .next_deadline_ms()
                .map_or(deadline, |at| deadline.min(at));
        }
        deadline = self
            .replicator
            .next_deadline_ms()
            .map_or(deadline, |at| deadline.min(at));
        deadline.saturating_sub(now)
    }

    fn mesh_event(&mut self, event: MeshEvent) {
        match event {
            MeshEvent::PeerUp { info, .. } => {
                let (replica, incarnation) =
                    (replica_id(info.replica), incarnation_id(info.incarnation));
                self.logger.info(format!(
                    "connection to {} ({}, {incarnation}) established",
                    info.name, info.listen_addr
                ));
                self.group(group::Event::PeerUp {
                    replica,
                    incarnation,
                });
            }
            MeshEvent::PeerDown {
                incarnation,
                reason,
            } => {
                let incarnation = incarnation_id(incarnation);
                self.logger
                    .info(format!("connection to {incarnation} is down: {reason}"));
                self.group(group::Event::PeerDown { incarnation });
            }
            MeshEvent::Frame { from, bytes } => self.frame(from, bytes),
            MeshEvent::Refused {
                incarnation: Some(incarnation),
                ..
            } => {
                self.group(group::Event::PeerDead {
                    incarnation: incarnation_id(incarnation),
                });
            }
            MeshEvent::Refused { .. } => {}
            MeshEvent::Drained { incarnation } => {
                self.group(group::Event::PeerDrained {
                    incarnation: incarnation_id(incarnation),
                });
            }
            MeshEvent::Rejected { reason, text, .. } => match reason {
                RejectReason::Timeout => self.logger.info(&text),
                RejectReason::NotAllowed => {
                    self.logger.warn(format!(
                        "Connection not allowed, IP not found in allowlist. {text}"
                    ));
                }
                _ => self.logger.warn(&text),
            },
        }
    }

    fn frame(&mut self, from: [u8; 16], bytes: Bytes) {
        let incarnation = incarnation_id(from);
        match bytes.first() {
            Some(&TO_GROUP) => match group::decode(bytes.slice(1..)) {
                Ok(message) => self.group(group::Event::Message {
                    from: incarnation,
                    message,
                }),
                Err(error) => {
                    self.drop_peer(from, &format!("sent a malformed group message: {error}"))
                }
            },
            Some(&TO_REPLICATOR) => {
                self.node(replicator::Event::Direct {
                    from: incarnation,
                    bytes: bytes.slice(1..),
                });
            }
            _ => self.drop_peer(from, "sent a frame of unknown kind"),
        }
    }

    fn drop_peer(&mut self, peer: [u8; 16], why: &str) {
        self.logger.warn(format!(
            "peer {} {why}; the connection is dropped",
            incarnation_id(peer)
        ));
        if let Some(link) = &mut self.link {
            link.mesh.disconnect_peer(peer, None);
        }
    }

    /// Carries out actions until nothing is left to do, then lets everything out: first to the
    /// log, then to the peers.
    pub fn pump(&mut self) {
        loop {
            self.carry_out();
            if let Some(link) = self.link.as_mut().filter(|_| self.group_dirty) {
                self.group_dirty = false;
                link.group.flush(&link.storage, &mut self.group_actions);
            }
            if self.group_actions.is_empty() {
                if self.write_log() {
                    continue;
                }
                break;
            }
            let mut actions = std::mem::take(&mut self.group_actions);
            for action in actions.drain(..) {
                self.group_action(action);
                self.carry_out();
            }
            self.group_actions = actions;
        }
        if let Some(link) = &mut self.link {
            link.mesh.flush();
        }
    }

    /// The replicator wants its actions carried out before its next event.
    fn carry_out(&mut self) {
        while !self.node_actions.is_empty() {
            let mut actions = std::mem::take(&mut self.node_actions);
            for action in actions.drain(..) {
                self.node_action(action);
            }
            if self.node_actions.is_empty() {
                self.node_actions = actions; // keeps its room
            }
        }
    }
}

fn replica_id(bytes: [u8; 16]) -> ReplicaId {
    ReplicaId(group::Uuid(bytes))
}

fn incarnation_id(bytes: [u8; 16]) -> Incarnation {
    Incarnation(group::Uuid(bytes))
}

/// Milliseconds of CLOCK_BOOTTIME, which goes on while the machine sleeps (rule 17).
pub fn now_ms() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
