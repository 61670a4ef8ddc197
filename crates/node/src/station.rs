//! How engine and mesh of a node are driven: what the network and the clock bring goes in, what
//! follows is carried out.

use trireme_engine::{Engine, Outside};
use trireme_group::{Event, Incarnation, ReplicaId, Standing, Uuid};
use trireme_replicator::Level;
use trireme_transport::{MeshEvent, Ready, RejectReason};

use crate::clock::now_ms;
use crate::line::Line;

/// How long a node without any deadline sleeps at most, in ms.
const MAX_IDLE_MS: u64 = 100;

/// A node: an engine, the line that it speaks through, and whoever looks after it.
pub trait Station {
    /// What carries out the engine's requests.
    type Outlet<'a>: Outside
    where
        Self: 'a;

    /// The connection; none while there is none.
    fn line(&mut self) -> Option<&mut Line>;
    /// The engine, and what carries out its requests.
    fn parts(&mut self) -> (&mut Engine, Self::Outlet<'_>);
    /// Tells whoever looks after the node.
    fn log(&self, level: Level, text: &str);

    /// Network readiness and time: to be called when [`Station::idle_ms`] have passed at the latest, and
    /// followed by [`Station::pump`].
    fn react(&mut self, ready: &mut Ready) {
        let now = now_ms();
        let Some(line) = self.line() else { return };
        let mut events = std::mem::take(&mut line.events);
        line.mesh.handle_ready(ready, now, &mut events);
        line.mesh.tick(now, &mut events);
        for event in events.drain(..) {
            take(self, now, event);
            let (engine, mut outlet) = self.parts();
            engine.carry_out(now, &mut outlet);
        }
        if let Some(line) = self.line() {
            line.events = events; // keeps its room
        }
        tell_listed(self, now);
        self.parts().0.tick(now);
    }

    /// When [`Station::react`] is due at the latest, in ms from now.
    fn idle_ms(&mut self) -> u64 {
        let now = now_ms();
        let mesh = self.line().and_then(|line| line.mesh.next_deadline_ms());
        let due = self.parts().0.next_deadline_ms().into_iter().chain(mesh);
        due.fold(now + MAX_IDLE_MS, u64::min).saturating_sub(now)
    }

    /// Carries out actions until nothing is left to do, then lets everything out: the log has been
    /// written when the peers get it.
    fn pump(&mut self) {
        let (engine, mut outlet) = self.parts();
        engine.pump(now_ms(), &mut outlet);
        drop(outlet);
        if let Some(line) = self.line() {
            line.mesh.flush();
        }
    }
}

/// A node that may found a cluster with others has to know who is at the addresses that it was given.
fn tell_listed<S: Station + ?Sized>(station: &mut S, now: u64) {
    let group = station.parts().0.group_mut();
    if !group.is_some_and(|group| group.is_blank()) {
        return;
    }
    let Some(line) = station.line() else { return };
    let (members, missing) = line.mesh.listed();
    let members = members.into_iter().map(incarnation_id).collect();
    let event = Event::Listed { members, missing };
    station.parts().0.group(now, event);
}

/// What the mesh says, for the engine.
fn take<S: Station + ?Sized>(station: &mut S, now: u64, event: MeshEvent) {
    let event = match event {
        MeshEvent::PeerUp { info, .. } => {
            let incarnation = incarnation_id(info.incarnation);
            let text = format!(
                "connection to {} ({}, {incarnation}) established",
                info.name, info.listen_addr
            );
            station.log(Level::Info, &text);
            Event::PeerUp {
                replica: ReplicaId(Uuid(info.replica)),
                incarnation,
            }
        }
        MeshEvent::PeerDown {
            incarnation,
            reason,
        } => {
            let incarnation = incarnation_id(incarnation);
            let text = format!("connection to {incarnation} is down: {reason}");
            station.log(Level::Info, &text);
            Event::PeerDown { incarnation }
        }
        MeshEvent::Frame { from, bytes } => {
            let taken = (station.parts().0).frame(now, incarnation_id(from), &bytes);
            if let Err(why) = taken {
                drop_peer(station, from, &why);
            }
            return;
        }
        MeshEvent::Refused {
            incarnation: Some(incarnation),
            ..
        } => Event::PeerDead {
            incarnation: incarnation_id(incarnation),
        },
        MeshEvent::Refused { .. } => return,
        MeshEvent::Drained { incarnation } => Event::PeerDrained {
            incarnation: incarnation_id(incarnation),
        },
        MeshEvent::Rejected { reason, text, .. } => {
            return match reason {
                RejectReason::Timeout => station.log(Level::Info, &text),
                // Nothing is amiss here; the other node says it louder if it is in no cluster.
                RejectReason::History if is_primary(station) => station.log(Level::Info, &text),
                RejectReason::NotAllowed => {
                    let text = format!("Connection not allowed, IP not found in allowlist. {text}");
                    station.log(Level::Warn, &text);
                }
                _ => station.log(Level::Warn, &text),
            };
        }
    };
    station.parts().0.group(now, event);
}

fn is_primary<S: Station + ?Sized>(station: &mut S) -> bool {
    let link = station.parts().0.link();
    link.is_some_and(|link| link.group.standing() == Standing::Primary)
}

fn drop_peer<S: Station + ?Sized>(station: &mut S, peer: [u8; 16], why: &str) {
    let text = format!(
        "peer {} {why}; the connection is dropped",
        incarnation_id(peer)
    );
    station.log(Level::Warn, &text);
    if let Some(line) = station.line() {
        line.mesh.disconnect_peer(peer, None);
    }
}

fn incarnation_id(bytes: [u8; 16]) -> Incarnation {
    Incarnation(Uuid(bytes))
}
