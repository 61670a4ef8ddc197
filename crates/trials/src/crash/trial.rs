//! One schedule, played on a fresh cluster.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Isolation, parse_lists};
use super::history::{self, Tables, Transaction};
use super::journal::Loss;
use super::load::Load;
use super::losses::{self, Positions, Watch};
use super::operator;
use super::power_loss::PowerLoss;
use super::schedule::{NODES, Schedule};
use super::serving::{self, Served};
use super::stage::Stage;
use super::violation::Violation;
use super::{CrashError, Plan, checker, io_error, isolation};
use trireme_testbed::cluster::{Cluster, START_TIMEOUT};
use trireme_testbed::interrupt;
use trireme_testbed::node::{Node, StartMode, snapshots_given};
use trireme_testbed::process;
use trireme_testbed::sql::SqlError;
use trireme_testbed::systems::Wsrep;
use trireme_testbed::verify::{VerifyError, verify_identical};

/// Duration of the load after all nodes serve again.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// Extra time for a cluster that serves too late, so that its tables can still be compared.
const MORE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of operator interventions and of restarts of ended servers; then the schedule is given up.
const HUMAN_ACTIONS: usize = 3;

/// The result of one schedule.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of acknowledged appends.
    pub acknowledged: usize,
    /// Number of transactions whose outcome the clients do not know.
    pub unknown: usize,
    /// Time from the start of the last server until all served.
    pub served_since_start: Option<Duration>,
    /// The same time, counted from the end of the last server's recovery of its position; None if there was no
    /// recovery.
    pub served_since_recovery: Option<Duration>,
    /// Number of SSTs given after the cluster had been formed.
    pub snapshots: usize,
    /// The result of the power loss.
    pub loss: Option<Loss>,
    /// Number of appends, acknowledged or read, that a node has reported as lost.
    pub told_lost: usize,
    /// The broken promises.
    pub violations: Vec<Violation>,
}

/// A schedule on its cluster.
pub struct Trial<'a> {
    plan: &'a Plan,
    schedule: &'a Schedule,
    cluster: Cluster,
    disks: Option<PowerLoss>,
    report: Report,
}

impl<'a> Trial<'a> {
    /// Lays out the cluster.
    pub fn new(
        plan: &'a Plan,
        schedule: &'a Schedule,
        stage: &Stage,
        system: &Wsrep,
    ) -> Result<Self, CrashError> {
        let name = format!("{:016x}", schedule.seed);
        let mut cluster = stage.cluster(&name, plan, system, |settings| {
            let flush = schedule.flush;
            let flush = format!("--innodb-flush-log-at-trx-commit={flush}");
            settings.mariadbd_args.push(flush);
        })?;
        let disks = match plan.power_loss {
            true => Some(PowerLoss::prepare(&mut cluster, schedule.seed)?),
            false => None,
        };
        Ok(Self {
            plan,
            schedule,
            cluster,
            disks,
            report: Report::default(),
        })
    }

    /// Plays the schedule and checks the result. Kills the servers in the end, and removes the directory unless
    /// something is wrong.
    pub fn run(mut self) -> Result<Report, CrashError> {
        let mut history = Vec::new();
        let mut tables = Vec::new();
        if let Err(error) = self.play(&mut history, &mut tables) {
            if let Err(interrupted) = interrupt::check() {
                self.clear()?;
                return Err(interrupted.into());
            }
            // A cluster that does not form and a node that does not answer are findings, too.
            self.violated(Violation::BrokenOff(error.to_string()));
        }
        let committed = history.iter().filter(|t: &&Transaction| t.is_committed());
        self.report.acknowledged = committed.map(|t| t.appends.len()).sum();
        let unknown = |t: &&Transaction| t.outcome == history::Outcome::Unknown;
        self.report.unknown = history.iter().filter(unknown).count();
        self.end(&history, &tables)?;
        Ok(self.report)
    }

