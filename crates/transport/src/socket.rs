//! Makes sockets, for listening and calling. All are non-blocking and close-on-exec (socket2's default).

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{HostPort, TransportError};

/// Connections that the kernel holds ready while the reactor is busy.
const BACKLOG: i32 = 128;

/// Opens the listening socket. `[::]` takes IPv4 callers as well.
pub(crate) fn listen(address: &HostPort) -> Result<TcpListener, TransportError> {
    let resolved = (address.host.as_str(), address.port).to_socket_addrs();
    let resolved =
        resolved.and_then(|mut found| found.next().ok_or_else(|| io::ErrorKind::NotFound.into()));
    let socket_addr = resolved.map_err(|source| TransportError::Resolve {
        address: address.to_string(),
        source,
    })?;
    let open = || -> io::Result<TcpListener> {
        let socket = new_socket(socket_addr)?;
        socket.set_reuse_address(true)?; // a restart must not wait for TIME_WAIT
        if socket_addr.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.bind(&socket_addr.into())?;
        socket.listen(BACKLOG)?;
        Ok(TcpListener::from_std(socket.into()))
    };
    open().map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => TransportError::PortInUse {
            address: address.to_string(),
        },
        _ => TransportError::Listen {
            address: address.to_string(),
            source,
        },
    })
}

/// Starts a connection. `source` is the address to call from, where it can reach the target at all; other nodes'
/// allowlists know this node by the address that it listens on.
pub(crate) fn dial(target: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = new_socket(target)?;
    if let Some(ip) = source {
        if ip.is_ipv4() == target.is_ipv4() && (!ip.is_loopback() || target.ip().is_loopback()) {
            socket.bind(&SocketAddr::new(ip, 0).into())?;
        }
    }
    match socket.connect(&target.into()) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(e) => return Err(e),
    }
    Ok(TcpStream::from_std(socket.into()))
}

/// Checks a non-blocking connect. Returns `Ok(false)` while it is running.
pub(crate) fn connected(tcp: &TcpStream) -> io::Result<bool> {
    if let Some(error) = tcp.take_error()? {
        return Err(error);
    }
    match tcp.peer_addr() {
        // The kernel may choose the called port as the source port, and connect the socket with itself: no process
        // listens there.
        Ok(remote) if tcp.local_addr()? == remote => Err(io::ErrorKind::ConnectionRefused.into()),
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(e) => Err(e),
    }
}

/// Sets the options of an established connection. Failures only cost speed.
pub(crate) fn tune(stream: &TcpStream, user_timeout_ms: u32) {
    let _ = stream.set_nodelay(true);
    if user_timeout_ms > 0 {
        let timeout = Duration::from_millis(user_timeout_ms.into());
        let _ = SockRef::from(stream).set_tcp_user_timeout(Some(timeout));
    }
}

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_named() {
        let first = listen(&HostPort::parse("127.0.0.1:0", None).unwrap()).unwrap();
        let taken = HostPort::from(first.local_addr().unwrap());
        let error = listen(&taken).unwrap_err().to_string();
        assert!(
            error.contains(&taken.to_string()) && error.contains("in use"),
            "{error}"
        );
    }

    #[test]
    fn a_foreign_address_cannot_be_listened_on() {
        let address = HostPort::parse("192.0.2.1:0", None).unwrap();
        assert!(matches!(
            listen(&address),
            Err(TransportError::Listen { .. })
        ));
    }
}
