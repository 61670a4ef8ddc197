//! The reasons why a connection cannot begin.

use trireme_log::LogError;
use trireme_replicator::{Gtid, Seqno};

/// The reason why [`crate::Engine::connect`] did not begin a connection.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log cannot be opened or created.
    #[error("the write-set log cannot be used: {0}")]
    Log(#[from] LogError),
    /// The operator's order to bootstrap would be an override, and the history cannot take another one (rule 11).
    #[error("{}", trireme_group::tell_no_more_overrides())]
    NoMoreOverrides,
    /// The server dies of the next entry. Each start would apply it again, and the node would come and go for ever.
    #[error(
        "this server has died {deaths} times in a row while it applied what follows {local}: seqno {next} comes next (see \
         in the server's log what it died of). It is not applied again by itself. Either move grastate.dat away and start \
         the server: its database is then replaced by a snapshot of another node. Or start it once with \
         wsrep_provider_options=\"repl.apply_again={next}\", if it can apply that now (after an upgrade, say)"
    )]
    DiesApplying {
        /// The database's position.
        local: Gtid,
        /// The next seqno.
        next: Seqno,
        /// Number of deaths in a row.
        deaths: u8,
    },
}
