//! The user's choices about the experiment, and the design that follows from them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::design::Design;
use crate::client_processes::Schema;
use crate::doe::{Factor, FactorError, MAX_FACTORS};
use crate::frame::{FrameOptions, Preset};

/// The factor of the cluster size.
pub const NODES: &str = "nodes";
/// The factor of the connections of all clients.
pub const CONNECTIONS: &str = "connections";
/// The factor of the applier threads of each node.
pub const APPLIERS: &str = "appliers";
/// The prefix of a factor that is a provider option.
pub const OPTION: &str = "option:";

/// The names of factors, for the error on an unknown one.
const KNOWN: &str = "nodes, connections, appliers or option:PROVIDER_OPTION";

/// The levels of factors that do not vary: the article's best numbers of nodes and of client processes, and the lab's
/// usual number of appliers.
const FIXED_NODES: u64 = 3;
const FIXED_CLIENTS: u64 = 5;
const FIXED_APPLIERS: u64 = 4;

/// The largest levels of the known factors. A server takes 300 connections.
const LIMITS: [(&str, f64); 3] = [(NODES, 16.0), (CONNECTIONS, 280.0), (APPLIERS, 64.0)];

/// Which nodes, connections and settings give the most throughput? Found by design of experiments instead of a grid.
///
/// The question of "How does Galera Cluster behave with many nodes?" (2025), answered as its author asks for. Screening
/// at the corners and the centre of the factors' ranges; further points for those that matter; a quadratic surface fitted to
/// all; its maximum, and runs there that confirm or refute it.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct Plan {
    /// The choices of every experiment.
    #[command(flatten)]
    pub frame: FrameOptions,
    /// A factor to vary, such as connections=8..160:log; repeatable. Names: nodes, connections, appliers,
    /// option:PROVIDER_OPTION [default: nodes=1..9, connections=8..160:log, appliers=1..8; quick: nodes=1..3,
    /// connections=4..32:log].
    #[arg(
        long = "factor",
        value_name = "NAME=LOW..HIGH[:log]",
        conflicts_with = "resume"
    )]
    pub factors: Vec<Factor>,
    /// Connections of each client process; numbers of connections are multiples of it [default: 8; quick: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with = "resume")]
    pub threads: Option<u16>,
    /// Rows of the table in each client's schema [default: 10000; quick: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "resume")]
    pub rows: Option<u32>,
    /// Length of a measurement [default: box 30, quick 3, article 180].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub seconds: Option<u64>,
    /// Load before each measurement, not counted [default: 10; quick: 1].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub warmup_seconds: Option<u64>,
    /// The seed of the random numbers that decide the order of the runs.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "resume")]
    pub seed: u64,
}

impl Plan {
    fn preset(&self) -> Preset {
        self.frame.preset()
    }

    /// The design that follows from the choices.
    pub(super) fn design(&self) -> Result<Design, FactorError> {
        let threads = f64::from(self.threads());
        let chosen = match (self.factors.as_slice(), self.preset()) {
            ([], Preset::Quick) => ["nodes=1..3", "connections=4..32:log"]
                .iter()
                .map(|text| text.parse())
                .collect::<Result<Vec<Factor>, _>>()?,
            ([], Preset::Box | Preset::Article) => {
                ["nodes=1..9", "connections=8..160:log", "appliers=1..8"]
                    .iter()
                    .map(|text| text.parse())
                    .collect::<Result<_, _>>()?
            }
            (chosen, _) => chosen.to_vec(),
        };
        let mut factors: Vec<Factor> = Vec::new();
        for factor in chosen {
            check(&factor)?;
            if factors.iter().any(|known| known.name() == factor.name()) {
                return Err(FactorError::Twice(factor.name().to_string()));
            }
            factors.push(match factor.name() {
                CONNECTIONS => factor.in_steps(threads)?,
                NODES | APPLIERS => factor.in_steps(1.0)?,
                _ => factor,
            });
        }
        if !(2..=MAX_FACTORS).contains(&factors.len()) {
            return Err(FactorError::Number(factors.len()));
        }
        let (centres, confirmations) = match self.preset() {
            Preset::Quick => ((3, 1), 2),
            Preset::Box | Preset::Article => ((4, 3), 3),
        };
        Ok(Design {
            factors,
            systems: self.frame.systems.clone(),
            repetitions: self.repetitions(),
            screening_centres: centres.0,
            surface_centres: centres.1,
            confirmations,
            seed: self.seed,
        })
    }

    /// The runs at each point but the centre. The article has one; the runs at the centre also show how much runs differ.
    fn repetitions(&self) -> u32 {
        self.frame.repetitions.unwrap_or(match self.preset() {
            Preset::Box => 3,
            Preset::Quick | Preset::Article => 1,
        })
    }

    /// Connections of each client process.
    pub(super) fn threads(&self) -> u16 {
        self.threads.unwrap_or(match self.preset() {
            Preset::Quick => 4,
            Preset::Box | Preset::Article => 8,
        })
    }

    /// The tables of each client, which no other client uses.
    pub(super) fn schema(&self) -> Schema {
        let rows = self.rows.unwrap_or(match self.preset() {
            Preset::Quick => 1000,
            Preset::Box | Preset::Article => 10_000,
        });
        Schema {
            tables: 1,
            rows: rows as usize,
        }
    }

    /// The length of a measurement, in seconds.
    pub(super) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(match self.preset() {
            Preset::Quick => 3,
            Preset::Box => 30,
            Preset::Article => 180,
        })
    }

    /// Load before each measurement.
    pub(super) fn warmup(&self) -> Duration {
        let preset = match self.preset() {
            Preset::Quick => 1,
            Preset::Box | Preset::Article => 10,
        };
        Duration::from_secs(self.warmup_seconds.unwrap_or(preset))
    }

    /// The level of a factor that does not vary.
    pub(super) fn fixed(&self, factor: &str) -> u64 {
        match factor {
            NODES => FIXED_NODES,
            CONNECTIONS => FIXED_CLIENTS * u64::from(self.threads()),
            _ => FIXED_APPLIERS,
        }
    }
}

/// Fails if the factor is unknown, or goes beyond its limit.
fn check(factor: &Factor) -> Result<(), FactorError> {
    let name = factor.name();
    let (low, high) = factor.bounds();
    match LIMITS.iter().find(|(known, _)| *known == name) {
        Some((_, limit)) if low < 1.0 || high > *limit => Err(FactorError::Limit {
            factor: factor.to_string(),
            limit: limit.to_string(),
        }),
        Some(_) => Ok(()),
        None => match name.strip_prefix(OPTION) {
            Some(option) if !option.is_empty() && !option.contains([';', '"', '=', ' ']) => Ok(()),
            _ => Err(FactorError::Unknown {
                name: name.to_string(),
                known: KNOWN,
            }),
        },
    }
}
