//! Ends of connections: refusals by either side, invalid bytes, handshakes that take too long, and lost links.

use std::io::ErrorKind;
use std::net::IpAddr;

use crate::connection::State;
use crate::frame::{FrameError, FrameKind};
use crate::handshake::{TLS_HANDSHAKE, describe_invalid};
use crate::mesh::Mesh;
use crate::{DownReason, HostPort, MeshEvent, PeerId, Refusal, RefusalCode, RejectReason};

/// A connection that breaks after this time is called again at once; an earlier break leads to growing pauses.
const LASTING_MS: u64 = 1_000;
/// Time for a peer to read a refusal.
const CLOSING_MS: u64 = 1_000;

impl Mesh {
    /// Sends a refusal, and waits a moment for the peer to read it.
    pub(super) fn refuse(&mut self, token: usize, refusal: Refusal) {
        let text = refusal.text.clone();
        self.refuse_saying(token, refusal, &text);
    }

    /// As [`Mesh::refuse`], with another text for this node's log.
    pub(super) fn refuse_saying(&mut self, token: usize, refusal: Refusal, text: &str) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let label = connection.label();
        connection.state = State::Closing;
        connection.deadline_ms = Some(self.now_ms + CLOSING_MS);
        connection.send_control(FrameKind::Refuse, &refusal.encode());
        let target = connection.target.take();
        let within_host = connection.is_within_host();
        self.write(token);
        if let Some(reason) = refusal.code.reason() {
            self.reject(&label, reason, format!("refused peer {label}: {text}"));
        }
        self.call_over(target, refusal.code, within_host);
    }

    pub(super) fn handle_refusal(&mut self, token: usize, refusal: Refusal) {
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
        let within_host = connection.is_within_host();
        self.unlink(token, DownReason::Refused);
        if was_up {
            self.slow_down_peer(token);
        }
        self.drop_connection(token, DownReason::Refused);
        self.call_over(target, refusal.code, within_host);
    }

    /// Slows down the calls to a peer, because it and this node refuse each other for reasons of the upper layers:
    /// running calls end, and new ones wait longer.
    pub(super) fn slow_down_peer(&mut self, token: usize) {
        let Some(peer) = self
            .connections
            .get(token)
            .and_then(|connection| connection.peer.as_ref())
        else {
            return;
        };
        let mut addresses = self.book.addresses_of(peer.incarnation);
        addresses.extend(HostPort::parse(&peer.listen_addr, None));
        // The peer may only claim to be this process, and to listen there.
        let replica = peer.replica;
        addresses.retain(|address| !self.book.is_of_another(address, &replica));
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
            self.book.forget_peer(&address);
        }
    }

    /// Handles a call that has ended in a refusal by either side. `within_host`: both ends had the same IP address.
    fn call_over(&mut self, target: Option<HostPort>, code: RefusalCode, within_host: bool) {
        let Some(target) = target else { return };
        match code {
            RefusalCode::Oneself => {
                let next = self.book.is_oneself(&target, within_host, self.now_ms);
                if let Some(next) = next {
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
                self.try_next_or_slow_down(target);
            }
        }
    }

    pub(super) fn handle_invalid(&mut self, token: usize, error: FrameError) {
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
            self.try_next_or_slow_down(target);
        }
    }

    /// Returns true if a peer at this address has sent a Hello that this node accepted.
    fn knows_peer_at(&self, ip: IpAddr) -> bool {
        let mut peers = (self.connections.iter()).filter_map(|(_, c)| c.peer.as_ref());
        peers.any(|peer| peer.remote_ip == ip)
    }

    /// Ends a connection. If it was an unfinished call, the address is called again after a pause.
    pub(super) fn drop_connection(&mut self, token: usize, reason: DownReason) {
        if let Some(target) = self.remove_connection(token, reason) {
            self.book.failed(&target, self.now_ms);
        }
    }

    /// Ends a connection that broke, or whose peer is late. An unfinished call continues with the next address of the
    /// name.
    pub(super) fn lose_connection(&mut self, token: usize, reason: DownReason) {
        if let Some(target) = self.remove_connection(token, reason) {
            self.try_next(target);
        }
    }

    /// Removes a connection. Returns the address that it called, if the handshake was not over.
    fn remove_connection(&mut self, token: usize, reason: DownReason) -> Option<HostPort> {
        self.unlink(token, reason);
        self.connections.remove(token)?.target
    }

    /// Ends the connections whose peers' certificates are revoked.
    pub(super) fn drop_revoked(&mut self) {
        let open = self
            .connections
            .iter()
            .filter(|(_, c)| c.state != State::Closing);
        let revoked = open.filter_map(|(token, c)| {
            let reason = self.security.revocation(&c.stream)?;
            Some((token, c.label(), reason))
        });
        let revoked: Vec<(usize, String, String)> = revoked.collect();
        for (token, label, reason) in revoked {
            let text = format!("ended the connection with {label}: {reason}");
            self.reject(&label, RejectReason::Tls, text);
            self.drop_connection(token, DownReason::Local);
        }
    }

    /// Ends all connections.
    pub(super) fn drop_all(&mut self, reason: &DownReason) {
        let tokens: Vec<usize> = self.connections.iter().map(|(token, _)| token).collect();
        for token in tokens {
            self.drop_connection(token, reason.clone());
        }
    }

    /// If the connection is the link to its peer, ends the link.
    pub(super) fn unlink(&mut self, token: usize, reason: DownReason) {
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

    /// Gives up connections whose handshake is late.
    pub(super) fn expire(&mut self) {
        let late = self
            .connections
            .iter()
            .filter(|(_, c)| c.deadline_ms.is_some_and(|d| d <= self.now_ms));
        let late: Vec<usize> = late.map(|(token, _)| token).collect();
        for token in late {
            let Some(connection) = self.connections.get(token) else {
                continue;
            };
            match connection.state {
                State::Connecting => {
                    self.connect_failed(token, ErrorKind::TimedOut);
                    continue;
                }
                State::Closing => {}
                _ => {
                    let (label, limit_ms) =
                        (connection.label(), self.settings.handshake_timeout_ms);
                    let text = match connection.is_silent_caller() {
                        true => silent(&label, limit_ms),
                        false => format!(
                            "peer {label} did not finish the handshake within {limit_ms} ms: paused, overloaded, or no \
                             Trireme node; check what runs there"
                        ),
                    };
                    self.reject(&label, RejectReason::Timeout, text);
                }
            }
            self.lose_connection(token, DownReason::Local);
        }
    }

    /// Handles a connection that the other side has closed. A Galera node, which waits for a first message, gives up at
    /// about the same time as this node.
    pub(super) fn hung_up(&mut self, token: usize) {
        let limit_ms = self.settings.handshake_timeout_ms;
        if let Some(connection) = self.connections.get(token) {
            let left_ms = connection
                .deadline_ms
                .map(|deadline_ms| deadline_ms.saturating_sub(self.now_ms));
            let waited_ms = left_ms.map_or(0, |left_ms| limit_ms.saturating_sub(left_ms));
            if connection.is_silent_caller() && waited_ms >= limit_ms / 2 {
                let label = connection.label();
                self.reject(&label, RejectReason::Timeout, silent(&label, waited_ms));
            }
        }
        self.lose_connection(token, DownReason::Closed);
    }
}

fn silent(label: &str, for_ms: u64) -> String {
    format!(
        "{label} connected and sent nothing for {for_ms} ms: no Trireme node? (Galera nodes wait for the other side; Trireme and \
         Galera nodes cannot share a cluster)"
    )
}
