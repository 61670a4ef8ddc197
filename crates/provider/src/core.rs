//! The node under its lock: the engine, the mesh that it speaks through, and its files. Events go
//! in through [`Core`]'s methods; [`Core::pump`] carries out what follows (`outlet.rs`).

use trireme_engine::Engine;
use trireme_group::{self as group, Incarnation, ReplicaId};
use trireme_log::FlushDone;
use trireme_replicator as replicator;
use trireme_transport::{Mesh, MeshEvent, RejectReason};

use crate::flusher::Flusher;
use crate::grastate::Grastate;
use crate::logging::Logger;
use crate::outlet::Outlet;
use crate::votes::Votes;
use crate::waiting::Waiting;

/// How far a connect() or disconnect() has come.
#[derive(Default)]
pub struct Progress {
    /// In a view.
    pub admitted: bool,
    /// The cluster will not have this node, and why.
    pub refused: Option<String>,
    /// The node has left and told the server so.
    pub closed: bool,
    /// The node can keep nothing any more, and why.
    pub failed: Option<String>,
}

/// What one connect() set up beside the engine's part.
pub struct Line {
    pub mesh: Mesh,
    pub votes: Votes,
    /// With `repl.durability=disk`.
    pub flusher: Option<Flusher>,
}

/// Everything under the node's lock.
pub struct Core {
    pub engine: Engine,
    pub line: Option<Line>,
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
    mesh_events: Vec<MeshEvent>,
}

impl Core {
    /// A node that is not connected.
    pub fn new(engine: Engine, grastate: Grastate, logger: Logger) -> Core {
        Core {
            engine,
            line: None,
            waiting: Waiting::default(),
            progress: Progress::default(),
            grastate,
            donor: String::new(),
            incarnation: group::Uuid::NIL,
            appliers_due: 0,
            logger,
            mesh_events: Vec::new(),
        }
    }

    /// True between connect() and disconnect().
    pub fn is_connected(&self) -> bool {
        self.line.is_some()
    }

    /// True if the connection has ended for good: nobody is to reach this node.
    pub fn is_cut_off(&self) -> bool {
        (self.line.as_ref()).is_some_and(|line| line.mesh.is_closed())
    }

    /// A flush of the log has ended.
    pub fn flushed(&mut self, done: FlushDone) {
        self.engine.flushed(now_ms(), done);
    }

    /// True while a node that began with a log waits for the view that it was in to form again.
    pub fn is_resumed(&self) -> bool {
        (self.engine.link()).is_some_and(|link| link.group.is_resumed())
    }

    /// An event for the replicator.
    pub fn node(&mut self, event: replicator::Event) {
        self.engine.node(now_ms(), event);
    }

    /// An event for the group, if there is one.
    pub fn group(&mut self, event: group::Event) {
        self.engine.group(now_ms(), event);
    }

    /// Network readiness and time: what the reactor has seen.
    pub fn react(&mut self, ready: &mut trireme_transport::Ready) {
        let now = now_ms();
        let Some(line) = &mut self.line else { return };
        let mut events = std::mem::take(&mut self.mesh_events);
        if crate::services::isolated_by_signal() {
            line.mesh.set_isolated(true);
        }
        line.mesh.handle_ready(ready, now, &mut events);
        line.mesh.tick(now, &mut events);
        for event in events.drain(..) {
            self.mesh_event(event);
            let (engine, mut outlet) = self.parts();
            engine.carry_out(now, &mut outlet);
        }
        self.mesh_events = events;
        self.engine.tick(now);
    }

    /// When [`Core::react`] is due at the latest, in ms from now.
    pub fn idle_ms(&self) -> u64 {
        let now = now_ms();
        let mesh = self.line.as_ref().and_then(|l| l.mesh.next_deadline_ms());
        let due = self.engine.next_deadline_ms().into_iter().chain(mesh);
        due.fold(now + 100, u64::min).saturating_sub(now)
    }

    /// Carries out actions until nothing is left to do, then lets everything out: the log has been
    /// written when the peers get it.
    pub fn pump(&mut self) {
        let (engine, mut outlet) = self.parts();
        engine.pump(now_ms(), &mut outlet);
        if let Some(line) = &mut self.line {
            line.mesh.flush();
        }
    }

    fn parts(&mut self) -> (&mut Engine, Outlet<'_>) {
        let outlet = Outlet {
            line: &mut self.line,
            waiting: &mut self.waiting,
            progress: &mut self.progress,
            grastate: &mut self.grastate,
            appliers_due: &mut self.appliers_due,
            logger: &self.logger,
        };
        (&mut self.engine, outlet)
    }

    fn mesh_event(&mut self, event: MeshEvent) {
        match event {
            MeshEvent::PeerUp { info, .. } => {
                let replica = ReplicaId(group::Uuid(info.replica));
                let incarnation = incarnation_id(info.incarnation);
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
            MeshEvent::Frame { from, bytes } => {
                let taken = self.engine.frame(now_ms(), incarnation_id(from), &bytes);
                if let Err(why) = taken {
                    self.drop_peer(from, &why);
                }
            }
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

    fn drop_peer(&mut self, peer: [u8; 16], why: &str) {
        self.logger.warn(format!(
            "peer {} {why}; the connection is dropped",
            incarnation_id(peer)
        ));
        if let Some(line) = &mut self.line {
            line.mesh.disconnect_peer(peer, None);
        }
    }
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
