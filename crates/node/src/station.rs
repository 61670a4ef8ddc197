//! How engine and mesh of a node are driven: what the network and the clock bring goes in, what
//! follows is carried out.

use trireme_engine::{Engine, Outside};
use trireme_group::{Configuration, Event, Incarnation, ReplicaId, Standing, Uuid};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::Level;
use trireme_tls::fingerprint;
use trireme_transport::{MeshEvent, PeerId, PeerInfo, Ready, RejectReason};

use crate::clock::now_ms;
use crate::limiter::Kind;
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
        tell_members(self);
        tell_left_out(self, now);
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

/// In a primary component it is known who the members are: nobody else has their room.
fn tell_members<S: Station + ?Sized>(station: &mut S) {
    let seen = primary_view(station).map(|view| (view.number, view.override_id));
    let Some(line) = station.line() else { return };
    if std::mem::replace(&mut line.seen_view, seen) == seen {
        return;
    }
    let replicas = |view: &Configuration| view.members.iter().map(|m| m.replica.0.0).collect();
    let members = primary_view(station).map(replicas);
    if let Some(line) = station.line() {
        line.mesh.set_members(members);
    }
}

fn primary_view<S: Station + ?Sized>(station: &mut S) -> Option<&Configuration> {
    let group = &station.parts().0.link()?.group;
    (group.standing() == Standing::Primary).then(|| group.configuration())
}

/// A line that a peer causes: few of a kind are written, however many there are.
fn tell<S: Station + ?Sized>(
    station: &mut S,
    now: u64,
    kind: Kind,
    peer: &str,
    level: Level,
    text: &str,
) {
    let Some(line) = station.line() else { return };
    let admitted = line.limiter.admits(kind, peer, now, level, text);
    if admitted || planted(Mutant::PeersFillTheLog) {
        station.log(level, text);
    }
}

fn tell_left_out<S: Station + ?Sized>(station: &mut S, now: u64) {
    let due = station.line().map(|line| line.limiter.summaries(now));
    for (level, text) in due.unwrap_or_default() {
        station.log(level, &text);
    }
}

