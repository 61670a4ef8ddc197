//! The start of an instance by init(), the database's position at that time, and the options that change while the
//! instance runs.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use trireme_engine::{Engine, Storage, starting_position, unvouched_position};
use trireme_group::{ComponentState, Event as GroupEvent};
use trireme_log::OsDisk;
use trireme_node::Line;
use trireme_node::setup::{self, random_uuid};
use trireme_replicator::{Event, Gtid, Options as NodeOptions, Replicator, ScriptBeforeIst};
use trireme_wsrep_abi::InitSettings;

use crate::convert::gtid_from_abi;
use crate::core::Core;
use crate::grastate::{Found, Grastate};
use crate::logging::Logger;
use crate::node::Node;
use crate::options::{Change, Options, Phase, Typed};
use crate::recover_position::{RecoverError, recover_position};
use crate::{server_flags, termination};
use trireme_node::setup::leadership_preference;

/// Time that SET GLOBAL waits until an ordered option (`pc.weight`) is in force.
const ORDERED_OPTION_TIMEOUT: Duration = Duration::from_secs(2);

/// The end of an error about an option that acts on a connection.
const NOT_CONNECTED: &str =
    "this node is not connected to a cluster, so it has no effect; set wsrep_cluster_address first";

/// The reason why a node does not even try to make its component primary.
const NOT_LISTED: &str = "pc.bootstrap has no effect: the last view that this node knows does not list it, so it only joins; \
                          set it on a node that this view lists";

/// init(): None if the server cannot go on (the reason is logged).
pub fn start(settings: InitSettings) -> Option<Node> {
    let logger = Logger::new(settings.callbacks.logger);
    match try_start(settings, &logger) {
        Ok(node) => Some(node),
        Err(error) => {
            logger.error(&error);
            None
        }
    }
}

fn try_start(settings: InitSettings, logger: &Logger) -> Result<Node, String> {
    // Options are text: the files would come to lie at another path than the server's.
    let data_dir = settings.data_dir.to_str().ok_or_else(|| {
        format!(
            "the path of the data directory, {:?}, is not UTF-8: give the server one (datadir, wsrep_data_home_dir) that is",
            settings.data_dir
        )
    })?;
    let options = Options::new(data_dir, &settings.node_address, &settings.options)
        .map_err(|error| format!("wsrep_provider_options: {error}"))?;
    setup::check(&options).map_err(|error| error.to_string())?;
    logger.set_debug(options.bool("debug"));
    let (grastate, found) =
        Grastate::open(&PathBuf::from(options.str("base_dir"))).map_err(|e| e.to_string())?;
    match found {
        Found::State => {}
        Found::Nothing => logger.info(
            "no saved position (grastate.dat): a new node, or one that needs a full state transfer",
        ),
        Found::LockedByOther => {
            return Err(
                "grastate.dat is locked by another process: a server runs on this data directory already; stop it, or give \
                 this one a directory of its own"
                    .to_owned(),
            );
        }
    }
    let log_directory = setup::claim_log_directory(&options).map_err(|error| error.to_string())?;
    logger.info(format!(
        "Trireme {} starts with {options}",
        env!("CARGO_PKG_VERSION")
    ));
    tell_about_options(&options, logger);
    let engine = Engine::new(Replicator::new(NodeOptions::default()));
    let core = Core::new(engine, grastate, logger.clone());
    let node = Node::new(
        core,
        settings,
        options.clone(),
        log_directory,
        logger.clone(),
    );
    node.obey(&options);
    Ok(node)
}

/// Logs the options that act otherwise than an operator may expect.
fn tell_about_options(options: &Options, logger: &Logger) {
    let idle = options.without_effect();
    if !idle.is_empty() {
        logger.info(format!(
            "wsrep_provider_options: without effect here, accepted so that a configuration for Galera can stay: {}",
            idle.join(", ")
        ));
    }
    let forgets = |option: &str| {
        format!(
            "{option}=no: a restart of this node drops its write-set log. The node then has no vote until it has caught up with a \
             majority, and if more than half of the nodes stop at once, the cluster does not come back by itself; remove the option"
        )
    };
    if !options.bool("gcache.recover") {
        logger.warn(forgets("gcache.recover"));
    }
    if !options.bool("pc.recovery") {
        // No warning: MariaDB's suite sets it in a test that allows none (galera_sr.galera_sr_kill_all_norecovery).
        logger.info(forgets("pc.recovery"));
    }
}

