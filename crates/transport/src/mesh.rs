//! The mesh: the functions that the layer above calls. In: frames to send, events of sockets, the time. Out:
//! [`MeshEvent`]s. It keeps at most one connection per peer, and every send is bounded.

mod callers;
mod calls;
mod endings;
mod links;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;

use trireme_mutants::{Mutant, planted};

use crate::allowlist::Allowlist;
use crate::book::{AddressBook, Pace};
use crate::connection::{Connection, State};
use crate::connections::Connections;
use crate::heed::Heeds;
use crate::identities::Identities;
use crate::members::Members;
use crate::queue::SendQueue;
use crate::reports::Reports;
use crate::threads::Threads;
use crate::{
    DownReason, Frame, Hello, HostPort, Identity, MeshConfig, MeshEvent, PeerId, PeerInfo, Poller,
    Ready, Refusal, RefusalCode, RejectReason, Security, SendOutcome, TransportError, Waker,
    socket,
};

/// Size of one read. All connections share the buffer; received bytes are copied out of it.
const READ_BYTES: usize = 128 << 10;
/// Maximum of bytes that closing reads from a peer, so that the peer gets the last bytes sent to it.
const CLOSING_READ_BYTES: usize = 8 << 20;

/// The connections of this process to its peers. See the crate's documentation for the threads.
///
/// Times are milliseconds of any monotonic clock, the same one in all calls.
pub struct Mesh {
    settings: Settings,
    /// This node's hello; each connection adds its proof.
    hello: Hello,
    identities: Identities,
    security: Security,
    members: Members,
    waker: Waker,
    threads: Threads,
    allowlist: Allowlist,
    book: AddressBook,
    heeds: Heeds,
    connections: Connections,
    read_buffer: Vec<u8>,
    reports: Reports,
    now_ms: u64,
    isolated: bool,
    closed: bool,
}

/// Settings, which do not change after the start.
#[derive(Clone, Debug)]
struct Settings {
    /// The address that was bound.
    local_addr: HostPort,
    /// The address to call from.
    source_ip: Option<IpAddr>,
    max_frame_bytes: u32,
    queue_limit_bytes: usize,
    handshake_timeout_ms: u64,
    user_timeout_ms: u32,
}

impl Mesh {
    /// Opens the listening socket. The mesh calls no peer before the first [`Mesh::tick`].
    pub fn bind(
        config: MeshConfig,
        mut identity: Identity,
    ) -> Result<(Self, Poller), TransportError> {
        let listener = socket::listen(&config.listen)?;
        let local = listener.local_addr()?;
        let mut advertised = HostPort::parse(&identity.listen_addr, Some(local.port()))?;
        if advertised.port == 0 {
            advertised.port = local.port();
        }
        identity.listen_addr = advertised.to_string();
        identity.check()?;
        let (poller, registry, waker) = Poller::new(listener)?;
        let pace = Pace {
            min_ms: config.retry_min_ms,
            max_ms: config.retry_max_ms,
            slow_ms: config.retry_slow_ms,
        };
        let mut book = AddressBook::new(pace);
        config
            .seeds
            .into_iter()
            .for_each(|seed| book.add_seed(seed, 0));
        let identities = Identities::new(config.key, identity.replica);
        let mesh = Self {
            settings: Settings {
                source_ip: Some(local.ip()).filter(|ip| !ip.is_unspecified()),
                local_addr: local.into(),
                max_frame_bytes: config.max_frame_bytes,
                queue_limit_bytes: config.queue_limit_bytes,
                handshake_timeout_ms: config.handshake_timeout_ms,
                user_timeout_ms: config.user_timeout_ms,
            },
            hello: Hello {
                versions: config.versions,
                identity,
                proof: None,
            },
            identities,
            security: config.security,
            members: Members::default(),
            threads: Threads::new(waker.clone(), config.allow),
            allowlist: Allowlist::default(),
            waker,
            book,
            heeds: Heeds::default(),
            connections: Connections::new(registry),
            read_buffer: vec![0; READ_BYTES],
            reports: Reports::default(),
            now_ms: 0,
            isolated: false,
            closed: false,
        };
        Ok((mesh, poller))
    }

