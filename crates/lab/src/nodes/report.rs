//! The texts and tables of the report.

use super::plan::{Plan, SCHEMA};
use super::points::{Factor, Point, limited_runs, points_of};
use super::{ABSENT, BUFFER_POOL_MIB, TPS, article};
use crate::client_processes::SATURATED;
use crate::frame::{BRACKETS, Preset, Record, Table, paired_ratios, shown, shown_ratio, values};
use crate::oltp::ROWS_CHOSEN;
use crate::stats::median;

/// The paragraphs above the results.
pub fn description(plan: &Plan) -> Vec<String> {
    let processors = std::thread::available_parallelism().map_or(0, |n| n.get());
    let rate = match plan.rate() {
        None => "as many transactions as it can".to_string(),
        Some(rate) => format!(
            "{rate} transactions/s. What the servers cannot take at once waits in the client's queue, and its latency includes \
             that wait. sysbench ends when 100,000 wait: such a run counts as saturated, with the seconds before. A run with \
             0.97 of the rate or more is limited by the rate: no verdict is settled by it, and the chart in % of one node leaves \
             out a system whose one node is limited"
        ),
    };
    let fresh = match plan.frame.preset() {
        Preset::Quick => {
            "In this quick pass each system runs all of its points before the next one starts, and points with the same servers share them."
        }
        _ => "Systems take turns at each point (A B, A B, ...), each time on fresh servers.",
    };
    let processors_of_nodes = match plan.frame.cpu_per_node {
        Some(share) => format!(
            "Each node has {share} of a processor, in a control group of its own, as the article's nodes had 2 processors each. The \
             nodes still share caches, memory and disk."
        ),
        None => "That is the great difference: in the article each node brought processors of its own, here further nodes share \
                 them and apply every commit once more. So falling throughput shows what a node costs, and cannot show what its \
                 processors give; --cpu-per-node can."
            .to_string(),
    };
    vec![
        "\"How does Galera Cluster behave with many nodes?\" (fromDual, 2025) ran MariaDB 11.4 with Galera on one to nine virtual \
         machines of 2 processors and 4 GiB, and sysbench oltp_read_write from one to six client machines, each with a schema and a \
         node of its own. It varied nodes, clients, threads, applier threads and run time in 35 runs."
            .to_string(),
        format!(
            "Here: all nodes and all clients on this one machine with {processors} processors. {processors_of_nodes} The network is \
             the loopback interface, without the delay of a real one."
        ),
        format!(
            "As in the article: binlog_format=row, innodb_autoinc_lock_mode=2, innodb_flush_log_at_trx_commit=2, no query cache, \
             wsrep_sst_method=rsync, wsrep_sst_auth set, a cluster name with a space, and an address list that names more hosts \
             than exist (here {}). Scaled: a buffer pool of {BUFFER_POOL_MIB} MiB for each node, which holds the data of all \
             clients; {} table of {} rows for each client, sysbench's default; {} s of warm-up that does not count. Each client \
             offers {rate}.",
            ABSENT.join(", "),
            SCHEMA.tables,
            SCHEMA.rows,
            plan.warmup(),
        ),
        format!(
            "The first level of each factor is the base, and the other levels are tried one at a time. Client 1 runs on node 1, \
             client 2 on node 2 and so on, in turns when there are more clients than nodes. {fresh} After every run all nodes held \
             the same rows in the schemas of all clients, or the run counts nowhere. The settings below are those of each system's \
             first point; nodes and applier threads follow the point."
        ),
        ROWS_CHOSEN.to_string(),
        BRACKETS.to_string(),
    ]
}

/// All tables.
pub fn tables(records: &[Record], systems: &[String]) -> Vec<Table> {
    vec![
        throughput(records, systems),
        beside_the_article(records, systems),
    ]
}

fn heads() -> Vec<String> {
    let mut heads: Vec<String> = Factor::ALL.map(|factor| factor.name().to_string()).into();
    heads.insert(3, "connections".to_string());
    heads
}

