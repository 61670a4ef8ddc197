//! The report of the library alone: its texts, charts, tables and verdicts, from the records.

use super::ground::NULL;
use super::{CLIENTS, DURABILITY, NO_DURABILITY, Provider, RATE};
use crate::frame::{
    Axis, BRACKETS, By, Cell, Chart, Claim, Comparison, Point, Preset, Record, Series, Side, State,
    Table, Verdict, Wanted, judge, shown, values,
};

/// The mode of Trireme that is compared with Galera: its default.
const DEFAULT_MODE: &str = "os";

/// The clients of each node at the point that some claims name.
const MIDDLE: u64 = 8;

/// "No bottleneck": the host alone must be this many times as fast.
const HOST_MARGIN: f64 = 5.0;

/// "Costs at most half": the ratio of that claim.
const HALF: f64 = 0.5;

/// The figures of charts and tables: name, text, digits.
const FIGURES: [(&str, &str, usize); 7] = [
    (RATE, "write-sets/s", 0),
    ("p50_us", "median latency, µs", 1),
    ("p99_us", "99th percentile of the latency, µs", 1),
    (
        "cpu_us_per_write_set",
        "processor time of all nodes per write-set, µs",
        1,
    ),
    (
        "switches_per_write_set",
        "voluntary context switches of all nodes per write-set",
        1,
    ),
    ("conflicts_per_s", "conflicts/s", 1),
    (
        "conflicts_percent",
        "write-sets that lost against another, %",
        2,
    ),
];

/// The number of figures, from the first, that have a chart.
const CHARTS: usize = 5;

pub fn description(experiment: &Provider) -> Vec<String> {
    let (load, nodes) = (experiment.load(), experiment.nodes());
    let pace = match load.rate {
        Some(rate) => format!(
            "All clients together begin {rate} write-sets per second; one that begins late counts from the moment when it was due."
        ),
        None => "Each client commits one write-set after the other.".to_string(),
    };
    let order = match experiment.preset() {
        Preset::Quick => {
            "In this quick pass each system runs all of its points before the next one starts."
        }
        _ => "Systems take turns at each point (A B C, A B C, ...), each time in fresh processes.",
    };
    vec![
        format!(
            "No article: this measures the library alone. {nodes} processes on this machine each load the same provider and form a \
             cluster. There is no database: a node's clients hand write-sets of two row keys and {} bytes to the library (append_key, \
             append_data, certify, commit_order_enter, commit_order_leave, release), and {} threads apply those of the other nodes in \
             commit order. {pace}",
            load.payload_bytes,
            experiment.appliers(),
        ),
        format!(
            "{} % of the write-sets change one of 16 rows that all nodes change; those of two nodes in flight at once are conflicts. \
             They are found by certification only: without a database nobody holds row locks, so nobody is aborted by force or \
             replayed.",
            load.hot_percent
        ),
        format!(
            "{} s per point after {} s that are not counted. {order} After every run all nodes must have committed the same \
             write-sets in the same order, and refused the same: each keeps a running hash. Latency is from append_key to the \
             return of release; processor time and context switches are of whole processes, host included. \"null\" is a \
             stand-in that replicates nothing and answers at once: the host's own floor. It is in the tables only.",
            load.seconds, load.warmup_seconds
        ),
        "repl.durability: with \"os\", the default, which names below leave out, a node acknowledges once its log is handed to the operating system, with \"disk\" once it is \
         flushed; with \"memory\" it writes it later. Galera has no such setting: its cache is mapped memory."
            .to_string(),
        BRACKETS.to_string(),
    ]
}

/// The label of a system with its mode in charts and tables; the default mode is left out.
fn label((system, mode): &(String, String)) -> String {
    match mode.as_str() {
        NO_DURABILITY | DEFAULT_MODE => system.clone(),
        mode => format!("{system} {mode}"),
    }
}

