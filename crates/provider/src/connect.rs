//! connect() and disconnect(): a connection from its first packet to its last.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use trireme_engine::Start;
use trireme_group::{Ballot, Config, Incarnation, Member, ReplicaId, Uuid};
use trireme_log::{Durability, LogConfig, OsDisk};
use trireme_replicator::{Event, Gtid};
use trireme_transport::{
    AllowAddress, HostPort, Identity, Mesh, MeshConfig, Poller, TransportError,
};

use crate::core::{Core, Line, Progress, now_ms};
use crate::flusher::Flusher;
use crate::node::Node;
use crate::options::{Options, Phase};
use crate::reactor::Reactor;
use crate::url::{AddressError, ClusterUrl};
use crate::votes::{Votes, VotesError, current_boot_id};

/// A leave that the cluster does not answer is given up after this time (MariaDB's suites kill a
/// server that takes more than 10 s to stop).
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// How long the server's threads get to take the final view.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// Why connect() failed.
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
    Transport(#[from] TransportError),
    #[error("{0}")]
    Votes(#[from] VotesError),
    #[error("the write-set log cannot be used: {0}")]
    Log(#[from] trireme_log::LogError),
    #[error("the network thread cannot be started: {0}")]
    Thread(std::io::Error),
    #[error("already connected; disconnect first")]
    Connected,
    #[error("no random numbers from the system: {0}")]
    Random(getrandom::Error),
    #[error(
        "no primary component within {timeout_ms} ms (pc.wait_prim_timeout) at {peers}: check that a node of the \
         cluster runs there, its cluster name and its log; the first node of a new cluster is started with gcomm:// \
         or --wsrep-new-cluster"
    )]
    NoPrimary { timeout_ms: u64, peers: String },
    #[error("the cluster refused this node: {0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
}

/// A fresh random uuid (version 4).
pub fn random_uuid() -> Result<Uuid, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Uuid(bytes))
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
        // It left by itself: the server, which has its final view, does not disconnect first.
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
    let options = connection_options(node, &cluster, url)?;
    let bootstrap = bootstrap || cluster.is_bootstrap();
    if bootstrap && !node.peek(|core| core.grastate.safe_to_bootstrap()) {
        return Err(ConnectError::UnsafeBootstrap);
    }
    let incarnation = Incarnation(random_uuid().map_err(ConnectError::Random)?);
    let votes = open_votes(&options)?;
    let me = this_member(node, &options, &votes, incarnation)?;
    // It may take a while: nobody is to find this node before.
    let local = node.local_position();
    let (mesh, poller) = open_mesh(name, &cluster, &options, &me)?;
    let start = engine_start(node, &options, &votes, me, local, donor, bootstrap)?;
    let waker = mesh.waker();
    let reactor = Reactor::start(node, poller, waker).map_err(ConnectError::Thread)?;
    *node.reactor.lock().unwrap_or_else(|e| e.into_inner()) = Some(reactor);
    node.logger.info(format!(
        "connecting to '{name}' at {url} as member {incarnation}"
    ));
    let flusher = (start
        .flushes_apart
        .then(|| Flusher::start(node))
        .transpose())
    .map_err(ConnectError::Thread)?;
    let line = Line {
        mesh,
        votes,
        flusher,
    };
    let started = begin(node, line, start, donor);
    if let Err(error) = started.and_then(|()| wait_for_view(node, &cluster, &options)) {
        // Nobody waits for a node that is not connected.
        node.with(|core| core.node(Event::Disconnect));
        node.with(|core| core.node(Event::Left));
        close(node);
        return Err(error);
    }
    Ok(())
}

/// Options of the address hold for this connection only.
fn connection_options(
    node: &Node,
    cluster: &ClusterUrl,
    url: &str,
) -> Result<Options, ConnectError> {
    let mut options = node.options.lock().unwrap_or_else(|e| e.into_inner());
    options.show_connected();
    let mut options = options.clone();
    let pairs = cluster
        .options
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    options
        .apply_pairs(pairs, Phase::Connect)
        .map_err(|error| ConnectError::Option {
            address: url.to_owned(),
            message: error.to_string(),
        })?;
    Ok(options)
}

