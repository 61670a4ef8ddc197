//! The life of an arbitrator: it opens its log, joins the cluster, reacts to the network until it is told to stop, and
//! leaves.

use std::fs::File;
use std::time::{Duration, Instant};

use trireme_group::{ComponentState, Group, Member, Reminder};
use trireme_mutants::{Mutant, planted};
use trireme_node::options::Options;
use trireme_node::url::{AddressError, ClusterUrl};
use trireme_node::{Deadline, Exposure, LEAVE_TIMEOUT, Line, Station, now_ms, setup};
use trireme_replicator::{Event, Level};
use trireme_transport::{Poller, Ready};

use crate::directory::Directory;
use crate::error::ArbitratorError;
use crate::log::Log;
use crate::request::Request;
use crate::settings::Settings;
use crate::station::Core;

/// The pause after an error of the operating system.
const RETRY: Duration = Duration::from_millis(100);

/// An arbitrator that listens, but has not joined yet.
pub struct Arbitrator {
    core: Core,
    poller: Poller,
    peers: String,
    options: Options,
    /// `pc.wait_prim_timeout`; None if `pc.wait_prim` is off.
    timeout_ms: Option<u64>,
    /// Keeps servers, and other arbitrators, out of the log's directory: `gcache.dir` may name another one.
    _log_directory: Option<File>,
    /// The last field: it is dropped after everything that lies in the directory.
    _directory: Directory,
}

/// Runs an arbitrator until a request stops it, or an error does.
pub fn run(
    settings: &Settings,
    directory: Directory,
    log: Log,
    requests: impl Fn() -> Option<Request>,
) -> Result<(), ArbitratorError> {
    Arbitrator::open(settings, directory, log)?.run(requests)
}

impl Arbitrator {
    /// Reads the settings, listens, and opens the log of an earlier process. If it fails, no peer has heard anything.
    pub fn open(
        settings: &Settings,
        directory: Directory,
        mut log: Log,
    ) -> Result<Arbitrator, ArbitratorError> {
        let cluster = cluster_of(&settings.address)?;
        let options = options_of(settings, &cluster, &directory)?;
        log.set_debug(options.bool("debug"));
        let log_directory = setup::claim_log_directory(&options)?;
        let votes = setup::open_votes(&options)?;
        let mut me = Member {
            name: settings.name.clone(),
            arbitrator: true,
            never_donor: true,
            ..setup::this_member(&options, &votes)?
        };
        if planted(Mutant::ArbitratorWithoutWeight) {
            me.full_weight = 0;
        }
        let incarnation = me.incarnation;
        let (mesh, poller) =
            setup::open_mesh(&settings.group, &cluster, &options, &me, &votes, None)?;
        let exposure = Exposure::of(&options, mesh.security())?;
        let mut start = setup::start(&options, &votes, me);
        if directory.is_temporary() {
            start.mark = None; // no process returns to this directory
        }
        let mut core = Core::new(Line::new(mesh, votes), log);
        let version = env!("CARGO_PKG_VERSION");
        let (dir, group) = (directory.path().display(), &settings.group);
        let text = format!(
            "Trireme arbitrator {version}, member {incarnation} of '{group}' at {}, keeps its log in {dir}; {options}",
            settings.address
        );
        core.log(Level::Info, &text);
        if let Some(exposure) = exposure {
            core.log(exposure.level(), &exposure.to_string());
        }
        if directory.is_temporary() {
            let text = "no directory was given (--dir): the log is lost with this process. After a crash of several members at once, acknowledged commits may be lost; --dir DIRECTORY prevents that";
            core.log(Level::Warn, text);
        }
        core.engine.connect(now_ms(), start)?;
        let peers: Vec<String> = cluster.peers.iter().map(ToString::to_string).collect();
        let timeout_ms = options.duration_ms("pc.wait_prim_timeout");
        let timeout_ms = options.bool("pc.wait_prim").then_some(timeout_ms);
        Ok(Arbitrator {
            core,
            poller,
            peers: peers.join(", "),
            options,
            timeout_ms,
            _log_directory: log_directory,
            _directory: directory,
        })
    }

