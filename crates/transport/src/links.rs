//! From frames to peers: the handshake, and the one connection per pair of processes.
//!
//! Two processes may call each other at the same time. The one with the smaller incarnation decides which connection
//! stays: only that process says `Up`, once per peer, and the other obeys. So there is never more than one connection,
//! and never none.

use std::net::IpAddr;

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};

use crate::connection::State;
use crate::frame::{FrameError, FrameKind};
use crate::handshake::{TLS_HANDSHAKE, Verdict, describe_invalid};
use crate::mesh::Mesh;
use crate::{
    DownReason, Gossip, Hello, HostPort, MeshEvent, PeerId, Refusal, RefusalCode, RejectReason,
};

/// A peer that requests a second connection so soon after the first does not know of the first yet.
const CROSSING_MS: u64 = 1_000;
/// A connection that breaks after this time is called again at once; an earlier break leads to growing pauses.
const LASTING_MS: u64 = 1_000;
/// Time for a peer to read a refusal.
const CLOSING_MS: u64 = 1_000;

impl Mesh {
    pub(crate) fn handle_frame(
        &mut self,
        token: usize,
        kind: FrameKind,
        payload: Bytes,
    ) -> Result<(), FrameError> {
        let Some(connection) = self.connections.get(token) else {
            return Ok(());
        };
        match (connection.state, kind) {
            (State::Up, FrameKind::Data) => {
                if let Some(peer) = &connection.peer {
                    self.reports.push(MeshEvent::Frame {
                        from: peer.incarnation,
                        bytes: payload,
                    });
                }
            }
            (State::Up, FrameKind::Gossip) => self.learn(Gossip::decode(&payload)?),
            (State::AwaitHello, FrameKind::Hello) => {
                self.handle_hello(token, Hello::decode(&payload)?)?
            }
            (State::Deciding, FrameKind::State) => {
                let has_link = *payload
                    .first()
                    .ok_or(FrameError::Malformed("an empty state"))?
                    != 0;
                self.decide(token, has_link);
            }
            (State::AwaitUp, FrameKind::Up) => self.establish(token),
            (_, FrameKind::Refuse) => self.handle_refusal(token, Refusal::decode(&payload)?),
            (_, kind) => return Err(FrameError::Unexpected(kind)),
        }
        Ok(())
    }

    /// Sends this node's hello.
    pub(crate) fn say_hello(&mut self, token: usize) {
        if let Some(connection) = self.connections.get_mut(token) {
            let proof = self
                .identities
                .prove(&connection.stream, &self.hello.identity);
            let hello = Hello {
                proof,
                ..self.hello.clone()
            };
            connection.send_control(FrameKind::Hello, &hello.encode());
        }
    }

