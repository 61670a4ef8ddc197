//! connect() and disconnect(). connect() opens votes and mesh, starts the engine and the threads, and waits for a view,
//! unless the node has to wait for others first. disconnect() is in `connect/ending.rs`.

mod ending;
mod first_view;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trireme_engine::Start;
use trireme_group::{Member, Uuid, unvouched_override};
use trireme_mutants::{Mutant, planted};
use trireme_node::setup::{self, SetupError, random_uuid};
use trireme_node::state_file::STATE_FILE;
use trireme_node::{Exposure, Line, Progress, now_ms};
use trireme_replicator::{Event, Gtid};
use trireme_transport::Security;

use crate::convert::{gtid_from_abi, gtid_to_abi};
use crate::core::{ClusterNames, Core};
use crate::disk_threads::Running;
use crate::grastate::GrastateError;
use crate::leader_watch::LeaderWatch;
use crate::node::Node;
use crate::options::{OptionError, Options};
use crate::reactor::Reactor;
use crate::reporter::Reporter;
use crate::threads::ThreadError;
use crate::url::{AddressError, ClusterUrl};
use crate::votes::Votes;

pub use ending::{close, disconnect};

/// Time in which a node that is bootstrapped without grastate.dat looks for a primary component of its cluster.
const LIVING_TIMEOUT: Duration = Duration::from_secs(3);

/// Time between two checks of a waiting thread.
const POLL: Duration = Duration::from_millis(2);

/// The reason why connect() failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the cluster address '{address}' is not usable: {source}")]
    Address {
        address: String,
        source: AddressError,
    },
    #[error("in the cluster address '{address}': {message}")]
    Option { address: String, message: String },
    #[error(
        "It may not be safe to bootstrap the cluster from this node. It was not the last one to leave the cluster and \
         may not contain all the updates. To force cluster bootstrap with this node, edit the grastate.dat file \
         manually and set safe_to_bootstrap to 1"
    )]
    UnsafeBootstrap,
    #[error("{0}")]
    Setup(#[from] SetupError),
    #[error("{0}")]
    Start(#[from] trireme_engine::StartError),
    #[error("{0}")]
    Thread(#[from] ThreadError),
    #[error("already connected; disconnect first")]
    Connected,
    #[error(
        "no primary component within {timeout_ms} ms (pc.wait_prim_timeout) at {peers}: check that a node of the \
         cluster runs there, its cluster name and its log; the first node of a new cluster is started with gcomm:// \
         or --wsrep-new-cluster"
    )]
    NoPrimary { timeout_ms: u64, peers: String },
    #[error("the server stops, or disconnects")]
    Stopped,
    #[error(
        "cannot write grastate.dat: {0}. Its seqno is not the database's, and a later start would rely on it: repair the disk"
    )]
    Grastate(#[from] GrastateError),
    #[error("the cluster refused this node: {0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
    #[error("the node at {0} has the data of another cluster")]
    Stranger(String),
}

/// connect(): returns when the node is in a view.
pub fn connect(
    node: &Arc<Node>,
    name: &str,
    url: &str,
    donor: &str,
    bootstrap: bool,
) -> Result<(), ConnectError> {
    if node.peek(|core| core.is_connected() && core.progress.closed) {
        // The node left by itself, or its server took long for the final view. The server does not disconnect first.
        disconnect(node);
    }
    if node.peek(Core::is_connected) {
        return Err(ConnectError::Connected);
    }
    let address = |source| ConnectError::Address {
        address: url.to_owned(),
        source,
    };
    let cluster: ClusterUrl = url.parse().map_err(address)?;
    let options = {
        let _change = (node.options_change.lock()).unwrap_or_else(|e| e.into_inner());
        let mut options = node.options.lock().unwrap_or_else(|e| e.into_inner());
        options.for_connection(&cluster)
    };
    let options = options.map_err(|error| match error {
        OptionError::NodeAddress(_) => ConnectError::Failed(error.to_string()),
        _ => ConnectError::Option {
            address: url.to_owned(),
            message: error.to_string(),
        },
    })?;
    node.with(|core| {
        core.cluster = ClusterNames {
            name: name.to_owned(),
            address: url.to_owned(),
        };
    });
    node.obey(&options);
    report(node, &options);
    let bootstrap = bootstrap || cluster.is_bootstrap();
    if bootstrap && !node.peek(|core| core.grastate.safe_to_bootstrap()) {
        return Err(ConnectError::UnsafeBootstrap);
    }
    let aim = match bootstrap {
        true => Aim::Bootstrap,
        false => Aim::Join,
    };
    let request = Request {
        name,
        url,
        donor,
        cluster,
        options,
    };
    if bootstrap && node.is_unvouched() && joins_living(node, &request)? {
        return Ok(());
    }
    match attempt(node, &request, aim, Past::GoesOn) {
        Err(ConnectError::Stranger(address)) => {
            node.logger.info(format!(
                "the node at {address} has the data of another cluster than this node's write-set log, and grastate.dat was \
                 removed: this node's own log and data are dropped, and it joins that cluster by a full state transfer"
            ));
            attempt(node, &request, aim, Past::Dropped)
        }
        result => result,
    }
}

