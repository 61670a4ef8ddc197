//! Connections at work: bytes in and out, the handshake, and the one link per pair of processes. One hold of the core's
//! lock moves only a bounded number of bytes.
//!
//! Two processes may call each other at the same time. The one with the smaller incarnation decides which connection
//! stays: only that process says `Up`, once per peer, and the other obeys. So there is never more than one connection,
//! and never none.

use std::io;

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};
use trireme_tls::MAX_RECORD_BYTES;

use crate::connection::State;
use crate::frame::{FrameError, FrameKind};
use crate::handshake::Verdict;
use crate::mesh::Mesh;
use crate::poller::ReadyConnection;
use crate::{DownReason, Gossip, Hello, HostPort, MeshEvent, Refusal, RefusalCode};

/// Maximum of bytes read from one connection before the others get their turn.
const READ_BUDGET_BYTES: usize = 1 << 20;
/// Maximum of frames taken from one connection before the others get their turn: the event of a tiny frame is far longer
/// than the frame.
const FRAMES_PER_TURN: usize = 1_000;
/// The same maximum of bytes where they are decrypted, under the lock.
const DECRYPT_BYTES: usize = 64 << 10;
/// Maximum of bytes encrypted per hold of the core's lock, over all links, but at least one record of each link: some
/// 15 us (docs/wire-transport.md).
const ENCRYPT_BYTES: usize = 64 << 10;
/// A peer that requests a second connection so soon after the first does not know of the first yet.
const CROSSING_MS: u64 = 1_000;
/// A link with more queued bytes is told of no newcomer: the queue has no bound for control frames. The newcomer, which
/// gets the whole list, calls that peer.
const GOSSIP_QUEUE_BYTES: usize = 64 << 10;

impl Mesh {
    // ---- bytes ----

    /// Acts upon the readiness of a connection; ignores a connection that is gone.
    pub(super) fn connection_ready(&mut self, ready: &ReadyConnection) {
        let Some(connection) = self.connections.get_mut(ready.token) else {
            return;
        };
        if connection.state == State::Connecting && !self.finish_connect(ready.token) {
            return;
        }
        if ready.writable {
            if let Some(connection) = self.connections.get_mut(ready.token) {
                connection.write_blocked = false;
                self.write(ready.token);
            }
        }
        if ready.readable {
            self.read(ready.token, ready.ending);
        }
    }

    /// Writes the queued bytes of a connection.
    pub(super) fn write(&mut self, token: usize) {
        let limit_bytes = match planted(Mutant::AllEncryptedAtOnce) {
            true => usize::MAX,
            false => (ENCRYPT_BYTES / self.connections.links_len().max(1)).max(MAX_RECORD_BYTES),
        };
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let written = connection.write(limit_bytes);
        if let Err(error) = written {
            // Bytes that the peer sent before it closed may still wait to be read, for example its refusal.
            self.read(token, true);
            return self.lose_connection(token, DownReason::Io(error.to_string()));
        }
        let has_drained = connection.state == State::Up && connection.queue.take_drained();
        if has_drained && !planted(Mutant::GapNotTold) {
            if let Some(peer) = &connection.peer {
                self.reports.push(MeshEvent::Drained {
                    incarnation: peer.incarnation,
                });
            }
        }
        if matches!(written, Ok(false)) {
            self.connections.write_later(token);
        }
    }

    /// Reads until the stream is empty or others have waited long enough. `ending`: a short read does not prove that
    /// the stream is empty.
    pub(super) fn read(&mut self, token: usize, ending: bool) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        connection.stream.readable(ending);
        let mut budget_bytes = match connection.stream.is_tls() {
            true => DECRYPT_BYTES,
            false => READ_BUDGET_BYTES,
        };
        let (mut frames_left, mut is_emptied) = (FRAMES_PER_TURN, false);
        loop {
            // First those that an earlier turn has left.
            self.take_frames(token, &mut frames_left);
            if frames_left == 0 || budget_bytes == 0 {
                return self.connections.read_later(token);
            }
            if is_emptied {
                return;
            }
            let Some(connection) = self.connections.get_mut(token) else {
                return;
            };
            let room_bytes = budget_bytes.min(self.read_buffer.len());
            match connection.stream.read(&mut self.read_buffer[..room_bytes]) {
                Ok(0) => return self.hung_up(token),
                Ok(len) => {
                    is_emptied =
                        len < room_bytes && connection.stream.short_read_empties() && !ending;
                    if connection.state != State::Closing {
                        connection.decoder.push(&self.read_buffer[..len]);
                    }
                    budget_bytes = budget_bytes.saturating_sub(len);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return self.lose_connection(token, DownReason::Io(e.to_string())),
            }
        }
    }

