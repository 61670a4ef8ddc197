//! The texts and tables of the report.

use trireme_testbed::systems::plain_of;

use super::consistency::CONDITIONS;
use super::figures::{
    LOAD_S, NOTPM, OLDEST_UNFINISHED_MS, SLOWEST_CLIENT_PERCENT, TX_PER_S, of_condition, of_kind,
};
use super::input::Kind;
use super::loader;
use super::plan::Plan;
use super::points::{RunPoint, best, is_load, levels, loaded_nodes, points_of, warehouses};
use crate::frame::{
    BRACKETS, Cell, Place, Record, Side, Table, beside_galera, ratios, shown, shown_ratio, values,
};
use crate::stats::median;

/// The paragraphs above the results.
pub fn description(plan: &Plan) -> Vec<String> {
    vec![
        "\"Yes! It works with Amazon EC2\" (Codership, 2008) ran DBT2, an implementation of TPC-C, with 15 warehouses on 1 to 4 \
         small virtual machines and on a plain server. \"Percona XtraDB Cluster 8.0 scaling\" (Percona, 2020) ran sysbench-tpcc \
         with 1000 warehouses at 1 to 256 threads on 3 and 5 nodes, and on MySQL Group Replication."
            .to_string(),
        format!(
            "Here: a driver of our own for the standard's five transaction types (45 % New-Order, 43 % Payment, 4 % each of \
             Order-Status, Delivery, Stock-Level), {} s per point after {} s of warm-up, without keying or think time; all servers \
             and clients on this machine. 1 % of the New-Orders name an item that does not exist and roll back: they count neither \
             as committed nor as conflicts. A transaction that meets a conflict is rolled back and tried again with the same input; \
             its response time goes from the first attempt to the commit. Each transaction takes any warehouse. Isolation level: {}; \
             the second article's was READ COMMITTED, the first one names none.",
            plan.seconds(),
            plan.warmup().as_secs(),
            plan.isolation().sql()
        ),
        "A transaction that a client has in hand when the measurement ends is unfinished: its age then, from the first attempt, \
         goes into the response times, and the table of the throughput has the oldest. A run in which a client committed \
         nothing settles no claim."
            .to_string(),
        format!(
            "Every run has fresh servers on a copy of the same loaded tables, and the same input for all systems. The loads that \
             are timed go through the first node with {} connections, rows of up to 200 KiB per statement. After every load and \
             run, the rows of all nodes were compared, orders and payments were counted against those acknowledged, and the \
             standard's consistency conditions 1 to 10 and 12 were checked. A run in which one of them failed counts nowhere.",
            loader::CONNECTIONS
        ),
        "These are no TPC-C results: the standard asks for much more than is done here."
            .to_string(),
        BRACKETS.to_string(),
    ]
}

/// All tables.
pub fn tables(records: &[Record]) -> Vec<Table> {
    let rows = rows(records);
    vec![
        throughput(records, &rows),
        against_galera(records, &rows),
        responses(records, &rows),
        conflicts(records, &rows),
        loads(records),
        conditions(records),
    ]
}

/// A system at a point.
struct Row {
    system: String,
    point: RunPoint,
}

impl Row {
    /// The values of a figure.
    fn values(&self, records: &[Record], figure: &str) -> Vec<f64> {
        values(records, &self.system, figure, |cell| self.point.has(cell))
    }

    /// A figure, formatted.
    fn shown(&self, records: &[Record], figure: &str, digits: usize) -> String {
        shown(&self.values(records, figure), digits)
    }

    fn heads(&self) -> Vec<String> {
        vec![
            self.system.clone(),
            self.point.warehouses.to_string(),
            self.point.connections.to_string(),
            self.point.nodes.to_string(),
            self.point.to.clone(),
        ]
    }
}

const HEADS: [&str; 5] = ["system", "warehouses", "connections", "nodes", "load to"];

fn rows(records: &[Record]) -> Vec<Row> {
    let systems = levels(records, |cell| Some(cell.system.clone()));
    let mut rows: Vec<Row> = systems
        .into_iter()
        .flat_map(|system| {
            let points = points_of(records, &system);
            points.into_iter().map(move |point| Row {
                system: system.clone(),
                point,
            })
        })
        .collect();
    rows.sort_by_key(|row| {
        let p = &row.point;
        (p.warehouses, p.connections, p.nodes, p.to.clone())
    });
    rows
}