/// Starts the thread that writes the state-and-event file.
fn report(node: &Arc<Node>, options: &Options) {
    let mut reporter = node.reporter.lock().unwrap_or_else(|e| e.into_inner());
    if reporter.is_some() {
        return;
    }
    match Reporter::start(node, Path::new(options.str("base_dir"))) {
        Ok(started) => *reporter = Some(started),
        Err(error) => node.logger.info(format!(
            "{error}; the node goes on, and writes no {STATE_FILE}"
        )),
    }
}

/// The arguments of connect().
struct Request<'a> {
    name: &'a str,
    url: &'a str,
    donor: &'a str,
    cluster: ClusterUrl,
    options: Options,
}

/// The way into a primary component.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    Join,
    /// As [`Aim::Join`], but only if there is a primary component within [`LIVING_TIMEOUT`].
    JoinLiving,
    Bootstrap,
}

/// The fate of the log of an earlier process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Past {
    GoesOn,
    Dropped,
}

/// Joins a primary component that has gone on without this node, if one is there. Called for a node that is
/// bootstrapped without grastate.dat. Such a component never follows the bootstrap, and once its server runs this node
/// could not take an SST any more (rule 11, galera.galera_wsrep_new_cluster). Returns false if there is none. Err: the
/// server wants neither any more.
fn joins_living(node: &Arc<Node>, request: &Request) -> Result<bool, ConnectError> {
    let peers = setup::peer_addresses(&request.cluster, &request.options);
    if peers.is_empty() || !node.has_history() {
        return Ok(false);
    }
    node.logger.info(format!(
        "bootstrapped without grastate.dat: this node first looks for {} s whether a primary component of its cluster is at {}",
        LIVING_TIMEOUT.as_secs(),
        peers.join(", ")
    ));
    match attempt(node, request, Aim::JoinLiving, Past::GoesOn) {
        Ok(()) => {
            node.logger.info(
                "this node joins the primary component that it found, in place of a bootstrap; for a cluster of its own start it \
                 without the others' addresses",
            );
            Ok(true)
        }
        Err(ConnectError::Stopped) => Err(ConnectError::Stopped),
        Err(error) => {
            node.logger.info(format!(
                "nothing to join ({error}): this node is bootstrapped"
            ));
            Ok(false)
        }
    }
}