pub fn charts(records: &[Record], variants: &[(String, String)]) -> Vec<Chart> {
    let variants: Vec<&(String, String)> = variants.iter().filter(|v| v.0 != NULL).collect();
    let line = |variant: &(String, String), figure: &str| {
        let points = levels(records).into_iter().filter_map(|clients| {
            let all = values(records, &variant.0, figure, at(&variant.1, clients));
            Point::of(clients as f64, &all)
        });
        Series {
            name: label(variant),
            points: points.collect(),
        }
    };
    let mut charts: Vec<Chart> = FIGURES[..CHARTS]
        .iter()
        .map(|(figure, text, _)| Chart {
            title: text.to_string(),
            x: "clients of each node".to_string(),
            y: text.to_string(),
            axis: Axis::Doubling,
            series: variants.iter().map(|v| line(v, figure)).collect(),
        })
        .collect();
    charts.extend(
        levels(records)
            .into_iter()
            .filter_map(|clients| timeline(records, &variants, clients)),
    );
    charts
}

/// The chart of the seconds in the first repetition; None if they are too few for a line.
fn timeline(records: &[Record], variants: &[&(String, String)], clients: u64) -> Option<Chart> {
    let series = variants.iter().filter_map(|variant| {
        let here = |cell: &Cell| cell.system == variant.0 && at(&variant.1, clients)(cell);
        let record = records.iter().find(|r| r.complete && here(&r.cell))?;
        let seconds = record.measured.per_second.iter().enumerate();
        let points = seconds.map(|(second, n)| Point {
            x: second as f64,
            y: *n as f64,
            interval: None,
        });
        Some(Series {
            name: label(variant),
            points: points.collect(),
        })
    });
    let series: Vec<Series> = series.filter(|s| s.points.len() >= 3).collect();
    (!series.is_empty()).then(|| Chart {
        title: format!("write-sets in each second, {clients} clients of each node"),
        x: "second".to_string(),
        y: "write-sets".to_string(),
        axis: Axis::Linear,
        series,
    })
}

pub fn tables(records: &[Record], variants: &[(String, String)]) -> Vec<Table> {
    FIGURES
        .iter()
        .map(|(figure, text, digits)| Table {
            title: text.to_string(),
            header: std::iter::once(CLIENTS.to_string())
                .chain(variants.iter().map(label))
                .collect(),
            rows: levels(records)
                .into_iter()
                .map(|clients| {
                    let cells = variants.iter().map(|(system, mode)| {
                        shown(&values(records, system, figure, at(mode, clients)), *digits)
                    });
                    std::iter::once(clients.to_string()).chain(cells).collect()
                })
                .collect(),
        })
        .collect()
}

/// Our own claims. For most of them Galera is only the reference.
pub fn claims(records: &[Record], nodes: usize) -> Vec<Claim> {
    let yardstick = || Verdict {
        state: State::NotMeasured,
        evidence: "it is the yardstick".to_string(),
    };
    let beside_galera = |text: String, figure: &str, clients: &[u64], wanted: Wanted| Claim {
        text,
        galera: yardstick(),
        trireme: judge(
            &ratios(
                records,
                ("trireme", DEFAULT_MODE),
                ("galera", NO_DURABILITY),
                figure,
                clients,
            ),
            wanted,
        ),
    };
    let (middle, all) = (&[MIDDLE][..], levels(records));
    let point = format!("{nodes} nodes x {MIDDLE} clients");
    let (above, below) = (Wanted::Above(1.0), Wanted::Below(1.0));
    let host = |system, mode| {
        let parts = ratios(records, (NULL, NO_DURABILITY), (system, mode), RATE, &all);
        judge(&parts, Wanted::Above(HOST_MARGIN))
    };
    vec![
        beside_galera(
            format!(
                "Trireme commits at least as many write-sets per second as Galera ({point}; ratio)."
            ),
            RATE,
            middle,
            above,
        ),
        beside_galera(
            format!("It does so at every number of clients ({nodes} nodes; ratios by clients)."),
            RATE,
            &all,
            above,
        ),
        beside_galera(
            format!("Its 99th percentile is not above Galera's ({point}; ratio)."),
            "p99_us",
            middle,
            below,
        ),
        beside_galera(
            format!("It takes no more processor time per write-set than Galera ({point}; ratio)."),
            "cpu_us_per_write_set",
            middle,
            below,
        ),
        beside_galera(
            format!(
                "Its threads wait no more often per write-set than Galera's ({point}; ratio of context switches)."
            ),
            "switches_per_write_set",
            middle,
            below,
        ),
        flush_claim(records, &point),
        Claim {
            text: format!(
                "The host is no bottleneck: by itself it is at least {HOST_MARGIN} times as fast (null / system, by clients)."
            ),
            galera: host("galera", NO_DURABILITY),
            trireme: host("trireme", DEFAULT_MODE),
        },
    ]
}

