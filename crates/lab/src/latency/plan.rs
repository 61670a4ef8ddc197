//! The user's choices, and the cells that follow from them.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use trireme_testbed::systems::is_galera;

use super::away::Departure;
use super::case::Case;
use super::distance::Place;
use super::durability::Strength;
use super::fault::Fault;
use super::large::Large;
use super::slow::Hindrance;
use super::trace::Promise;
use crate::frame::{Cell, FrameOptions, Preset};

/// A part of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Longest gap in the commits of two nodes when a fault strikes the third. Needs root.
    Failover,
    /// Commit latency with the third of three nodes 100 ms (round trip) away. Needs root.
    Far,
    /// Commit latency in three regions, 40 ms (round trip) apart. Needs root.
    Regions,
    /// Three nodes are restarted one after the other under inserts.
    Restart,
    /// Two nodes at half of their maximum beside one with a tenth of a CPU or a slow disk. Needs root, and cc.
    Slow,
    /// Small commits beside one large transaction.
    Large,
    /// A node that was away for a minute comes back under load.
    Away,
    /// The cost of having commits on stable storage before they are acknowledged (sysbench). Needs sysbench.
    Durability,
    /// Whether commits are on stable storage before: flushes as strace sees them. Needs strace, and the right to trace:
    /// root.
    Trace,
    /// Conflicts per commit of four nodes on 10,000 rows (sysbench oltp_read_write). Needs sysbench.
    Windows,
}

impl Part {
    /// The name, which is also the value of the option.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The member that a trial strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    /// A member that is not the leader. Galera has no leader, so any member.
    Other,
    /// The leader.
    Leader,
}

impl Victim {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Leader => "leader",
        }
    }
}

/// Lost, far, slow and returning members, and a rolling restart: longest gap in the commits, commit latency, cost of
/// durability.
///
/// Each node of the parts failover, far and regions runs in a network namespace of its own; this program carries the
/// packets between them, late or not at all. The namespaces have no names and vanish with the processes in them.
///
/// --quick: one trial of a kill, of a far node, and of a rolling restart. --preset box: failover, far, regions, restart,
/// slow, and one large transaction. --preset article: all parts, ten trials of each.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct Plan {
    /// The choices of every experiment.
    #[command(flatten)]
    pub frame: FrameOptions,
    /// Parts [default: the preset's].
    #[arg(
        long = "part",
        value_enum,
        value_delimiter = ',',
        conflicts_with = "resume"
    )]
    pub parts: Vec<Part>,
    /// Trials of each system in each case: another name of --repetitions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["resume", "repetitions"])]
    pub trials: Option<u32>,
    /// Faults of part failover [default: all; quick: kill].
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "resume")]
    pub faults: Vec<Fault>,
    /// The victim of the fault or of the slowness, or the origin of the large transaction. Galera has no leader,
    /// and runs only the first of these [default: other,leader; quick: other].
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "resume")]
    pub victims: Vec<Victim>,
    /// Length of the measured stretches of the parts far, regions, slow, away (usual), durability, trace and windows
    /// [default: 20; quick: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub seconds: Option<u64>,
    /// The time for which the node of part away is away [default: 60].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub away_seconds: Option<u64>,
    /// Round trips to the far node of part far, in ms [default: 100].
    #[arg(long, value_name = "MS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=2000), conflicts_with = "resume")]
    pub far_ms: Vec<u32>,
    /// Sizes of the large transaction of part large, in MiB [default: 1024; quick: 64].
    #[arg(long, value_name = "MIB", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=2000), conflicts_with = "resume")]
    pub large_mib: Vec<u32>,
    /// Provider option NAME=VALUE set on the leader before part failover strikes it, so that it stays the leader.
    #[arg(long, value_name = "OPTION", conflicts_with = "resume")]
    pub leader_option: Option<String>,
}

impl Plan {
    /// The parts, in order.
    pub fn parts(&self) -> Vec<Part> {
        let preset: &[Part] = match self.frame.preset() {
            Preset::Quick => &[Part::Failover, Part::Far, Part::Restart],
            Preset::Box => &[
                Part::Failover,
                Part::Far,
                Part::Regions,
                Part::Restart,
                Part::Slow,
                Part::Large,
            ],
            Preset::Article => Part::value_variants(),
        };
        chosen(&self.parts, preset)
    }

    /// The length of a measured time.
    pub fn length(&self) -> Duration {
        let preset = if self.is_quick() { 5 } else { 20 };
        Duration::from_secs(self.seconds.unwrap_or(preset))
    }

    /// The load before any measurement when members are far apart: the cluster needs the time to adapt.
    pub fn settling(&self) -> Duration {
        Duration::from_secs(if self.is_quick() { 3 } else { 10 })
    }

    /// The time for which the node of part `away` is away.
    pub fn away(&self) -> Duration {
        Duration::from_secs(self.away_seconds.unwrap_or(60))
    }

    /// The largest transaction of the run, in MiB.
    pub fn largest_mib(&self) -> Option<u32> {
        let large = self.parts().contains(&Part::Large);
        self.large_mib().into_iter().max().filter(|_| large)
    }