    fn play(
        &mut self,
        history: &mut Vec<Transaction>,
        tables: &mut Vec<(String, Tables)>,
    ) -> Result<(), CrashError> {
        form(&mut self.cluster)?;
        if let Some(disks) = &self.disks {
            disks.settle()?;
            disks.set_lying(self.plan.lying_disk)?;
        }
        let logs = |cluster: &Cluster| cluster.nodes().iter().map(Node::log_text).collect();
        let logs_before: Vec<String> = logs(&self.cluster);
        let isolation = Isolation {
            snapshot: self.schedule.strong,
            current: self.schedule.strong,
        };
        let (clients, seed) = (self.plan.clients, self.schedule.seed);
        let load = Load::start(&self.cluster, clients, isolation, seed);
        let disturbed = self.disturb(&load);
        *history = load.stop();
        let positions = disturbed?;
        for (log, before) in logs(&self.cluster).iter().zip(&logs_before) {
            self.report.snapshots += snapshots_given(&log[before.len()..]);
        }
        let violations = &mut self.report.violations;
        *tables = judge(&mut self.cluster, history, isolation, violations)?;
        let lost_from = losses::lost_from(&self.cluster);
        let kept = self.schedule.flush == 1 || self.schedule.flush == 2 && !self.plan.power_loss;
        self.report.told_lost = positions.excuse(violations, history, lost_from, kept);
        Ok(())
    }

    /// Kills nodes, starts them again, and waits until all serve.
    fn disturb(&mut self, load: &Load) -> Result<Positions, CrashError> {
        let watch = Watch::start(&self.cluster, load);
        interrupt::sleep(Duration::from_millis(self.schedule.warm_up_ms))?;
        self.kill()?;
        let positions = watch.stop();
        if let Some(disks) = &mut self.disks {
            let nodes: Vec<usize> = self.schedule.kills.iter().map(|k| k.node).collect();
            disks.set_lying(false)?;
            // If a lying disk kept some writes by chance, the database would be damaged, not old.
            self.report.loss = Some(disks.strike(&nodes, !self.plan.lying_disk)?);
        }
        let (mut started, mut recovered) = (load.now(), None);
        for restart in &self.schedule.restarts {
            interrupt::sleep(Duration::from_millis(restart.pause_ms))?;
            started = load.now();
            if restart.recovered {
                self.cluster.spawn_node(restart.node, StartMode::Join)?;
                recovered = Some(load.now());
            } else {
                let mode = StartMode::JoinUnprepared;
                self.cluster.spawn_node(restart.node, mode)?;
                recovered = None;
            }
        }
        self.await_service(load, started)?;
        if let (Some(served), Some(recovered)) = (self.report.served_since_start, recovered) {
            let recovery = recovered.saturating_sub(started);
            self.report.served_since_recovery = Some(served.saturating_sub(recovery));
        }
        interrupt::sleep(AFTERWARDS)?;
        Ok(positions)
    }

    fn kill(&mut self) -> Result<(), CrashError> {
        let began = Instant::now();
        for kill in &self.schedule.kills {
            let at = Duration::from_millis(kill.at_ms);
            thread::sleep(at.saturating_sub(began.elapsed()));
            if let Some(pid) = self.cluster.node(kill.node).pid() {
                // Does not wait for the server's end: the next server may have to die at the same instant.
                process::signal(pid, rustix::process::Signal::KILL)
                    .map_err(|e| self.cluster.node(kill.node).io_error("kill the server", e))?;
            }
        }
        for kill in &self.schedule.kills {
            self.cluster.kill_node(kill.node)?;
        }
        Ok(interrupt::check()?)
    }

    fn await_service(&mut self, load: &Load, started: Duration) -> Result<(), CrashError> {
        let limit = Duration::from_secs(self.plan.serve_within_s);
        let mut since = started;
        let mut timeout = limit;
        let mut late = false;
        for actions in 0.. {
            let action = match serving::wait(&self.cluster, load, since, timeout)? {
                Served::All => {
                    self.report.served_since_start = Some(load.now().saturating_sub(started));
                    return Ok(());
                }
                Served::Not(states) if !late => {
                    late = true;
                    let within_s = self.plan.serve_within_s;
                    let violation = Violation::NotServing { within_s, states };
                    self.violated(violation);
                    if !self.cluster.settings().is_galera() {
                        timeout += MORE_TIMEOUT;
                        continue;
                    }
                    operator::help(&mut self.cluster)?
                }
                Served::Not(states) if actions >= HUMAN_ACTIONS => {
                    let violation = Violation::BrokenOff(format!("no service: {states}"));
                    self.violated(violation);
                    return Ok(());
                }
                Served::Not(_) => operator::help(&mut self.cluster)?,
                Served::Ended(i) => {
                    let why = serving::last_error(&self.cluster, i);
                    let name = self.cluster.node(i).name.clone();
                    if actions >= HUMAN_ACTIONS {
                        let violation = Violation::BrokenOff(format!("{name} ended: {why}"));
                        self.violated(violation);
                        return Ok(());
                    }
                    self.cluster.spawn_node(i, StartMode::Join)?;
                    format!("{name} had ended, started again: {why}")
                }
            };
            self.violated(Violation::HumanAction(action));
            since = load.now();
            timeout = limit + MORE_TIMEOUT;
        }
        Ok(())
    }

