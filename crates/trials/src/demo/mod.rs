//! `trireme demo`: runs three nodes under load, kills one, starts it again, and checks that all hold the same rows.

mod display;
mod ledger;
mod traffic;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use display::Display;
use ledger::Ledger;
use traffic::Traffic;
use trireme_testbed::ClusterError;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::output::{line, piece};
use trireme_testbed::settings::Settings;
use trireme_testbed::sysbench::{Load, SysbenchError};
use trireme_testbed::table;
use trireme_testbed::verify::{Identical, VerifyError, verify_identical};

/// How the demo runs.
pub struct DemoOptions {
    /// The wsrep provider.
    pub provider: PathBuf,
    /// Keep the cluster running at the end.
    pub keep: bool,
    /// The directory of the cluster.
    pub dir: PathBuf,
    /// Number of tables.
    pub tables: usize,
    /// Rows per table.
    pub rows: usize,
    /// Client threads per node.
    pub threads: usize,
    /// Length of the load before the kill, and again after the return, in seconds.
    pub all_seconds: u64,
    /// Length of the load without the killed node, in seconds.
    pub without_seconds: u64,
}

impl DemoOptions {
    /// The settings of `make demo`.
    pub fn new(provider: PathBuf) -> Self {
        Self {
            provider,
            keep: false,
            dir: std::env::temp_dir().join(format!("trireme-demo-{}", std::process::id())),
            tables: 4,
            rows: 10_000,
            threads: 4,
            all_seconds: 10,
            without_seconds: 15,
        }
    }
}

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A node did not do what it should.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The load failed.
    #[error(transparent)]
    Sysbench(#[from] SysbenchError),
    /// The nodes differ.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The other nodes did not go on after the kill.
    #[error("{node} committed nothing in the last seconds before the killed node came back")]
    Stalled {
        /// The node's name.
        node: String,
    },
    /// Acknowledged commits are missing.
    #[error("{missing} of {acknowledged} acknowledged inserts are MISSING, such as {example}")]
    Lost {
        /// Number of acknowledged inserts.
        acknowledged: usize,
        /// Number of missing inserts.
        missing: usize,
        /// One of them.
        example: String,
    },
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

const NODES: usize = 3;

/// The node that is killed: the last.
const VICTIM: usize = NODES - 1;

/// The result of the run.
struct Outcome {
    identical: Identical,
    acknowledged: usize,
    longest_gap: Duration,
    return_time: Duration,
}

/// Runs the demo. Stops its servers at the end, unless the user keeps them; after a failure the logs stay.
pub fn run(options: &DemoOptions) -> Result<(), DemoError> {
    let began = Instant::now();
    let mut display = Display::new();
    display.event(&format!("provider {}", options.provider.display()));
    let settings = Settings::new(&options.dir, NODES, Some(options.provider.clone()));
    let mut cluster = Cluster::create_or_clear(settings, |_| {})?;
    match play(options, &mut cluster, &mut display) {
        Ok(outcome) => {
            print_outcome(&cluster, &outcome, began.elapsed());
            finish(options, cluster)
        }
        Err(error) => {
            display.end();
            let stopped = cluster.stop();
            if interrupt::check().is_err() {
                stopped.and_then(|()| cluster.delete())?;
            } else {
                line(&format!(
                    "the logs are in {}/node*/error.log",
                    options.dir.display()
                ));
            }
            Err(error)
        }
    }
}

fn play(
    options: &DemoOptions,
    cluster: &mut Cluster,
    display: &mut Display,
) -> Result<Outcome, DemoError> {
    display.event(&format!("starting {NODES} nodes"));
    cluster.bootstrap_node(0)?;
    for i in 1..NODES {
        cluster.start_node(i)?;
    }
    let ports: Vec<String> = cluster
        .nodes()
        .iter()
        .map(|node| node.ports.mysql.to_string())
        .collect();
    display.event(&format!("all synced, SQL on ports {}", ports.join(", ")));

    let load = Load::read_write(options.tables, options.rows, options.threads);
    display.event(&format!(
        "filling {} tables with {} rows each",
        options.tables, options.rows
    ));
    load.prepare(cluster.node(0))?;
    ledger::prepare(cluster)?;

    display.event(
        "writing on all nodes: sysbench oltp_read_write, and a ledger of acknowledged inserts",
    );
    display.event(
        "each second, per node: commits/s, conflicts/s, 95th percentile of the latency in ms",
    );
    let ledger = Ledger::start(cluster);
    let mut traffic = Traffic::start(load, cluster)?;
    traffic.watch(display, options.all_seconds)?;

    let victim = cluster.node(VICTIM).name.clone();
    cluster.kill_node(VICTIM)?;
    let killed = Instant::now();
    traffic.stop(VICTIM);
    display.event(&format!("{victim} killed with -9"));
    traffic.watch(display, options.without_seconds)?;
    let gap_end = Instant::now();
    // Detection takes seconds; by now the other nodes must have gone on.
    let recently = gap_end - Duration::from_secs(3);
    if let Some(i) = (0..NODES).find(|i| *i != VICTIM && !ledger.has_commit_since(*i, recently)) {
        return Err(DemoError::Stalled {
            node: cluster.node(i).name.clone(),
        });
    }

    traffic.set_idle_text("joining");
    display.event(&format!(
        "{victim} starts again: recovers its position, joins, catches up"
    ));
    let restarted = Instant::now();
    start_beside_load(cluster, &mut traffic, display)?;
    let return_time = restarted.elapsed();
    traffic.resume(VICTIM, cluster)?;
    display.event(&format!("{victim} is synced and takes load again"));
    traffic.watch(display, options.all_seconds)?;

    display.event("load stopped; comparing all tables on all nodes");
    traffic.stop_all();
    let longest_gap = ledger.longest_gap(killed, gap_end, VICTIM);
    let acknowledged = ledger.finish();
    let identical = verify_identical(cluster, &["sbtest", ledger::DATABASE])?;
    ledger::check(cluster, &acknowledged)?;
    Ok(Outcome {
        identical,
        acknowledged: acknowledged.len(),
        longest_gap,
        return_time,
    })
}

/// Starts the killed node again, while the others take load.
fn start_beside_load(
    cluster: &mut Cluster,
    traffic: &mut Traffic,
    display: &mut Display,
) -> Result<(), DemoError> {
    thread::scope(|scope| {
        let start = scope.spawn(|| cluster.start_node(VICTIM));
        while !start.is_finished() {
            traffic.tick(display)?;
        }
        // A panic in that thread is a bug of ours; let it through.
        start
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(())
    })
}

fn print_outcome(cluster: &Cluster, outcome: &Outcome, total: Duration) {
    line("");
    let rows: Vec<Vec<String>> = outcome
        .identical
        .tables
        .iter()
        .map(|sum| {
            let name = sum.table.replace('`', "");
            vec![
                name,
                sum.rows.to_string(),
                sum.checksum.clone(),
                "identical".to_string(),
            ]
        })
        .collect();
    piece(&table::render(
        &["table", "rows", "checksum", "on all nodes"],
        &rows,
    ));
    line("");
    line(&format!(
        "last committed on all nodes:           {}",
        outcome.identical.last_committed
    ));
    line(&format!(
        "acknowledged ledger inserts, missing:  {}, 0",
        outcome.acknowledged
    ));
    line(&format!(
        "longest gap in the others' commits:    {:.1} s",
        outcome.longest_gap.as_secs_f64()
    ));
    line(&format!(
        "restart of the killed node to synced:  {:.1} s",
        outcome.return_time.as_secs_f64()
    ));
    line(&format!(
        "PASSED in {:.0} s on {} nodes",
        total.as_secs_f64(),
        cluster.nodes().len()
    ));
    line("");
}

fn finish(options: &DemoOptions, mut cluster: Cluster) -> Result<(), DemoError> {
    if options.keep {
        line("the cluster stays up; connect:");
        for node in cluster.nodes() {
            line(&format!("  {}", node.connect_command()));
        }
        let dir = cluster.settings().dir.display();
        line(&format!("look:  trireme cluster status --dir {dir}"));
        line(&format!("stop:  trireme cluster down --delete --dir {dir}"));
        cluster.detach();
        return Ok(());
    }
    line("stopping (KEEP=1 leaves it up and says how to connect)");
    cluster.stop()?;
    cluster.delete()?;
    Ok(())
}
