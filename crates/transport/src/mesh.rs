//! The mesh: the functions that the layer above calls. In: frames to send, events of sockets, the time. Out:
//! [`MeshEvent`]s. It keeps at most one connection per peer, and every send is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mio::{Registry, Token};
use trireme_mutants::{Mutant, planted};

use crate::book::{AddressBook, Pace};
use crate::connection::Connection;
use crate::handshaker::Handshaker;
use crate::identities::Identities;
use crate::poller::FIRST_CONNECTION;
use crate::queue::SendQueue;
use crate::rejections::Rejections;
use crate::resolver::Resolver;
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
    /// This node's hello; each connection adds its proof.
    pub(crate) hello: Hello,
    pub(crate) identities: Identities,
    pub(crate) max_frame_bytes: u32,
    pub(crate) queue_limit_bytes: usize,
    pub(crate) handshake_timeout_ms: u64,
    pub(crate) user_timeout_ms: u32,
    pub(crate) security: Security,
    /// The thread for TLS handshakes; started for the first connection with TLS.
    pub(crate) handshaker: Option<Handshaker>,
    /// The members' replicas, as far as the layer above knows them.
    pub(crate) members: Option<BTreeSet<[u8; 16]>>,
    /// Addresses from which members have been connected.
    pub(crate) met: BTreeSet<IpAddr>,
    /// The address to call from.
    pub(crate) source_ip: Option<IpAddr>,
    local_addr: HostPort,
    pub(crate) registry: Registry,
    pub(crate) waker: Waker,
    pub(crate) book: AddressBook,
    /// The thread for host names; started for the first name.
    pub(crate) resolver: Option<Resolver>,
    pub(crate) connections: BTreeMap<usize, Connection>,
    next_token: usize,
    /// The established connection of each peer.
    pub(crate) links: BTreeMap<PeerId, usize>,
    /// Connections with bytes queued since the last flush.
    dirty: Vec<usize>,
    /// Connections that may have more to read although no edge will report it.
    pub(crate) unread: BTreeSet<usize>,
    /// Connections whose queues hold more than may be encrypted at once.
    pub(crate) unwritten: BTreeSet<usize>,
    pub(crate) read_buffer: Vec<u8>,
    rejections: Rejections,
    /// Events that were not handed out yet: calls other than `handle_ready` and `tick` cannot return them.
    pub(crate) events: Vec<MeshEvent>,
    pub(crate) now_ms: u64,
    pub(crate) isolated: bool,
    pub(crate) closed: bool,
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
        let (poller, registry, waker) = Poller::new(listener, config.allow)?;
        let pace = Pace {
            min_ms: config.retry_min_ms,
            max_ms: config.retry_max_ms,
            slow_ms: config.retry_slow_ms,
        };
        let mut book = AddressBook::new(pace);
        config
            .seeds
            .into_iter()
            .for_each(|seed| book.add(seed, true, 0));
        let identities = Identities::new(config.key, identity.replica);
        let mesh = Self {
            hello: Hello {
                versions: config.versions,
                identity,
                proof: None,
            },
            identities,
            max_frame_bytes: config.max_frame_bytes,
            queue_limit_bytes: config.queue_limit_bytes,
            handshake_timeout_ms: config.handshake_timeout_ms,
            user_timeout_ms: config.user_timeout_ms,
            security: config.security,
            handshaker: None,
            members: None,
            met: BTreeSet::new(),
            source_ip: Some(local.ip()).filter(|ip| !ip.is_unspecified()),
            local_addr: local.into(),
            registry,
            waker,
            book,
            resolver: None,
            connections: BTreeMap::new(),
            next_token: FIRST_CONNECTION,
            links: BTreeMap::new(),
            dirty: Vec::new(),
            unread: BTreeSet::new(),
            unwritten: BTreeSet::new(),
            read_buffer: vec![0; READ_BYTES],
            rejections: Rejections::default(),
            events: Vec::new(),
            now_ms: 0,
            isolated: false,
            closed: false,
        };
        Ok((mesh, poller))
    }

    /// Returns the address that was bound.
    pub fn local_addr(&self) -> &HostPort {
        &self.local_addr
    }

    /// Returns the protection of new connections.
    pub fn security(&self) -> &Security {
        &self.security
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
            let address = self.local_addr.to_string();
            let text = format!(
                "cannot accept connections on {address}: {error}; raise open_files_limit if it is reached"
            );
            self.reject(&address, RejectReason::AcceptFailed, text);
        }
        for accepted in ready.accepted.drain(..) {
            if !self.isolated && !self.closed {
                self.accept(accepted);
            }
        }
        let unread = std::mem::take(&mut self.unread);
        let unwritten = std::mem::take(&mut self.unwritten);
        for event in ready.connections.drain(..) {
            self.connection_ready(&event);
        }
        for token in unread {
            self.read(token, true);
        }
        for token in unwritten {
            self.write(token);
        }
        events.append(&mut self.events);
    }

    /// Does the work of the clock: calls peers, gives up late handshakes. Cheap. Call it once per round of the reactor,
    /// and no later than [`Mesh::next_deadline_ms`].
    pub fn tick(&mut self, now_ms: u64, events: &mut Vec<MeshEvent>) {
        self.now_ms = now_ms;
        if !self.closed {
            self.expire();
            self.take_answers();
            self.take_proven();
            if !self.isolated {
                self.call_due();
            }
        }
        events.append(&mut self.events);
    }

    /// Returns the time of the next necessary `tick`; a time in the past means at once. `None`: not before a wait has
    /// found something.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        if !self.events.is_empty() || !self.unread.is_empty() || !self.unwritten.is_empty() {
            return Some(self.now_ms);
        }
        let handshakes = self
            .connections
            .values()
            .filter_map(|c| c.deadline_ms)
            .min();
        let calling = !self.isolated && !self.closed;
        let call = calling
            .then(|| self.book.next_call_ms(|peer| self.links.contains_key(peer)))
            .flatten();
        handshakes.into_iter().chain(call).min()
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
        if frame.payload_bytes() > self.max_frame_bytes as usize {
            return SendOutcome::TooLarge;
        }
        let Some((token, connection)) = self
            .links
            .get(&to)
            .and_then(|t| Some((*t, self.connections.get_mut(t)?)))
        else {
            return SendOutcome::NotConnected;
        };
        if !push(&mut connection.queue, frame) {
            return SendOutcome::Overflow;
        }
        if !std::mem::replace(&mut connection.dirty, true) {
            self.dirty.push(token);
        }
        SendOutcome::Queued
    }

    /// Writes queued bytes: one system call per peer, unless there are many bytes. Call it once per batch, from any
    /// thread that holds the core's lock.
    pub fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for token in dirty.drain(..) {
            if let Some(connection) = self.connections.get_mut(&token) {
                connection.dirty = false;
                // The reactor continues a connection that has had its share.
                if !self.unwritten.contains(&token) {
                    self.write(token);
                }
            }
        }
        self.dirty = dirty; // keeps its memory
        if !self.events.is_empty() || !self.unwritten.is_empty() {
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
        self.book.add(address, true, self.now_ms);
        self.waker.wake();
    }

    /// Stops calling the address of a peer, unless it is a seed or is learnt again; for members that left.
    pub fn forget_address(&mut self, address: &HostPort) {
        self.book.forget(address);
    }

    /// Returns the connected peers.
    pub fn peers(&self) -> impl Iterator<Item = &PeerInfo> {
        self.links
            .values()
            .filter_map(|token| self.connections.get(token)?.peer.as_ref())
    }

    /// Returns a connected peer.
    pub fn peer(&self, id: PeerId) -> Option<&PeerInfo> {
        self.connections.get(self.links.get(&id)?)?.peer.as_ref()
    }

    /// Returns the connected peers that have answered at the addresses of the configuration, and this process if it is
    /// at one of them. Also returns the addresses where no peer has answered, or whose peer is not connected.
    pub fn listed(&self) -> (Vec<PeerId>, Vec<String>) {
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        for (address, peer, oneself) in self.book.seeds() {
            match peer.filter(|peer| self.links.contains_key(peer)) {
                _ if oneself => here.push(self.hello.identity.incarnation),
                Some(peer) => here.push(peer),
                None => missing.push(address.to_string()),
            }
        }
        (here, missing)
    }

    /// Returns the bytes that wait for a peer; 0 if it is not connected.
    pub fn queued_bytes(&self, peer: PeerId) -> usize {
        let connection = self
            .links
            .get(&peer)
            .and_then(|token| self.connections.get(token));
        connection.map_or(0, |connection| connection.queue.queued_bytes())
    }

    /// Ends the connection to a peer. With a text, the peer is refused: it logs the text, and calls again only at the
    /// slow pace. Without a text, both sides reconnect at once.
    pub fn disconnect_peer(&mut self, peer: PeerId, refusal: Option<&str>) {
        let Some(&token) = self.links.get(&peer) else {
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
            let connections = self.connections.values_mut();
            connections.for_each(|connection| drop(connection.write(usize::MAX)));
        }
        for connection in self.connections.values_mut() {
            connection.stream.finish();
            // If unread bytes were left at closing, the system would discard the bytes that were just sent.
            let mut left_bytes = CLOSING_READ_BYTES;
            while let Ok(read) = connection.stream.read(&mut self.read_buffer) {
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
        self.links.clear();
        self.unread.clear();
        self.unwritten.clear();
        self.events.clear();
        // The drop of the mesh waits for the thread: a look-up may take half a minute.
        if let Some(resolver) = &mut self.resolver {
            resolver.stop();
        }
        if let Some(handshaker) = &self.handshaker {
            handshaker.stop();
        }
        self.waker.wake();
    }

    /// True after [`Mesh::close`] or [`Mesh::abandon`].
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Registers a new connection.
    pub(crate) fn add_connection(&mut self, mut connection: Connection) -> std::io::Result<usize> {
        let token = self.next_token;
        self.next_token += 1;
        connection.stream.register(&self.registry, Token(token))?;
        connection.deadline_ms = Some(self.now_ms + self.handshake_timeout_ms);
        self.connections.insert(token, connection);
        Ok(token)
    }

    /// Reports a rejection, unless it was reported lately.
    pub(crate) fn reject(&mut self, address: &str, reason: RejectReason, text: String) {
        if self.rejections.is_news(address, reason, self.now_ms) {
            self.events.push(MeshEvent::Rejected {
                address: address.to_owned(),
                reason,
                text,
            });
        }
    }
}