impl Node {
    /// Returns the position of the database. After a crash the database itself is asked, unless the service has done
    /// so. The second value: the database was asked, and has never had a position.
    /// `bootstraps_unvouched`: the node is bootstrapped, and nobody vouches for its data ([`Node::is_unvouched`]).
    pub fn local_position(&self, bootstraps_unvouched: bool) -> (Gtid, bool) {
        let state = gtid_from_abi(&self.peek(|core| core.grastate.position()));
        let passed = (self.server).passed_position(gtid_from_abi(&self.settings.state_id));
        if bootstraps_unvouched {
            return (self.unvouched_position(passed), false);
        }
        let interrupted = self.interrupted_action();
        let local = starting_position(state, passed, interrupted);
        let is_lost = state.uuid.is_nil() && !interrupted.is_known();
        let is_known = local.seqno >= 0 || is_lost;
        if is_known || passed != Gtid::UNDEFINED || self.server.runs() {
            return (local, false);
        }
        match self.ask_server() {
            Some(recovered) => {
                let untouched = recovered == Gtid::UNDEFINED;
                (starting_position(state, recovered, interrupted), untouched)
            }
            None => (local, false),
        }
    }

    /// Returns true if grastate.dat was removed and the server does not run yet: nobody vouches for the database's
    /// content.
    pub fn is_unvouched(&self) -> bool {
        let is_running = self.server.runs();
        !is_running && self.peek(|core| core.grastate.says_nothing())
    }

    /// Returns true if the write-set log of an earlier process is here. A read error is ignored: opening the log will
    /// report it.
    pub fn has_history(&self) -> bool {
        Storage::history_on(&self.log_disk()).is_ok_and(|history| history.is_some())
    }

    /// Returns the position of a database that is bootstrapped without grastate.dat. `passed`: --wsrep-start-position.
    fn unvouched_position(&self, passed: Gtid) -> Gtid {
        // A read error is ignored: opening the log will report it.
        let log = Storage::history_on(&self.log_disk()).unwrap_or(None);
        if log.is_none() {
            return Gtid::UNDEFINED; // a new cluster
        }
        let server = match passed == Gtid::UNDEFINED {
            true => self.ask_server().unwrap_or(Gtid::UNDEFINED),
            false => passed,
        };
        let local = unvouched_position(server, log);
        if local.is_known() {
            self.logger.info(format!(
                "bootstrapped without grastate.dat: this node goes on with its own data, at {local}, and the other nodes take a \
                 full snapshot of them; a component that has gone on without this node, and is primary, comes first: then this \
                 node's data are replaced. For a new history move the trireme-*.log files away, too"
            ));
        } else {
            self.logger.info(format!(
                "bootstrapped without grastate.dat: the server's position is {server}, which is not in the history of the write-set \
                 log beside it: this node founds a new history, and the other nodes of the old one are refused. To go on with \
                 the old one start another of its nodes first"
            ));
        }
        local
    }

    /// Runs the server's own `--wsrep-recover`. None: it failed, or the server has its data open, and that was logged.
    fn ask_server(&self) -> Option<Gtid> {
        if let Some(recovered) = self.server.recovered() {
            return Some(recovered);
        }
        if server_flags::engines_are_up() {
            self.logger.warn(
                "the database's position is not known (a crash, and no --wsrep-start-position), and the server has its data \
                 open, so its --wsrep-recover cannot be asked: a full state transfer may be needed. Start the server by its \
                 service, which passes the position",
            );
            return None;
        }
        self.logger.info(
            "the database's position is not known (a crash, and no --wsrep-start-position): asking the server's \
             --wsrep-recover for it",
        );
        let ask = || recover_position().map(|recovered| gtid_from_abi(&recovered));
        match self.server.recover(ask) {
            Ok(recovered) => {
                self.logger.info(format!("recovered position: {recovered}"));
                Some(recovered)
            }
            // Without its position the node would replace its data, or found a new history.
            Err(error @ RecoverError::Terminated { .. }) => {
                self.logger.info(format!("{error}: ending"));
                termination::let_it();
            }
            Err(error) => {
                self.logger.warn(format!(
                    "the database's position stays unknown, a full state transfer may be needed: {error}"
                ));
                None
            }
        }
    }

    fn log_disk(&self) -> OsDisk {
        let options = self.options.lock().unwrap_or_else(|e| e.into_inner());
        setup::log_disk(&options)
    }

    /// Returns the action within which the earlier process died, if that is why grastate.dat contains no history.
    fn interrupted_action(&self) -> Gtid {
        if !self.peek(|core| core.grastate.says_unknown()) {
            return Gtid::UNDEFINED;
        }
        // A read error is ignored: opening the log will report it.
        Storage::interrupted_action(&self.log_disk()).unwrap_or(Gtid::UNDEFINED)
    }

