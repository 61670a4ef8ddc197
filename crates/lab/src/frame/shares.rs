//! Makes equal small machines of one box: each node has the same share of the processors, and the clients have the
//! rest.
//!
//! The shares apply as soon as the servers of a cell run: to warm-up, measurement and checks alike. Each group's waits
//! go into the cell's figures.

use std::time::Duration;

use trireme_testbed::cpu_share::{CpuShare, Throttling};
use trireme_testbed::systems::Deployed;

use super::error::LabError;
use super::experiment::Table;
use super::record::{Measured, Record};

/// The length of a period, and so the longest wait of a node that has used up its share.
const PERIOD: Duration = Duration::from_millis(5);

/// The least share for the clients, in processors. With less, the clients would limit the throughput.
const LEAST_FOR_CLIENTS: f64 = 0.2;

/// The error of sums of shares: 2 processors less 9 times 0.2 are a little less than 0.2.
const ROUNDING: f64 = 1e-9;

/// The figure with a node's share, in processors.
const NODE_SHARE: &str = "cpu_share_of_node_processors";

/// The figure with the clients' share, in processors.
const CLIENTS_SHARE: &str = "cpu_share_of_clients_processors";

/// The processors per node, and those of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    per_node: f64,
    processors: usize,
}

impl Shares {
    /// Shares of `per_node` processors for each node on this machine.
    pub fn new(per_node: f64) -> Self {
        Self {
            per_node,
            processors: std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }

    /// Fails, with the remedy, if this machine cannot limit processes.
    pub fn check(&self) -> Result<(), LabError> {
        CpuShare::new("check")?.limit(self.per_node, PERIOD)?;
        Ok(())
    }

    /// The clients' share if `nodes` nodes have theirs, in processors. Fails if it is too small.
    pub fn of_clients(&self, nodes: usize) -> Result<f64, LabError> {
        let left = self.processors as f64 - nodes as f64 * self.per_node;
        if left < LEAST_FOR_CLIENTS - ROUNDING {
            return Err(LabError::NothingLeft {
                per_node: self.per_node,
                nodes,
                processors: self.processors,
            });
        }
        Ok(left.max(LEAST_FOR_CLIENTS))
    }

    /// One line for the terminal and for the settings.
    pub fn line(&self) -> String {
        format!("processor time of a node: {}", self.text())
    }

    /// The shares in words.
    pub fn text(&self) -> String {
        format!(
            "{} of a processor, {} µs in each period of {} ms; the clients have what the nodes leave",
            self.per_node,
            PERIOD.mul_f64(self.per_node).as_micros(),
            PERIOD.as_millis()
        )
    }
}

/// The shares of running servers and of their clients, which are this process and its children. Dropping it lifts the
/// clients' share; a server's share ends with the server.
pub struct InForce {
    shares: Shares,
    clients: CpuShare,
    for_clients: f64,
}

impl InForce {
    /// Limits the servers and this process.
    pub fn begin(shares: Shares, deployed: &mut Deployed) -> Result<Self, LabError> {
        let for_clients = shares.of_clients(deployed.cluster().nodes().len())?;
        deployed.limit_cpu(shares.per_node, PERIOD)?;
        let clients = CpuShare::new("clients")?;
        clients.limit(for_clients, PERIOD)?;
        clients.add(std::process::id())?;
        Ok(Self {
            shares,
            clients,
            for_clients,
        })
    }

    /// The waits of each node so far, and at the end of the list those of the clients.
    pub fn throttling(&self, deployed: &Deployed) -> Vec<Throttling> {
        let nodes = deployed.cluster().nodes().iter();
        let mut all: Vec<Throttling> = nodes.filter_map(|node| node.throttling()).collect();
        all.push(self.clients.throttling());
        all
    }

