//! The texts and tables of the report.

use std::collections::BTreeMap;

use trireme_testbed::systems::plain_of;

use super::figures::{DEADLOCKS_PER_S, ERRORS, OTHER_ERRORS, TX_PER_S, commits_of_node};
use super::plan::{ARTICLE_THREADS, PLAIN, Plan};
use super::points::{Part, Point, best_threads, points_of};
use crate::frame::{
    BRACKETS, Cell, Place, Record, Side, Table, beside_galera, ratios, several_builds, shown,
    shown_ratio, values,
};
use crate::oltp::ROWS_CHOSEN;
use crate::stats::median;

/// A row of the article: transactions/s, deadlocks/s, mean and 95th percentile in ms.
pub struct ArticleRow {
    /// Rows of the table.
    pub rows: u32,
    /// The plain server.
    pub plain: (f64, f64, f64, f64),
    /// Galera on four nodes.
    pub four_nodes: (f64, f64, f64, f64),
}

/// The article's figures.
pub const ARTICLE: [ArticleRow; 3] = [
    ArticleRow {
        rows: 10_000,
        plain: (164.92, 0.02, 36.4, 55.6),
        four_nodes: (323.37, 109.51, 74.2, 157.0),
    },
    ArticleRow {
        rows: 50_000,
        plain: (168.49, 0.0, 35.6, 54.8),
        four_nodes: (388.51, 27.42, 61.7, 104.5),
    },
    ArticleRow {
        rows: 100_000,
        plain: (169.54, 0.0, 35.4, 54.2),
        four_nodes: (401.78, 14.59, 59.7, 94.3),
    },
];

/// The paragraphs above the results.
pub fn description(plan: &Plan) -> Vec<String> {
    let threads = match (plan.threads, plan.sweep_cells().is_empty()) {
        (Some(n), _) => format!("{n} threads per node, as asked for"),
        (None, true) => format!(
            "{ARTICLE_THREADS} threads per node, as in the article, since the plain server was not measured"
        ),
        (None, false) => "the plain server's best number of threads on every node".to_string(),
    };
    vec![
        "\"How Much Can Galera Sysbench?\" (Codership, 2008) ran sysbench's read-write transactions on 1 to 4 nodes and on a plain \
         server, MySQL 5.1, with tables of 10,000 to 100,000 rows and 300 s per point. Its nodes and its client were machines of \
         their own. Six threads were the plain server's best, and so every node got six."
            .to_string(),
        format!(
            "Here: sysbench 1.0, oltp_read_write --auto_inc=off, {} s per point after {} s of warm-up that are not counted; {threads}. \
             One sysbench connects its threads to all nodes in turns, through unix sockets. All servers and the clients share this \
             machine unless --cpu-per-node gives each its part. Nothing waits for a disk (innodb_flush_log_at_trx_commit=0).",
            plan.seconds(),
            plan.warmup().as_secs(),
        ),
        "A transaction that meets error 1213, 1020, 1205 or 1062 begins again with new random numbers; the clients count each by its \
         number. Deadlocks are the errors 1213: InnoDB's own, failed certifications, and transactions rolled back in favour of \
         another node's. After every run the rows of all nodes were compared. Systems took turns at each point, each time on fresh \
         servers and with the same random numbers."
            .to_string(),
        format!(
            "{ROWS_CHOSEN} \"COMMITs asked for\" counts the statements of clients, also those that failed certification."
        ),
        BRACKETS.to_string(),
    ]
}

/// All tables.
pub fn tables(records: &[Record], systems: &[String]) -> Vec<Table> {
    let rows = rows(records, systems);
    let mut tables = vec![
        sweep(records),
        throughput(records, &rows),
        against_galera(records, &rows),
        errors(records, &rows),
        statistics(records, &rows),
    ];
    tables.retain(|table| !table.rows.is_empty());
    tables.push(article());
    tables
}

/// A system at a point.
struct Row {
    system: String,
    point: Point,
}

impl Row {
    fn values(&self, records: &[Record], figure: &str) -> Vec<f64> {
        values(records, &self.system, figure, |cell| self.point.has(cell))
    }