    fn handle_hello(&mut self, token: usize, hello: Hello) -> Result<(), FrameError> {
        let Some(connection) = self.connections.get(token) else {
            return Ok(());
        };
        // The key is checked first of all: the later answers may tell a peer about this cluster.
        let key = match self.identities.examine(&connection.stream, &hello) {
            Ok(key) => key,
            Err(text) => {
                let code = RefusalCode::Identity;
                self.refuse(token, Refusal { code, text });
                return Ok(());
            }
        };
        let version = match self.hello.judge(&hello) {
            Ok(version) => version,
            Err(verdict) => {
                let told = match connection.stream.is_tls() {
                    true => verdict.text.clone(),
                    false => verdict.discreet,
                };
                let Verdict { code, text, .. } = verdict;
                self.refuse_saying(token, Refusal { code, text: told }, &text);
                return Ok(());
            }
        };
        let remote_ip = connection.remote.ip().to_canonical();
        if !self.connections.is_linked(&hello.identity.incarnation) {
            let replica = &hello.identity.replica;
            match (self.members).room_for(replica, remote_ip, &self.connections) {
                Ok(None) => {}
                Ok(Some(oldest)) => self.drop_connection(oldest, DownReason::Local),
                Err(refusal) => {
                    self.refuse(token, refusal);
                    return Ok(());
                }
            }
        }
        let Some(connection) = self.connections.get_mut(token) else {
            return Ok(());
        };
        let mut address = HostPort::parse(&hello.identity.listen_addr, None)
            .map_err(|_| FrameError::Malformed("the advertised address is none"))?;
        if address.is_unspecified() {
            address.host = remote_ip.to_string();
        }
        let protection = connection.stream.describe();
        let peer = hello.into_peer(version, remote_ip, address.to_string(), protection, key);
        let id = peer.incarnation;
        connection.peer = Some(peer);
        match &connection.target {
            Some(target) => self.book.answered(target, id),
            None => self.say_hello(token),
        }
        if self.refuse_another(token) {
            return Ok(());
        }
        let is_linked = self.connections.is_linked(&id);
        let Some(connection) = self.connections.get_mut(token) else {
            return Ok(());
        };
        connection.state = if self.hello.identity.incarnation < id {
            State::Deciding
        } else {
            connection.send_control(FrameKind::State, &[is_linked.into()]);
            State::AwaitUp
        };
        self.write(token);
        Ok(())
    }

    /// Refuses a connection that would replace a link, unless its peer has proven the link's key. A link without a key
    /// has proven nothing, so any key may replace it.
    fn refuse_another(&mut self, token: usize) -> bool {
        let Some(peer) = self.connections.get(token).and_then(|c| c.peer.as_ref()) else {
            return false;
        };
        let linked = self.peer(peer.incarnation);
        let is_another =
            linked.is_some_and(|linked| linked.key.is_some() && linked.key != peer.key);
        if is_another && !planted(Mutant::LinkTakenByAnother) {
            let code = RefusalCode::Identity;
            let text = "this process is connected already, and the one that calls has not its key"
                .to_owned();
            self.refuse(token, Refusal { code, text });
            return true;
        }
        false
    }