/// The first connect of a data directory gives it its identity (rule 14).
fn open_votes(options: &Options) -> Result<Votes, ConnectError> {
    let base_dir = PathBuf::from(options.str("base_dir"));
    let fresh = random_uuid().map_err(ConnectError::Random)?;
    Ok(Votes::open(&base_dir, crate::convert::uuid_to_abi(fresh))?)
}

/// This node as the others see it.
fn this_member(
    node: &Node,
    options: &Options,
    votes: &Votes,
    incarnation: Incarnation,
) -> Result<Member, ConnectError> {
    Ok(Member {
        replica: ReplicaId(Uuid(votes.replica().bytes)),
        incarnation,
        weight: 0,
        full_weight: options.int("pc.weight").clamp(0, 255) as u8,
        voter: false,
        name: node.settings.node_name.clone(),
        incoming: node.settings.node_incoming.clone(),
        address: advertised_address(options, &listen_address(options)?),
        segment: options.int("gmcast.segment").clamp(0, 255) as u8,
        arbitrator: false,
        never_donor: options.bool("gcs.stateless"),
        app_protocol: node.settings.proto_ver,
    })
}

fn listen_address(options: &Options) -> Result<crate::url::HostPort, ConnectError> {
    let address = |source| ConnectError::Address {
        address: options.str("gmcast.listen_addr").to_owned(),
        source,
    };
    options.listen_address().map_err(address)
}

fn open_mesh(
    name: &str,
    cluster: &ClusterUrl,
    options: &Options,
    me: &Member,
) -> Result<(Mesh, Poller), ConnectError> {
    let identity = Identity {
        replica: me.replica.0.0,
        incarnation: me.incarnation.0.0,
        name: me.name.clone(),
        group_name: name.to_owned(),
        listen_addr: me.address.clone(),
        history: [0; 16],
        segment: me.segment,
        extra: Vec::new(),
    };
    let base_port = options.base_port();
    let seeds = cluster.peers.iter().map(|peer| HostPort {
        host: peer.host.clone(),
        port: peer.port_or(base_port),
    });
    let allow: AllowAddress = Box::new(crate::services::allowed);
    let listen = listen_address(options)?;
    let listen = HostPort {
        host: listen.host.clone(),
        port: listen.port_or(base_port),
    };
    let config = MeshConfig {
        allow: Some(allow),
        ..MeshConfig::new(listen, seeds.collect())
    };
    let (mut mesh, poller) = Mesh::bind(config, identity)?;
    if options.int("gmcast.isolate") != 0 {
        mesh.set_isolated(true);
    }
    Ok((mesh, poller))
}

/// What peers are told: the host that this node listens on, or else the one of
/// `wsrep_node_address`; an unspecified one stands for the address that a peer sees.
fn advertised_address(options: &Options, listen: &crate::url::HostPort) -> String {
    let port = listen.port_or(options.base_port());
    let unspecified = matches!(listen.host.as_str(), "0.0.0.0" | "::" | "*" | "");
    let host = if unspecified && options.is_shown("base_host") {
        options.str("base_host")
    } else {
        &listen.bracketed_host()
    };
    format!("{host}:{port}")
}

fn group_config(options: &Options, me: Member) -> Config {
    Config {
        suspect_timeout_ms: options
            .duration_ms("evs.suspect_timeout")
            .min(options.duration_ms("evs.inactive_timeout")),
        ignore_split_brain: options.bool("pc.ignore_sb"),
        ignore_quorum: options.bool("pc.ignore_quorum"),
        ..Config::new(me)
    }
}