fn throughput(records: &[Record], rows: &[Row]) -> Table {
    let figures = [
        (NOTPM.to_string(), "NOTPM", 0),
        (TX_PER_S.to_string(), "tx/s", 0),
        ("tx_per_s_sd".to_string(), "sd of the seconds", 0),
        ("slowest_second".to_string(), "slowest second, tx", 0),
        (
            of_kind(Kind::NewOrder, "conflict_percent"),
            "New-Order rollbacks by conflict, %",
            2,
        ),
        (
            "deliberate_rollback_percent".to_string(),
            "deliberate, %",
            2,
        ),
        (of_kind(Kind::NewOrder, "mean_ms"), "New-Order mean, ms", 1),
        (
            "server_cpu_ms_per_tx".to_string(),
            "servers, CPU ms per tx",
            2,
        ),
        (
            "client_cpu_ms_per_tx".to_string(),
            "clients, CPU ms per tx",
            2,
        ),
        (
            SLOWEST_CLIENT_PERCENT.to_string(),
            "slowest client, % of the mean",
            0,
        ),
    ];
    let mut header: Vec<String> = HEADS.map(String::from).to_vec();
    header.extend(figures.iter().map(|(_, name, _)| name.to_string()));
    header.push("longest unfinished, s".to_string());
    header.push("NOTPM / best of the plain server of its kind".to_string());
    let body = rows.iter().map(|row| {
        let mut cells = row.heads();
        cells.extend(
            figures
                .iter()
                .map(|(f, _, digits)| row.shown(records, f, *digits)),
        );
        let unfinished_ms = row.values(records, OLDEST_UNFINISHED_MS).into_iter();
        let unfinished_s: Vec<f64> = unfinished_ms.map(|ms| ms / 1000.0).collect();
        cells.push(shown(&unfinished_s, 1));
        cells.push(to_plain(records, row).unwrap_or("-".to_string()));
        cells
    });
    Table {
        title: "Throughput".to_string(),
        rows: body.collect(),
        header,
    }
}

/// The ratio, within each repetition, to the best point of the plain server on the same server program, with
/// as many warehouses.
fn to_plain(records: &[Record], row: &Row) -> Option<String> {
    let w = row.point.warehouses;
    let reference = plain_of(&row.system);
    let plain = best(records, reference, NOTPM, |p| p.warehouses == w)?;
    let own = Side {
        system: &row.system,
        chosen: &|cell| row.point.has(cell),
    };
    let reference = Side {
        system: reference,
        chosen: &|cell| plain.has(cell),
    };
    let ratios = ratios(records, (&own, &reference), NOTPM);
    Some(shown_ratio(&ratios))
}

/// Trireme beside Galera at each point.
fn against_galera(records: &[Record], rows: &[Row]) -> Table {
    let own = rows.iter().filter(|row| row.system == "trireme");
    let places = own.map(|row| Place {
        levels: row.heads()[1..].to_vec(),
        has: Box::new(|cell| row.point.has(cell)),
    });
    let (p95, conflicts) = (
        of_kind(Kind::NewOrder, "p95_ms"),
        of_kind(Kind::NewOrder, "conflict_percent"),
    );
    let figures = [
        (NOTPM, "NOTPM"),
        (TX_PER_S, "tx/s"),
        (&*p95, "New-Order 95th percentile"),
        (&*conflicts, "New-Order rollbacks by conflict"),
        ("server_cpu_ms_per_tx", "servers, CPU per tx"),
    ];
    beside_galera(records, &HEADS[1..], &places.collect::<Vec<_>>(), &figures)
}

fn responses(records: &[Record], rows: &[Row]) -> Table {
    let mut header: Vec<String> = HEADS.map(String::from).to_vec();
    header.extend(Kind::ALL.map(|kind| title(kind).to_string()));
    let body = rows.iter().map(|row| {
        let mut cells = row.heads();
        cells.extend(Kind::ALL.map(|kind| {
            ["p50_ms", "p95_ms", "p99_ms"]
                .map(|figure| {
                    let all = row.values(records, &of_kind(kind, figure));
                    median(&all).map_or("-".to_string(), |value| format!("{value:.1}"))
                })
                .join(" / ")
        }));
        cells
    });
    Table {
        title: "Response times in ms: median / 95th / 99th percentile".to_string(),
        rows: body.collect(),
        header,
    }
}

