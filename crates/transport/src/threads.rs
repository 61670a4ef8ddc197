//! The threads of a mesh, each started for the first request: one looks up names, one does TLS handshakes.

use std::net::SocketAddr;

use crate::handshaker::{Handshaker, Outcome, Task};
use crate::resolver::Resolver;
use crate::{HostPort, Waker};

#[derive(Debug)]
pub(crate) struct Threads {
    waker: Waker,
    resolver: Option<Resolver>,
    handshaker: Option<Handshaker>,
}

impl Threads {
    /// `waker`: wakes the reactor when a thread has an answer.
    pub(crate) fn new(waker: Waker) -> Threads {
        Threads {
            waker,
            resolver: None,
            handshaker: None,
        }
    }

    /// Has a name looked up. Returns false if the thread cannot be started: the next request tries again.
    pub(crate) fn look_up(&mut self, address: &HostPort) -> bool {
        if self.resolver.is_none() {
            self.resolver = Resolver::start(self.waker.clone()).ok();
        }
        let resolver = self.resolver.as_ref();
        resolver.is_some_and(|resolver| resolver.ask(address.clone()))
    }

    /// The next name that was looked up; it has no addresses if it does not resolve.
    pub(crate) fn next_answer(&self) -> Option<(HostPort, Vec<SocketAddr>)> {
        self.resolver.as_ref().and_then(Resolver::next_answer)
    }

    /// Hands a socket over for the TLS handshake. Returns the address of a dialed socket that found no room, or whose
    /// thread cannot be started: the next request tries again.
    pub(crate) fn hand(&mut self, task: Task) -> Option<HostPort> {
        if !self.handshaker.as_ref().is_some_and(Handshaker::is_alive) {
            self.handshaker = Handshaker::start(self.waker.clone()).ok();
        }
        match &self.handshaker {
            Some(handshaker) => handshaker.hand(task),
            None => task.target,
        }
    }

    /// The next handshake that has ended.
    pub(crate) fn next_outcome(&self) -> Option<Outcome> {
        self.handshaker.as_ref().and_then(Handshaker::next_outcome)
    }

    /// Ends both soon; does not wait. The drop waits: a look-up may take half a minute.
    pub(crate) fn stop(&mut self) {
        if let Some(resolver) = &mut self.resolver {
            resolver.stop();
        }
        if let Some(handshaker) = &self.handshaker {
            handshaker.stop();
        }
    }
}
