//! A cluster on trial: started for one test, watched with bounded waits, explained when the test fails, always ended.

use std::env;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use trireme_testbed::interrupt;
use trireme_testbed::process;
use trireme_testbed::sql::SqlError;
use trireme_testbed::template::Template;
use trireme_testbed::verify::{verify_identical, verify_running};
use trireme_testbed::{Cluster, ClusterError, Server, Settings, Sql};

/// Lines of each error log that a failed test shows.
const SHOWN_LINES: usize = 30;

/// For what should happen at once, on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// Time for a node to join, a snapshot included, and one or two before it.
pub const JOIN: Duration = Duration::from_secs(180);

/// A running cluster. When the test fails it shows every node's state and the end of its log; the servers die with it.
pub struct Trial {
    cluster: Cluster,
    _dir: TempDir,
}

impl Trial {
    /// Starts `nodes` nodes and makes database `d` with table `t`; `None` if tests with real servers are not asked for.
    pub fn start(nodes: usize, provider_options: &str) -> Option<Self> {
        Self::start_under(provider()?, nodes, provider_options)
    }

    /// The same under the provider at `path`.
    pub fn start_under(path: PathBuf, nodes: usize, provider_options: &str) -> Option<Self> {
        let mut trial = Self::prepare(path, nodes, |settings| {
            settings.provider_options = provider_options.to_string();
        });
        if let Err(error) = trial.cluster.start() {
            panic!("the cluster does not start: {error}");
        }
        trial.exec(0, "CREATE DATABASE d");
        trial.exec(0, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT NOT NULL)");
        for i in 0..nodes {
            trial.await_value(i, "SELECT COUNT(*) FROM d.t", "0");
        }
        Some(trial)
    }

    /// Lays a cluster out and starts nothing.
    pub fn prepare(path: PathBuf, nodes: usize, adapt: impl FnOnce(&mut Settings)) -> Self {
        interrupt::install().expect("signal handlers can be installed");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut settings = Settings::new(dir.path(), nodes, Some(path));
        settings.template = Some(template());
        adapt(&mut settings);
        let cluster = Cluster::create(settings, |text| eprintln!("  {text}"));
        Self {
            cluster: cluster.unwrap_or_else(|error| panic!("no cluster: {error}")),
            _dir: dir,
        }
    }

    /// Runs a statement on node `i`, which must succeed.
    pub fn exec(&self, i: usize, statement: &str) {
        if let Err(error) = self.try_exec(i, statement) {
            panic!("{}: {statement}: {error}", self.name(i));
        }
    }

    /// Runs a statement on node `i` on a connection of its own. Fails when there is no answer for half a minute.
    pub fn try_exec(&self, i: usize, statement: &str) -> Result<u64, SqlError> {
        let connected = Sql::connect_socket(&self.node(i).socket(), Duration::from_secs(30));
        connected?.exec(statement)
    }

    /// The only value of a query on node `i`; NULL is an empty text.
    pub fn value(&self, i: usize, query: &str) -> String {
        match self.client(i).value(query) {
            Ok(value) => value.unwrap_or_default(),
            Err(error) => panic!("{}: {query}: {error}", self.name(i)),
        }
    }

    /// Waits until the only value of a query on node `i` is `wanted`; its table may come only now.
    #[track_caller]
    pub fn await_value(&self, i: usize, query: &str, wanted: &str) {
        let mut seen = Ok(None);
        let found = await_true(SOON, || {
            seen = self.client(i).value(query);
            matches!(&seen, Ok(Some(value)) if value == wanted)
        });
        assert!(
            found,
            "{}: {query}: {wanted} was awaited, it is {seen:?}",
            self.name(i)
        );
    }

    /// A global status variable of node `i`; empty when it does not answer.
    pub fn status(&self, i: usize, name: &str) -> String {
        let sql = self.node(i).sql_with_timeout(Duration::from_secs(5));
        let value = sql.ok().and_then(|mut sql| sql.status(name).ok());
        value.flatten().unwrap_or_default()
    }

    /// A connection to node `i`.
    pub fn client(&self, i: usize) -> Sql {
        match self.cluster.sql(i) {
            Ok(sql) => sql,
            Err(error) => panic!("no connection: {error}"),
        }
    }

    /// Changes provider options of the running node `i`.
    pub fn set_option(&self, i: usize, option: &str) {
        self.exec(
            i,
            &format!("SET GLOBAL wsrep_provider_options = '{option}'"),
        );
    }

    /// Waits until `found` is true of `node`'s status variable `variable`.
    pub fn await_status(&self, i: usize, variable: &str, wanted: &str, timeout: Duration) {
        let what = format!("{variable} = {wanted} on {}", self.name(i));
        let mut seen = String::new();
        let found = await_true(timeout, || {
            seen = self.status(i, variable);
            seen == wanted
        });
        assert!(found, "{what} was awaited for {timeout:?}; it is {seen:?}");
    }

    /// Waits until node `i` is synced in a primary component of `size`.
    pub fn await_size(&mut self, i: usize, size: usize, timeout: Duration) {
        if let Err(error) = self.cluster.wait_size(i, size, timeout) {
            panic!("{error}");
        }
    }