    fn shown(&self, records: &[Record], figure: &str, digits: usize) -> String {
        shown(&self.values(records, figure), digits)
    }

    fn heads(&self) -> Vec<String> {
        vec![
            self.point.rows.to_string(),
            self.point.nodes.to_string(),
            self.system.clone(),
        ]
    }

    /// The ratio of the throughput to that of the plain server of its program, by repetition.
    fn to_plain(&self, records: &[Record]) -> BTreeMap<u32, f64> {
        let reference = self.point.reference();
        let own = Side {
            system: &self.system,
            chosen: &|cell: &Cell| self.point.has(cell),
        };
        let other = Side {
            system: plain_of(&self.system),
            chosen: &|cell: &Cell| reference.has(cell),
        };
        ratios(records, (&own, &other), TX_PER_S)
    }
}

const HEADS: [&str; 3] = ["rows", "nodes", "system"];

fn rows(records: &[Record], systems: &[String]) -> Vec<Row> {
    let mut rows: Vec<Row> = systems
        .iter()
        .flat_map(|system| {
            let points = points_of(records, system, Part::Run).into_iter();
            points.map(|point| Row {
                system: system.clone(),
                point,
            })
        })
        .collect();
    rows.sort_by_key(|row| row.point);
    rows
}

/// A table with a column for each figure: its name, its heading, its digits.
fn columns(
    title: &str,
    records: &[Record],
    rows: &[Row],
    figures: &[(&str, &str, usize)],
) -> Table {
    let mut header: Vec<String> = HEADS.map(String::from).to_vec();
    header.extend(figures.iter().map(|(_, heading, _)| heading.to_string()));
    let body = rows.iter().map(|row| {
        let mut cells = row.heads();
        let figures = figures.iter();
        cells.extend(figures.map(|(figure, _, digits)| row.shown(records, figure, *digits)));
        cells
    });
    Table {
        title: title.to_string(),
        rows: body.collect(),
        header,
    }
}

fn sweep(records: &[Record]) -> Table {
    let best = best_threads(records);
    let points = points_of(records, PLAIN, Part::Sweep);
    let swept = |r: &&Record| points.iter().any(|point| point.has(&r.cell));
    let mixed = several_builds(
        records
            .iter()
            .filter(|r| r.cell.system == PLAIN)
            .filter(swept),
    );
    let mixed = mixed.map_or(String::new(), |builds| {
        format!(" (the best number mixes {builds})")
    });
    let rows = points.iter().map(|&point| {
        let row = Row {
            system: PLAIN.to_string(),
            point,
        };
        vec![
            point.threads.to_string(),
            row.shown(records, TX_PER_S, 0),
            row.shown(records, "mean_ms", 1),
            row.shown(records, "p95_ms", 1),
            match best == Some(point.threads) {
                true => "best".to_string(),
                false => String::new(),
            },
        ]
    });
    Table {
        title: format!("Thread sweep on the plain server{mixed}"),
        header: [
            "threads",
            "transactions/s",
            "mean, ms",
            "95th percentile, ms",
            "",
        ]
        .map(String::from)
        .to_vec(),
        rows: rows.collect(),
    }
}

fn throughput(records: &[Record], rows: &[Row]) -> Table {
    let figures = [
        (TX_PER_S, "transactions/s", 0),
        (DEADLOCKS_PER_S, "deadlocks/s", 2),
        ("deadlocks_per_commit", "deadlocks per commit", 4),
        ("mean_ms", "mean, ms", 1),
        ("p95_ms", "95th percentile, ms", 1),
        ("slowest_second", "slowest second, tx", 0),
        ("server_cpu_ms_per_tx", "servers, CPU ms per tx", 2),
        ("client_cpu_ms_per_tx", "clients, CPU ms per tx", 2),
    ];
    let mut table = columns("Throughput", records, rows, &figures);
    table.header.insert(3, "threads per node".to_string());
    table.header.push("ratio to plain".to_string());
    for (row, cells) in rows.iter().zip(&mut table.rows) {
        cells.insert(3, row.point.threads.to_string());
        cells.push(shown_ratio(&row.to_plain(records)));
    }
    table
}