/// What the mesh says, for the engine.
fn take<S: Station + ?Sized>(station: &mut S, now: u64, event: MeshEvent) {
    let event = match event {
        MeshEvent::PeerUp { info, .. } => {
            let incarnation = incarnation_id(info.incarnation);
            let peer = info.remote_ip.to_string();
            if let Some(replica) = other_replica(station, &info) {
                return refuse_other(station, now, &info, replica);
            }
            tell(
                station,
                now,
                Kind::PeerUp,
                &peer,
                Level::Info,
                &admitted(&info),
            );
            forgive(station, info.incarnation);
            Event::PeerUp {
                replica: ReplicaId(Uuid(info.replica)),
                incarnation,
            }
        }
        MeshEvent::PeerDown {
            incarnation,
            reason,
        } => {
            forgive(station, incarnation);
            let incarnation = incarnation_id(incarnation);
            let peer = incarnation.to_string();
            let text = format!("connection to {peer} is down: {reason}");
            tell(station, now, Kind::PeerDown, &peer, Level::Info, &text);
            Event::PeerDown { incarnation }
        }
        MeshEvent::Frame { from, .. } if is_dropped(station, from) => return,
        MeshEvent::Frame { from, bytes } => {
            let taken = (station.parts().0).frame(now, incarnation_id(from), &bytes);
            if let Err(why) = taken {
                drop_peer(station, now, from, &why);
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
        MeshEvent::Rejected {
            address,
            reason,
            text,
        } => {
            let level = match reason {
                // The peer warns of a refusal by its list, which is its operator's will.
                RejectReason::Timeout | RejectReason::NotAllowedByPeer => Level::Info,
                // A peer that ends looks the same as the first; a cluster that goes over to TLS brings the second.
                RejectReason::Broken | RejectReason::TlsInVain => Level::Info,
                RejectReason::History if expects_stranger(station, &address) => Level::Info,
                _ => Level::Warn,
            };
            let text = match reason {
                RejectReason::NotAllowed | RejectReason::NotAllowedByPeer => {
                    format!("Connection not allowed, IP not found in allowlist. {text}")
                }
                _ => text,
            };
            return tell(station, now, Kind::Rejected, &address, level, &text);
        }
    };
    station.parts().0.group(now, event);
}

/// What is written of each peer that is admitted: who it is, from where, and how that is known.
fn admitted(info: &PeerInfo) -> String {
    let key = match &info.key {
        Some(key) => format!("key {}", fingerprint(key)),
        None => "no key proven".to_owned(),
    };
    format!(
        "connection to {} ({}, {}) established, from {}, replica {}, {key}, {}",
        info.name,
        info.listen_addr,
        incarnation_id(info.incarnation),
        info.remote_ip,
        Uuid(info.replica),
        info.protection
    )
}

/// The replica of a member whose process another one says to be.
fn other_replica<S: Station + ?Sized>(station: &mut S, info: &PeerInfo) -> Option<ReplicaId> {
    let link = station.parts().0.link()?;
    let configuration = link.group.configuration();
    let member = configuration.member(incarnation_id(info.incarnation))?;
    Some(member.replica).filter(|replica| replica.0.0 != info.replica)
}

/// Ends the connection to a peer that says to be a member's process, and has another data directory.
fn refuse_other<S: Station + ?Sized>(
    station: &mut S,
    now: u64,
    info: &PeerInfo,
    replica: ReplicaId,
) {
    let text = format!(
        "it says to be member {}, which is of replica {replica} and not of {}: check what runs there",
        incarnation_id(info.incarnation),
        Uuid(info.replica)
    );
    let (peer, line) = (
        info.remote_ip.to_string(),
        format!("refused peer {}: {text}", info.remote_ip),
    );
    tell(station, now, Kind::Rejected, &peer, Level::Warn, &line);
    if let Some(line) = station.line() {
        line.dropped.insert(info.incarnation);
        line.mesh.disconnect_peer(info.incarnation, Some(&text));
    }
}

/// Notes who answered with the data of another cluster. True if that is no trouble here: this node serves, will serve
/// without the others, or may go over to that cluster. The other node says it louder if it is in no cluster.
fn expects_stranger<S: Station + ?Sized>(station: &mut S, address: &str) -> bool {
    let link = station.parts().0.link();
    let serves = link.is_some_and(|link| {
        link.group.standing() == Standing::Primary || link.group.is_majority_alone()
    });
    let Some(line) = station.line() else {
        return serves;
    };
    line.met_stranger(address.to_owned());
    serves || line.lets_data_go
}

/// Ends the connection to a peer that has sent what cannot be read. What it sent behind that has been read from the
/// socket already, and is passed over.
fn drop_peer<S: Station + ?Sized>(station: &mut S, now: u64, peer: PeerId, why: &str) {
    let name = incarnation_id(peer).to_string();
    let text = format!("peer {name} {why}; the connection is dropped");
    tell(station, now, Kind::BadFrame, &name, Level::Warn, &text);
    if let Some(line) = station.line() {
        line.dropped.insert(peer);
        if !planted(Mutant::NonsenseTolerated) {
            line.mesh.disconnect_peer(peer, None);
        }
    }
}

fn is_dropped<S: Station + ?Sized>(station: &mut S, peer: PeerId) -> bool {
    let heeds = !planted(Mutant::DroppedPeerHeard);
    heeds && (station.line()).is_some_and(|line| line.dropped.contains(&peer))
}

/// What comes from here on comes over another connection.
fn forgive<S: Station + ?Sized>(station: &mut S, peer: PeerId) {
    if let Some(line) = station.line() {
        line.dropped.remove(&peer);
    }
}

fn incarnation_id(bytes: [u8; 16]) -> Incarnation {
    Incarnation(Uuid(bytes))
}
