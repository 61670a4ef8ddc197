//! Handshakes of two sides on a pair of sockets.

use std::os::unix::net::UnixStream;

use trireme_tls::{Credentials, Failure, Handshake, Progress, Role, Session};

/// What a handshake has come to.
pub type Side = Result<Session<UnixStream>, Failure>;

/// Steps both sides until each has come to an end.
pub fn shake(acceptor: &Credentials, dialer: &Credentials) -> (Side, Side) {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let begin = |credentials, role, socket| Handshake::new(credentials, role, socket).unwrap();
    let mut sides = [
        Err(begin(acceptor, Role::Acceptor, near)),
        Err(begin(dialer, Role::Dialer, far)),
    ];
    for _ in 0..100 {
        sides = sides.map(|side| {
            side.or_else(|handshake| match handshake.step() {
                Ok(Progress::Waiting(handshake)) => Err(handshake),
                Ok(Progress::Done(session)) => Ok(Ok(session)),
                Err(failure) => Ok(Err(failure)),
            })
        });
    }
    let [acceptor, dialer] = sides.map(|side| side.expect("a handshake that does not end"));
    (acceptor, dialer)
}

/// What a dialer learns once it reads: in TLS 1.3 its handshake ends before the acceptor has seen its certificate.
pub fn verdict(dialer: Side) -> Failure {
    match dialer {
        Err(failure) => failure,
        Ok(mut session) => {
            session.readable(false);
            match session.read(&mut [0]) {
                Ok(_) => Failure::Closed,
                Err(error) => Failure::from_io(&error),
            }
        }
    }
}
