//! Calls by peers. Asks the allowlist about each caller, refuses those that it excludes, and bounds the callers that have
//! not finished the handshake.

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
    /// Takes a caller, or keeps it until there is a verdict on its address.
    pub(super) fn called(&mut self, accepted: Accepted) {
        let ip = accepted.remote.ip().to_canonical();
        if !self.threads.has_allowlist() {
            return self.accept(accepted, true);
        }
        match self.allowlist.verdict(ip, self.now_ms) {
            Some(allowed) => self.accept(accepted, allowed),
            None => {
                let deadline_ms = self.now_ms + self.settings.handshake_timeout_ms;
                let rank = self.rank(ip);
                self.allowlist.keep(accepted, rank, deadline_ms);
            }
        }
    }

    /// Continues with the callers about whom there is a verdict, and asks the next question. Drops callers that have
    /// waited for too long: without a verdict nobody connects.
    pub(super) fn take_judged(&mut self) {
        while let Some((ip, allowed)) = self.threads.next_verdict() {
            for accepted in self.allowlist.judged(ip, allowed, self.now_ms) {
                if !self.isolated {
                    self.accept(accepted, allowed);
                }
            }
        }
        for ip in self.allowlist.expire(self.now_ms) {
            let text = unjudged(ip, self.settings.handshake_timeout_ms);
            self.reject(&ip.to_string(), RejectReason::AcceptFailed, text);
        }
        if let Some(ip) = self.allowlist.next_question() {
            // If the thread cannot be started, the next tick tries again.
            if self.threads.ask(ip) {
                self.allowlist.asked(ip);
            }
        }
    }

    /// Takes a caller, or sends it through a TLS handshake first.
    fn accept(&mut self, accepted: Accepted, allowed: bool) {
        if self.security.to_accept().is_some() {
            return self.prove_caller(accepted, allowed);
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
            if !allowed && !planted(Mutant::AllowlistIgnored) {
                let ip = accepted.remote.ip().to_canonical();
                let code = RefusalCode::NotAllowed;
                let text = not_allowed(ip);
                self.refuse(token, Refusal { code, text });
            }
        }
    }

    /// Registers a connection that a peer has opened. None: there is no room for the caller, or the process lacks
    /// descriptors, or memory for epoll. The caller will call again.
    pub(super) fn add_caller(&mut self, connection: Connection) -> Option<usize> {
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
    fn prove_caller(&mut self, accepted: Accepted, allowed: bool) {
        let ip = accepted.remote.ip().to_canonical();
        if !allowed {
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

fn unjudged(ip: IpAddr, limit_ms: u64) -> String {
    format!(
        "dropped a connection from {ip}: within {limit_ms} ms the server did not answer whether the address is in its \
         allowlist; see whether a session has locked the table mysql.wsrep_allowlist"
    )
}