fn engine_start(
    node: &Node,
    options: &Options,
    votes: &Votes,
    me: Member,
    local: Gtid,
    donor: &str,
    bootstrap: bool,
) -> Result<Start, ConnectError> {
    let durability = match options.str("repl.durability") {
        "memory" => Durability::Memory,
        "disk" => Durability::Disk,
        _ => Durability::Os,
    };
    let dir = PathBuf::from(options.str("gcache.dir"));
    if bootstrap && !local.uuid.is_nil() && local.seqno < 0 {
        node.logger.info(format!(
            "the position in history {} is unknown (no --wsrep-start-position after a crash?): a new history \
             begins; nodes of the old one will need a full state transfer",
            local.uuid
        ));
    }
    let fresh = bootstrap.then(random_uuid).transpose();
    Ok(Start {
        config: group_config(options, me),
        promised: Ballot {
            number: votes.promised().number,
            replica: ReplicaId(Uuid(votes.promised().replica.bytes)),
        },
        recover: options.bool("gcache.recover") && options.bool("pc.recovery"),
        // Unreadable: the machine may have been started anew since.
        boot_id: current_boot_id().map_or([0xff; 16], |id| id.bytes),
        log: LogConfig::new(
            dir.clone(),
            options.int("gcache.size").max(1) as u64,
            [0; 16],
            durability,
        ),
        disk: Box::new(move || Box::new(OsDisk::new(&dir))),
        flushes_apart: durability == Durability::Disk,
        local,
        bootstrap: fresh.map_err(ConnectError::Random)?,
        server_running: node.server_running.load(Ordering::SeqCst),
        options: crate::runtime::replicator_options(options, donor),
    })
}

fn begin(node: &Node, line: Line, start: Start, donor: &str) -> Result<(), ConnectError> {
    node.with(|core| {
        core.progress = Progress::default();
        core.line = Some(line);
        core.incarnation = start.config.me.incarnation.0;
        core.donor = donor.to_owned();
        core.engine.connect(now_ms(), start)
    })?;
    // It may have gone to sleep when there was nothing yet to wait for.
    node.wake_reactor();
    Ok(())
}

fn wait_for_view(node: &Node, cluster: &ClusterUrl, options: &Options) -> Result<(), ConnectError> {
    let timeout_ms = options.duration_ms("pc.wait_prim_timeout");
    let wait = options.bool("pc.wait_prim");
    let until = Instant::now() + Duration::from_millis(timeout_ms);
    loop {
        let (admitted, refused, failed) = node.peek(|core| {
            let progress = &core.progress;
            (
                progress.admitted,
                progress.refused.clone(),
                progress.failed.clone(),
            )
        });
        if let Some(text) = failed {
            return Err(ConnectError::Failed(text));
        }
        // Who was in a view before waits for it without limit: nobody is to bootstrap (rule 18).
        if admitted || node.peek(Core::is_resumed) && refused.is_none() {
            return Ok(());
        }
        if let Some(reason) = refused {
            return Err(ConnectError::Refused(reason));
        }
        if !wait {
            return Ok(());
        }
        if Instant::now() >= until {
            let peers: Vec<String> = cluster.peers.iter().map(ToString::to_string).collect();
            return Err(ConnectError::NoPrimary {
                timeout_ms,
                peers: peers.join(", "),
            });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// disconnect(): leaves the cluster, gives the server its final view, and closes everything.
pub fn disconnect(node: &Node) {
    if !node.peek(Core::is_connected) {
        return;
    }
    node.with(|core| core.node(Event::Disconnect));
    let asked = Instant::now();
    let mut forced = false;
    while !node.peek(|core| core.progress.closed) {
        if !forced && asked.elapsed() >= LEAVE_PATIENCE {
            forced = true;
            node.logger
                .info("the cluster does not answer the leave; leaving without its word");
            node.with(|core| core.node(Event::Left));
        }
        let nobody = node.appliers.load(Ordering::SeqCst) == 0;
        if forced && nobody || asked.elapsed() >= CLOSE_PATIENCE {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let until = Instant::now() + CLOSE_PATIENCE;
    while node.appliers.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        node.with(|_| ());
        std::thread::sleep(Duration::from_millis(2));
    }
    close(node);
}

/// Stops the thread, then drops the connection.
fn close(node: &Node) {
    let reactor = node
        .reactor
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .take();
    drop(reactor);
    let line = node.with(|core| {
        core.engine.drop_link();
        let mut line = core.line.take();
        if let Some(line) = &mut line {
            line.mesh.close();
        }
        line
    });
    drop(line); // without the lock, for which the flusher may wait
}
