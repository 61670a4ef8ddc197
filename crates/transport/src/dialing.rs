//! Calls peers, and gives up calls that fail or take too long.

use std::io::ErrorKind;
use std::net::SocketAddr;

use crate::book::AfterFailure;
use crate::connection::{Connection, State};
use crate::mesh::Mesh;
use crate::stream::Stream;
use crate::{DownReason, HostPort, MeshEvent, RejectReason, socket};

impl Mesh {
    /// Calls every address whose call is due.
    pub(crate) fn call_due(&mut self) {
        for address in self
            .book
            .due(self.now_ms, |peer| self.connections.is_linked(peer))
        {
            self.book.resolving(&address);
            if let Some(literal) = address.literal() {
                self.resolved(address, vec![literal]);
            } else if !self.threads.look_up(&address) {
                self.book.failed(&address, self.now_ms);
            }
        }
    }

    /// Continues the calls whose names have been looked up.
    pub(crate) fn take_answers(&mut self) {
        while let Some((address, found)) = self.threads.next_answer() {
            self.resolved(address, found);
        }
    }

    fn resolved(&mut self, address: HostPort, found: Vec<SocketAddr>) {
        match self.book.resolved(&address, found) {
            Some(first) => self.dial(address, first),
            // A name that does not exist, or not yet, is no error.
            None => self.book.failed(&address, self.now_ms),
        }
    }

    /// Continues a failed call with the next address of the name, or else pauses.
    pub(crate) fn try_next(&mut self, address: HostPort) {
        match self.book.next_address(&address) {
            Some(next) => self.dial(address, next),
            None => self.book.failed(&address, self.now_ms),
        }
    }

    pub(crate) fn dial(&mut self, address: HostPort, mut remote: SocketAddr) {
        loop {
            let dialed = socket::dial(remote, self.settings.source_ip).and_then(|tcp| {
                if self.security.to_dial().is_some() {
                    self.prove_called(tcp, remote, address.clone());
                    return Ok(());
                }
                let target = Some(address.clone());
                self.add_connection(Connection::new(
                    Stream::Plain(tcp),
                    remote,
                    target,
                    self.settings.queue_limit_bytes,
                ))
                .map(drop)
            });
            let Err(error) = dialed else { return };
            match self.dial_failed(&address, error.kind()) {
                Some(next) => remote = next,
                None => return,
            }
        }
    }

    /// Notes a failed attempt. Returns the next address to try, if any.
    pub(crate) fn dial_failed(
        &mut self,
        address: &HostPort,
        kind: ErrorKind,
    ) -> Option<SocketAddr> {
        match self.book.connect_failed(address, kind, self.now_ms) {
            AfterFailure::Next(next) => return Some(next),
            AfterFailure::Refused(incarnation) => {
                self.reports.push(MeshEvent::Refused {
                    address: address.to_string(),
                    incarnation,
                });
            }
            AfterFailure::Pause => {}
        }
        None
    }

    /// Finishes a connect after an event of the socket. Returns true if TCP is connected.
    pub(crate) fn finish_connect(&mut self, token: usize) -> bool {
        let Some(connection) = self.connections.get_mut(token) else {
            return false;
        };
        match connection.stream.connected() {
            Ok(false) => false,
            Ok(true) => {
                connection.stream.tune(self.settings.user_timeout_ms);
                connection.state = State::AwaitHello;
                self.say_hello(token);
                self.write(token);
                true
            }
            Err(error) => {
                self.connect_failed(token, error.kind());
                false
            }
        }
    }

    fn connect_failed(&mut self, token: usize, kind: ErrorKind) {
        let Some(target) = self
            .connections
            .remove(token)
            .and_then(|connection| connection.target)
        else {
            return;
        };
        if let Some(next) = self.dial_failed(&target, kind) {
            self.dial(target, next);
        }
    }

    /// Gives up connections whose handshake is late.
    pub(crate) fn expire(&mut self) {
        let late = self
            .connections
            .iter()
            .filter(|(_, c)| c.deadline_ms.is_some_and(|d| d <= self.now_ms));
        let late: Vec<usize> = late.map(|(token, _)| token).collect();
        for token in late {
            let Some(connection) = self.connections.get(token) else {
                continue;
            };
            match connection.state {
                State::Connecting => {
                    self.connect_failed(token, ErrorKind::TimedOut);
                    continue;
                }
                State::Closing => {}
                _ => {
                    let (label, limit_ms) =
                        (connection.label(), self.settings.handshake_timeout_ms);
                    let text = match connection.is_silent_caller() {
                        true => silent(&label, limit_ms),
                        false => format!(
                            "peer {label} did not finish the handshake within {limit_ms} ms: paused, overloaded, or no \
                             Trireme node; check what runs there"
                        ),
                    };
                    self.reject(&label, RejectReason::Timeout, text);
                }
            }
            let target = (self.connections.get_mut(token)).and_then(|late| late.target.take());
            self.drop_connection(token, DownReason::Local);
            if let Some(target) = target {
                self.try_next(target);
            }
        }
    }

    /// Handles a connection that the other side has closed. A Galera node, which waits for a first message, gives up at
    /// about the same time as this node.
    pub(crate) fn hung_up(&mut self, token: usize) {
        let limit_ms = self.settings.handshake_timeout_ms;
        if let Some(connection) = self.connections.get(token) {
            let left_ms = connection
                .deadline_ms
                .map(|deadline_ms| deadline_ms.saturating_sub(self.now_ms));
            let waited_ms = left_ms.map_or(0, |left_ms| limit_ms.saturating_sub(left_ms));
            if connection.is_silent_caller() && waited_ms >= limit_ms / 2 {
                let label = connection.label();
                self.reject(&label, RejectReason::Timeout, silent(&label, waited_ms));
            }
        }
        self.drop_connection(token, DownReason::Closed);
    }
}

fn silent(label: &str, for_ms: u64) -> String {
    format!(
        "{label} connected and sent nothing for {for_ms} ms: no Trireme node? (Galera nodes wait for the other side; Trireme and \
         Galera nodes cannot share a cluster)"
    )
}