    /// Returns the address that was bound.
    pub fn local_addr(&self) -> &HostPort {
        &self.settings.local_addr
    }

    /// Returns the protection of new connections.
    pub fn security(&self) -> &Security {
        &self.security
    }

    /// Changes the protection of new connections, and calls at once all peers that are not connected. Existing connections
    /// stay, except those that the new setting forbids, and those whose peers' certificates are revoked: these peers and
    /// this node connect anew at once, if they may. Unfinished handshakes that it forbids end, too. A TLS handshake that
    /// began with former credentials may still lead to a link, unless the peer's certificate is revoked.
    pub fn set_security(&mut self, security: Security) {
        self.security = security;
        // A closing connection cannot become a link, and its peer is still to read the refusal.
        let forbidden = self.connections.iter().filter(|(_, c)| {
            c.state != State::Closing && !self.security.permits(c.stream.is_tls())
        });
        let forbidden: Vec<usize> = forbidden.map(|(token, _)| token).collect();
        for token in forbidden {
            self.drop_connection(token, DownReason::Local);
        }
        self.drop_revoked();
        self.book.call_all(self.now_ms); // a peer that was refused may be accepted now, and may accept this node
        self.waker.wake();
    }

    /// Returns the number of peers that are connected without TLS.
    pub fn plaintext_links(&self) -> usize {
        let links = self.connections.linked_all();
        links.filter(|(_, link)| !link.stream.is_tls()).count()
    }

    /// Returns this process's identity, as told to peers; `listen_addr` has its port filled in.
    pub fn identity(&self) -> &Identity {
        &self.hello.identity
    }

    /// Returns a waker, which ends the reactor's wait from any thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Reads, writes and accepts on the sockets that a [`Poller::wait`] found ready.
    pub fn handle_ready(&mut self, ready: &mut Ready, now_ms: u64, events: &mut Vec<MeshEvent>) {
        self.now_ms = now_ms;
        if let Some(error) = ready.accept_error.take() {
            let address = self.settings.local_addr.to_string();
            let text = format!(
                "cannot accept connections on {address}: {error}; raise open_files_limit if it is reached"
            );
            self.reject(&address, RejectReason::AcceptFailed, text);
        }
        for accepted in ready.accepted.drain(..) {
            if !self.isolated && !self.closed {
                self.called(accepted);
            }
        }
        let (unread, unwritten) = self.connections.take_later();
        for event in ready.connections.drain(..) {
            self.connection_ready(&event);
        }
        for token in unread {
            self.read(token, true);
        }
        for token in unwritten {
            self.write(token);
        }
        self.reports.drain_into(events);
    }

    /// Does the work of the clock: calls peers, gives up late handshakes. Cheap. Call it once per round of the reactor,
    /// and no later than [`Mesh::next_deadline_ms`].
    pub fn tick(&mut self, now_ms: u64, events: &mut Vec<MeshEvent>) {
        self.now_ms = now_ms;
        if !self.closed {
            self.expire();
            self.take_answers();
            self.take_proven();
            self.take_judged();
            if !self.isolated {
                self.call_due();
            }
        }
        self.reports.drain_into(events);
    }

