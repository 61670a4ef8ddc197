//! Drives the engine and the mesh of a node. In: events of the network and the clock. Out: the engine's actions,
//! carried out. Messages leave only after the log has been written.

use std::collections::BTreeSet;

use trireme_engine::{Engine, Host};
use trireme_group::{ComponentState, Event, Group, Incarnation, ReplicaId, Uuid};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::Level;
use trireme_tls::fingerprint;
use trireme_transport::{MeshEvent, PeerId, PeerInfo, Ready, RejectReason};

use crate::clock::now_ms;
use crate::limiter::Kind;
use crate::line::{Line, ToldMembers};

/// Maximum sleep of a node without a deadline, in ms.
const MAX_IDLE_MS: u64 = 100;

/// A node: an engine, its connection, and a log for its operator.
pub trait Station {
    /// The part that carries out the engine's requests.
    type Outlet<'a>: Host
    where
        Self: 'a;

    /// Returns the connection; none if there is none.
    fn line(&mut self) -> Option<&mut Line>;
    /// Returns the engine, and the part that carries out its requests.
    fn parts(&mut self) -> (&mut Engine, Self::Outlet<'_>);
    /// Writes a line for the node's operator.
    fn log(&self, level: Level, text: &str);

    /// Takes in network readiness and time. Call it when [`Station::idle_ms`] have passed at the latest, and call
    /// [`Station::pump`] after it.
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

    /// Returns the time until the next [`Station::react`] is due, in ms.
    fn idle_ms(&mut self) -> u64 {
        let now = now_ms();
        let mesh = self.line().and_then(|line| line.mesh.next_deadline_ms());
        let due = self.parts().0.next_deadline_ms().into_iter().chain(mesh);
        due.fold(now + MAX_IDLE_MS, u64::min).saturating_sub(now)
    }

    /// Carries out actions until nothing is left to do, then sends everything: the log has been written when the peers
    /// get it.
    fn pump(&mut self) {
        let (engine, mut outlet) = self.parts();
        engine.pump(now_ms(), &mut outlet);
        drop(outlet);
        if let Some(line) = self.line() {
            line.mesh.flush();
        }
    }
}

/// Tells the group which nodes answer at the configured addresses: a node that may found a cluster with others must
/// know.
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

/// Tells the mesh the members, as far as this node's log knows them: other peers get little room.
fn tell_members<S: Station + ?Sized>(station: &mut S) {
    let Some(line) = station.line() else { return };
    let mut told = std::mem::take(&mut line.told_members);
    let group = station.parts().0.link().map(|link| &link.group);
    let are_current = group.is_some_and(|g| g.component_state() == ComponentState::Primary);
    let sources = || group.into_iter().flat_map(Group::log_sources);
    let known = || sources().filter(|replica| *replica != ReplicaId::default());
    // This runs at each turn: without a change nothing is allocated.
    let is_told = told.are_current == are_current && known().eq(told.replicas.iter().copied());
    if !is_told {
        let replicas = known().collect();
        told = ToldMembers {
            replicas,
            are_current,
        };
    }
    let Some(line) = station.line() else { return };
    if !is_told {
        let replicas: BTreeSet<_> = told.replicas.iter().map(|replica| replica.0.0).collect();
        let replicas = Some(replicas).filter(|replicas| !replicas.is_empty());
        line.mesh.set_members(replicas, are_current);
    }
    line.told_members = told;
}

/// Writes a log line that a peer causes: only few lines of a kind are written.
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

/// Hands an event of the mesh to the engine.
fn take<S: Station + ?Sized>(station: &mut S, now: u64, event: MeshEvent) {
    let event = match event {
        MeshEvent::PeerUp { info, .. } => {
            let incarnation = incarnation_id(info.incarnation);
            let peer = info.remote_ip.to_string();
            if let Some(replica) = other_replica(station, info.incarnation, info.replica) {
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
        // Another process may have called itself so there, and have gone before it was refused.
        MeshEvent::Refused {
            peer: Some((incarnation, replica)),
            ..
        } if other_replica(station, incarnation, replica).is_none() => Event::PeerDead {
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
                // The peer itself warns of a refusal by its allowlist, which its operator set.
                RejectReason::Timeout | RejectReason::NotAllowedByPeer => Level::Info,
                // A peer that ends looks like the first; a cluster that changes to TLS causes the second.
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

/// Returns the line about an admitted peer: its identity, its address, and the proof of the identity.
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

/// Returns the replica of the member whose process a peer claims to be, if the peer's own replica is another one.
fn other_replica<S: Station + ?Sized>(
    station: &mut S,
    incarnation: PeerId,
    own: [u8; 16],
) -> Option<ReplicaId> {
    let link = station.parts().0.link()?;
    let configuration = link.group.configuration();
    let member = configuration.member(incarnation_id(incarnation))?;
    Some(member.replica).filter(|replica| replica.0.0 != own)
}

/// Ends the connection to a peer that claims to be a member's process, but has another data directory.
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

/// Notes the address at which a node with the data of another cluster answered. Returns true if that is no trouble
/// here: this node serves, will serve without the others, or may join that cluster. The other node warns if it is in no
/// cluster.
fn expects_stranger<S: Station + ?Sized>(station: &mut S, address: &str) -> bool {
    let link = station.parts().0.link();
    let serves = link.is_some_and(|link| {
        link.group.component_state() == ComponentState::Primary || link.group.is_majority_alone()
    });
    let Some(line) = station.line() else {
        return serves;
    };
    line.met_stranger(address.to_owned());
    serves || line.lets_data_go
}

/// Ends the connection to a peer that has sent an invalid frame. Later frames of the peer that were read from the
/// socket already are ignored.
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

/// Accepts frames of the peer again: from here on they come over another connection.
fn forgive<S: Station + ?Sized>(station: &mut S, peer: PeerId) {
    if let Some(line) = station.line() {
        line.dropped.remove(&peer);
    }
}

fn incarnation_id(bytes: [u8; 16]) -> Incarnation {
    Incarnation(Uuid(bytes))
}