    /// Joins the cluster and stays in it. `requests` returns the next request; it is called at least ten times a
    /// second.
    pub fn run(mut self, requests: impl Fn() -> Option<Request>) -> Result<(), ArbitratorError> {
        let result = self.stay(requests);
        let core = &mut self.core;
        core.engine.drop_link();
        core.line.mesh.close();
        if let Err(error) = &result {
            core.log(Level::Error, &error.to_string());
        }
        result
    }

    fn stay(&mut self, requests: impl Fn() -> Option<Request>) -> Result<(), ArbitratorError> {
        let wait = Duration::from_millis(self.timeout_ms.unwrap_or_default());
        let mut deadline = Deadline::within(wait);
        let mut leaving: Option<Instant> = None;
        let mut told = (ComponentState::Outside, 0);
        let mut ready = Ready::default();
        let mut idle_ms = 0;
        let mut reminder = Reminder::default();
        loop {
            let waited = (self.poller).wait(Some(Duration::from_millis(idle_ms)), &mut ready);
            let core = &mut self.core;
            if let Err(error) = waited {
                if reminder.is_due(now_ms()) {
                    let text = format!("waiting for the network failed: {error}; trying again");
                    core.log(Level::Error, &text);
                }
                std::thread::sleep(RETRY);
            }
            core.react(&mut ready);
            match requests() {
                Some(Request::Stop) if leaving.is_none() => {
                    core.log(Level::Info, "asked to stop: leaving the cluster");
                    core.engine.node(now_ms(), Event::Disconnect);
                    leaving = Some(Instant::now());
                }
                Some(Request::Reload) => reload(core, &self.options),
                _ => {}
            }
            if leaving.is_some_and(|since| since.elapsed() >= LEAVE_TIMEOUT) {
                let text = "the leave request timed out; disconnecting without confirmation";
                core.log(Level::Info, text);
                core.engine.node(now_ms(), Event::Left);
            }
            core.pump();
            tell_view(core, &mut told);
            if let Some(text) = core.progress.failed.take() {
                return Err(ArbitratorError::Disk(text));
            }
            if let Some(text) = core.fatal.take() {
                return Err(ArbitratorError::Failed(text));
            }
            match (core.progress.closed, leaving) {
                (true, Some(_)) => return Ok(()),
                (true, None) => return Err(ArbitratorError::LetGo),
                (false, _) => {}
            }
            if let Some(reason) = core.progress.refused.take().filter(|_| leaving.is_none()) {
                return Err(ArbitratorError::Refused(reason));
            }
            if leaving.is_none() {
                self.check_timeout(&mut deadline, Instant::now())?;
            }
            idle_ms = self.core.idle_ms();
        }
    }

    /// Gives up an arbitrator that finds no primary component.
    fn check_timeout(&self, deadline: &mut Deadline, now: Instant) -> Result<(), ArbitratorError> {
        let admitted = self.core.progress.admitted || planted(Mutant::ArbitratorWaitsForEver);
        let Some(timeout_ms) = self.timeout_ms.filter(|_| !admitted) else {
            return Ok(());
        };
        // An arbitrator that resumes in its last view waits for it without limit: nobody is to bootstrap (rule 18). A
        // component that has taken it in still sends it the state of the order.
        let waits = |group: &Group| {
            group.is_resumed() || group.component_state() == ComponentState::Primary
        };
        let group = self.core.engine.link().map(|link| &link.group);
        let committed = group.map_or(0, Group::commit);
        match deadline.is_over(now, committed, group.is_some_and(waits)) {
            false => Ok(()),
            true => Err(ArbitratorError::NoPrimary {
                timeout_ms,
                peers: self.peers.clone(),
            }),
        }
    }
}

