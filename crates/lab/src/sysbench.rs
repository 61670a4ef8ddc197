//! `trireme bench sysbench`: sysbench `oltp_read_write` on all nodes at once, system against system.
//!
//! Runs of the systems take turns (A B A B ...), each on a fresh cluster of its own, so that a slow minute of the machine
//! hits both. After every run all nodes must hold the same rows.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::measurement::{Measurement, ServerTotals};
use super::stats::{geometric_mean, median};
use trireme_testbed::ClusterError;
use trireme_testbed::cluster::{Cluster, make_private_dir};
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::node::Node;
use trireme_testbed::output::line;
use trireme_testbed::process;
use trireme_testbed::settings::{Settings, default_dir};
use trireme_testbed::sysbench::{Load, Sysbench, SysbenchError};
use trireme_testbed::sysbench_report::Summary;
use trireme_testbed::systems::Wsrep;
use trireme_testbed::table;
use trireme_testbed::verify::{VerifyError, verify_identical};

/// What to measure.
pub struct Plan {
    /// The systems; ratios are against the last.
    pub systems: Vec<Wsrep>,
    /// Cluster sizes.
    pub nodes: Vec<usize>,
    /// Table sizes.
    pub rows: Vec<usize>,
    /// Client threads per node.
    pub threads_per_node: usize,
    /// Length of a measurement.
    pub seconds: u64,
    /// Load before each measurement.
    pub warmup_seconds: u64,
    /// Measurements of each system at each point.
    pub pairs: usize,
    /// CSV file, a line per measurement.
    pub out: Option<PathBuf>,
}

