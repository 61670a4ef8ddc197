//! What comes before a Hello under TLS: nonsense, or a true handshake that somebody in the middle changes.
//!
//! The first byte of the input says who is attacked (dialer or acceptor), what protects it (certificates or a secret), and
//! whether the rest is what it reads, or changes to what a true peer says: two bytes position, one byte to combine with (0:
//! the stream ends there). The second byte is the size of the pieces.
#![no_main]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::rc::Rc;
use std::sync::OnceLock;

use trireme_tls::testing::{NOW, Party, secret};
use trireme_tls::{Credentials, Handshake, Progress, Role, Session};

const ATTACKS_DIALER: u8 = 1;
const BY_SECRET: u8 = 2;
const IN_THE_MIDDLE: u8 = 4;

/// The first application data of both sides.
const PREAMBLE: [u8; 8] = *b"TRIREME\x01";
/// Each side steps so often: a whole handshake takes three.
const STEPS: usize = 8;

/// One direction between two sides.
#[derive(Default)]
struct Lane {
    bytes: VecDeque<u8>,
    /// How many bytes have gone in.
    position: usize,
    changes: Vec<(usize, u8)>,
    has_ended: bool,
}

impl Lane {
    fn put(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let here = self.changes.iter().find(|(at, _)| *at == self.position);
            let change = here.map(|(_, change)| *change);
            self.position += 1;
            self.has_ended |= change == Some(0);
            if !self.has_ended {
                self.bytes.push_back(byte ^ change.unwrap_or(0));
            }
        }
    }
}

struct End {
    incoming: Rc<RefCell<Lane>>,
    outgoing: Rc<RefCell<Lane>>,
    piece_bytes: usize,
}

impl Read for End {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut lane = self.incoming.borrow_mut();
        let len = lane.bytes.len().min(buffer.len()).min(self.piece_bytes);
        if len == 0 && !lane.has_ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        for (byte, came) in buffer.iter_mut().zip(lane.bytes.drain(..len)) {
            *byte = came;
        }
        Ok(len)
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.borrow_mut().put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How far a side has come.
enum Side {
    Shaking(Handshake<End>),
    Proven(Box<Session<End>>),
    Ended,
}

impl Side {
    fn new(credentials: &Credentials, role: Role, end: End) -> Side {
        Side::Shaking(Handshake::new(credentials, role, end).expect("a session can be made"))
    }

    fn step(self) -> Side {
        let Side::Shaking(handshake) = self else {
            return self;
        };
        match handshake.step() {
            Ok(Progress::Waiting(handshake)) => Side::Shaking(handshake),
            Ok(Progress::Done(mut session)) => {
                let sent = session.write_vectored(&[IoSlice::new(&PREAMBLE)], PREAMBLE.len());
                match sent {
                    Ok(_) => Side::Proven(Box::new(session)),
                    Err(_) => Side::Ended,
                }
            }
            Err(failure) => {
                assert!(!failure.to_string().is_empty());
                Side::Ended
            }
        }
    }

    /// What is read of the peer's preamble.
    fn hear(self) -> Option<Vec<u8>> {
        let Side::Proven(mut session) = self else {
            return None;
        };
        let mut heard = vec![0; PREAMBLE.len()];
        session.readable(false);
        match session.read(&mut heard) {
            Ok(len) => {
                heard.truncate(len);
                Some(heard)
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                None
            }
        }
    }
}

fn credentials(by_secret: bool) -> &'static Credentials {
    static MADE: OnceLock<[Credentials; 2]> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let ca = Party::authority("ca");
        let node = ca.issue("node", NOW).credentials(&ca);
        [node, secret("a secret of at least thirty-two bytes\n")]
    });
    &made[usize::from(by_secret)]
}

fn attack(how: u8, piece_bytes: usize, rest: &[u8]) {
    let credentials = credentials(how & BY_SECRET != 0);
    let role = match how & ATTACKS_DIALER {
        0 => Role::Acceptor,
        _ => Role::Dialer,
    };
    let to = Rc::<RefCell<Lane>>::default();
    let from = Rc::<RefCell<Lane>>::default();
    let end = |incoming: &Rc<RefCell<Lane>>, outgoing: &Rc<RefCell<Lane>>| End {
        incoming: Rc::clone(incoming),
        outgoing: Rc::clone(outgoing),
        piece_bytes,
    };
    let mut attacked = Side::new(credentials, role, end(&to, &from));
    if how & IN_THE_MIDDLE == 0 {
        to.borrow_mut().put(rest);
        to.borrow_mut().has_ended = true;
        (0..STEPS).for_each(|_| attacked = std::mem::replace(&mut attacked, Side::Ended).step());
        assert!(!matches!(attacked, Side::Proven(_)), "a stranger is proven");
        return;
    }
    let changes = rest.chunks_exact(3);
    to.borrow_mut().changes = changes
        .map(|change| {
            (
                usize::from(u16::from_le_bytes([change[0], change[1]])),
                change[2],
            )
        })
        .collect();
    let mut peer = Side::new(credentials, role.other(), end(&from, &to));
    for _ in 0..STEPS {
        attacked = attacked.step();
        peer = peer.step();
    }
    let is_unchanged = to.borrow().changes.is_empty();
    for heard in [attacked.hear(), peer.hear()] {
        assert!(
            heard.is_some() || !is_unchanged,
            "two true sides do not meet"
        );
        let heard = heard.unwrap_or_default();
        assert!(PREAMBLE.starts_with(&heard), "{heard:?}");
    }
}

trireme_fuzz::fuzz!(|bytes| {
    if let [how, piece, rest @ ..] = bytes {
        attack(*how, usize::from(*piece).max(1) * 16, rest);
    }
});
