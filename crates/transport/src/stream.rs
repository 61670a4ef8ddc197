//! A connection's byte stream. The one place to change for TLS.

use std::io::{self, IoSlice, Read};
use std::net::Shutdown;

use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use socket2::SockRef;

use crate::socket;

/// A non-blocking byte stream to a peer.
#[derive(Debug)]
pub(crate) enum Stream {
    /// TCP without encryption.
    Plain(TcpStream),
}

impl Stream {
    /// Registers once for both directions; events are edge-triggered.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.tcp_mut()
            .register(registry, token, Interest::READABLE | Interest::WRITABLE)
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(buffer),
        }
    }

    /// Writes without raising SIGPIPE (as writev would), whatever the host process does with signals.
    pub fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.try_io(|| {
                SockRef::from(&*tcp).send_vectored_with_flags(slices, libc::MSG_NOSIGNAL)
            }),
        }
    }

    /// Whether a read that did not fill its buffer has emptied the stream, so that the next edge will
    /// tell of more (epoll(7) grants it for sockets): saves a call per wake-up. TLS has a buffer of its
    /// own and will have to say no.
    pub fn short_read_empties(&self) -> bool {
        match self {
            Self::Plain(_) => true,
        }
    }

    /// After a non-blocking connect: `Ok(false)` while it is under way.
    pub fn connected(&self) -> io::Result<bool> {
        let tcp = self.tcp();
        if let Some(error) = tcp.take_error()? {
            return Err(error);
        }
        match tcp.peer_addr() {
            // The kernel may pick the port that is being called as the source, and connect it with
            // itself: nobody listens there.
            Ok(remote) if tcp.local_addr()? == remote => {
                Err(io::ErrorKind::ConnectionRefused.into())
            }
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Sets the options of a connection that stands.
    pub fn tune(&self, user_timeout_ms: u32) {
        socket::tune(self.tcp(), user_timeout_ms);
    }

    /// Ends the sending direction after what was written.
    pub fn finish(&mut self) {
        // An error means that it has ended already.
        let _ = self.tcp().shutdown(Shutdown::Write);
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
        }
    }

    fn tcp_mut(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
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
