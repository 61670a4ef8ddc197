//! Takes the calls of peers: refuses those that the allowlist excludes, and bounds the callers that have not finished
//! the handshake.

use std::net::IpAddr;

use trireme_mutants::{Mutant, planted};

use crate::connection::{Connection, State};
use crate::handshaker::{Place, Rank, displaced};
use crate::mesh::Mesh;
use crate::poller::Accepted;
use crate::stream::Stream;
use crate::{DownReason, Refusal, RefusalCode, RejectReason, socket};

/// Maximum of callers that have not finished the handshake; `displaced` chooses the one that gives way to a further
/// one.
const MAX_CALLERS: usize = 64;

impl Mesh {
    /// Takes a caller, or sends it through a TLS handshake first.
    pub(crate) fn accept(&mut self, accepted: Accepted) {
        if self.security.to_accept().is_some() {
            return self.prove_caller(accepted);
        }
        socket::tune(&accepted.stream, self.settings.user_timeout_ms);
        let stream = Stream::Plain(accepted.stream);
        let connection = Connection::new(
            stream,
            accepted.remote,
            None,
            self.settings.queue_limit_bytes,
        );
        if let Some(token) = self.add_caller(connection) {
            if !accepted.allowed && !planted(Mutant::AllowlistIgnored) {
                let ip = accepted.remote.ip().to_canonical();
                let code = RefusalCode::NotAllowed;
                let text = not_allowed(ip);
                self.refuse(token, Refusal { code, text });
            }
        }
    }

    /// Registers a connection that a peer has opened. None: there is no room for the caller, or the process lacks
    /// descriptors, or memory for epoll. The caller will call again.
    pub(crate) fn add_caller(&mut self, connection: Connection) -> Option<usize> {
        let newcomer = self.rank(connection.remote.ip().to_canonical());
        // Oldest first: tokens grow.
        let callers = self
            .connections
            .iter()
            .filter(|(_, c)| c.target.is_none() && c.state != State::Up);
        let (tokens, ranks): (Vec<usize>, Vec<Rank>) = callers
            .map(|(token, c)| (token, self.rank(c.remote.ip().to_canonical())))
            .unzip();
        match displaced(&ranks, MAX_CALLERS, newcomer) {
            _ if planted(Mutant::SilentCallersKept) => {}
            Place::Free => {}
            Place::Instead(at) => self.drop_connection(tokens[at], DownReason::Local),
            Place::Taken => return None,
        }
        self.add_connection(connection).ok()
    }

    /// Takes a peer that calls and may use TLS.
    pub(crate) fn prove_caller(&mut self, accepted: Accepted) {
        let ip = accepted.remote.ip().to_canonical();
        if !accepted.allowed {
            return self.reject(&ip.to_string(), RejectReason::NotAllowed, not_allowed(ip));
        }
        socket::tune(&accepted.stream, self.settings.user_timeout_ms);
        let is_known = self.rank(ip).is_known;
        let task = self.task(accepted.stream, accepted.remote, None, is_known);
        self.prove(task);
    }

    fn rank(&self, ip: IpAddr) -> Rank {
        let is_known = self.members.has_met(&ip) || self.book.has_ip(ip);
        Rank { ip, is_known }
    }
}

fn not_allowed(ip: IpAddr) -> String {
    format!("Connection not allowed, {ip} is not in the allowlist (mysql.wsrep_allowlist)")
}
