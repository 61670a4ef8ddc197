//! The stages of one socket, from TCP to a proven peer.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use trireme_mutants::{Mutant, planted};
use trireme_tls::{Failure, Handshake, Progress, Role, Session};

use super::{Fault, Task};
use crate::address::label;
use crate::frame::PREAMBLE;
use crate::handshake::{ALERT, TLS_HANDSHAKE, describe_invalid};
use crate::stream::Stream;
use crate::{FrameError, HostPort, RejectReason, Security, socket};

/// The preamble and Hello of a peer without TLS are shorter.
const HELLO_BYTES: usize = 8 << 10;

/// The stage of a socket.
#[derive(Debug)]
pub(crate) enum Stage {
    /// This node has called; TCP is connecting.
    Connecting(TcpStream),
    /// A peer has called, and has sent nothing yet.
    Listening(TcpStream),
    /// TLS.
    Shaking(Box<Handshake<TcpStream>>),
    /// TLS is established; the peer's verdict on this node comes with its preamble.
    Greeting {
        session: Box<Session<TcpStream>>,
        heard: usize,
    },
}

/// The result of one step.
#[derive(Debug)]
pub(crate) enum Step {
    Waiting(Stage),
    Done(Stream),
    Failed(Fault),
}

/// The facts about the socket that a stage needs.
#[derive(Debug)]
pub(crate) struct About {
    pub label: String,
    pub target: Option<HostPort>,
    pub security: Security,
    pub user_timeout_ms: u32,
}

impl Stage {
    pub fn new(task: Task) -> (Stage, About) {
        let about = About {
            label: label(task.target.as_ref(), task.remote),
            target: task.target,
            security: task.security,
            user_timeout_ms: task.user_timeout_ms,
        };
        let stage = match about.target {
            Some(_) => Stage::Connecting(task.tcp),
            None => Stage::Listening(task.tcp),
        };
        (stage, about)
    }

    pub fn register(&mut self, registry: &Registry, token: Token) -> std::io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        self.tcp().register(registry, token, both)
    }

    fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Stage::Connecting(tcp) | Stage::Listening(tcp) => tcp,
            Stage::Shaking(handshake) => handshake.socket_mut(),
            Stage::Greeting { session, .. } => session.socket_mut(),
        }
    }

    /// Continues as far as the socket lets it.
    pub fn step(self, about: &About) -> Step {
        match self {
            Stage::Connecting(tcp) => connecting(tcp, about),
            Stage::Listening(tcp) => listening(tcp, about),
            Stage::Shaking(handshake) => shaking(*handshake, about),
            Stage::Greeting { session, heard } => greeting(session, heard, about),
        }
    }

    /// Returns the fault of a socket whose time is over.
    pub fn timed_out(&self, about: &About, limit_ms: u64) -> Fault {
        let label = &about.label;
        let text = match self {
            Stage::Connecting(_) => return Fault::Connect(ErrorKind::TimedOut),
            Stage::Listening(_) => format!(
                "{label} connected and sent nothing for {limit_ms} ms: no Trireme node? (Galera nodes without TLS wait for \
                 the other side; Trireme and Galera nodes cannot share a cluster)"
            ),
            _ => format!(
                "peer {label} did not finish the TLS handshake within {limit_ms} ms: paused, overloaded, or no Trireme \
                 node; check what runs there"
            ),
        };
        Fault::Rejected(RejectReason::Timeout, text)
    }
}

fn connecting(tcp: TcpStream, about: &About) -> Step {
    match socket::connected(&tcp) {
        Ok(false) => return Step::Waiting(Stage::Connecting(tcp)),
        Ok(true) => {}
        Err(error) => return Step::Failed(Fault::Connect(error.kind())),
    }
    socket::tune(&tcp, about.user_timeout_ms);
    match about.security.to_dial() {
        Some(credentials) => begin(Handshake::new(credentials, Role::Dialer, tcp), about),
        None => Step::Done(Stream::Plain(tcp)),
    }
}

