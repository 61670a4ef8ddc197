//! `trireme bench inserts`: "Momentum Galera" (2011), single-row inserts at rising concurrency.
//!
//! The article's settings come first (no commit waits for a disk). Then follow runs with a flush on the client's node,
//! and runs with a flush on every node that acknowledges.

mod load;
mod report;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use trireme_testbed::systems::{self, Deployed, Durability, SEMISYNC_SOURCE_FLUSH};

use crate::cpu::CpuTimes;
use crate::frame::{
    self, Cell, Chart, Claim, Experiment, FrameOptions, LabError, Measured, Preset, Record, Setup,
    Table,
};
use crate::stats::percentile;
use load::{DATABASE, Extent};

/// The inserts of each run in the article.
const ARTICLE_INSERTS: u64 = 100_000;

/// The figure for comparing systems.
const RATE: &str = "inserts_per_s";

/// The level of the factor `settings` with full durability.
const FULL: &str = "full";

/// The levels of the factor `settings`: the demand on durability.
const SETTINGS: [(&str, Durability); 3] = [
    ("article", Durability::Lazy),
    ("origin", Durability::Origin),
    (FULL, Durability::Full),
];

/// Single-row inserts at rising concurrency: is certification faster than semi-synchronous replication?
///
/// Repeats "Momentum Galera" (2011): one simple table, all clients on one node, first in the article's settings, which flush
/// nothing, then with flushes. Systems take turns; after every run all nodes must hold the acknowledged rows.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct Plan {
    /// The choices of every experiment.
    #[command(flatten)]
    pub frame: FrameOptions,
    /// Servers of each system that replicates [default: 2].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16), conflicts_with = "resume")]
    pub nodes: Option<u16>,
    /// Numbers of connections [default and quick: 1,16,256; article: 1,8,16,32,64,128,256].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=280), conflicts_with = "resume")]
    pub connections: Vec<u16>,
    /// Length of a measurement [default: box 30, quick 3; the article counts 100,000 inserts instead].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub seconds: Option<u64>,
    /// Load before each measurement, not counted [default: 10; quick: 1].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub warmup_seconds: Option<u64>,
}

/// Runs the experiment, or continues it.
pub fn run(plan: &Plan) -> Result<(), LabError> {
    let plan = frame::choices(plan, NAME, default_systems(plan), |plan| &mut plan.frame)?;
    let experiment = Inserts { plan: plan.clone() };
    plan.frame.check_nodes(experiment.nodes())?;
    frame::run(&experiment, &plan.frame, &plan)
}

const NAME: &str = "inserts";

/// The systems of the article, and ours; of semi-synchronous replication the form with and without a flush on the
/// replica. The last one has the binary log of semi-synchronous replication, and no replica.
const SYSTEMS: [&str; 6] = [
    "plain",
    "semisync",
    SEMISYNC_SOURCE_FLUSH,
    "galera",
    "trireme",
    "plain-binlog",
];

/// The systems of a plan that names none. A quick pass does without the binary log alone.
fn default_systems(plan: &Plan) -> &'static [&'static str] {
    plan.frame.preset().systems(&SYSTEMS, 5)
}

struct Inserts {
    plan: Plan,
}

impl Inserts {
    fn preset(&self) -> Preset {
        self.plan.frame.preset()
    }

    fn connections(&self) -> Vec<u16> {
        match (self.plan.connections.as_slice(), self.preset()) {
            ([], Preset::Quick | Preset::Box) => vec![1, 16, 256],
            ([], Preset::Article) => vec![1, 8, 16, 32, 64, 128, 256],
            (chosen, _) => chosen.to_vec(),
        }
    }

    fn extent(&self) -> Extent {
        match (self.plan.seconds, self.preset()) {
            (Some(seconds), _) => Extent::Time(Duration::from_secs(seconds)),
            (None, Preset::Quick) => Extent::Time(Duration::from_secs(3)),
            (None, Preset::Box) => Extent::Time(Duration::from_secs(30)),
            (None, Preset::Article) => Extent::Inserts(ARTICLE_INSERTS),
        }
    }

    fn warmup(&self) -> Duration {
        let preset = if self.preset() == Preset::Quick {
            1
        } else {
            10
        };
        Duration::from_secs(self.plan.warmup_seconds.unwrap_or(preset))
    }

    fn nodes(&self) -> usize {
        usize::from(self.plan.nodes.unwrap_or(2))
    }