fn levels(point: Point) -> Vec<String> {
    let mut levels: Vec<String> = Factor::ALL.map(|f| point.level(f).to_string()).into();
    levels.insert(3, point.connections().to_string());
    levels
}

/// All points at which a system was measured, with that system.
fn rows<'a>(records: &[Record], systems: &'a [String]) -> Vec<(Point, &'a String)> {
    let of = |system: &'a String| {
        let points = points_of(records, system).into_iter();
        points.map(move |point| (point, system))
    };
    let mut rows: Vec<(Point, &String)> = systems.iter().flat_map(of).collect();
    // The sort is stable: systems keep their order.
    rows.sort_by_key(|(point, _)| *point);
    rows
}

fn throughput(records: &[Record], systems: &[String]) -> Table {
    let figures = [
        ("tps_sd", "sd of the seconds", 0),
        ("slowest_second", "slowest second, tx", 0),
        ("conflict_percent", "conflicts, %", 2),
        ("p50_ms", "median, ms", 1),
        ("p95_ms", "95th percentile, ms", 1),
        ("p99_ms", "99th percentile, ms", 1),
        ("least_to_most_client", "slowest / fastest client", 2),
        ("server_cpu_ms_per_tx", "servers, CPU ms per tx", 2),
        ("client_cpu_ms_per_tx", "clients, CPU ms per tx", 2),
    ];
    let mut header = vec!["system".to_string()];
    header.extend(heads());
    header.push("tx/s".to_string());
    header.extend(figures.iter().map(|(_, name, _)| name.to_string()));
    header.extend(["saturated runs", "runs limited by the rate"].map(String::from));
    let row = |(point, system): (Point, &String)| {
        let of = |figure: &str| values(records, system, figure, |cell| Point::of(cell) == point);
        let mut row = vec![system.clone()];
        row.extend(levels(point));
        row.push(shown(&of(TPS), 0));
        row.extend(
            figures
                .iter()
                .map(|(figure, _, digits)| middle(&of(figure), *digits)),
        );
        let saturated = of(SATURATED);
        let full = saturated.iter().filter(|clients| **clients > 0.0).count();
        row.push(format!("{full} of {}", saturated.len()));
        row.push(limited_runs(records, system, point).to_string());
        row
    };
    Table {
        title: "All points (medians)".to_string(),
        header,
        rows: rows(records, systems).into_iter().map(row).collect(),
    }
}

/// Only the median, because a row holds many figures.
fn middle(values: &[f64], digits: usize) -> String {
    median(values).map_or("-".to_string(), |value| format!("{value:.digits$}"))
}

/// Our figures beside the article's, at the points that both have, for any length of the run; and relative to each
/// other.
fn beside_the_article(records: &[Record], systems: &[String]) -> Table {
    let mut header = heads();
    header.extend(systems.iter().map(|system| format!("{system}, tx/s")));
    header.extend(["trireme / galera", "article, tx/s"].map(String::from));
    let mut points: Vec<Point> = rows(records, systems).into_iter().map(|(p, _)| p).collect();
    points.dedup();
    let row = |point: Point| {
        let here = |cell: &crate::frame::Cell| Point::of(cell) == point;
        let mut row = levels(point);
        row.extend(
            systems
                .iter()
                .map(|s| shown(&values(records, s, TPS, here), 0)),
        );
        let mut ratio = shown_ratio(&paired_ratios(records, ("trireme", "galera"), TPS, here));
        let is_limited = |system| limited_runs(records, system, point) > 0;
        if is_limited("trireme") || is_limited("galera") {
            ratio += " (limited by the rate)";
        }
        row.push(ratio);
        row.push(article::figure(point).map_or("-".to_string(), |tps| format!("{tps:.1}")));
        row
    };
    Table {
        title: "Beside the article, whose runs took 120 or 180 s on 2 processors for each node"
            .to_string(),
        header,
        rows: points.into_iter().map(row).collect(),
    }
}