/// Reads the first byte, which tells the caller's protocol.
fn listening(tcp: TcpStream, about: &About) -> Step {
    let mut first = [0];
    match tcp.peek(&mut first) {
        Ok(0) => return Step::Failed(Fault::Displaced), // it came and went
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::WouldBlock => return Step::Waiting(Stage::Listening(tcp)),
        Err(e) if e.kind() == ErrorKind::Interrupted => return listening(tcp, about),
        Err(_) => return Step::Failed(Fault::Displaced), // it came and went
    }
    match (first[0], about.security.to_accept()) {
        (TLS_HANDSHAKE, Some(credentials)) => {
            begin(Handshake::new(credentials, Role::Acceptor, tcp), about)
        }
        // The mesh reports the errors of other callers.
        _ if about.security.permits(false) => Step::Done(Stream::Plain(tcp)),
        (byte, _) if byte == PREAMBLE[0] => {
            tell_to_encrypt(tcp);
            let text = format!(
                "peer {} does not encrypt, this node does: set the same socket.ssl or repl.secret_file on all nodes; while a cluster goes over to \
                 TLS, socket.dynamic=yes lets a node accept both",
                about.label
            );
            Step::Failed(Fault::Rejected(RejectReason::Tls, text))
        }
        _ => Step::Failed(foreign(&first, about)),
    }
}

/// Sends a TLS alert to a peer that speaks plain TCP; a Trireme peer recognises and reports it. The peer's bytes must
/// be read first, or else the system would discard the alert.
fn tell_to_encrypt(mut tcp: TcpStream) {
    let mut hello = [0; HELLO_BYTES];
    // Errors are ignored: the peer may or may not get the alert.
    let _ = tcp.read(&mut hello);
    let _ = tcp.write(&ALERT);
    let _ = tcp.shutdown(Shutdown::Write);
}

fn begin<E: std::fmt::Display>(made: Result<Handshake<TcpStream>, E>, about: &About) -> Step {
    match made {
        Ok(handshake) => shaking(handshake, about),
        Err(error) => {
            let text = format!(
                "no TLS handshake with {}: OpenSSL fails: {error}",
                about.label
            );
            Step::Failed(Fault::Rejected(RejectReason::Tls, text))
        }
    }
}

fn shaking(handshake: Handshake<TcpStream>, about: &About) -> Step {
    match handshake.step() {
        Ok(Progress::Waiting(handshake)) => Step::Waiting(Stage::Shaking(Box::new(handshake))),
        Ok(Progress::Done(mut session)) => {
            let preamble = std::io::IoSlice::new(&PREAMBLE);
            match session.write_vectored(&[preamble], PREAMBLE.len()) {
                // The rest of the handshake goes first, and the preamble behind it.
                Ok(_) => greeting(Box::new(session), 0, about),
                Err(error) => Step::Failed(fault(Failure::from_io(&error), about)),
            }
        }
        Err(failure) => Step::Failed(fault(failure, about)),
    }
}

fn greeting(mut session: Box<Session<TcpStream>>, mut heard: usize, about: &About) -> Step {
    if let Err(error) = session.send() {
        return Step::Failed(fault(Failure::from_io(&error), about));
    }
    session.readable(false);
    while heard < PREAMBLE.len() && !planted(Mutant::VerdictNotAwaited) {
        let mut byte = [0];
        match session.read(&mut byte) {
            Ok(0) => return Step::Failed(fault(Failure::Closed, about)),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Step::Waiting(Stage::Greeting { session, heard });
            }
            Err(error) => return Step::Failed(fault(Failure::from_io(&error), about)),
        }
        match (heard + 1 == PREAMBLE.len(), byte[0] == PREAMBLE[heard]) {
            (_, true) => heard += 1,
            (true, false) => {
                let (reason, text) =
                    describe_invalid(&about.label, &FrameError::FramingVersion(byte[0]));
                return Step::Failed(Fault::Rejected(reason, text));
            }
            (false, false) => return Step::Failed(foreign(&byte, about)),
        }
    }
    Step::Done(Stream::Tls(session))
}

fn foreign(first: &[u8], about: &About) -> Fault {
    let (reason, text) =
        describe_invalid(&about.label, &FrameError::ForeignProtocol(first.to_vec()));
    Fault::Rejected(reason, text)
}

fn fault(failure: Failure, about: &About) -> Fault {
    let label = &about.label;
    let (reason, text) = match failure {
        Failure::Closed | Failure::Io(_) => (
            RejectReason::Broken,
            format!(
                "TLS handshake with {label} broke off ({failure}): if this goes on, compare socket.ssl and repl.secret_file of both nodes, and \
                 see the log there"
            ),
        ),
        Failure::NotTls => (
            RejectReason::Tls,
            format!(
                "peer {label} does not speak TLS 1.3: set the same socket.ssl or repl.secret_file on all nodes, and correct wsrep_cluster_address if it names other services"
            ),
        ),
        failure => (
            RejectReason::Tls,
            format!("TLS handshake with {label} failed: {failure}"),
        ),
    };
    Fault::Rejected(reason, text)
}