    /// Whether a system is measured with these settings. A system without a flush on other nodes takes part in full
    /// durability, too, beside those that have one.
    fn runs(&self, system: &str, settings: &str) -> bool {
        // Before, it would repeat `semisync`.
        let has_settings = system != SEMISYNC_SOURCE_FLUSH || settings == FULL;
        has_settings && *systems::sizes(system).start() <= self.nodes()
    }

    fn buffer_pool_mib(&self) -> u64 {
        match self.preset() {
            Preset::Quick => 256,
            Preset::Box => 1024,
            Preset::Article => 4096,
        }
    }
}

impl Experiment for Inserts {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        "Single-row inserts: certification against semi-synchronous replication".to_string()
    }

    fn description(&self) -> Vec<String> {
        report::description(&self.plan, self.extent(), self.nodes())
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for repetition in 1..=self.plan.frame.repetitions() {
            for (settings, _) in SETTINGS {
                let cell = |system: &String, connections: u16| Cell {
                    system: system.clone(),
                    factors: [
                        ("settings".to_string(), settings.to_string()),
                        ("connections".to_string(), connections.to_string()),
                    ]
                    .into(),
                    repetition,
                };
                let systems = &self.plan.frame.systems;
                let connections = self.connections();
                // Systems take turns at each point. In the quick pass each system does all of its points at once, which
                // saves starts.
                match self.preset() {
                    Preset::Quick => cells.extend(
                        systems
                            .iter()
                            .flat_map(|s| connections.iter().map(move |c| cell(s, *c))),
                    ),
                    _ => cells.extend(
                        connections
                            .iter()
                            .flat_map(|c| systems.iter().map(move |s| cell(s, *c))),
                    ),
                }
            }
        }
        cells.retain(|cell| self.runs(&cell.system, cell.level("settings")));
        cells
    }

    fn setup(&self, cell: &Cell) -> Setup {
        let durability = SETTINGS
            .iter()
            .find(|(name, _)| *name == cell.level("settings"))
            .map_or(Durability::Full, |(_, durability)| *durability);
        let doublewrite = match durability {
            Durability::Lazy => "--innodb-doublewrite=0",
            Durability::Origin | Durability::Full => "--innodb-doublewrite=1",
        };
        Setup {
            nodes: self.nodes(),
            durability,
            arguments: vec![
                format!("--innodb-buffer-pool-size={}M", self.buffer_pool_mib()),
                "--innodb-log-file-size=100M".to_string(),
                "--innodb-autoinc-lock-mode=2".to_string(),
                doublewrite.to_string(),
            ],
            generation: match self.preset() {
                Preset::Quick => 0,
                // Each point has fresh servers, even if only one system is measured.
                _ => cell.number("connections") as u32,
            },
        }
    }

    fn estimate_seconds(&self, cell: &Cell) -> f64 {
        let load = match self.extent() {
            Extent::Time(time) => time.as_secs_f64(),
            // A single connection waits for each round trip.
            Extent::Inserts(n) if cell.number("connections") == 1 => n as f64 / 2_000.0,
            Extent::Inserts(n) => n as f64 / 8_000.0,
        };
        load + self.warmup().as_secs_f64() + 1.0
    }

    fn needs_mib(&self) -> (u64, u64) {
        let nodes = self.nodes() as u64;
        (
            nodes * (self.buffer_pool_mib() + 256),
            // Data, redo log, and binary and relay log or write-set cache.
            nodes * 1024,
        )
    }

    fn measure(
        &self,
        cell: &Cell,
        deployed: &mut Deployed,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let connections = cell.number("connections") as usize;
        if !self.warmup().is_zero() {
            load::new_table(deployed.first())?;
            let warmup = Extent::Time(self.warmup());
            load::run(deployed.first(), connections, warmup)
                .failure
                .map_or(Ok(()), Err)?;
            deployed.settle()?;
        }
        load::new_table(deployed.first())?;
        let before = CpuTimes::of(deployed);
        let outcome = load::run(deployed.first(), connections, self.extent());
        let spent = CpuTimes::of(deployed).since(before);
        let counted = outcome.counted.max(1) as f64;
        let latency = |share: f64| outcome.latency_us.value_at_quantile(share) as f64 / 1000.0;
        let mut sorted: Vec<f64> = outcome.per_second.iter().map(|n| *n as f64).collect();
        sorted.sort_by(f64::total_cmp);
        let figures = [
            (RATE, outcome.counted as f64 / outcome.seconds.max(0.001)),
            ("inserts", outcome.acknowledged as f64),
            ("seconds", outcome.seconds),
            ("conflicts", outcome.conflicts as f64),
            ("mean_ms", outcome.latency_us.mean() / 1000.0),
            ("p50_ms", latency(0.5)),
            ("p95_ms", latency(0.95)),
            ("p99_ms", latency(0.99)),
            ("max_ms", outcome.latency_us.max() as f64 / 1000.0),
            ("slowest_second", percentile(&sorted, 0.0).unwrap_or(0.0)),
            (
                "server_cpu_ms_per_insert",
                spent.servers_ms as f64 / counted,
            ),
            ("client_cpu_ms_per_insert", spent.client_ms as f64 / counted),
        ];
        measured
            .figures
            .extend(figures.map(|(name, value)| (name.to_string(), value)));
        measured.per_second = outcome.per_second;
        if let Some(failure) = outcome.failure {
            return Err(failure);
        }
        let tables = deployed.verify(&[DATABASE])?;
        let found = tables.iter().map(|table| table.rows).sum();
        if found != outcome.acknowledged {
            return Err(LabError::Rows {
                what: "inserts",
                acknowledged: outcome.acknowledged,
                found,
            });
        }
        Ok(())
    }

    fn headline(&self, _cell: &Cell) -> &'static str {
        RATE
    }

    fn charts(&self, records: &[Record]) -> Vec<Chart> {
        report::charts(records, &self.plan.frame.systems)
    }

    fn tables(&self, records: &[Record]) -> Vec<Table> {
        report::tables(records, &self.plan.frame.systems)
    }

    fn claims(&self, records: &[Record]) -> Vec<Claim> {
        report::claims(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn inserts(arguments: &[&str]) -> Inserts {
        let mut plan: Plan = fixtures::parse(arguments).unwrap();
        plan.frame.default_systems(default_systems(&plan));
        Inserts { plan }
    }

    #[test]
    fn systems_take_turns_at_each_point() {
        let cells = inserts(&["--connections", "1,8"]).cells();
        let systems: Vec<&str> = cells[..6].iter().map(|c| c.system.as_str()).collect();
        assert_eq!(
            systems,
            [
                "plain",
                "semisync",
                "galera",
                "trireme",
                "plain-binlog",
                "plain"
            ]
        );
        // Both forms of semi-synchronous replication differ only in full durability.
        assert_eq!(cells.len(), (5 + 5 + 6) * 2 * 3);
        let full: Vec<&str> = cells
            .iter()
            .filter(|c| c.level("settings") == FULL)
            .map(|c| c.system.as_str())
            .collect();
        assert_eq!(full[..6], SYSTEMS);
    }

    #[test]
    fn with_one_node_there_is_no_replica() {
        let cells = inserts(&["--nodes", "1"]).cells();
        let has = |system: &str| cells.iter().any(|c| c.system == system);
        assert!(has("plain") && has("galera") && has("trireme"));
        assert!(!has("semisync") && !has(SEMISYNC_SOURCE_FLUSH));
        // A single server stands beside clusters of any size.
        let three = inserts(&["--nodes", "3"]).cells();
        assert!(three.iter().any(|c| c.system == "plain"));
    }

    #[test]
    fn a_plain_server_with_a_binary_log_stands_beside() {
        for (arguments, is_there) in [
            (&[][..], true),
            (&["--preset", "article"], true),
            (&["--quick"], false),
        ] {
            let cells = inserts(arguments).cells();
            let has_binlog = |c: &Cell| c.system == "plain-binlog";
            assert_eq!(cells.iter().any(has_binlog), is_there, "{arguments:?}");
        }
    }

    #[test]
    fn a_quick_pass_fits_five_minutes() {
        let quick = inserts(&["--quick"]);
        let cells = quick.cells();
        let loads: f64 = cells.iter().map(|c| quick.estimate_seconds(c)).sum();
        let mut setups: Vec<(&str, Setup)> = cells
            .iter()
            .map(|c| (c.system.as_str(), quick.setup(c)))
            .collect();
        setups.dedup();
        assert_eq!(setups.len(), 13);
        // Servers start within 8 s on a machine that does nothing else.
        assert!(loads + 8.0 * setups.len() as f64 <= 300.0, "{loads}");
    }

    #[test]
    fn a_plan_survives_its_file() {
        let plan = inserts(&["--preset", "article", "--nodes", "3"]).plan;
        let text = serde_json::to_string(&plan).unwrap();
        let again: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(again.frame.preset(), Preset::Article);
        assert_eq!(again.nodes, Some(3));
    }
}