    /// All cells, part by part. Each repetition has all cases of its part, and in each case the systems take turns:
    /// goals compare cases and systems within a repetition.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for part in self.parts() {
            for repetition in 1..=self.repetitions() {
                for case in self.cases_of(part) {
                    let systems = self.frame.systems.iter();
                    let systems = systems.filter(|system| self.concerns(case, system));
                    cells.extend(systems.map(|system| Cell {
                        system: system.clone(),
                        factors: case.factors(),
                        repetition,
                    }));
                }
            }
        }
        cells
    }

    /// The case of a cell of this plan.
    pub fn case_of(&self, cell: &Cell) -> Option<Case> {
        let mut cases = self.cases().into_iter();
        cases.find(|case| case.factors() == cell.factors)
    }

    /// The cases of each part.
    pub fn cases(&self) -> Vec<Case> {
        let parts = self.parts().into_iter();
        parts.flat_map(|part| self.cases_of(part)).collect()
    }

    fn cases_of(&self, part: Part) -> Vec<Case> {
        let victims = self.victims();
        let by_victim = |of: &dyn Fn(Victim) -> Case| victims.iter().map(|v| of(*v)).collect();
        match part {
            Part::Failover => {
                let faults = self.faults().into_iter();
                let of = |fault| -> Vec<Case> { by_victim(&|v| Case::Failover(fault, v)) };
                faults.flat_map(of).collect()
            }
            Part::Far => self.far_cases(),
            Part::Regions => vec![Case::Regions],
            Part::Restart => vec![Case::Restart],
            Part::Slow => {
                let hindrances = [Hindrance::Cpu, Hindrance::Disk].into_iter();
                let of = |hindrance| -> Vec<Case> { by_victim(&|v| Case::Slow(hindrance, v)) };
                hindrances.flat_map(of).collect()
            }
            Part::Large => self.large_cases(),
            Part::Away => Departure::ALL.map(Case::Away).to_vec(),
            Part::Durability => Strength::ALL.map(Case::Durability).to_vec(),
            Part::Trace => Promise::ALL.map(Case::Trace).to_vec(),
            Part::Windows => vec![Case::Windows],
        }
    }

    /// The cases with the third node near, as the reference, and far.
    fn far_cases(&self) -> Vec<Case> {
        let mut cases = vec![Case::Far(Place::NEAR)];
        let first_started: &[bool] = if self.is_quick() {
            &[false]
        } else {
            &[false, true]
        };
        for round_trip_ms in chosen(&self.far_ms, &[100]) {
            cases.extend(first_started.iter().map(|first| {
                Case::Far(Place {
                    round_trip_ms,
                    is_first: *first,
                })
            }));
        }
        cases
    }

    fn large_cases(&self) -> Vec<Case> {
        let streaming: &[bool] = match self.frame.preset() {
            Preset::Article => &[false, true],
            Preset::Quick | Preset::Box => &[false],
        };
        let mut cases = Vec::new();
        for streaming in streaming.iter().copied() {
            for mib in self.large_mib() {
                let large = Large { mib, streaming };
                let victims = self.victims().into_iter();
                cases.extend(victims.map(|victim| Case::Large(large, victim)));
            }
        }
        cases
    }

    /// Whether `system` is tried in this case. Galera has no leader, so all victims are alike there.
    fn concerns(&self, case: Case, system: &str) -> bool {
        let galera = is_galera(system);
        match case {
            Case::Failover(_, victim) | Case::Slow(_, victim) | Case::Large(_, victim) => {
                !galera || self.victims().first() == Some(&victim)
            }
            Case::Durability(strength) => (strength == Strength::Galera) == galera,
            Case::Trace(promise) => (promise == Promise::InnoDb) == galera,
            Case::Far(_) | Case::Regions | Case::Restart | Case::Away(_) | Case::Windows => true,
        }
    }

    fn is_quick(&self) -> bool {
        self.frame.preset() == Preset::Quick
    }

    fn repetitions(&self) -> u32 {
        let frame = match (self.frame.repetitions, self.frame.preset()) {
            (None, Preset::Article) => 10,
            _ => self.frame.repetitions(),
        };
        self.trials.unwrap_or(frame)
    }

    fn faults(&self) -> Vec<Fault> {
        let preset: &[Fault] = match self.is_quick() {
            true => &[Fault::Kill],
            false => Fault::value_variants(),
        };
        chosen(&self.faults, preset)
    }

    fn victims(&self) -> Vec<Victim> {
        let preset: &[Victim] = match self.is_quick() {
            true => &[Victim::Other],
            false => Victim::value_variants(),
        };
        chosen(&self.victims, preset)
    }

    fn large_mib(&self) -> Vec<u32> {
        chosen(
            &self.large_mib,
            if self.is_quick() { &[64] } else { &[1024] },
        )
    }
}

/// The user's choice, or else the preset's.
fn chosen<T: Clone>(chosen: &[T], preset: &[T]) -> Vec<T> {
    if chosen.is_empty() { preset } else { chosen }.to_vec()
}
