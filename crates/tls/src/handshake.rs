//! The handshake: it takes a non-blocking socket and [`Credentials`], and becomes a [`Session`] or fails. A session
//! exists only after the peer has proved its certificate or the secret.

use std::io::{self, Read, Write};

use openssl::error::ErrorStack;
use openssl::ssl::{ErrorCode, Ssl, SslRef, SslStream};

use crate::credentials::Trust;
use crate::wire::Wire;
use crate::{Credentials, Failure, Session};

/// The side of a handshake that a node is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The node accepted the connection.
    Acceptor,
    /// The node opened the connection.
    Dialer,
}

impl Role {
    /// The peer's role.
    pub fn other(self) -> Role {
        match self {
            Role::Acceptor => Role::Dialer,
            Role::Dialer => Role::Acceptor,
        }
    }
}

/// A handshake under way on a non-blocking socket.
#[derive(Debug)]
pub struct Handshake<S> {
    stream: SslStream<Wire<S>>,
    role: Role,
    trust: Trust,
}

/// The progress of a handshake.
#[derive(Debug)]
pub enum Progress<S> {
    /// The handshake continues when the socket is ready again.
    Waiting(Handshake<S>),
    /// The peer has a certificate that this node trusts, or the secret. The peer's verdict on this node comes with the
    /// peer's first bytes.
    Done(Session<S>),
}

impl<S: Read + Write> Handshake<S> {
    /// Makes the handshake. Nothing is sent before the first [`Handshake::step`].
    pub fn new(credentials: &Credentials, role: Role, socket: S) -> Result<Self, ErrorStack> {
        let ssl = Ssl::new(credentials.context(role))?;
        Ok(Self {
            stream: SslStream::new(ssl, Wire::new(socket))?,
            role,
            trust: credentials.trust().clone(),
        })
    }

    /// The socket.
    pub fn socket_mut(&mut self) -> &mut S {
        self.stream.get_mut().socket_mut()
    }

    /// Continues the handshake as far as the socket allows. Call it whenever the socket is readable or writable.
    pub fn step(mut self) -> Result<Progress<S>, Failure> {
        self.stream.get_mut().readable(false);
        drop(ErrorStack::get()); // errors that this thread left behind in other work
        let result = match self.role {
            Role::Acceptor => self.stream.accept(),
            Role::Dialer => self.stream.connect(),
        };
        // OpenSSL may have written an alert: that is sent, too.
        let sent = self.stream.get_mut().send();
        match result {
            Err(error) if error.code() == ErrorCode::WANT_READ => {}
            Err(error) => {
                let ended = self.stream.get_ref().has_ended();
                return Err(Failure::of(&error, self.stream.ssl(), ended, &self.trust));
            }
            Ok(()) => {
                proven(self.stream.ssl(), &self.trust)?;
                return Ok(Progress::Done(Session::new(
                    self.stream,
                    self.trust,
                    self.role,
                )));
            }
        }
        match sent {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                Err(Failure::Io(error.to_string()))
            }
            _ => Ok(Progress::Waiting(self)),
        }
    }
}

/// Checks again that the peer has the secret. OpenSSL has done so; but with a secret no other check keeps a foreign
/// process from the log.
fn proven(ssl: &SslRef, trust: &Trust) -> Result<(), Failure> {
    match trust {
        Trust::Secret(file) if !ssl.session_reused() => Err(Failure::without_secret(file)),
        _ => Ok(()),
    }
}