    /// Starts node `i` with its ordinary configuration and waits until it is synced.
    pub fn restart(&mut self, i: usize) {
        if let Err(error) = self.cluster.start_node(i) {
            panic!("{} does not come back: {error}", self.name(i));
        }
    }

    /// Stops node `i` in order.
    pub fn stop(&mut self, i: usize) {
        let killed = self.cluster.stop_node(i);
        assert!(
            matches!(killed, Ok(false)),
            "{} did not stop in order: {killed:?}",
            self.name(i)
        );
    }

    /// Stops all in order, the first node last.
    pub fn cluster_stop(&mut self) {
        if let Err(error) = self.cluster.stop() {
            panic!("the cluster does not stop: {error}");
        }
        let killed = self
            .cluster
            .nodes()
            .iter()
            .find(|node| node.pid().is_some());
        assert!(killed.is_none(), "a node still runs");
    }

    /// Starts all: the one that left last as the first, then the others one by one.
    pub fn cluster_start(&mut self) {
        if let Err(error) = self.cluster.start() {
            panic!("the cluster does not start: {error}");
        }
    }

    /// Kills node `i` with -9.
    pub fn kill(&mut self, i: usize) {
        self.cluster
            .kill_node(i)
            .expect("a process of ours can be killed");
    }

    /// All nodes run, and hold the same rows.
    #[track_caller]
    pub fn assert_equal(&mut self) {
        if let Err(error) = verify_identical(&mut self.cluster, &["d"]) {
            panic!("the nodes are not equal: {error}");
        }
    }

    /// The same for a cluster of which a node is down on purpose.
    #[track_caller]
    pub fn assert_running_equal(&mut self) {
        if let Err(error) = verify_running(&mut self.cluster, &["d"]) {
            panic!("the running nodes are not equal: {error}");
        }
    }

    /// Whether the provider on trial is ours; Galera is not held to what only we promise.
    pub fn is_trireme(&self) -> bool {
        !self.cluster.settings().is_galera()
    }

    /// The node's name.
    pub fn name(&self, i: usize) -> &str {
        &self.cluster.node(i).name
    }

    fn explain(&self) {
        for (i, node) in self.cluster.nodes().iter().enumerate() {
            match (node.pid(), node.status()) {
                (None, _) => eprintln!("--- {} is not running", self.name(i)),
                (_, Ok(status)) => eprintln!("--- {}: {status:?}", self.name(i)),
                (_, Err(error)) => eprintln!("--- {} does not answer: {error}", self.name(i)),
            }
            for line in process::tail(&node.log(), SHOWN_LINES) {
                eprintln!("    {line}");
            }
        }
    }

    /// Copies the logs to where they outlive the test.
    fn keep_logs(&self) {
        let test = thread::current()
            .name()
            .unwrap_or("test")
            .replace("::", "-");
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::create_dir_all(&dir);
        for node in self.cluster.nodes() {
            let _ = fs::copy(node.log(), dir.join(format!("{}.log", node.name)));
        }
        eprintln!("--- the whole logs: {}", dir.display());
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if thread::panicking() {
            self.explain();
            self.keep_logs();
        }
        // If a server outlives this, the cluster's own drop tries again.
        let _ = self.cluster.kill_for_good();
    }
}

impl Deref for Trial {
    type Target = Cluster;
    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl DerefMut for Trial {
    fn deref_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }
}

/// The provider on trial, if tests with real servers are asked for; says so if not.
pub fn provider() -> Option<PathBuf> {
    if env::var_os("TRIREME_REAL").is_none_or(|value| value.is_empty() || value == "0") {
        eprintln!("skipped: starts MariaDB servers; set TRIREME_REAL=1");
        return None;
    }
    let path = env::var_os("TRIREME_PROVIDER").map_or_else(built_provider, PathBuf::from);
    assert!(
        path.is_file(),
        "no provider at {}; make build",
        path.display()
    );
    Some(path)
}

/// `target/release/libtrireme.so` for the test `target/release/deps/real_cluster-...`.
fn built_provider() -> PathBuf {
    let test = env::current_exe().expect("this program has a path");
    let deps = test.parent().expect("a file lies in a directory");
    deps.with_file_name("libtrireme.so")
}

/// An empty database, made once per build directory and version of the server: making one takes longer than copying it.
fn template() -> PathBuf {
    let template = Template {
        dir: Path::new(env!("CARGO_TARGET_TMPDIR")),
        name: "empty",
        server: Server::MariaDb,
        arguments: &[],
    };
    let made = template.make(|_| {}, |_| Ok::<(), ClusterError>(()));
    made.unwrap_or_else(|error| panic!("no empty database: {error}"))
}

/// Asks again and again until the answer is yes; whether it was within `timeout`.
pub fn await_true(timeout: Duration, mut ask: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        // Asked last after the time is up: this thread itself may have been stopped for long.
        let is_last = start.elapsed() > timeout;
        if ask() {
            return true;
        }
        if is_last {
            return false;
        }
        pause(Duration::from_millis(20));
    }
}

/// Lets time pass; ends the test when the user pressed Ctrl-C.
pub fn pause(duration: Duration) {
    if interrupt::sleep(duration).is_err() {
        panic!("interrupted");
    }
}