/// Opens the file of the log again, and reads the certificates or the secret again. If the new files are unusable, the
/// old ones stay in force.
fn reload(core: &mut Core, options: &Options) {
    if let Err(error) = core.log.reopen() {
        let text = format!("{error} (until the next reload lines go to the file before)");
        core.log(Level::Error, &text);
    }
    match setup::security(options) {
        Ok(security) => {
            core.line.mesh.set_security(security);
            core.log(Level::Info, setup::SECURITY_IS_READ);
        }
        Err(error) => {
            let text = format!("{error} (until the next reload everything stays as it was)");
            core.log(Level::Error, &text);
        }
    }
}

/// Logs view changes; on other nodes the server does so. `told`: the component state and view number that were logged
/// last.
fn tell_view(core: &mut Core, told: &mut (ComponentState, u64)) {
    let Some(link) = core.engine.link() else {
        return;
    };
    let component_state = link.group.component_state();
    let configuration = link.group.configuration();
    if (component_state, configuration.number) == *told {
        return;
    }
    *told = (component_state, configuration.number);
    let names: Vec<&str> = (configuration.members.iter())
        .map(|member| member.name.as_str())
        .collect();
    let text = match component_state {
        ComponentState::Primary => format!(
            "view {}, primary: {}",
            configuration.number,
            names.join(", ")
        ),
        ComponentState::NonPrimary => format!(
            "not in the primary component: too few of {} can be reached",
            names.join(", ")
        ),
        ComponentState::Outside => return,
    };
    core.log(Level::Info, &text);
}

fn cluster_of(address: &str) -> Result<ClusterUrl, ArbitratorError> {
    let refused = |source: AddressError| ArbitratorError::Address {
        address: address.to_owned(),
        source,
    };
    let cluster: ClusterUrl = address.parse().map_err(refused)?;
    match cluster.is_bootstrap() {
        true => Err(ArbitratorError::NobodyNamed(address.to_owned())),
        false => Ok(cluster),
    }
}