fn conflicts(records: &[Record], rows: &[Row]) -> Table {
    let mut header: Vec<String> = HEADS.map(String::from).to_vec();
    header.extend(Kind::ALL.map(|kind| title(kind).to_string()));
    let body = rows.iter().map(|row| {
        let mut cells = row.heads();
        cells.extend(
            Kind::ALL.map(|kind| row.shown(records, &of_kind(kind, "conflict_percent"), 2)),
        );
        cells
    });
    Table {
        title: "Rollbacks by conflict, % of all attempts of the type".to_string(),
        rows: body.collect(),
        header,
    }
}

fn loads(records: &[Record]) -> Table {
    let systems = levels(records, |cell| Some(cell.system.clone()));
    let mut rows = Vec::new();
    for w in warehouses(records) {
        for nodes in loaded_nodes(records, w) {
            for system in &systems {
                let here = |cell: &Cell| is_load(cell, w, nodes);
                let column = |figure, digits| shown(&values(records, system, figure, here), digits);
                if values(records, system, LOAD_S, here).is_empty() {
                    continue;
                }
                rows.push(vec![
                    system.clone(),
                    w.to_string(),
                    nodes.to_string(),
                    column(LOAD_S, 1),
                    column("settle_s", 1),
                    column("generate_s", 1),
                ]);
            }
        }
    }
    let header = [
        "system",
        "warehouses",
        "nodes",
        "load, s",
        "until all nodes had it, s",
        "making the rows, s of all connections",
    ];
    Table {
        title: "Load of the tables".to_string(),
        header: header.map(String::from).to_vec(),
        rows,
    }
}

fn conditions(records: &[Record]) -> Table {
    let rows = CONDITIONS.iter().map(|condition| {
        let name = of_condition(condition.number);
        let checked = records.iter().filter_map(|r| r.measured.figures.get(&name));
        let held = checked.clone().filter(|violations| **violations == 0.0);
        vec![
            format!("{}: {}", condition.number, condition.text),
            held.count().to_string(),
            checked.count().to_string(),
        ]
    });
    Table {
        title: "Consistency conditions (clause 3.3.2)".to_string(),
        header: ["condition", "held", "checked"].map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::NewOrder => "New-Order",
        Kind::Payment => "Payment",
        Kind::OrderStatus => "Order-Status",
        Kind::Delivery => "Delivery",
        Kind::StockLevel => "Stock-Level",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    #[test]
    fn starved_clients_have_columns_beside_the_throughput() {
        let run = |nodes: u64, figures: &[(&str, f64)]| {
            let levels = [("warehouses", 10), ("connections", 64), ("nodes", nodes)];
            let levels = levels.map(|(factor, level)| (factor, level.to_string()));
            let further =
                [("part", "run"), ("to", "all")].map(|(factor, level)| (factor, level.to_string()));
            let cell = fixtures::cell("trireme", levels.into_iter().chain(further), 1);
            fixtures::record(cell, figures.iter().copied())
        };
        let starved = [
            (NOTPM, 9000.0),
            (SLOWEST_CLIENT_PERCENT, 3.0),
            (OLDEST_UNFINISHED_MS, 28_460.0),
        ];
        // Records of earlier versions have no such figures.
        let records = [run(3, &[(NOTPM, 9000.0)]), run(5, &starved)];
        let table = throughput(&records, &rows(&records));
        let column = |heading: &str| -> Vec<&str> {
            let at = table.header.iter().position(|name| name == heading);
            let at = at.expect("the table has this column");
            table.rows.iter().map(|row| row[at].as_str()).collect()
        };
        assert_eq!(column("slowest client, % of the mean"), ["-", "3"]);
        assert_eq!(column("longest unfinished, s"), ["-", "28.5"]);
        assert_eq!(column("NOTPM"), ["9000", "9000"]);
    }

    #[test]
    fn the_isolation_is_told_beside_that_of_the_second_article() {
        let text = |arguments: &[&str]| {
            let mut plan: Plan = fixtures::parse(arguments).unwrap();
            plan.frame.default_systems(&["trireme"]);
            description(&plan).concat()
        };
        let article = "the second article's was READ COMMITTED";
        let expected = format!("Isolation level: REPEATABLE READ; {article}");
        assert!(text(&[]).contains(&expected));
        let expected = format!("Isolation level: READ COMMITTED; {article}");
        assert!(text(&["--preset", "article"]).contains(&expected));
    }
}
