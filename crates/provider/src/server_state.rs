//! The state of the server around this provider, as far as the provider knows it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use trireme_replicator::Gtid;

/// The facts about the server.
#[derive(Default)]
pub struct ServerState {
    /// True once a view or a snapshot has shown that the server's storage engines are up. They may have been up before:
    /// see [`crate::server_flags::engines_are_up`].
    runs: AtomicBool,
    /// True while the server is asked for its database's position.
    is_asked: AtomicBool,
    /// The database's position by the server's own --wsrep-recover: it cannot change until the server runs.
    recovered: OnceLock<Gtid>,
}

impl ServerState {
    /// Returns true once the server's storage engines are up.
    pub fn runs(&self) -> bool {
        self.runs.load(Ordering::SeqCst)
    }

    /// Notes that the server's storage engines are up.
    pub fn note_runs(&self) {
        self.runs.store(true, Ordering::SeqCst);
    }

    /// Returns the database's position by the one that was `passed` at the server's start (`--wsrep-start-position`).
    /// It is unknown once the server runs: the database has gone on since.
    pub fn passed_position(&self, passed: Gtid) -> Gtid {
        match self.runs() {
            true => Gtid::UNDEFINED,
            false => passed,
        }
    }

    /// Returns true while the server is asked for its database's position.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Returns the database's position if the server was asked before.
    pub fn recovered(&self) -> Option<Gtid> {
        self.recovered.get().copied()
    }

    /// Asks the server for its database's position, by `ask`. After a success it is not asked again.
    pub fn recover<E>(&self, ask: impl FnOnce() -> Result<Gtid, E>) -> Result<Gtid, E> {
        self.is_asked.store(true, Ordering::Relaxed);
        let recovered = ask();
        self.is_asked.store(false, Ordering::Relaxed);
        recovered.map(|gtid| *self.recovered.get_or_init(|| gtid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise a connection later on could apply again what the database has.
    #[test]
    fn the_position_of_the_start_counts_until_the_server_runs() {
        let passed = Gtid {
            uuid: trireme_group::Uuid([7; 16]),
            seqno: 100,
        };
        let server = ServerState::default();
        assert_eq!(server.passed_position(passed), passed);
        server.note_runs();
        assert_eq!(server.passed_position(passed), Gtid::UNDEFINED);
    }

    #[test]
    fn a_position_is_kept_and_a_failure_is_not() {
        let server = ServerState::default();
        assert_eq!(server.recover(|| Err("it died")), Err("it died"));
        assert!(server.recovered().is_none() && !server.is_asked());
        let ask = || {
            assert!(server.is_asked());
            Ok::<_, &str>(Gtid::UNDEFINED)
        };
        assert_eq!(server.recover(ask), Ok(Gtid::UNDEFINED));
        assert_eq!(server.recovered(), Some(Gtid::UNDEFINED));
    }
}
