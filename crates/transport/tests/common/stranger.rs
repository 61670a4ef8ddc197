//! A peer made by hand: it is admitted, and says what it likes.

use std::io::{ErrorKind, IoSlice};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use trireme_tls::{Claim, Credentials, Handshake, Progress, Role, Session};
pub use trireme_transport::testing::frame as raw_frame;
use trireme_transport::*;

use super::{Node, TIMEOUT};

/// How often a socket is tried.
const PAUSE: Duration = Duration::from_millis(1);

/// A peer of plain TCP that nobody can call.
pub fn caller(id: u8) -> Identity {
    Identity {
        listen_addr: "127.0.0.1:1".to_owned(),
        ..super::identity(id)
    }
}

/// What it says of itself, without a proof.
pub fn hello(identity: Identity) -> Hello {
    Hello {
        versions: (1, 1),
        identity,
        proof: None,
    }
}

/// All that a caller says to join, with an incarnation greater than the node's.
pub fn joining(id: u8) -> Vec<u8> {
    let hello = raw_frame(1, &hello(caller(id)).encode());
    [&PREAMBLE[..], &hello, &raw_frame(2, &[0])].concat()
}

/// The key of a data directory.
pub fn key(seed: u8) -> IdentityKey {
    IdentityKey::from_seed(&[seed; 32]).unwrap()
}

/// Who has this key, as a process.
pub fn identity_of(seed: u8, incarnation: u8) -> Identity {
    Identity {
        replica: trireme_tls::replica_of(key(seed).public()),
        ..caller(incarnation)
    }
}

/// One of its connections, encrypted.
pub struct Stranger {
    session: Session<TcpStream>,
}

impl Stranger {
    /// Calls a node; the preambles have been exchanged when this returns.
    pub fn call(node: &Node, credentials: &Credentials) -> Stranger {
        Stranger::meet(node.call(), Role::Dialer, credentials)
    }

    /// Shakes hands.
    pub fn meet(tcp: TcpStream, role: Role, credentials: &Credentials) -> Stranger {
        tcp.set_nonblocking(true).unwrap();
        tcp.set_nodelay(true).unwrap();
        let mut handshake = Handshake::new(credentials, role, tcp).unwrap();
        let until = Instant::now() + TIMEOUT;
        let session = loop {
            match handshake.step().unwrap() {
                Progress::Done(session) => break session,
                Progress::Waiting(waiting) => handshake = waiting,
            }
            assert!(Instant::now() < until, "a handshake that does not end");
            std::thread::sleep(PAUSE);
        };
        let mut stranger = Stranger { session };
        stranger.say_raw(&PREAMBLE).unwrap();
        assert_eq!(stranger.hear_raw(PREAMBLE.len()), PREAMBLE);
        stranger
    }

    /// Bytes as they are.
    pub fn say_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut left = bytes;
        while !left.is_empty() || self.session.has_unsent() {
            let taken = (self.session).write_vectored(&[IoSlice::new(left)], left.len());
            match taken {
                Ok(len) => left = &left[len..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A frame.
    pub fn say(&mut self, kind: u8, payload: &[u8]) -> std::io::Result<()> {
        self.say_raw(&raw_frame(kind, payload))
    }

    /// So many bytes, or what there is before the end.
    pub fn hear_raw(&mut self, len: usize) -> Vec<u8> {
        let (mut heard, until) = (Vec::new(), Instant::now() + TIMEOUT);
        while heard.len() < len {
            self.session.readable(false);
            let mut byte = [0];
            match self.session.read(&mut byte) {
                Ok(1) => heard.push(byte[0]),
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                _ => break,
            }
        }
        heard
    }

    /// The next frame; none at the end.
    pub fn hear(&mut self) -> Option<(u8, Vec<u8>)> {
        let header = self.hear_raw(HEADER_BYTES);
        let len = header.get(..4)?.try_into().unwrap();
        let payload = self.hear_raw(u32::from_le_bytes(len) as usize);
        Some((*header.get(8)?, payload))
    }

    /// The refusal that ends the connection.
    pub fn hear_refusal(&mut self) -> Refusal {
        while let Some((kind, payload)) = self.hear() {
            if kind == FrameKind::Refuse as u8 {
                return Refusal::decode(&payload).unwrap();
            }
        }
        panic!("an end without a refusal");
    }

    /// A Hello with a proof of this connection.
    pub fn hello(&self, who: &Identity, key: &IdentityKey) -> Hello {
        let (role, exporter) = self.session.binding().unwrap();
        let claim = Claim {
            exporter,
            role,
            replica: who.replica,
            incarnation: who.incarnation,
        };
        Hello {
            proof: Some(key.prove(&claim).unwrap()),
            ..hello(who.clone())
        }
    }

    /// Says that it is somebody, with this key.
    pub fn introduce(&mut self, who: &Identity, key: &IdentityKey) {
        let hello = self.hello(who, key).encode();
        self.say(FrameKind::Hello as u8, &hello).unwrap();
    }
}