    /// Obeys the options that concern neither the group nor the replicator.
    pub fn obey(&self, options: &Options) {
        self.logger.set_debug(options.bool("debug"));
        self.logs_conflicts
            .store(options.bool("cert.log_conflicts"), Ordering::Relaxed);
        let limit = options.int("repl.max_ws_size").max(0) as u64;
        self.max_ws_bytes.store(limit, Ordering::Relaxed);
    }

    /// Returns a copy of the options.
    fn copy_options(&self) -> Options {
        let options = self.options.lock().unwrap_or_else(|e| e.into_inner());
        options.clone()
    }

    /// `repl.causal_read_timeout`.
    pub fn causal_read_timeout(&self) -> Duration {
        let options = self.options.lock().unwrap_or_else(|e| e.into_inner());
        Duration::from_millis(options.duration_ms("repl.causal_read_timeout"))
    }
}

/// Returns the replicator's settings from the options.
pub fn replicator_options(options: &Options, donor: &str) -> NodeOptions {
    NodeOptions {
        fc_limit: options.int("gcs.fc_limit").max(0) as u64,
        fc_factor: options.double("gcs.fc_factor"),
        fc_single_primary: options.bool("gcs.fc_single_primary")
            || options.bool("gcs.fc_master_slave"),
        fc_desync_after_ms: options.int("repl.fc_desync_after_ms").max(0) as u64,
        left_out_shows_synced: options.choice("repl.fc_desync_state") == "synced",
        vote_policy: options.int("gcs.vote_policy").clamp(0, 255) as u8,
        cert_max_length: options.int("cert.max_length").max(1) as u64,
        sst_donor: donor.to_owned(),
        suspect_timeout_ms: setup::suspect_timeout_ms(options),
        script_before_ist: match (
            server_flags::gtid_mode_is_on(),
            options.bool("repl.ist_script"),
        ) {
            (true, _) => ScriptBeforeIst::Always,
            (false, true) => ScriptBeforeIst::IfDonorIsFree,
            (false, false) => ScriptBeforeIst::Never,
        },
        ..NodeOptions::default()
    }
}

/// options_set(): stores all options or none, and applies them. Err: the first that could not be applied; the others are
/// in force.
pub fn set_options(node: &Node, text: &str) -> Result<(), String> {
    let changes = {
        // To the end of the block: another call must not bring back what was in force before.
        let _change = (node.options_change.lock()).unwrap_or_else(|e| e.into_inner());
        let mut next = node.copy_options();
        let changes = next.apply_string(text, Phase::Runtime);
        let changes = changes.map_err(|error| error.to_string())?;
        let concerns = changes
            .iter()
            .any(|change| setup::is_of_security(change.key));
        // With unusable files, no option changes.
        let security = concerns.then(|| setup::security(&next)).transpose();
        let security = security.map_err(|error| error.to_string())?;
        *node.options.lock().unwrap_or_else(|e| e.into_inner()) = next;
        if let Some(security) = security {
            node.with(|core| {
                core.line
                    .as_mut()
                    .map(|line| line.mesh.set_security(security))
            });
            node.logger.info(setup::SECURITY_IS_READ);
        }
        changes
    };
    let results = changes.iter().map(|change| apply(node, change));
    results.fold(Ok(()), Result::and)
}

fn apply(node: &Node, change: &Change) -> Result<(), String> {
    let options = node.copy_options();
    match change.key {
        "debug" | "cert.log_conflicts" | "repl.max_ws_size" => node.obey(&options),
        "gmcast.isolate" => {
            let isolated = change.value != Typed::Int(0);
            let isolate = |line: &mut Line| line.mesh.set_isolated(isolated);
            node.with(|core| core.line.as_mut().map(isolate))
                .ok_or_else(|| format!("gmcast.isolate: {NOT_CONNECTED}"))?;
        }
        "gmcast.peer_addr" => {
            if let Typed::Str(address) = &change.value {
                add_seed(node, address, &options)?;
            }
        }
        "pc.bootstrap" if change.value == Typed::Bool(false) => {}
        "pc.bootstrap" => force_primary(node)?,
        "pc.weight" => set_weight(node, weight(&options)),
        "pc.ignore_sb"
        | "pc.ignore_quorum"
        | "pc.wait_evidence"
        | "evs.suspect_timeout"
        | "evs.inactive_timeout"
        // Other members hear of it with the next heartbeat.
        | "repl.leader" => node.with(|core| tell_group(core, &options)),
        "evs.evict" => node.logger.warn(
            "evs.evict does nothing in Trireme: a majority goes on without a member that is silent, and nobody is banned; \
             to keep a node out, stop it",
        ),
        "gcs.fc_limit"
        | "gcs.fc_factor"
        | "gcs.fc_master_slave"
        | "repl.fc_desync_after_ms"
        | "repl.fc_desync_state"
        | "repl.ist_script" => node.with(|core| tell_replicator(core, &options)),
        // The other options are read where they are used, at the next connect, or have no effect here.
        _ => {}
    }
    node.wake_reactor();
    Ok(())
}

