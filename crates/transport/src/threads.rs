//! The threads of a mesh, each started for the first request: some look up names, one does TLS handshakes, one
//! asks the server whether callers are welcome.

use std::net::{IpAddr, SocketAddr};

use crate::allowlist::asker::Asker;
use crate::handshaker::{Handshaker, Outcome, Task};
use crate::resolver::Resolver;
use crate::{AllowAddress, HostPort, Waker};

pub(crate) struct Threads {
    waker: Waker,
    resolver: Option<Resolver>,
    handshaker: Option<Handshaker>,
    allow: Option<AllowAddress>,
    asker: Option<Asker>,
}

impl Threads {
    /// `waker`: wakes the reactor when a thread has an answer. `allow`: decides which addresses may connect; `None`:
    /// all may.
    pub(crate) fn new(waker: Waker, allow: Option<AllowAddress>) -> Threads {
        Threads {
            waker,
            resolver: None,
            handshaker: None,
            allow,
            asker: None,
        }
    }

    /// Has a name looked up; `is_seed`: it is from the configuration. Returns false if too many names wait.
    pub(crate) fn look_up(&mut self, address: &HostPort, is_seed: bool) -> bool {
        let new = || Resolver::new(self.waker.clone());
        let resolver = self.resolver.get_or_insert_with(new);
        resolver.ask(address.clone(), is_seed)
    }

    /// The next name that was looked up; it has no addresses if it does not resolve.
    pub(crate) fn next_answer(&mut self) -> Option<(HostPort, Vec<SocketAddr>)> {
        self.resolver.as_mut().and_then(Resolver::next_answer)
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

    /// Returns true if callers need a verdict on their addresses.
    pub(crate) fn has_allowlist(&self) -> bool {
        self.allow.is_some()
    }

    /// Has the server asked about an address. Returns false if the thread cannot be started: the next request tries
    /// again.
    pub(crate) fn ask(&mut self, ip: IpAddr) -> bool {
        if let (None, Some(allow)) = (&self.asker, &self.allow) {
            self.asker = Asker::start(allow, self.waker.clone()).ok();
        }
        self.asker.as_ref().is_some_and(|asker| asker.ask(ip))
    }

    /// The next verdict on an address; true: it may connect.
    pub(crate) fn next_verdict(&self) -> Option<(IpAddr, bool)> {
        self.asker.as_ref().and_then(Asker::next_verdict)
    }

    /// Ends all soon; does not wait. The drop leaves look-ups behind, and a question to the server that hangs for a second:
    /// their threads then return into code of this library, which is never unloaded (provider/build.rs).
    pub(crate) fn stop(&mut self) {
        if let Some(resolver) = &mut self.resolver {
            resolver.stop();
        }
        if let Some(handshaker) = &self.handshaker {
            handshaker.stop();
        }
        if let Some(asker) = &mut self.asker {
            asker.stop();
        }
    }
}