    /// Chooses among the connections to the peer: this node has the smaller incarnation.
    fn decide(&mut self, token: usize, peer_has_link: bool) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let Some(id) = connection.peer.as_ref().map(|peer| peer.incarnation) else {
            return;
        };
        if let Some(other) = self.connections.linked(&id) {
            let crossing = self.now_ms.saturating_sub(other.up_since_ms) < CROSSING_MS;
            if (peer_has_link || crossing) && !planted(Mutant::SecondLinkTaken) {
                return self.refuse(
                    token,
                    Refusal {
                        code: RefusalCode::Duplicate,
                        text: String::new(),
                    },
                );
            }
            // The peer has lost the other connection, and this node has not noticed it yet.
        }
        if self.refuse_another(token) {
            return;
        }
        if let Some(connection) = self.connections.get_mut(token) {
            connection.send_control(FrameKind::Up, &[]);
            self.establish(token);
        }
    }

    /// Makes this connection the link to its peer, in place of any other.
    fn establish(&mut self, token: usize) {
        if self.refuse_another(token) {
            return;
        }
        let Some(info) = self
            .connections
            .get(token)
            .and_then(|connection| connection.peer.clone())
        else {
            return;
        };
        let id = info.incarnation;
        if let Some(old) = self.connections.link_of(&id) {
            self.drop_connection(old, DownReason::Replaced);
        }
        let known: Vec<_> = self
            .peers()
            .map(|peer| (peer.incarnation, peer.listen_addr.clone()))
            .collect();
        let same_replica = self
            .peers()
            .find(|peer| peer.replica == info.replica)
            .map(|peer| peer.incarnation);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        connection.state = State::Up;
        connection.deadline_ms = None;
        connection.up_since_ms = self.now_ms;
        if let Some(target) = &connection.target {
            self.book.established(target);
        }
        if let Ok(address) = HostPort::parse(&info.listen_addr, None) {
            self.book.add(address, false, self.now_ms);
        }
        if !known.is_empty() && !planted(Mutant::NewcomersNotTold) {
            connection.send_control(FrameKind::Gossip, &Gossip(known).encode());
        }
        let news = Gossip(vec![(id, info.listen_addr.clone())]).encode();
        let others = self.connections.links();
        if let Some(key) = info.key {
            self.identities.remember(info.replica, key);
        }
        self.members.meet(info.remote_ip);
        self.connections.link(id, token);
        self.limit_frames(token);
        self.reports.push(MeshEvent::PeerUp { info, same_replica });
        self.write(token);
        for other in others {
            if planted(Mutant::NewcomersNotTold) {
                break;
            }
            if let Some(connection) = self.connections.get_mut(other) {
                connection.send_control(FrameKind::Gossip, &news);
                self.write(other);
            }
        }
    }

    /// Sets the maximum frame of an established connection.
    pub(crate) fn limit_frames(&mut self, token: usize) {
        if let Some(connection) = self.connections.get_mut(token) {
            let max_bytes = self.settings.max_frame_bytes;
            let limit_bytes = self.members.frame_bytes(connection, max_bytes);
            connection.decoder.set_max_frame_bytes(limit_bytes);
        }
    }

    /// Calls members of the gossip with which this node is not connected.
    fn learn(&mut self, gossip: Gossip) {
        for (id, address) in gossip.0 {
            if id == self.hello.identity.incarnation || self.connections.is_linked(&id) {
                continue;
            }
            // An invalid address is ignored: it does no harm.
            if let Ok(address) = HostPort::parse(&address, None) {
                self.book.add(address, false, self.now_ms);
            }
        }
    }

    /// Sends a refusal, and waits a moment for the peer to read it.
    pub(crate) fn refuse(&mut self, token: usize, refusal: Refusal) {
        let text = refusal.text.clone();
        self.refuse_saying(token, refusal, &text);
    }

    /// As [`Mesh::refuse`], with another text for this node's log.
    fn refuse_saying(&mut self, token: usize, refusal: Refusal, text: &str) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let label = connection.label();
        connection.state = State::Closing;
        connection.deadline_ms = Some(self.now_ms + CLOSING_MS);
        connection.send_control(FrameKind::Refuse, &refusal.encode());
        let target = connection.target.take();
        self.write(token);
        if let Some(reason) = refusal.code.reason() {
            self.reject(&label, reason, format!("refused peer {label}: {text}"));
        }
        self.call_over(target, refusal.code);
    }

    fn handle_refusal(&mut self, token: usize, refusal: Refusal) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let label = connection.label();
        let reason = match refusal.code {
            RefusalCode::NotAllowed => Some(RejectReason::NotAllowedByPeer),
            code => code.reason(),
        };
        if let Some(reason) = reason {
            self.reject(
                &label,
                reason,
                format!("peer {label} refused this node: {}", refusal.text),
            );
        }
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let target = connection.target.take();
        let was_up = connection.state == State::Up;
        self.unlink(token, DownReason::Refused);
        if was_up {
            self.slow_down_peer(token);
        }
        self.drop_connection(token, DownReason::Refused);
        self.call_over(target, refusal.code);
    }

    /// Slows down the calls to a peer, because it and this node refuse each other for reasons of the upper layers:
    /// running calls end, and new ones wait longer.
    pub(crate) fn slow_down_peer(&mut self, token: usize) {
        let Some(peer) = self
            .connections
            .get(token)
            .and_then(|connection| connection.peer.as_ref())
        else {
            return;
        };
        let mut addresses = self.book.addresses_of(peer.incarnation);
        addresses.extend(HostPort::parse(&peer.listen_addr, None));
        let calls = self
            .connections
            .iter()
            .filter(|(call, c)| *call != token && c.state != State::Up);
        let calls = calls.filter(|(_, c)| {
            c.target
                .as_ref()
                .is_some_and(|target| addresses.contains(target))
        });
        let calls: Vec<usize> = calls.map(|(call, _)| call).collect();
        for call in calls {
            self.drop_connection(call, DownReason::Local);
        }
        for address in addresses {
            self.book.slow_down(&address, self.now_ms);
        }
    }

    /// Handles a call that has ended in a refusal by either side.
    fn call_over(&mut self, target: Option<HostPort>, code: RefusalCode) {
        let Some(target) = target else { return };
        match code {
            RefusalCode::Oneself => {
                if let Some(next) = self.book.is_oneself(&target, self.now_ms) {
                    self.dial(target, next);
                }
            }
            RefusalCode::Duplicate | RefusalCode::NotAllowed | RefusalCode::Malformed => {
                self.try_next(target);
            }
            RefusalCode::GroupName
            | RefusalCode::Version
            | RefusalCode::History
            | RefusalCode::Identity
            | RefusalCode::Application => {
                self.book.slow_down(&target, self.now_ms);
            }
        }
    }

    pub(crate) fn handle_invalid(&mut self, token: usize, error: FrameError) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if connection.state == State::Up {
            return self.drop_connection(token, DownReason::Invalid(error));
        }
        let remote_ip = connection.remote.ip().to_canonical();
        let (mut reason, mut text) = describe_invalid(&connection.label(), &error);
        let is_tls = matches!(&error, FrameError::ForeignProtocol(first) if first.starts_with(&[TLS_HANDSHAKE]));
        if is_tls && self.knows_peer_at(remote_ip) {
            reason = RejectReason::TlsInVain;
            text = format!(
                "a peer at {remote_ip} is connected without TLS and calls with TLS as well, which this node does not take: set \
                 the same socket.ssl or repl.secret_file on all nodes; while a cluster goes over to TLS, socket.dynamic=yes takes both"
            );
        }
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if reason == RejectReason::Malformed {
            return self.refuse(
                token,
                Refusal {
                    code: RefusalCode::Malformed,
                    text: error.to_string(),
                },
            );
        }
        let (label, target) = (connection.label(), connection.target.take());
        self.reject(&label, reason, text);
        self.drop_connection(token, DownReason::Invalid(error));
        if let Some(target) = target {
            self.book.slow_down(&target, self.now_ms);
        }
    }

    /// Returns true if a peer at this address has sent a Hello that this node accepted.
    fn knows_peer_at(&self, ip: IpAddr) -> bool {
        let mut peers = (self.connections.iter()).filter_map(|(_, c)| c.peer.as_ref());
        peers.any(|peer| peer.remote_ip == ip)
    }

    /// Ends a connection.
    pub(crate) fn drop_connection(&mut self, token: usize, reason: DownReason) {
        self.unlink(token, reason);
        if let Some(target) = self
            .connections
            .remove(token)
            .and_then(|connection| connection.target)
        {
            self.book.failed(&target, self.now_ms);
        }
    }

    /// Ends all connections.
    pub(crate) fn drop_all(&mut self, reason: &DownReason) {
        let tokens: Vec<usize> = self.connections.iter().map(|(token, _)| token).collect();
        for token in tokens {
            self.drop_connection(token, reason.clone());
        }
    }

    /// If the connection is the link to its peer, ends the link.
    pub(crate) fn unlink(&mut self, token: usize, reason: DownReason) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let id: Option<PeerId> = connection.peer.as_ref().map(|peer| peer.incarnation);
        let (State::Up, Some(incarnation)) = (connection.state, id) else {
            return;
        };
        connection.target = None;
        let lasted = self.now_ms.saturating_sub(connection.up_since_ms) >= LASTING_MS;
        self.connections.unlink(&incarnation);
        self.book.lost(incarnation, lasted, self.now_ms);
        self.reports.push(MeshEvent::PeerDown {
            incarnation,
            reason,
        });
    }
}