    /// Takes at most so many frames from what has come in.
    fn take_frames(&mut self, token: usize, frames_left: &mut usize) {
        while *frames_left > 0 {
            let Some(connection) = self.connections.get_mut(token) else {
                return;
            };
            let step = match connection.decoder.next_frame() {
                _ if connection.state == State::Closing => return,
                Ok(None) => return,
                Ok(Some((kind, payload))) => self.handle_frame(token, kind, payload),
                Err(error) => Err(error),
            };
            if let Err(error) = step {
                return self.handle_invalid(token, error);
            }
            *frames_left -= 1;
        }
    }

    // ---- frames, and the handshake ----

    fn handle_frame(
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
            (State::Up, FrameKind::Gossip) => self.learn(token, Gossip::decode(&payload)?),
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
    pub(super) fn say_hello(&mut self, token: usize) {
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
            let room = (self.members).room_for(replica, key.as_ref(), remote_ip, &self.connections);
            match room {
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
        let (id, replica) = (peer.incarnation, peer.replica);
        connection.peer = Some(peer);
        let (called, remote) = (connection.target.clone(), connection.remote);
        if called.is_none() {
            self.say_hello(token);
        }
        if self.refuse_another(token) {
            return Ok(());
        }
        let is_linked = self.connections.is_linked(&id);
        // Only with the key of a link: a refused connection to the address of a process counts as that process's death.
        // Without a link anybody may claim to be that process.
        if let Some(address) = called.filter(|_| is_linked) {
            self.book.answered(&address, id, replica, remote);
        }
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
            (self.book).answered(target, id, info.replica, connection.remote);
        }
        if !known.is_empty() && !planted(Mutant::NewcomersNotTold) {
            connection.send_control(FrameKind::Gossip, &Gossip(known).encode());
        }
        let news = Gossip(vec![(id, info.listen_addr.clone())]).encode();
        let others = self.connections.links();
        if let Some(key) = info.key {
            self.identities.remember(info.replica, key);
        }
        self.members.meet(&info);
        self.connections.link(id, token);
        self.learn_address(&info.listen_addr);
        self.limit_frames(token);
        let info = Box::new(info);
        self.reports.push(MeshEvent::PeerUp { info, same_replica });
        self.write(token);
        for other in others {
            if planted(Mutant::NewcomersNotTold) {
                break;
            }
            let Some(connection) = self.connections.get_mut(other) else {
                continue;
            };
            if connection.queue.ordinary_bytes() <= GOSSIP_QUEUE_BYTES {
                connection.send_control(FrameKind::Gossip, &news);
                self.write(other);
            }
        }
    }

    /// Sets the maximum frame of an established connection.
    pub(super) fn limit_frames(&mut self, token: usize) {
        if let Some(connection) = self.connections.get_mut(token) {
            let max_bytes = self.settings.max_frame_bytes;
            let limit_bytes = self.members.frame_bytes(connection, max_bytes);
            connection.decoder.set_max_frame_bytes(limit_bytes);
        }
    }

    /// Calls members of the gossip with which this node is not connected, as long as the peers at this IP address tell
    /// few of them.
    fn learn(&mut self, token: usize, gossip: Gossip) {
        for (id, address) in gossip.0 {
            if id == self.hello.identity.incarnation || self.connections.is_linked(&id) {
                continue;
            }
            let Some(connection) = self.connections.get(token) else {
                return;
            };
            let ip = connection.remote.ip().to_canonical();
            if !self.heeds.takes(ip, self.now_ms) {
                return;
            }
            self.learn_address(&address);
        }
    }

    /// Calls a peer at an address that it or another one has told. An invalid address is ignored: it does no harm.
    fn learn_address(&mut self, address: &str) {
        if let Ok(address) = HostPort::parse(address, None) {
            self.book.learn(address, self.now_ms, |peer, replica| {
                self.members.is_member(replica) || self.connections.is_linked(peer)
            });
        }
    }
}