/// Trireme beside Galera at each point.
fn against_galera(records: &[Record], rows: &[Row]) -> Table {
    let own = rows.iter().filter(|row| row.system == "trireme");
    let places = own.map(|row| Place {
        levels: vec![row.point.rows.to_string(), row.point.nodes.to_string()],
        has: Box::new(|cell| row.point.has(cell)),
    });
    let figures = [
        (TX_PER_S, "transactions/s"),
        ("deadlocks_per_commit", "deadlocks per commit"),
        ("p95_ms", "95th percentile"),
        ("server_cpu_ms_per_tx", "servers, CPU per tx"),
    ];
    let places: Vec<Place> = places.collect();
    beside_galera(records, &["rows", "nodes"], &places, &figures)
}

fn errors(records: &[Record], rows: &[Row]) -> Table {
    let mut figures: Vec<(&str, &str, usize)> = ERRORS
        .iter()
        .zip([
            "deadlocks (1213; of MySQL also 1180, 3101)",
            "snapshot errors (1020)",
            "lock-wait timeouts (1205)",
            "duplicates (1062)",
        ])
        .map(|((_, figure), heading)| (*figure, heading, 0))
        .collect();
    figures.extend([
        (OTHER_ERRORS, "others", 0),
        ("ignored_errors", "all, as sysbench counts", 0),
        (
            "certification_failures",
            "servers: failed certifications",
            0,
        ),
        ("brute_force_aborts", "servers: aborts for another node", 0),
        ("innodb_deadlocks", "servers: InnoDB deadlocks", 0),
        ("leader_changes_needless", "needless leader changes", 0),
    ]);
    columns("Errors of a run, told apart", records, rows, &figures)
}

fn statistics(records: &[Record], rows: &[Row]) -> Table {
    let figures = [
        ("queries_read", "queries: read", 0),
        ("queries_write", "write", 0),
        ("queries_other", "other", 0),
        ("queries_total", "total", 0),
        ("transactions", "transactions", 0),
        ("deadlocks", "deadlocks", 0),
        ("reconnects", "reconnects", 0),
        ("min_ms", "request: min, ms", 2),
        ("mean_ms", "avg, ms", 2),
        ("max_ms", "max, ms", 1),
        ("p95_ms", "95th percentile, ms", 2),
        ("thread_events_mean", "events per thread: avg", 1),
        ("thread_events_sd", "stddev", 2),
        ("thread_execution_mean_s", "execution time: avg, s", 2),
        ("thread_execution_sd_s", "stddev, s", 3),
    ];
    let mut table = columns("The statistics of sysbench", records, rows, &figures);
    table.header.push("COMMITs asked for by node".to_string());
    for (row, cells) in rows.iter().zip(&mut table.rows) {
        let nodes = 1..=usize::from(row.point.nodes);
        let commits = nodes.filter_map(|i| median(&row.values(records, &commits_of_node(i))));
        let texts: Vec<String> = commits.map(|commits| format!("{commits:.0}")).collect();
        cells.push(texts.join(" / "));
    }
    table
}

fn article() -> Table {
    let rows = ARTICLE.iter().map(|row| {
        let side = |(tx, deadlocks, mean, p95): (f64, f64, f64, f64)| {
            format!("{tx:.2} ({deadlocks:.2}; {mean:.1} / {p95:.1})")
        };
        vec![
            row.rows.to_string(),
            side(row.plain),
            side(row.four_nodes),
            format!("{:.2}", row.four_nodes.0 / row.plain.0),
        ]
    });
    let header = [
        "rows",
        "plain: transactions/s (deadlocks/s; mean / 95th percentile, ms)",
        "Galera, 4 nodes",
        "ratio",
    ];
    Table {
        title: "The article's figures".to_string(),
        header: header.map(String::from).to_vec(),
        rows: rows.collect(),
    }
}