    fn violated(&mut self, violation: Violation) {
        self.report.violations.push(violation);
    }

    /// Kills the servers and removes all their files.
    fn clear(&mut self) -> Result<(), CrashError> {
        self.cluster.kill()?;
        Ok(Cluster::clear(&self.cluster.settings().dir)?)
    }

    fn end(
        &mut self,
        history: &[Transaction],
        tables: &[(String, Tables)],
    ) -> Result<(), CrashError> {
        if self.report.violations.is_empty() && !self.plan.keep {
            return self.clear();
        }
        self.cluster.kill()?;
        let dir = self.cluster.settings().dir.clone();
        let write = |name: String, text: String| {
            let path = dir.join(name);
            fs::write(&path, text).map_err(io_error(&path))
        };
        write("history.txt".to_string(), history::text(history))?;
        for (node, tables) in tables {
            write(format!("{node}.txt"), history::tables_text(tables))?;
        }
        let violations = self.report.violations.iter();
        let lines: Vec<String> = violations.map(|v| format!("{v}\n")).collect();
        let schedule = format!("{:#018x}: {}\n", self.schedule.seed, self.schedule);
        write("report.txt".to_string(), schedule + &lines.concat())
    }
}

/// Starts all nodes of a new cluster and waits until it is complete.
pub fn form(cluster: &mut Cluster) -> Result<(), CrashError> {
    cluster.bootstrap_node(0)?;
    for i in 1..NODES {
        cluster.spawn_node(i, StartMode::Join)?;
    }
    for i in 0..NODES {
        cluster.wait_size(i, NODES, START_TIMEOUT)?;
    }
    Ok(())
}

/// Reads the tables of each node after the load. Adds to `violations`: nodes that differ, tables that contradict the
/// clients' history and, only if there is none of these, broken isolation.
pub fn judge(
    cluster: &mut Cluster,
    history: &[Transaction],
    isolation: Isolation,
    violations: &mut Vec<Violation>,
) -> Result<Vec<(String, Tables)>, CrashError> {
    match verify_identical(cluster, &["crash"]) {
        Ok(_) => {}
        Err(VerifyError::Cluster(error)) => {
            violations.push(Violation::Different(format!("no common GTID: {error}")));
            interrupt::check()?;
        }
        Err(error @ VerifyError::Different { .. }) => {
            violations.push(Violation::Different(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    let tables = read_all(cluster)?;
    let mut found = checker::check(history, &tables);
    if found.is_empty() {
        found = isolation::check(history, &tables[0].1, isolation);
    }
    violations.extend(found);
    Ok(tables)
}

fn read_all(cluster: &Cluster) -> Result<Vec<(String, Tables)>, CrashError> {
    let nodes = cluster.nodes().iter();
    nodes
        .map(|node| Ok((node.name.clone(), read_tables(node)?)))
        .collect()
}

/// The tables of a node, all from one snapshot.
fn read_tables(node: &Node) -> Result<Tables, CrashError> {
    let mut sql = node.sql()?;
    sql.exec("SET SESSION wsrep_sync_wait=1")?;
    sql.exec("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let query = "SELECT k, v FROM crash.lists WHERE v <> ''";
    let bad = || SqlError::Answer(query.to_string());
    let lists = parse_lists(&sql.query(query)?).ok_or_else(bad)?;
    let rows = sql.query("SELECT id, balance FROM crash.accounts")?;
    let account = |row: &trireme_testbed::sql::Row| match row.as_slice() {
        [Some(id), Some(balance)] => Some((id.parse().ok()?, balance.parse().ok()?)),
        _ => None,
    };
    let accounts: Option<_> = rows.iter().map(account).collect();
    Ok(Tables {
        lists: lists.into_iter().collect(),
        accounts: accounts.ok_or_else(bad)?,
    })
}