/// Connects once.
fn attempt(node: &Arc<Node>, request: &Request, aim: Aim, past: Past) -> Result<(), ConnectError> {
    let (cluster, options) = (&request.cluster, &request.options);
    let votes = setup::open_votes(options)?;
    let me = this_member(node, options, &votes)?;
    let incarnation = me.incarnation;
    let (bootstraps, unvouched) = (aim == Aim::Bootstrap, node.is_unvouched());
    // This may take a while, so the node does not listen before.
    let (local, untouched) = node.local_position(bootstraps && unvouched);
    node.with(|core| core.grastate.refute(gtid_to_abi(local)))?;
    let allow = crate::services::allowlist();
    let (mesh, poller) = setup::open_mesh(request.name, cluster, options, &me, &votes, allow)?;
    tell_exposure(node, options, mesh.security())?;
    let fresh = match bootstraps {
        true => Some(fresh_history(node, local, unvouched)?),
        false => None,
    };
    let start = engine_start(node, request, &votes, me)?;
    let start = Start {
        recover: start.recover && past == Past::GoesOn,
        bootstrap: fresh,
        local,
        untouched,
        ..start
    };
    // An operator who bootstraps this node wants its data.
    let is_blank = node.peek(|core| core.grastate.says_nothing());
    let has_consent = past == Past::GoesOn && !bootstraps && is_blank;
    let waker = mesh.waker();
    let disk_threads = Running::start(node, &waker)?;
    let reactor = Reactor::start(node, poller, waker)?;
    *node.reactor.lock().unwrap_or_else(|e| e.into_inner()) = Some(reactor);
    node.logger.info(format!(
        "connecting to '{}' at {} as member {incarnation}",
        request.name, request.url
    ));
    node.with(|core| core.disk.run(disk_threads));
    let mut line = Line::new(mesh, votes);
    line.lets_data_go = has_consent;
    let started = begin(node, line, start, request.donor)
        .and_then(|()| check_expected(node, cluster, options))
        .and_then(|()| match aim {
            Aim::JoinLiving => first_view::wait_for_living(node, request),
            Aim::Join | Aim::Bootstrap => first_view::wait(node, request, has_consent),
        });
    if let Err(error) = started {
        // A node that is not connected has no waiting callers.
        node.with(|core| core.node(Event::Disconnect));
        node.with(|core| core.node(Event::Left));
        if !planted(Mutant::FailedConnectStays) {
            close(node);
        }
        return Err(error);
    }
    Ok(())
}

/// Warns once per start if others may read the traffic.
fn tell_exposure(node: &Node, options: &Options, security: &Security) -> Result<(), ConnectError> {
    let Some(exposure) = Exposure::of(options, security)? else {
        return Ok(());
    };
    if !node.has_told_exposure.swap(true, Ordering::Relaxed) {
        node.logger.log_at(exposure.level(), &exposure.to_string());
    }
    Ok(())
}

/// Returns this node as a member, with the names that the server gave.
fn this_member(node: &Node, options: &Options, votes: &Votes) -> Result<Member, ConnectError> {
    Ok(Member {
        name: node.settings.node_name.clone(),
        incoming: node.settings.node_incoming.clone(),
        app_protocol: node.settings.proto_ver,
        ..setup::this_member(options, votes)?
    })
}

/// Returns the UUID of the history, or of the override, that a bootstrap makes.
fn fresh_history(node: &Node, local: Gtid, unvouched: bool) -> Result<Uuid, ConnectError> {
    if !local.uuid.is_nil() && local.seqno < 0 {
        node.logger.info(format!(
            "the position in history {} is unknown (no --wsrep-start-position after a crash?): a new history \
             begins; nodes of the old one will need a full state transfer",
            local.uuid
        ));
    }
    let id = random_uuid()?;
    Ok(match unvouched && local.is_known() {
        true => unvouched_override(id),
        false => id,
    })
}

fn engine_start(
    node: &Node,
    request: &Request,
    votes: &Votes,
    me: Member,
) -> Result<Start, ConnectError> {
    let options = &request.options;
    let start = setup::start(options, votes, me);
    Ok(Start {
        flushes_apart: true,
        // A database that was in a cluster has a past, also without grastate.dat.
        expect: setup::expected(options)?
            .filter(|_| gtid_from_abi(&node.settings.state_id) == Gtid::UNDEFINED),
        server_running: node.server.runs(),
        options: crate::runtime::replicator_options(options, request.donor),
        ..start
    })
}

fn begin(node: &Node, line: Line, start: Start, donor: &str) -> Result<(), ConnectError> {
    node.with(|core| {
        core.progress = Progress::default();
        core.leaders = LeaderWatch::default();
        core.commit_clock.start_over();
        core.line = Some(line);
        core.incarnation = start.config.me.incarnation.0;
        core.donor = donor.to_owned();
        core.engine.connect(now_ms(), start)
    })?;
    crate::runtime::renew_options(node)?;
    // The reactor may have gone to sleep when there was nothing to wait for yet.
    node.wake_reactor();
    Ok(())
}

/// Checks the addresses of a node that may found a cluster with others: it must know all of them, and no other node.
fn check_expected(
    node: &Node,
    cluster: &ClusterUrl,
    options: &Options,
) -> Result<(), ConnectError> {
    match node.peek(Core::is_blank) {
        true => Ok(setup::check_expected(options, cluster)?),
        false => Ok(()),
    }
}