    /// Returns the time of the next necessary `tick`; a time in the past means at once. `None`: not before a wait has
    /// found something.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let connections = &self.connections;
        if !self.reports.is_empty() || connections.has_unread() || connections.has_unwritten() {
            return Some(self.now_ms);
        }
        let handshakes = connections.iter().filter_map(|(_, c)| c.deadline_ms).min();
        let calling = !self.isolated && !self.closed;
        let call = calling
            .then(|| {
                self.book
                    .next_call_ms(|peer| self.connections.is_linked(peer))
            })
            .flatten();
        let unjudged = self.allowlist.next_deadline_ms();
        handshakes.into_iter().chain(call).chain(unjudged).min()
    }

    /// Queues a frame for a peer. No system call: [`Mesh::flush`] writes.
    pub fn send(&mut self, to: PeerId, frame: Frame) -> SendOutcome {
        self.queue(to, frame, SendQueue::push)
    }

    /// As [`Mesh::send`], for a frame that all others may overtake until its first byte is written. A bulk frame that
    /// finds no room is dropped alone, and no gap is reported.
    pub fn send_bulk(&mut self, to: PeerId, frame: Frame) -> SendOutcome {
        self.queue(to, frame, SendQueue::push_bulk)
    }

    fn queue(
        &mut self,
        to: PeerId,
        frame: Frame,
        push: impl FnOnce(&mut SendQueue, Frame) -> bool,
    ) -> SendOutcome {
        if frame.payload_bytes() > self.settings.max_frame_bytes as usize {
            return SendOutcome::TooLarge;
        }
        (self.connections).queue(&to, |queue| push(queue, frame))
    }

    /// Writes queued bytes: one system call per peer, unless there are many bytes. Call it once per batch, from any
    /// thread that holds the core's lock.
    pub fn flush(&mut self) {
        let dirty = self.connections.take_dirty();
        for token in &dirty {
            // The reactor continues a connection that has had its share.
            if !self.connections.is_written_later(*token) {
                self.write(*token);
            }
        }
        self.connections.flushed(dirty);
        if !self.reports.is_empty() || self.connections.has_unwritten() {
            self.waker.wake();
        }
    }

    /// `gmcast.isolate`: while it is set, the mesh keeps, makes and takes no connection. The port stays open, so that
    /// no node takes this process for dead.
    pub fn set_isolated(&mut self, isolated: bool) {
        if self.isolated == isolated {
            return;
        }
        self.isolated = isolated;
        if isolated {
            self.drop_all(&DownReason::Isolated);
        } else {
            self.book.call_all(self.now_ms);
        }
        self.waker.wake();
    }

    /// Sets the cluster UUID when it becomes known; it counts for handshakes from now on.
    pub fn set_history(&mut self, history: [u8; 16]) {
        if self.hello.identity.history != history {
            self.hello.identity.history = history;
            self.book.call_all(self.now_ms); // a peer that was refused may be accepted now
            self.waker.wake();
        }
    }

    /// Sets the replicas that are members; `None`: unknown, and every peer may be one. Other peers have few links from one
    /// address, and give way to members when there are too many links. If the members `are_current`, those of a primary
    /// component, other peers may send frames of up to 64 KiB only. Cheap if nothing changes.
    pub fn set_members(&mut self, members: Option<BTreeSet<[u8; 16]>>, are_current: bool) {
        if self.members.set(members, are_current) {
            for token in self.connections.links() {
                self.limit_frames(token);
            }
            let peers = self.connections.peers();
            peers.for_each(|peer| self.members.meet(peer));
        }
    }

    /// Sets the bytes that new peers are told from now on; at most 4 KiB.
    pub fn set_extra(&mut self, extra: Vec<u8>) -> Result<(), TransportError> {
        let old = std::mem::replace(&mut self.hello.identity.extra, extra);
        self.hello
            .identity
            .check()
            .inspect_err(|_| self.hello.identity.extra = old)
    }

    /// Adds an address (`gmcast.peer_addr`), to be called now and whenever its peer is not connected.
    pub fn add_seed(&mut self, address: HostPort) {
        self.book.add_seed(address, self.now_ms);
        self.waker.wake();
    }

    /// Returns the connected peers.
    pub fn peers(&self) -> impl Iterator<Item = &PeerInfo> {
        self.connections.peers()
    }

    /// Returns a connected peer.
    pub fn peer(&self, id: PeerId) -> Option<&PeerInfo> {
        self.connections.linked(&id)?.peer.as_ref()
    }

    /// Returns the connected peers that have answered at the addresses of the configuration, and this process if it is
    /// at one of them. Also returns the addresses where no peer has answered, or whose peer is not connected.
    pub fn listed(&self) -> (Vec<PeerId>, Vec<String>) {
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        for (address, peer, oneself) in self.book.seeds() {
            match peer.filter(|peer| self.connections.is_linked(peer)) {
                _ if oneself => here.push(self.hello.identity.incarnation),
                Some(peer) => here.push(peer),
                None => missing.push(address.to_string()),
            }
        }
        (here, missing)
    }

    /// Returns the bytes that wait for a peer; 0 if it is not connected.
    pub fn queued_bytes(&self, peer: PeerId) -> usize {
        let connection = self.connections.linked(&peer);
        connection.map_or(0, |connection| connection.queue.queued_bytes())
    }

    /// Returns the bytes that ordinary frames to this peer would wait for; bulk frames are not among them. `usize::MAX`
    /// if the queue has overflowed and drops everything until it is empty. None: the peer is not connected.
    pub fn ordinary_queued_bytes(&self, peer: PeerId) -> Option<usize> {
        let connection = self.connections.linked(&peer)?;
        Some(connection.queue.ordinary_bytes())
    }

    /// Ends the connection to a peer. With a text, the peer is refused: it logs the text, and calls again only at the
    /// slow pace. Without a text, both sides reconnect at once.
    pub fn disconnect_peer(&mut self, peer: PeerId, refusal: Option<&str>) {
        let Some(token) = self.connections.link_of(&peer) else {
            return;
        };
        match refusal {
            None => self.drop_connection(token, DownReason::Local),
            Some(text) => {
                self.unlink(token, DownReason::Local);
                self.slow_down_peer(token);
                self.refuse(
                    token,
                    Refusal {
                        code: RefusalCode::Application,
                        text: text.to_owned(),
                    },
                );
            }
        }
        self.waker.wake();
    }

    /// Sends the bytes that the system takes at once, and ends everything; later calls do nothing. The caller must drop
    /// the [`Poller`] as well: it holds the listening socket.
    pub fn close(&mut self) {
        if !planted(Mutant::LastWordsLost) {
            self.flush();
            // The mesh ends, so no thread waits for the lock: all bytes may be encrypted. Errors do not matter any
            // more.
            let connections = self.connections.iter_mut();
            connections.for_each(|connection| drop(connection.write(usize::MAX)));
        }
        for connection in self.connections.iter_mut() {
            connection.stream.finish();
            // If unread bytes were left at closing, the system would discard the bytes that were just sent. A TLS
            // session takes the socket for empty until the poller reports more, so the socket itself is read.
            let mut left_bytes = CLOSING_READ_BYTES;
            while let Ok(read) = connection.stream.read_raw(&mut self.read_buffer) {
                left_bytes = left_bytes.saturating_sub(read);
                if read == 0 || left_bytes == 0 {
                    break;
                }
            }
        }
        self.abandon();
    }

    /// Ends everything at once; queued bytes are never sent. Later calls do nothing.
    pub fn abandon(&mut self) {
        self.closed = true;
        self.connections.clear();
        self.allowlist.clear();
        self.reports.clear();
        self.threads.stop();
        self.waker.wake();
    }

    /// True after [`Mesh::close`] or [`Mesh::abandon`].
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Registers a new connection.
    fn add_connection(&mut self, mut connection: Connection) -> std::io::Result<usize> {
        connection.deadline_ms = Some(self.now_ms + self.settings.handshake_timeout_ms);
        self.connections.add(connection)
    }

    /// Reports a rejection, unless it was reported lately.
    fn reject(&mut self, address: &str, reason: RejectReason, text: String) {
        self.reports.reject(address, reason, text, self.now_ms);
    }
}