/// Why a benchmark ended early.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A cluster did not do what it should.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The load failed.
    #[error(transparent)]
    Sysbench(#[from] SysbenchError),
    /// Nodes differ after a run.
    #[error("{system}, {nodes} nodes, {rows} rows: {source}")]
    Verify {
        /// The system's name.
        system: String,
        /// Cluster size.
        nodes: usize,
        /// Table size.
        rows: usize,
        /// What was found.
        source: Box<VerifyError>,
    },
    /// A file made trouble.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Runs the plan; prints each measurement, then the table of medians; returns the measurements. What was measured before a failure is in the file.
pub fn run(plan: &Plan) -> Result<Vec<Measurement>, BenchError> {
    let mut csv = match &plan.out {
        Some(path) => Some((path, File::create(path).map_err(io_error(path))?)),
        None => None,
    };
    if let Some((path, file)) = &mut csv {
        writeln!(file, "{}", Measurement::CSV_HEADER).map_err(io_error(path))?;
    }
    let mut all = Vec::new();
    for &rows in &plan.rows {
        let template = template(rows)?;
        for &nodes in &plan.nodes {
            for pair in 1..=plan.pairs {
                for system in plan.systems.iter().filter(|system| system.runs_with(nodes)) {
                    interrupt::check()?;
                    let m = measure(plan, system, &template, (rows, nodes, pair))?;
                    line(&format!(
                        "{rows} rows, {nodes} node(s), pair {pair}, {}: {:.0} tps, {:.0} conflicts/s, p95 {:.1} ms, \
                         offices taken needlessly: {}",
                        m.system, m.tps, m.conflicts_per_s, m.p95_ms, m.offices_needless
                    ));
                    if let Some((path, file)) = &mut csv {
                        writeln!(file, "{}", m.csv_line()).map_err(io_error(path))?;
                    }
                    all.push(m);
                }
            }
        }
    }
    line(&format!("\n{}", report(plan, &all)));
    Ok(all)
}

/// Where templates and running clusters lie.
pub(crate) fn work_dir() -> PathBuf {
    let mut name = default_dir().into_os_string();
    name.push("-bench");
    name.into()
}

/// A data directory with an empty database, made once and kept for later invocations.
pub(crate) fn empty_template() -> Result<PathBuf, ClusterError> {
    make_private_dir(&work_dir())?;
    let template = work_dir().join("template-empty");
    if !template.exists() {
        let dir = work_dir().join(format!("prepare-{}", std::process::id()));
        // Lays it out whole before it gets its name.
        let cluster = Cluster::create(Settings::new(dir, 1, None), |_| {})?;
        let made = fs::rename(cluster.node(0).datadir(), &template);
        cluster.delete()?;
        made.map_err(|source| ClusterError::Io {
            action: "make",
            path: template.clone(),
            source,
        })?;
    }
    Ok(template)
}

/// A data directory with the prepared table, made once and kept for later invocations.
pub(crate) fn template(rows: usize) -> Result<PathBuf, BenchError> {
    make_private_dir(&work_dir())?;
    let template = work_dir().join(format!("template-oltp-{rows}"));
    if template.exists() {
        return Ok(template);
    }
    line(&format!("preparing a table of {rows} rows"));
    let dir = work_dir().join(format!("prepare-{}", std::process::id()));
    let mut cluster = Cluster::create(Settings::new(dir, 1, None), |_| {})?;
    cluster.start()?;
    Load::read_write(1, rows, 1).prepare(cluster.node(0))?;
    cluster.stop()?;
    fs::rename(cluster.node(0).datadir(), &template).map_err(io_error(&template))?;
    cluster.delete()?;
    Ok(template)
}

fn measure(
    plan: &Plan,
    system: &Wsrep,
    template: &Path,
    (rows, nodes, pair): (usize, usize, usize),
) -> Result<Measurement, BenchError> {
    let dir = work_dir().join(format!("run-{}", std::process::id()));
    let mut settings = Settings::new(dir, nodes, system.provider.clone());
    settings.template = Some(template.to_path_buf());
    let mut cluster = Cluster::create(settings, |_| {})?;
    let result = run_system(plan, system, &mut cluster, (rows, pair));
    // Nobody needs these data any more: no orderly shutdown.
    cluster.kill()?;
    if result.is_ok() || interrupt::check().is_err() {
        cluster.delete()?;
    } else {
        line(&format!(
            "the logs are in {}/node*/error.log",
            cluster.settings().dir.display()
        ));
    }
    result
}

fn run_system(
    plan: &Plan,
    system: &Wsrep,
    cluster: &mut Cluster,
    (rows, pair): (usize, usize),
) -> Result<Measurement, BenchError> {
    cluster.start()?;
    let nodes = cluster.nodes().len();
    let load = Load::read_write(1, rows, plan.threads_per_node);
    // The systems of a pair get the same random numbers.
    let seed = pair as u32 * 1000;
    if plan.warmup_seconds > 0 {
        run_load(cluster.nodes(), &load, plan.warmup_seconds, seed + 500)?;
    }
    let before = server_totals(cluster)?;
    let summaries = run_load(cluster.nodes(), &load, plan.seconds, seed)?;
    let servers = server_totals(cluster)?.since(before);
    verify_identical(cluster, &[load.database]).map_err(|source| BenchError::Verify {
        system: system.name.clone(),
        nodes,
        rows,
        source: Box::new(source),
    })?;
    Ok(Measurement::new(
        &system.name,
        (rows, nodes, pair),
        &summaries,
        servers,
    ))
}

/// Runs the load on `nodes` at once; `seed` and those after it are their random numbers' begin.
pub(crate) fn run_load(
    nodes: &[Node],
    load: &Load,
    seconds: u64,
    seed: u32,
) -> Result<Vec<Summary>, BenchError> {
    let duration = Duration::from_secs(seconds);
    let starts = nodes
        .iter()
        .zip(seed..)
        .map(|(node, seed)| load.start(node, Some(duration), seed + 1));
    let mut runs = starts.collect::<Result<Vec<Sysbench>, _>>()?;
    while !runs.iter_mut().all(Sysbench::has_ended) {
        interrupt::sleep(Duration::from_millis(100))?;
    }
    Ok(runs
        .into_iter()
        .map(Sysbench::finish)
        .collect::<Result<_, _>>()?)
}

fn server_totals(cluster: &Cluster) -> Result<ServerTotals, ClusterError> {
    let mut totals = ServerTotals::default();
    for node in cluster.nodes() {
        totals.cpu_ms += node.pid().and_then(process::cpu_ms).unwrap_or(0);
        let mut sql = node.sql()?;
        let needless = sql
            .status("wsrep_trireme_offices_needless")
            .map_err(|source| node.sql_error(source))?;
        totals.offices_needless += needless.and_then(|n| n.parse().ok()).unwrap_or(0);
    }
    Ok(totals)
}

/// The table of medians, and the geometric mean of the ratios of each system to the last one.
fn report(plan: &Plan, all: &[Measurement]) -> String {
    let Some(base) = plan.systems.last() else {
        return String::new();
    };
    let mut lines = Vec::new();
    let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for &rows in &plan.rows {
        for &nodes in &plan.nodes {
            let of = |name: &str, value: fn(&Measurement) -> f64| -> Vec<f64> {
                let here = all
                    .iter()
                    .filter(|m| m.rows == rows && m.nodes == nodes && m.system == name);
                here.map(value).collect()
            };
            for system in &plan.systems {
                let Some(tps) = median(&of(&system.name, |m| m.tps)) else {
                    continue;
                };
                let shown = |value: fn(&Measurement) -> f64, digits: usize| {
                    median(&of(&system.name, value))
                        .map_or("-".to_string(), |v| format!("{v:.digits$}"))
                };
                // Paired: the median of the ratios, not the ratio of the medians.
                let pairs: Vec<f64> = of(&system.name, |m| m.tps)
                    .iter()
                    .zip(of(&base.name, |m| m.tps))
                    .filter(|(_, base)| *base > 0.0)
                    .map(|(own, base)| own / base)
                    .collect();
                let ratio = median(&pairs).filter(|_| system != base);
                ratios.entry(&system.name).or_default().extend(ratio);
                let own_share = median(&of(&system.name, Measurement::conflicts_per_commit));
                let base_share = median(&of(&base.name, Measurement::conflicts_per_commit));
                let conflict_ratio = match (own_share, base_share) {
                    (Some(own), Some(other)) if other > 0.0 && system != base => {
                        format!("{:.2}", own / other)
                    }
                    _ => "-".to_string(),
                };
                lines.push(vec![
                    rows.to_string(),
                    nodes.to_string(),
                    system.name.clone(),
                    format!("{tps:.0}"),
                    ratio.map_or("-".to_string(), |r| format!("{r:.2}")),
                    shown(|m| m.conflicts_per_s, 1),
                    shown(Measurement::conflicts_per_commit, 3),
                    conflict_ratio,
                    shown(|m| m.p95_ms, 1),
                    shown(|m| m.cpu_ms_per_commit, 2),
                ]);
            }
        }
    }
    let header = [
        "rows",
        "nodes",
        "system",
        "tps",
        "ratio",
        "conflicts/s",
        "per commit",
        "ratio",
        "p95 ms",
        "cpu ms/commit",
    ];
    let mut text = table::render(&header, &lines) + "\n";
    for (name, ratios) in ratios {
        if let Some(mean) = geometric_mean(&ratios) {
            text += &format!(
                "{name} / {}: geometric mean of the tps ratios {mean:.2}\n",
                base.name
            );
        }
    }
    text
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> BenchError {
    let path = path.to_path_buf();
    move |source| BenchError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(names: &[&str]) -> Plan {
        let systems = names
            .iter()
            .map(|n| Wsrep {
                name: n.to_string(),
                provider: None,
            })
            .collect();
        Plan {
            systems,
            nodes: vec![1],
            rows: vec![10],
            threads_per_node: 1,
            seconds: 1,
            warmup_seconds: 0,
            pairs: 1,
            out: None,
        }
    }

    fn measured(system: &str, pair: usize, transactions: u64) -> Measurement {
        let s = Summary {
            transactions,
            conflicts: 10,
            seconds: 1.0,
            mean_ms: 1.0,
            p95_ms: 2.0,
        };
        Measurement::new(system, (10, 1, pair), &[s], ServerTotals::default())
    }

    #[test]
    fn ratios_are_medians_of_pairs() {
        let all = [
            measured("a", 1, 200),
            measured("b", 1, 100),
            measured("a", 2, 300),
            measured("b", 2, 100),
            measured("a", 3, 100),
            measured("b", 3, 100),
        ];
        let text = report(&plan(&["a", "b"]), &all);
        assert!(
            text.contains("a / b: geometric mean of the tps ratios 2.00"),
            "{text}"
        );
        assert!(!text.contains("b / b"), "{text}");
    }

    #[test]
    fn nothing_measured_gives_an_empty_table() {
        assert_eq!(report(&plan(&["a", "b"]), &[]).trim().lines().count(), 1);
    }
}
