//! The mesh: what the layer above calls.

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

/// Size of one read. The buffer is shared by all connections; what arrived is copied out of it.
const READ_BYTES: usize = 128 << 10;
/// Read from a peer at the end, so that it gets what was sent last.
const CLOSING_READ_BYTES: usize = 8 << 20;

/// The connections of this process to its peers. See the crate's documentation for the threads.
///
/// Times are milliseconds of any monotonic clock, the same one in all calls.
pub struct Mesh {
    /// What this node says of itself; each connection adds its proof.
    pub(crate) hello: Hello,
    pub(crate) identities: Identities,
    pub(crate) max_frame_bytes: u32,
    pub(crate) queue_limit_bytes: usize,
    pub(crate) handshake_timeout_ms: u64,
    pub(crate) user_timeout_ms: u32,
    pub(crate) security: Security,
    /// Started when the first connection is to be encrypted.
    pub(crate) handshaker: Option<Handshaker>,
    /// The members' replicas, as far as the layer above knows them.
    pub(crate) members: Option<BTreeSet<[u8; 16]>>,
    /// Where members have been connected from.
    pub(crate) met: BTreeSet<IpAddr>,
    /// The address to call from.
    pub(crate) source_ip: Option<IpAddr>,
    local_addr: HostPort,
    pub(crate) registry: Registry,
    pub(crate) waker: Waker,
    pub(crate) book: AddressBook,
    /// Started when the first name is to be looked up.
    pub(crate) resolver: Option<Resolver>,
    pub(crate) connections: BTreeMap<usize, Connection>,
    next_token: usize,
    /// The connection that stands, per peer.
    pub(crate) links: BTreeMap<PeerId, usize>,
    /// Connections with something queued since the last flush.
    dirty: Vec<usize>,
    /// Connections that may have more to read although no edge will tell.
    pub(crate) unread: BTreeSet<usize>,
    /// Connections whose queues hold more than may be encrypted at once.
    pub(crate) unwritten: BTreeSet<usize>,
    pub(crate) read_buffer: Vec<u8>,
    rejections: Rejections,
    /// Not yet handed out: calls other than `handle_ready` and `tick` cannot return events.
    pub(crate) events: Vec<MeshEvent>,
    pub(crate) now_ms: u64,
    pub(crate) isolated: bool,
    pub(crate) closed: bool,
}

impl Mesh {
    /// Opens the listening socket. Nothing is called before the first [`Mesh::tick`].
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

    /// The address that was bound.
    pub fn local_addr(&self) -> &HostPort {
        &self.local_addr
    }

    /// How its connections are protected from now on.
    pub fn security(&self) -> &Security {
        &self.security
    }

    /// Who this process says it is; `listen_addr` has its port filled in.
    pub fn identity(&self) -> &Identity {
        &self.hello.identity
    }

    /// Ends the reactor's wait from any thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Reads, writes and accepts what a [`Poller::wait`] found ready.
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

    /// Does what time demands: calls peers, gives up late handshakes. Cheap; to be called once per
    /// round of the reactor, and no later than [`Mesh::next_deadline_ms`].
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

    /// When `tick` has to be called next; in the past if at once. `None`: not before a wait has
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

    /// As [`Mesh::send`], for a frame that all others may overtake, until it has begun. What finds no room
    /// is dropped by itself: no gap is told of.
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

    /// Writes what was queued: one system call per peer, unless it is much. Call it once per batch, from
    /// any thread that holds the core's lock.
    pub fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for token in dirty.drain(..) {
            if let Some(connection) = self.connections.get_mut(&token) {
                connection.dirty = false;
                // One that has had its share is gone on with by the reactor.
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

    /// `gmcast.isolate`: as long as it is set, no connection stands, is made or taken. The port stays
    /// open, so that nobody takes this process for dead.
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

    /// Sets the cluster uuid, once it is known; counts for handshakes from now on.
    pub fn set_history(&mut self, history: [u8; 16]) {
        if self.hello.identity.history != history {
            self.hello.identity.history = history;
            self.book.call_all(self.now_ms); // who was refused for the old one may be welcome now
            self.waker.wake();
        }
    }

    /// Sets what new peers are told from now on; at most 4 KiB.
    pub fn set_extra(&mut self, extra: Vec<u8>) -> Result<(), TransportError> {
        let old = std::mem::replace(&mut self.hello.identity.extra, extra);
        self.hello
            .identity
            .check()
            .inspect_err(|_| self.hello.identity.extra = old)
    }

    /// Calls a further address (`gmcast.peer_addr`), now and whenever its peer is not connected.
    pub fn add_seed(&mut self, address: HostPort) {
        self.book.add(address, true, self.now_ms);
        self.waker.wake();
    }

    /// Calls the address of a peer no longer, unless it is a seed or learnt anew; for members that left.
    pub fn forget_address(&mut self, address: &HostPort) {
        self.book.forget(address);
    }

    /// The peers connected now.
    pub fn peers(&self) -> impl Iterator<Item = &PeerInfo> {
        self.links
            .values()
            .filter_map(|token| self.connections.get(token)?.peer.as_ref())
    }

    /// A peer connected now.
    pub fn peer(&self, id: PeerId) -> Option<&PeerInfo> {
        self.connections.get(self.links.get(&id)?)?.peer.as_ref()
    }

    /// Who answers at the addresses of the configuration, this process included if it is at one of them; and the
    /// addresses where nobody has, or somebody who is not connected.
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

    /// Bytes that wait for a peer; 0 if it is not connected.
    pub fn queued_bytes(&self, peer: PeerId) -> usize {
        let connection = self
            .links
            .get(&peer)
            .and_then(|token| self.connections.get(token));
        connection.map_or(0, |connection| connection.queue.queued_bytes())
    }

    /// Ends the connection to a peer. With a text, the peer is refused: it logs the text, and calls
    /// again only at the slow pace. Without, both sides reconnect at once.
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

    /// Sends what the system takes at once, and ends everything; later calls do nothing. Drop the
    /// [`Poller`] as well: it holds the listening socket.
    pub fn close(&mut self) {
        if !planted(Mutant::LastWordsLost) {
            self.flush();
            // Nobody waits for the lock any more, so all may be encrypted. An error is the end, as this is.
            let connections = self.connections.values_mut();
            connections.for_each(|connection| drop(connection.write(usize::MAX)));
        }
        for connection in self.connections.values_mut() {
            connection.stream.finish();
            // Closing with something unread would make the system throw away what was just sent.
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

    /// Ends everything at once; what is queued is never sent. Later calls do nothing.
    pub fn abandon(&mut self) {
        self.closed = true;
        self.connections.clear();
        self.links.clear();
        self.unread.clear();
        self.unwritten.clear();
        self.events.clear();
        // Its thread is waited for when the mesh is dropped: a look-up may take half a minute.
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

    /// Registers a fresh connection.
    pub(crate) fn add_connection(&mut self, mut connection: Connection) -> std::io::Result<usize> {
        let token = self.next_token;
        self.next_token += 1;
        connection.stream.register(&self.registry, Token(token))?;
        connection.deadline_ms = Some(self.now_ms + self.handshake_timeout_ms);
        self.connections.insert(token, connection);
        Ok(token)
    }

    /// Reports a rejection unless it was lately.
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
