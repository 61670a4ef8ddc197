//! Calls to peers, and the TLS handshakes of both sides, which a thread of their own carries out.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;

use crate::address::label;
use crate::book::AfterFailure;
use crate::connection::{Connection, State};
use crate::handshaker::{Fault, Outcome, Task};
use crate::mesh::Mesh;
use crate::stream::Stream;
use crate::{HostPort, MeshEvent, RejectReason, socket};

impl Mesh {
    /// Calls every address whose call is due.
    pub(super) fn call_due(&mut self) {
        // After a long partition, learnt addresses may be the only ones of the other members.
        self.book.forget_dead(self.now_ms, |peer, replica| {
            self.members.is_member(replica) || self.connections.is_linked(peer)
        });
        for address in self
            .book
            .due(self.now_ms, |peer| self.connections.is_linked(peer))
        {
            self.book.resolving(&address);
            if let Some(literal) = address.literal() {
                self.resolved(address, vec![literal]);
            } else if !(self.threads).look_up(&address, self.book.is_seed(&address)) {
                self.book.failed(&address, self.now_ms);
            }
        }
    }

    /// Continues the calls whose names have been looked up.
    pub(super) fn take_answers(&mut self) {
        while let Some((address, found)) = self.threads.next_answer() {
            self.resolved(address, found);
        }
    }

    pub(super) fn resolved(&mut self, address: HostPort, found: Vec<SocketAddr>) {
        match self.book.resolved(&address, found) {
            Some(first) => self.dial(address, first),
            // A name that does not exist, or not yet, is no error.
            None => self.book.failed(&address, self.now_ms),
        }
    }

    /// Continues a failed call with the next address of the name, or else pauses.
    pub(super) fn try_next(&mut self, address: HostPort) {
        match self.book.next_address(&address) {
            Some(next) => self.dial(address, next),
            None => self.book.failed(&address, self.now_ms),
        }
    }

    /// Continues a call that an unwanted process answered with the next address of the name, or else calls at the slow
    /// pace.
    pub(super) fn try_next_or_slow_down(&mut self, address: HostPort) {
        match self.book.next_address(&address) {
            Some(next) => self.dial(address, next),
            None => self.book.slow_down(&address, self.now_ms),
        }
    }

    /// Calls one address. While the node is isolated, the call fails at once.
    pub(super) fn dial(&mut self, address: HostPort, mut remote: SocketAddr) {
        if self.isolated {
            return self.book.failed(&address, self.now_ms);
        }
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
    fn dial_failed(&mut self, address: &HostPort, kind: ErrorKind) -> Option<SocketAddr> {
        match self.book.connect_failed(address, kind, self.now_ms) {
            AfterFailure::Next(next) => return Some(next),
            AfterFailure::Refused(peer) => {
                self.reports.push(MeshEvent::Refused {
                    address: address.to_string(),
                    peer,
                });
            }
            AfterFailure::Pause => {}
        }
        None
    }

    /// Finishes a connect after an event of the socket. Returns true if TCP is connected.
    pub(super) fn finish_connect(&mut self, token: usize) -> bool {
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

    pub(super) fn connect_failed(&mut self, token: usize, kind: ErrorKind) {
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

    // ---- TLS ----

    /// Calls a peer with TLS.
    fn prove_called(&mut self, tcp: TcpStream, remote: SocketAddr, target: HostPort) {
        let task = self.task(tcp, remote, Some(target), true);
        self.prove(task);
    }

    pub(super) fn task(
        &self,
        tcp: TcpStream,
        remote: SocketAddr,
        target: Option<HostPort>,
        is_known: bool,
    ) -> Task {
        Task {
            tcp,
            remote,
            target,
            is_known,
            security: self.security.clone(),
            timeout: Duration::from_millis(self.settings.handshake_timeout_ms),
            user_timeout_ms: self.settings.user_timeout_ms,
        }
    }

    pub(super) fn prove(&mut self, task: Task) {
        if let Some(target) = self.threads.hand(task) {
            self.book.failed(&target, self.now_ms);
        }
    }

    /// Continues with the sockets that the handshaker has finished.
    pub(super) fn take_proven(&mut self) {
        while let Some(outcome) = self.threads.next_outcome() {
            let Outcome {
                remote,
                target,
                result,
            } = outcome;
            match result {
                // The protection may have changed since the handshake began.
                Ok(stream) if !self.isolated && self.security.permits(stream.is_tls()) => {
                    match self.security.revocation(&stream) {
                        None => self.proven(stream, remote, target),
                        Some(text) => {
                            let fault = Fault::Rejected(RejectReason::Tls, text);
                            self.not_proven(remote, target, fault);
                        }
                    }
                }
                Ok(_) => self.called_in_vain(target),
                Err(fault) => self.not_proven(remote, target, fault),
            }
        }
    }

    fn proven(&mut self, stream: Stream, remote: SocketAddr, target: Option<HostPort>) {
        let is_unread = stream.has_buffered();
        let connection = Connection::proven(
            stream,
            remote,
            target.clone(),
            self.settings.queue_limit_bytes,
        );
        let added = match target {
            Some(_) => self.add_connection(connection).ok(),
            None => self.add_caller(connection),
        };
        let Some(token) = added else {
            return self.called_in_vain(target);
        };
        if is_unread {
            self.connections.read_later(token);
        }
        if target.is_some() {
            self.say_hello(token);
        }
        self.write(token);
    }

    fn not_proven(&mut self, remote: SocketAddr, target: Option<HostPort>, fault: Fault) {
        let label = label(target.as_ref(), remote);
        match fault {
            Fault::Connect(kind) => {
                if let Some(target) = target {
                    if let Some(next) = self.dial_failed(&target, kind) {
                        self.dial(target, next);
                    }
                }
            }
            Fault::Rejected(reason, text) => {
                self.reject(&label, reason, text);
                if let Some(target) = target {
                    self.try_next(target);
                }
            }
            Fault::Displaced => self.called_in_vain(target),
        }
    }

    fn called_in_vain(&mut self, target: Option<HostPort>) {
        if let Some(target) = target {
            self.book.failed(&target, self.now_ms);
        }
    }
}