/// Applies all options once more to a connection that has just begun: SET may have changed some since connect() read them,
/// and found no connection. Err: the files of the encryption cannot be used.
pub fn renew_options(node: &Node) -> Result<(), setup::SetupError> {
    let _change = (node.options_change.lock()).unwrap_or_else(|e| e.into_inner());
    let options = node.copy_options();
    let security = setup::security(&options)?;
    node.with(|core| {
        if let Some(line) = &mut core.line {
            line.mesh.set_security(security);
        }
        tell_group(core, &options);
        tell_weight(core, weight(&options));
        tell_replicator(core, &options);
    });
    Ok(())
}

/// `pc.weight`.
fn weight(options: &Options) -> u8 {
    options.int("pc.weight").clamp(0, 255) as u8
}

/// Requests the weight, if this member has another one.
fn tell_weight(core: &mut Core, weight: u8) {
    let group = core.engine.group_mut();
    if group.is_some_and(|group| group.config_mut().me.full_weight != weight) {
        core.group(GroupEvent::SetWeight { weight });
    }
}

/// Tells the group the options that concern it.
fn tell_group(core: &mut Core, options: &Options) {
    if let Some(group) = core.engine.group_mut() {
        let config = group.config_mut();
        config.suspect_timeout_ms = setup::suspect_timeout_ms(options);
        config.ignore_split_brain = options.bool("pc.ignore_sb");
        config.ignore_quorum = options.bool("pc.ignore_quorum");
        config.wait_evidence_ms = options.duration_ms("pc.wait_evidence");
        config.preference = leadership_preference(options);
    }
}

/// Tells the replicator the options that concern it.
fn tell_replicator(core: &mut Core, options: &Options) {
    let options = replicator_options(options, &core.donor);
    core.node(Event::SetOptions(options));
}

/// Makes the mesh call a further address (`gmcast.peer_addr`).
fn add_seed(node: &Node, address: &str, options: &Options) -> Result<(), String> {
    let peer = crate::url::HostPort::parse_with_scheme(address);
    let peer = peer.map_err(|error| error.to_string())?;
    let seed = setup::mesh_address(&peer, options);
    node.with(|core| core.line.as_mut().map(|line| line.mesh.add_seed(seed)))
        .ok_or_else(|| format!("gmcast.peer_addr: {NOT_CONNECTED}"))
}

/// Makes this node's component primary (`pc.bootstrap`), as an override. Err: it cannot become so by that.
fn force_primary(node: &Node) -> Result<(), String> {
    let override_id = random_uuid().map_err(|error| error.to_string())?;
    node.with(|core| {
        let Some(group) = core.engine.group_mut() else {
            return Err(format!("pc.bootstrap: {NOT_CONNECTED}"));
        };
        match group.component_state() {
            ComponentState::NonPrimary => {}
            // Scripts and MariaDB's suites set it wherever they are, to be sure.
            ComponentState::Primary => {
                let text = "pc.bootstrap has no effect: this node is in a primary component already";
                core.logger.info(text);
                return Ok(());
            }
            ComponentState::Outside => {
                let text = "pc.bootstrap: this node is in no component yet, so it has none to make primary; if it waits for \
                            others, its error log names them";
                return Err(text.to_owned());
            }
        }
        if group.refuses_override() {
            return Err(trireme_group::tell_no_more_overrides());
        }
        let before = group.term();
        core.group(GroupEvent::ForcePrimary { override_id });
        match core.engine.link().is_some_and(|link| link.group.term() > before) {
            true => Ok(()),
            false => Err(NOT_LISTED.to_owned()),
        }
    })
}

/// Requests the new weight, which is ordered like a write-set. SET returns when the weight is in force.
fn set_weight(node: &Node, weight: u8) {
    node.with(|core| core.group(GroupEvent::SetWeight { weight }));
    let until = Instant::now() + ORDERED_OPTION_TIMEOUT;
    let in_force = |core: &Core| {
        let Some(link) = core.engine.link() else {
            return true;
        };
        if link.group.component_state() != trireme_group::ComponentState::Primary {
            return true;
        }
        let me = trireme_group::Incarnation(core.incarnation);
        link.group
            .configuration()
            .member(me)
            .is_none_or(|member| member.full_weight == weight)
    };
    while !node.peek(in_force) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    if !node.peek(in_force) {
        node.logger.info(
            "the new pc.weight is requested, and will be in force when the cluster has ordered it",
        );
    }
}

#[cfg(test)]
mod tests;
