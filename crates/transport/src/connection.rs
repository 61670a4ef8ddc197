//! One connection, from the call to the end: its stream, its state in the handshake, and its queue of outgoing bytes.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;

use crate::address::label;
use crate::frame::{Frame, FrameDecoder, FrameKind, PREAMBLE};
use crate::handshake::MAX_HANDSHAKE_BYTES;
use crate::queue::SendQueue;
use crate::stream::Stream;
use crate::{HostPort, PeerInfo};

/// The progress of a connection. See `docs/wire-transport.md` for the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// This node has called; TCP is connecting.
    Connecting,
    /// Waiting for the peer's hello.
    AwaitHello,
    /// This node chooses among the connections to the peer, and waits to hear whether the peer has another one.
    Deciding,
    /// The peer chooses.
    AwaitUp,
    /// The connection to the peer.
    Up,
    /// Refused by this node: it waits for the peer to read the refusal and close.
    Closing,
}

/// A connection and its buffers.
#[derive(Debug)]
pub(crate) struct Connection {
    pub stream: Stream,
    /// The address that was called; `None` if the peer called, or if a failed call is being closed.
    pub target: Option<HostPort>,
    pub remote: SocketAddr,
    pub state: State,
    /// Known after the hello.
    pub peer: Option<PeerInfo>,
    pub decoder: FrameDecoder,
    pub queue: SendQueue,
    /// The stream is full; the poller reports when it takes more.
    pub write_blocked: bool,
    /// The connection is listed for the next flush.
    pub dirty: bool,
    /// The time by which the connection must leave this state.
    pub deadline_ms: Option<u64>,
    pub up_since_ms: u64,
    preamble_sent: bool,
}

impl Connection {
    pub fn new(
        stream: Stream,
        remote: SocketAddr,
        target: Option<HostPort>,
        queue_limit_bytes: usize,
    ) -> Self {
        Self {
            stream,
            state: if target.is_some() {
                State::Connecting
            } else {
                State::AwaitHello
            },
            target,
            remote,
            peer: None,
            decoder: FrameDecoder::new(MAX_HANDSHAKE_BYTES),
            queue: SendQueue::new(queue_limit_bytes),
            write_blocked: false,
            dirty: false,
            deadline_ms: None,
            up_since_ms: 0,
            preamble_sent: false,
        }
    }

    /// Returns the connection of a stream that comes from a handshake. Under TLS the preambles have been exchanged.
    pub fn proven(
        stream: Stream,
        remote: SocketAddr,
        target: Option<HostPort>,
        queue_limit_bytes: usize,
    ) -> Self {
        let mut connection = Self::new(stream, remote, target, queue_limit_bytes);
        connection.state = State::AwaitHello;
        if connection.stream.is_tls() {
            connection.decoder = FrameDecoder::greeted(MAX_HANDSHAKE_BYTES);
            connection.preamble_sent = true;
        }
        connection
    }

    /// Returns the name by which the user knows the peer.
    pub fn label(&self) -> String {
        label(self.target.as_ref(), self.remote)
    }

    /// Returns true if both ends have the same IP address: no other machine has answered.
    pub fn is_within_host(&self) -> bool {
        let local_ip = self.stream.local_ip().ok();
        local_ip == Some(self.remote.ip().to_canonical())
    }

    /// Returns true if the peer called, and has not sent a byte.
    pub fn is_silent_caller(&self) -> bool {
        self.target.is_none() && self.decoder.is_untouched()
    }

    /// Queues a control frame of the mesh, behind the preamble if it is the first.
    pub fn send_control(&mut self, kind: FrameKind, payload: &[u8]) {
        if !self.preamble_sent {
            self.queue.push_raw(Bytes::from_static(&PREAMBLE));
            self.preamble_sent = true;
        }
        self.queue.push_unbounded(Frame::control(kind, payload));
    }

    /// Writes queued bytes, as far as the stream takes them. Encrypts at most `limit_bytes`; returns false if more
    /// bytes wait for encryption.
    pub fn write(&mut self, limit_bytes: usize) -> io::Result<bool> {
        if self.write_blocked || self.state == State::Connecting {
            return Ok(true);
        }
        if !self.stream.send_rest()? {
            self.write_blocked = true;
            return Ok(true);
        }
        let is_done = match self.queue.write_to(&mut self.stream, limit_bytes) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.write_blocked = true;
                true
            }
            result => result?,
        };
        if !self.stream.send_rest()? {
            self.write_blocked = true;
        }
        if self.state == State::Closing && self.queue.is_empty() && !self.write_blocked {
            self.stream.finish();
        }
        Ok(is_done || self.write_blocked)
    }
}
