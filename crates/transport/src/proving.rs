//! The mesh's part in TLS: it hands sockets to the handshaker, and takes back streams of proven peers.

use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;

use crate::address::label;
use crate::connection::Connection;
use crate::handshaker::{Fault, Outcome, Task};
use crate::mesh::Mesh;
use crate::stream::Stream;
use crate::{HostPort, PeerId, Security};

impl Mesh {
    /// Changes the protection of new connections. Existing connections stay, except those that the new setting would
    /// refuse: their peers and this node connect anew at once.
    pub fn set_security(&mut self, security: Security) {
        let accepts = |stream: &Stream| match stream.is_tls() {
            true => security.to_accept().is_some(),
            false => security.accepts_plain(),
        };
        let links = self.connections.linked_all();
        let unwanted = links.filter(|(_, link)| !accepts(&link.stream));
        let unwanted: Vec<PeerId> = unwanted.map(|(peer, _)| peer).collect();
        self.security = security;
        for peer in unwanted {
            self.disconnect_peer(peer, None);
        }
    }

    /// Returns the number of peers that are connected without TLS.
    pub fn plaintext_links(&self) -> usize {
        let links = self.connections.linked_all();
        links.filter(|(_, link)| !link.stream.is_tls()).count()
    }

    /// Calls a peer with TLS.
    pub(crate) fn prove_called(&mut self, tcp: TcpStream, remote: SocketAddr, target: HostPort) {
        let task = self.task(tcp, remote, Some(target), true);
        self.prove(task);
    }

    pub(crate) fn task(
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

    pub(crate) fn prove(&mut self, task: Task) {
        if let Some(target) = self.threads.hand(task) {
            self.book.failed(&target, self.now_ms);
        }
    }

    /// Continues with the sockets that the handshaker has finished.
    pub(crate) fn take_proven(&mut self) {
        while let Some(outcome) = self.threads.next_outcome() {
            let Outcome {
                remote,
                target,
                result,
            } = outcome;
            match result {
                Ok(stream) if !self.isolated => self.proven(stream, remote, target),
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