    /// Adds to the figures of a cell: the shares, and the waits of each group since `before`.
    pub fn note(&self, deployed: &Deployed, before: &[Throttling], measured: &mut Measured) {
        let after = self.throttling(deployed);
        let spent: Vec<Throttling> = after
            .into_iter()
            .zip(before)
            .map(|(after, before)| after.since(*before))
            .collect();
        let mut put = |name: String, value: f64| measured.figures.insert(name, value);
        put(NODE_SHARE.to_string(), self.shares.per_node);
        put(CLIENTS_SHARE.to_string(), self.for_clients);
        let (clients, nodes) = match spent.split_last() {
            Some((clients, nodes)) => (clients, nodes),
            None => return,
        };
        for (i, node) in nodes.iter().enumerate() {
            note_group(&mut put, &format!("node{}", i + 1), node);
        }
        note_group(&mut put, "clients", clients);
    }
}

fn note_group(
    put: &mut impl FnMut(String, f64) -> Option<f64>,
    group: &str,
    throttling: &Throttling,
) {
    let percent = 100.0 * throttling.throttled_periods as f64 / throttling.periods.max(1) as f64;
    put(format!("{group}_throttled_percent"), percent);
    put(
        format!("{group}_throttled_periods"),
        throttling.throttled_periods as f64,
    );
    put(
        format!("{group}_throttled_ms"),
        throttling.throttled.as_secs_f64() * 1000.0,
    );
}

/// A table of the groups' waits in each cell; None if no cell had shares.
pub fn table(records: &[Record]) -> Option<Table> {
    let rows: Vec<Vec<String>> = records.iter().filter_map(row).collect();
    let header = [
        "cell",
        "share of a node",
        "share of the clients",
        "was a node throttled?",
        "nodes: throttled periods, %",
        "nodes: waited, ms",
        "clients: throttled periods, %",
        "clients: waited, ms",
    ];
    (!rows.is_empty()).then(|| Table {
        title: "Shares of the processors".to_string(),
        header: header.map(String::from).to_vec(),
        rows,
    })
}

/// Whether a node of this cell had to wait for its share.
pub fn throttled(record: &Record) -> bool {
    of_nodes(record, "periods").any(|periods| periods > 0.0)
}

/// A figure of each node, in the order of the nodes.
fn of_nodes<'a>(record: &'a Record, what: &'a str) -> impl Iterator<Item = f64> + 'a {
    let names = (1..).map(move |i| format!("node{i}_throttled_{what}"));
    names.map_while(|name| record.measured.figures.get(&name).copied())
}

fn row(record: &Record) -> Option<Vec<String>> {
    let figure = |name: &str| record.measured.figures.get(name).copied();
    let joined = |what: &str| -> String {
        let texts: Vec<String> = of_nodes(record, what).map(|v| format!("{v:.0}")).collect();
        texts.join(" / ")
    };
    let (node, clients) = (figure(NODE_SHARE)?, figure(CLIENTS_SHARE)?);
    let clients_figure = |what: &str| {
        figure(&format!("clients_throttled_{what}"))
            .map_or("-".to_string(), |value| format!("{value:.0}"))
    };
    Some(vec![
        record.cell.to_string(),
        format!("{node:.2}"),
        format!("{clients:.2}"),
        if throttled(record) { "yes" } else { "no" }.to_string(),
        joined("percent"),
        joined("ms"),
        clients_figure("percent"),
        clients_figure("ms"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    const TWO_PROCESSORS: Shares = Shares {
        per_node: 0.25,
        processors: 2,
    };

    #[test]
    fn the_clients_have_what_the_nodes_leave() {
        assert_eq!(TWO_PROCESSORS.of_clients(4).unwrap(), 1.0);
        let refused = TWO_PROCESSORS.of_clients(8).unwrap_err().to_string();
        assert!(refused.contains("smaller --cpu-per-node"), "{refused}");
        let fifths = Shares {
            per_node: 0.2,
            ..TWO_PROCESSORS
        };
        // The kernel gives no less.
        assert_eq!(fifths.of_clients(9).unwrap(), LEAST_FOR_CLIENTS);
        assert!(
            TWO_PROCESSORS
                .text()
                .contains("1250 µs in each period of 5 ms")
        );
    }

    #[test]
    fn a_throttled_node_is_told() {
        let cell = fixtures::cell("galera", [("nodes", 2)], 1);
        let mut record = fixtures::record(cell, [] as [(&str, f64); 0]);
        assert_eq!(table(std::slice::from_ref(&record)), None);
        let figures = &mut record.measured.figures;
        let mut put = |name: String, value: f64| figures.insert(name, value);
        put(NODE_SHARE.to_string(), 0.25);
        put(CLIENTS_SHARE.to_string(), 1.5);
        let throttling = |throttled_periods| Throttling {
            periods: 200,
            throttled_periods,
            throttled: Duration::from_millis(throttled_periods),
        };
        note_group(&mut put, "node1", &throttling(0));
        note_group(&mut put, "node2", &throttling(50));
        note_group(&mut put, "clients", &throttling(0));
        let found = table(&[record]).unwrap();
        let expected = ["0.25", "1.50", "yes", "0 / 25", "0 / 50", "0", "0"];
        assert_eq!(found.rows[0][1..], expected);
    }
}
