//! The start of a connection: its inputs, the database's position, and the reasons why it cannot begin.

use trireme_group::{self as group, Term, Uuid};
use trireme_log::{LogConfig, LogError};
use trireme_replicator::{self as replicator, Gtid, Seqno, UNDEFINED_SEQNO};

use crate::mark::KeepMark;
use crate::storage::OpenDisk;
use crate::thresholds::Thresholds;

/// The inputs of a connection.
pub struct Start {
    /// The group's settings; `append_is_durable` is set from the log's durability.
    pub config: group::Config,
    /// The term that this replica has promised.
    pub promised: Term,
    /// The id of the log with which this replica acknowledged last ([`crate::Host::in_log`]); nil: none, or unknown.
    pub last_log: Uuid,
    /// True if the node goes on with the log of an earlier process, if there is one.
    pub recover: bool,
    /// The id of this boot of the machine (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: [u8; 16],
    /// The log's settings; the engine fills in the identity when it knows the history.
    pub log: LogConfig,
    /// Opens the log's directory.
    pub disk: OpenDisk,
    /// Keeps the mark of the log's end, outside the log's volume; None: there is no mark.
    pub mark: Option<Box<dyn KeepMark>>,
    /// True if flushes go to [`crate::Host::flush`], so that everything else goes on meanwhile: flushes that
    /// acknowledgements wait for (`repl.durability=disk`), and flushes that nothing waits for.
    pub flushes_apart: bool,
    /// Position of the database.
    pub local: Gtid,
    /// The database was asked for its position, and has never had one.
    pub untouched: bool,
    /// Order to found a history, or to continue the database's own history alone: the UUID of the new history or of the
    /// override. [`trireme_group::unvouched_override`] marks an override whose database nobody vouches for
    /// ([`unvouched_position`]).
    pub bootstrap: Option<Uuid>,
    /// The cluster that this node may found with others, if it has no history at all (`pc.bootstrap_expect`).
    pub expect: Option<Expected>,
    /// True if the server's storage engines are up.
    pub server_running: bool,
    /// The seqno that is applied although the server has died of it again and again, if it is the first above the
    /// database's position (`repl.apply_again`); 0: none.
    pub apply_again: Seqno,
    /// The replicator's settings.
    pub options: replicator::Options,
    /// Sizes that switch the engine to another way of working.
    pub thresholds: Thresholds,
}

/// A cluster that nodes found together, without an operator who chooses one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Number of nodes that found it.
    pub nodes: u32,
    /// UUID of the new history, if this node is the founder.
    pub history: Uuid,
}

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

/// Returns the database's position, as far as grastate.dat and the server know it (server-contract.md#init). A position
/// that the server has recovered from the database counts more than the file's seqno. A file without a history says
/// that the position is not reliable. If the only cause is a total-order action that was `interrupted`
/// ([`crate::Storage::interrupted_action`]), the position holds, and rule 13 applies.
pub fn starting_position(state: Gtid, server: Gtid, interrupted: Gtid) -> Gtid {
    if state.uuid.is_nil() {
        let is_explained = interrupted.is_known() && server.uuid == interrupted.uuid;
        return match is_explained && server.is_known() {
            true => server,
            false => Gtid::UNDEFINED,
        };
    }
    if server.uuid == state.uuid && server.seqno != UNDEFINED_SEQNO {
        return server;
    }
    state
}

/// Returns the position of a bootstrapped database whose grastate.dat was removed; no SST can replace such a database.
/// The server's recovered position counts only if `log`, the history of the write-set log beside the database, is the
/// same: then the database is no copy of another cluster's.
pub fn unvouched_position(server: Gtid, log: Option<Uuid>) -> Gtid {
    match server.is_known() && log == Some(server.uuid) {
        true => server,
        false => Gtid::UNDEFINED,
    }
}