/// The claim about the cost of a flush on a majority. Galera has no such mode.
fn flush_claim(records: &[Record], point: &str) -> Claim {
    Claim {
        text: format!(
            "A flush on a majority before each answer costs at most half of the write-sets per second ({point}; disk / os)."
        ),
        galera: Verdict {
            state: State::NotMeasured,
            evidence: "it has no such setting".to_string(),
        },
        trireme: judge(
            &ratios(
                records,
                ("trireme", "disk"),
                ("trireme", DEFAULT_MODE),
                RATE,
                &[MIDDLE],
            ),
            Wanted::Above(HALF),
        ),
    }
}

/// The ratios of one system and mode to another, at each of these numbers of clients.
fn ratios(
    records: &[Record],
    first: (&str, &str),
    second: (&str, &str),
    figure: &str,
    levels: &[u64],
) -> Vec<(String, Option<Comparison>)> {
    levels
        .iter()
        .map(|&clients| {
            let in_first = at(first.1, clients);
            let in_second = at(second.1, clients);
            let sides = (
                &Side {
                    system: first.0,
                    chosen: &in_first,
                },
                &Side {
                    system: second.0,
                    chosen: &in_second,
                },
            );
            let ratio = Comparison::of(records, sides, figure, By::Ratio);
            (format!("{clients} clients"), ratio)
        })
        .collect()
}

fn at(mode: &str, clients: u64) -> impl Fn(&Cell) -> bool + '_ {
    move |cell| cell.level(DURABILITY) == mode && cell.number(CLIENTS) == clients
}

fn levels(records: &[Record]) -> Vec<u64> {
    let mut all: Vec<u64> = records.iter().map(|r| r.cell.number(CLIENTS)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn record(system: &str, mode: &str, clients: u64, rate: f64) -> Record {
        let factors = [
            (CLIENTS, clients.to_string()),
            (DURABILITY, mode.to_string()),
        ];
        let mut record = fixtures::record(fixtures::cell(system, factors, 1), [(RATE, rate)]);
        record.measured.per_second = vec![1, 2, 3];
        record
    }

    fn states(records: &[Record]) -> Vec<(State, State)> {
        let all = claims(records, 3);
        all.iter()
            .map(|c| (c.galera.state, c.trireme.state))
            .collect()
    }

    #[test]
    fn claims_compare_the_default_mode_with_galera_and_the_host() {
        let mut records = vec![
            record("trireme", "os", 8, 120.0),
            record("trireme", "disk", 8, 50.0),
            record("galera", "none", 8, 100.0),
            record("null", "none", 8, 550.0),
        ];
        let found = states(&records);
        assert_eq!(found[0], (State::NotMeasured, State::Holds));
        assert_eq!(found[1].1, State::Holds);
        // No latencies were recorded.
        assert_eq!(found[2].1, State::NotMeasured);
        assert_eq!(found[5].1, State::Fails);
        assert_eq!(found[6], (State::Holds, State::Fails));
        // Slower with one client: no longer "every".
        records.push(record("trireme", "os", 1, 9.0));
        records.push(record("galera", "none", 1, 10.0));
        let found = states(&records);
        assert_eq!((found[0].1, found[1].1), (State::Holds, State::Fails));
    }

    #[test]
    fn the_stand_in_is_in_tables_but_in_no_chart() {
        let records = [
            record("galera", "none", 8, 100.0),
            record("null", "none", 8, 9000.0),
        ];
        let variants =
            [("galera", "none"), ("null", "none")].map(|(s, m)| (s.to_string(), m.to_string()));
        let charts = charts(&records, &variants);
        assert!(charts.iter().all(|chart| chart.series.len() == 1));
        // The figures, and the seconds.
        assert_eq!(charts.len(), CHARTS + 1);
        assert_eq!(tables(&records, &variants)[0].rows, [["8", "100", "9000"]]);
    }
}
