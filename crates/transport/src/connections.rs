//! All connections of this process by token, and the link to each peer: the one established connection. It also knows
//! which connections have more to read or to write.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use mio::{Registry, Token};

use crate::connection::Connection;
use crate::poller::FIRST_CONNECTION;
use crate::queue::SendQueue;
use crate::{PeerId, PeerInfo, SendOutcome};

#[derive(Debug)]
pub(crate) struct Connections {
    registry: Registry,
    all: BTreeMap<usize, Connection>,
    next_token: usize,
    /// The established connection of each peer.
    links: BTreeMap<PeerId, usize>,
    /// Connections with bytes queued since the last flush.
    dirty: Vec<usize>,
    /// Connections that may have more to read although no edge will report it.
    unread: BTreeSet<usize>,
    /// Connections whose queues hold more than may be encrypted at once.
    unwritten: BTreeSet<usize>,
}

impl Connections {
    pub(crate) fn new(registry: Registry) -> Connections {
        Connections {
            registry,
            all: BTreeMap::new(),
            next_token: FIRST_CONNECTION,
            links: BTreeMap::new(),
            dirty: Vec::new(),
            unread: BTreeSet::new(),
            unwritten: BTreeSet::new(),
        }
    }

    // ---- connections ----

    /// Registers a new connection with the poller. Returns its token; tokens grow.
    pub(crate) fn add(&mut self, mut connection: Connection) -> io::Result<usize> {
        let token = self.next_token;
        self.next_token += 1;
        connection.stream.register(&self.registry, Token(token))?;
        self.all.insert(token, connection);
        Ok(token)
    }

    /// Closing the socket, which the drop of the connection does, takes it out of the poller.
    pub(crate) fn remove(&mut self, token: usize) -> Option<Connection> {
        self.unread.remove(&token);
        self.unwritten.remove(&token);
        self.all.remove(&token)
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.links.clear();
        self.unread.clear();
        self.unwritten.clear();
    }

    pub(crate) fn get(&self, token: usize) -> Option<&Connection> {
        self.all.get(&token)
    }

    pub(crate) fn get_mut(&mut self, token: usize) -> Option<&mut Connection> {
        self.all.get_mut(&token)
    }

    /// All connections, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Connection)> {
        self.all.iter().map(|(token, one)| (*token, one))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.all.values_mut()
    }

    // ---- links ----

    /// Makes this connection the link to the peer.
    pub(crate) fn link(&mut self, peer: PeerId, token: usize) {
        self.links.insert(peer, token);
    }

    pub(crate) fn unlink(&mut self, peer: &PeerId) {
        self.links.remove(peer);
    }

    /// The token of the link to the peer.
    pub(crate) fn link_of(&self, peer: &PeerId) -> Option<usize> {
        self.links.get(peer).copied()
    }

    pub(crate) fn is_linked(&self, peer: &PeerId) -> bool {
        self.links.contains_key(peer)
    }

    /// The link to the peer.
    pub(crate) fn linked(&self, peer: &PeerId) -> Option<&Connection> {
        self.get(self.link_of(peer)?)
    }

    /// Tokens of all links.
    pub(crate) fn links(&self) -> Vec<usize> {
        self.links.values().copied().collect()
    }

    pub(crate) fn links_len(&self) -> usize {
        self.links.len()
    }

    /// All links, each with its peer.
    pub(crate) fn linked_all(&self) -> impl Iterator<Item = (PeerId, &Connection)> {
        let links = self.links.iter();
        links.filter_map(|(peer, token)| Some((*peer, self.all.get(token)?)))
    }

    /// The linked peers, as their hellos describe them.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &PeerInfo> {
        self.linked_all().filter_map(|(_, link)| link.peer.as_ref())
    }

    // ---- bytes that wait ----

    /// Queues bytes for a peer, and lists its link for the next flush. `push` returns false if there is no room.
    pub(crate) fn queue(
        &mut self,
        to: &PeerId,
        push: impl FnOnce(&mut SendQueue) -> bool,
    ) -> SendOutcome {
        let link = self.links.get(to);
        let Some((token, connection)) = link.and_then(|t| Some((*t, self.all.get_mut(t)?))) else {
            return SendOutcome::NotConnected;
        };
        if !push(&mut connection.queue) {
            return SendOutcome::Overflow;
        }
        if !std::mem::replace(&mut connection.dirty, true) {
            self.dirty.push(token);
        }
        SendOutcome::Queued
    }

    /// Takes the connections that wait for a flush, in the order of their first bytes. Give the list back
    /// ([`Connections::flushed`]), for its memory.
    pub(crate) fn take_dirty(&mut self) -> Vec<usize> {
        let dirty = std::mem::take(&mut self.dirty);
        for token in &dirty {
            if let Some(connection) = self.all.get_mut(token) {
                connection.dirty = false;
            }
        }
        dirty
    }

    pub(crate) fn flushed(&mut self, mut dirty: Vec<usize>) {
        dirty.clear();
        self.dirty = dirty;
    }

    /// The connection may have more to read although no edge will report it.
    pub(crate) fn read_later(&mut self, token: usize) {
        self.unread.insert(token);
    }

    /// The connection's queue holds more than may be encrypted at once.
    pub(crate) fn write_later(&mut self, token: usize) {
        self.unwritten.insert(token);
    }

    pub(crate) fn is_written_later(&self, token: usize) -> bool {
        self.unwritten.contains(&token)
    }

    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Takes the connections to go on reading, and those to go on writing.
    pub(crate) fn take_later(&mut self) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let unread = std::mem::take(&mut self.unread);
        (unread, std::mem::take(&mut self.unwritten))
    }
}