fn options_of(
    settings: &Settings,
    cluster: &ClusterUrl,
    directory: &Directory,
) -> Result<Options, ArbitratorError> {
    let dir = directory.path().display().to_string();
    let options = Options::new(&dir, "", &settings.options)?.for_connection(cluster)?;
    if options.str("base_dir") != dir {
        return Err(ArbitratorError::BaseDir);
    }
    setup::check(&options)?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use trireme_engine::{Host, HostAction};
    use trireme_group::{Event as GroupEvent, Uuid};
    use trireme_transport::testing::free_port;

    use super::*;

    /// The settings of an arbitrator that finds nobody.
    fn settings() -> Settings {
        Settings {
            address: "gcomm://127.0.0.1:1".to_owned(),
            options: format!("gmcast.listen_addr=tcp://127.0.0.1:{}", free_port()),
            ..Settings::default()
        }
    }

    fn open(log: Log) -> Arbitrator {
        Arbitrator::open(&settings(), Directory::take(None).unwrap(), log).unwrap()
    }

    /// Each of the two would overwrite the other's log.
    #[test]
    fn a_servers_log_directory_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display();
        let opens = |own: Option<&Path>, options: &str| {
            let settings = Settings {
                options: format!("{};{options}", settings().options),
                ..settings()
            };
            let directory = Directory::take(own).unwrap();
            Arbitrator::open(&settings, directory, Log::to_stderr()).map(drop)
        };
        let server = Options::new("", "", &format!("gcache.dir={at}")).unwrap();
        let claim = setup::claim_log_directory(&server).unwrap();
        assert!(claim.is_some());
        for (own, options) in [
            (Some(dir.path()), String::new()),
            (None, format!("gcache.dir={at}")),
        ] {
            let refused = opens(own, &options).unwrap_err().to_string();
            assert!(refused.contains("directory of its own"), "{refused}");
        }
        assert!(!dir.path().join(trireme_node::votes::FILE_NAME).exists());
        drop(claim);
        opens(Some(dir.path()), "").unwrap();
        let refused = opens(None, &format!("base_dir={at}")).unwrap_err();
        assert!(refused.to_string().contains("--dir"), "{refused}");
    }

    #[test]
    fn an_arbitrator_without_a_seat_ends_with_the_reason() {
        let mut arbitrator = open(Log::to_stderr());
        arbitrator.core.progress.closed = true;
        let ended = arbitrator.run(|| None);
        assert!(matches!(ended, Err(ArbitratorError::LetGo)), "{ended:?}");

        let mut arbitrator = open(Log::to_stderr());
        arbitrator.core.progress.refused = Some("another past".to_owned());
        let ended = arbitrator.run(|| None).unwrap_err().to_string();
        assert!(
            ended.contains("refuses this arbitrator: another past"),
            "{ended}"
        );
    }

    #[test]
    fn a_failed_disk_is_told_from_other_failures() {
        let text = "it cannot go on".to_owned();
        let mut arbitrator = open(Log::to_stderr());
        arbitrator.core.parts().1.fail(&text);
        let ended = arbitrator.run(|| None);
        assert!(matches!(ended, Err(ArbitratorError::Disk(_))), "{ended:?}");

        let mut arbitrator = open(Log::to_stderr());
        (arbitrator.core.parts().1).act(HostAction::Fatal { text });
        let ended = arbitrator.run(|| None);
        assert!(
            matches!(ended, Err(ArbitratorError::Failed(_))),
            "{ended:?}"
        );
    }

    #[test]
    fn an_arbitrator_that_is_asked_to_stop_ends_without_an_error() {
        let mut arbitrator = open(Log::to_stderr());
        arbitrator.core.progress.refused = Some("another past".to_owned());
        let ended = arbitrator.run(|| Some(Request::Stop));
        assert!(ended.is_ok(), "{ended:?}");
    }

    #[test]
    fn an_arbitrator_that_a_component_has_taken_in_waits_for_the_state_of_the_order() {
        let mut arbitrator = open(Log::to_stderr());
        let (mut deadline, began) = (Deadline::within(Duration::from_secs(30)), Instant::now());
        let mut ends = |arbitrator: &Arbitrator, after_s| {
            let now = began + Duration::from_secs(after_s);
            arbitrator.check_timeout(&mut deadline, now).is_err()
        };
        assert!(!ends(&arbitrator, 29));
        let founds = GroupEvent::Bootstrap {
            history: Uuid([7; 16]),
            overrides: vec![],
            override_id: None,
        };
        arbitrator.core.engine.group(now_ms(), founds);
        arbitrator.core.pump();
        assert!(!arbitrator.core.progress.admitted);
        assert!(!ends(&arbitrator, 60) && !ends(&arbitrator, 3_600));
        // Without that component the time counts from its loss.
        arbitrator.core.engine.drop_link();
        assert!(!ends(&arbitrator, 3_629) && ends(&arbitrator, 3_630));
    }

    #[test]
    fn of_lines_that_repeat_only_errors_are_all_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("arbitrator.log");
        let mut arbitrator = open(Log::to_file(&path).unwrap());
        let (_, mut outlet) = arbitrator.core.parts();
        for n in 0..50 {
            outlet.note(&format!("a note, {n}"));
            outlet.warn(&format!("a warning, {n}"));
            let text = format!("a line, {n}");
            let level = Level::Info;
            outlet.act(HostAction::Log { level, text });
            outlet.alarm(&format!("an alarm, {n}"));
        }
        let log = std::fs::read_to_string(&path).unwrap();
        let written = |what| log.matches(what).count();
        let limited = ["a note", "a warning", "a line"].map(written);
        assert_eq!((limited, written("an alarm")), ([20; 3], 50));
    }
}
