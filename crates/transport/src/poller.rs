//! The reactor's wait: readiness of connections, and the accepting of new ones.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token};
use trireme_mutants::{Mutant, planted};

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// The tokens of connections start here and are never reused.
pub(crate) const FIRST_CONNECTION: usize = 2;

/// Connections accepted per wait, so that a flood of callers does not keep the reactor from its work.
const MAX_ACCEPTS: usize = 64;
/// Pause before accepting is tried again after an error such as "too many open files".
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Ends a [`Poller::wait`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<mio::Waker>);

impl Waker {
    pub(crate) fn of(registry: &Registry) -> io::Result<Waker> {
        Ok(Waker(Arc::new(mio::Waker::new(registry, WAKER)?)))
    }

    /// Makes the wait under way, or the next one, return at once.
    pub fn wake(&self) {
        // Fails only if the eventfd is gone; then no thread waits on it.
        let _ = self.0.wake();
    }
}

/// The results of a wait; reusable.
#[derive(Debug, Default)]
pub struct Ready {
    pub(crate) connections: Vec<ReadyConnection>,
    pub(crate) accepted: Vec<Accepted>,
    pub(crate) accept_error: Option<io::Error>,
}

impl Ready {
    /// True if nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty() && self.accepted.is_empty() && self.accept_error.is_none()
    }
}

#[derive(Debug)]
pub(crate) struct ReadyConnection {
    pub token: usize,
    pub readable: bool,
    pub writable: bool,
    /// The peer has ended its direction, or the connection is broken: read until an error or the end says so.
    pub ending: bool,
}

#[derive(Debug)]
pub(crate) struct Accepted {
    pub stream: TcpStream,
    pub remote: SocketAddr,
}

/// The part of the mesh that waits; belongs to the reactor thread and takes no lock. Owns the
/// listening socket: dropping it makes callers see "connection refused".
pub struct Poller {
    poll: Poll,
    events: Events,
    listener: TcpListener,
    /// More callers may wait than were accepted: the poller is edge-triggered and will not report them again.
    accept_pending: bool,
    /// The last accept failed.
    accept_failed: bool,
}

impl Poller {
    pub(crate) fn new(mut listener: TcpListener) -> io::Result<(Self, Registry, Waker)> {
        let poll = Poll::new()?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::of(poll.registry())?;
        let registry = poll.registry().try_clone()?;
        let events = Events::with_capacity(256);
        Ok((
            Self {
                poll,
                events,
                listener,
                accept_pending: false,
                accept_failed: false,
            },
            registry,
            waker,
        ))
    }

    /// Waits until a connection is ready, a peer calls, a waker wakes, or the time is over (`None`: no limit), and
    /// accepts callers. Call it without any lock: it sleeps.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Ready) -> io::Result<()> {
        ready.connections.clear();
        let timeout = match (self.accept_pending, self.accept_failed) {
            (false, _) => timeout,
            (true, false) => Some(Duration::ZERO),
            (true, true) if planted(Mutant::AcceptSpins) => Some(Duration::ZERO),
            (true, true) => Some(timeout.map_or(ACCEPT_RETRY, |t| t.min(ACCEPT_RETRY))),
        };
        match self.poll.poll(&mut self.events, timeout) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in &self.events {
            match event.token() {
                LISTENER => self.accept_pending = true,
                WAKER => {}
                Token(token) => ready.connections.push(ReadyConnection {
                    token,
                    readable: event.is_readable() || event.is_error(),
                    writable: event.is_writable() || event.is_error(),
                    ending: event.is_read_closed() || event.is_error(),
                }),
            }
        }
        if self.accept_pending {
            self.accept(ready);
        }
        Ok(())
    }

    fn accept(&mut self, ready: &mut Ready) {
        self.accept_failed = false;
        for _ in 0..MAX_ACCEPTS {
            match self.listener.accept() {
                Ok((stream, remote)) => {
                    ready.accepted.push(Accepted { stream, remote });
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.accept_pending = false;
                    return;
                }
                // The caller gave up in the meantime.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) => {}
                Err(e) => {
                    self.accept_failed = true;
                    ready.accept_error = Some(e);
                    return;
                }
            }
        }
    }
}
