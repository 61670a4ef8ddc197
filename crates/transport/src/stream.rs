//! A connection's byte stream: plain, or encrypted.

use std::io::{self, IoSlice, Read};
use std::net::{IpAddr, Shutdown};

use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use socket2::SockRef;
use trireme_tls::{Credentials, Role, Session};

use crate::socket;

/// A non-blocking byte stream to a peer.
#[derive(Debug)]
pub(crate) enum Stream {
    /// TCP without encryption.
    Plain(TcpStream),
    /// A TLS session with a peer that has proven its identity.
    Tls(Box<Session<TcpStream>>),
}

impl Stream {
    /// Registers once for both directions; events are edge-triggered.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.tcp_mut()
            .register(registry, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Takes the stream out of a poller, before another poller watches it.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.tcp_mut().deregister(registry)
    }

    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Returns the address of this end.
    pub fn local_ip(&self) -> io::Result<IpAddr> {
        Ok(self.tcp().local_addr()?.ip().to_canonical())
    }

    /// Returns this node's role in the handshake, and a value that is unique to this session; none without TLS.
    pub fn binding(&self) -> Option<io::Result<(Role, [u8; 32])>> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(session) => Some(session.binding()),
        }
    }

    /// Returns the reason why these credentials end this stream: its peer's certificate is revoked.
    pub fn revocation(&self, credentials: &Credentials) -> Option<String> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(session) => session.revocation(credentials),
        }
    }

    /// Returns a description of the protection, for a line of a log.
    pub fn describe(&self) -> String {
        match self {
            Self::Plain(_) => "not encrypted".to_owned(),
            Self::Tls(session) => session.describe(),
        }
    }

    /// Notes that the socket may have more to read. `ending`: a short read does not prove that it is empty.
    pub fn readable(&mut self, ending: bool) {
        if let Self::Tls(session) = self {
            session.readable(!ending);
        }
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(buffer),
            Self::Tls(session) => session.read(buffer),
        }
    }

    /// Reads bytes from the socket as they came. The stream itself cannot be read afterwards.
    pub fn read_raw(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tcp_mut().read(buffer)
    }

    /// Writes without raising SIGPIPE (as writev would), whatever the host process does with signals. A plain stream
    /// may take more than `limit_bytes`.
    pub fn write_vectored(
        &mut self,
        slices: &[IoSlice<'_>],
        limit_bytes: usize,
    ) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.try_io(|| {
                SockRef::from(&*tcp).send_vectored_with_flags(slices, libc::MSG_NOSIGNAL)
            }),
            Self::Tls(session) => session.write_vectored(slices, limit_bytes),
        }
    }

    /// Returns true if a read that did not fill its buffer has emptied the stream, so that the next edge will report
    /// more (epoll(7) guarantees it for sockets). That saves a call per wake-up.
    pub fn short_read_empties(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(session) => session.is_emptied(),
        }
    }

    /// Returns true if bytes can be read that no edge will report.
    pub fn has_buffered(&self) -> bool {
        matches!(self, Self::Tls(session) if session.has_buffered())
    }

    /// Gives the socket the bytes that were encrypted before. Returns true if none are left.
    pub fn send_rest(&mut self) -> io::Result<bool> {
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(session) => {
                session.send()?;
                Ok(!session.has_unsent())
            }
        }
    }

    /// Checks a non-blocking connect. Returns `Ok(false)` while it is running.
    pub fn connected(&self) -> io::Result<bool> {
        socket::connected(self.tcp())
    }

    /// Sets the options of an established connection.
    pub fn tune(&self, user_timeout_ms: u32) {
        socket::tune(self.tcp(), user_timeout_ms);
    }

    /// Ends the sending direction after what was written.
    pub fn finish(&mut self) {
        if let Self::Tls(session) = self {
            session.finish();
        }
        // An error means that the direction has ended already.
        let _ = self.tcp().shutdown(Shutdown::Write);
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(session) => session.socket(),
        }
    }

    fn tcp_mut(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(session) => session.socket_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn a_socket_connected_with_itself_is_refused() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        socket.connect(&socket.local_addr().unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let stream = Stream::Plain(TcpStream::from_std(socket.into()));
        assert_eq!(
            stream.connected().unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
    }
}
