//! From a socket to a session.

use std::io::{self, Read, Write};

use openssl::error::ErrorStack;
use openssl::ssl::{ErrorCode, Ssl, SslStream};

use crate::wire::Wire;
use crate::{Credentials, Failure, Session};

/// Which side of a handshake this node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It was called.
    Acceptor,
    /// It calls.
    Dialer,
}

/// A handshake under way on a non-blocking socket.
#[derive(Debug)]
pub struct Handshake<S> {
    stream: SslStream<Wire<S>>,
    role: Role,
    ca: String,
}

/// How far a handshake has come.
#[derive(Debug)]
pub enum Progress<S> {
    /// To be continued when the socket is ready again.
    Waiting(Handshake<S>),
    /// The peer has a certificate that this node trusts. The peer's verdict on this node's comes with its first bytes.
    Done(Session<S>),
}

impl<S: Read + Write> Handshake<S> {
    /// Nothing is sent before the first [`Handshake::step`].
    pub fn new(credentials: &Credentials, role: Role, socket: S) -> Result<Self, ErrorStack> {
        let ssl = Ssl::new(credentials.context())?;
        Ok(Self {
            stream: SslStream::new(ssl, Wire::new(socket))?,
            role,
            ca: credentials.ca().to_owned(),
        })
    }

    /// The socket.
    pub fn socket_mut(&mut self) -> &mut S {
        self.stream.get_mut().socket_mut()
    }

    /// Goes on as far as the socket lets it. Call it whenever the socket is readable or writable.
    pub fn step(mut self) -> Result<Progress<S>, Failure> {
        self.stream.get_mut().readable(false);
        drop(ErrorStack::get()); // errors that this thread left behind in other work
        let result = match self.role {
            Role::Acceptor => self.stream.accept(),
            Role::Dialer => self.stream.connect(),
        };
        // An alert is sent as well.
        let sent = self.stream.get_mut().send();
        match result {
            Err(error) if error.code() == ErrorCode::WANT_READ => {}
            Err(error) => {
                let ended = self.stream.get_ref().has_ended();
                return Err(Failure::of(&error, self.stream.ssl(), ended, &self.ca));
            }
            Ok(()) => return Ok(Progress::Done(Session::new(self.stream, self.ca))),
        }
        match sent {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                Err(Failure::Io(error.to_string()))
            }
            _ => Ok(Progress::Waiting(self)),
        }
    }
}
