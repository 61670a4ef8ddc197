//! Part `durability`: what it costs to have every acknowledged commit on stable storage.
//!
//! Trireme with `repl.durability=disk`, InnoDB flushing nothing at commit, beside itself with `os`, and beside Galera whose
//! InnoDB flushes at commit (on the node of the client; the other nodes' flushes nobody waits for).

use super::report::{Figure, Measure, Record};
use super::run::Notebook;
use super::site::{Ground, ROWS, Site};
use super::{LatencyError, Plan};
use crate::oltp::run_load;
use trireme_testbed::interrupt;
use trireme_testbed::output::line;
use trireme_testbed::sysbench::Load;
use trireme_testbed::systems::Wsrep;

const NODES: usize = 3;

/// Threads per node of the case with many: 18 of all.
const THREADS: usize = 6;

/// Load before each measurement.
const WARMUP_S: u64 = 3;

/// Transactions of 18 statements, four of which write; and single updates, which are little else than a commit.
const SCRIPTS: [&str; 2] = ["oltp_read_write", "oltp_update_non_index"];

const TPS: Measure = Measure::median("commits/s", 0);
const P95_MS: Measure = Measure::median("p95 ms", 2);
const GALERA_RATIO: Measure = Measure::median("x Galera", 2);
const OS_RATIO: Measure = Measure::median("x os", 2);
const ONE_FIGURE: Measure = Measure::count(">= 1.15 x Galera");
const MANY_FIGURE: Measure = Measure::count(">= 1.25 x Galera");
const OS_FIGURE: Measure = Measure::count(">= 0.85 x os");

/// A load on the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    script: &'static str,
    /// One thread on one node, not six on each.
    is_single: bool,
}

impl Point {
    fn all() -> Vec<Self> {
        let of = |script| [true, false].map(|is_single| Self { script, is_single });
        SCRIPTS.into_iter().flat_map(of).collect()
    }

    fn name(self) -> String {
        let threads = if self.is_single { 1 } else { NODES * THREADS };
        let plural = if threads == 1 { "" } else { "s" };
        format!("{}, {threads} thread{plural}", self.script)
    }
}

/// How strongly a commit is held when it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strength {
    Galera,
    Os,
    Disk,
}

impl Strength {
    fn name(self, system: &Wsrep) -> String {
        let name = &system.name;
        match self {
            Self::Galera => format!("{name} flush=1"),
            Self::Os => format!("{name} os flush=0"),
            Self::Disk => format!("{name} disk flush=0"),
        }
    }
}

/// What one trial of all systems gave.
type Trial = Vec<(Strength, String, Vec<(f64, f64)>)>;

/// Runs the part: the systems take turns in each trial.
pub fn run(
    plan: &Plan,
    ground: &Ground,
    systems: &[Wsrep],
    notebook: &mut Notebook,
) -> Result<(), LatencyError> {
    let turns = turns(systems);
    for trial in 1..=usize::from(plan.trials) {
        let mut done = Trial::new();
        for (system, strength) in &turns {
            interrupt::check()?;
            let name = strength.name(system);
            let measured = match measure(ground, system, *strength, trial, plan.seconds) {
                Ok(measured) => measured,
                Err(error) if error.ends_all() => return Err(error),
                Err(error) => {
                    line(&format!(
                        "durability, trial {trial}, {name}: failed: {error}"
                    ));
                    Vec::new()
                }
            };
            for (i, point) in Point::all().into_iter().enumerate() {
                let figures = measured.get(i).map(|own| {
                    let earlier = |wanted: Strength| {
                        let same = |(strength, by, _): &&(Strength, String, _)| {
                            *strength == wanted
                                && (wanted == Strength::Galera || *by == system.name)
                        };
                        let found = done.iter().find(same);
                        found.and_then(|(_, _, points)| Some(points.get(i)?.0))
                    };
                    let to = [Strength::Galera, Strength::Os].map(earlier);
                    figures(point, *strength, *own, to)
                });
                notebook.take(Record {
                    part: "durability",
                    case: point.name(),
                    system: name.clone(),
                    trial,
                    figures: figures.unwrap_or_default(),
                })?;
            }
            done.push((*strength, system.name.clone(), measured));
        }
    }
    Ok(())
}

/// Who is measured in what order: what others are compared with comes first.
fn turns(systems: &[Wsrep]) -> Vec<(&Wsrep, Strength)> {
    let (galera, own): (Vec<&Wsrep>, Vec<&Wsrep>) = systems.iter().partition(|s| s.is_galera());
    let galera = galera.into_iter().map(|system| (system, Strength::Galera));
    let own = own
        .into_iter()
        .flat_map(|system| [Strength::Os, Strength::Disk].map(|strength| (system, strength)));
    galera.chain(own).collect()
}

/// Commits per second and 95th percentile at each point, on one fresh cluster.
fn measure(
    ground: &Ground,
    system: &Wsrep,
    strength: Strength,
    trial: usize,
    seconds: u64,
) -> Result<Vec<(f64, f64)>, LatencyError> {
    let site = Site::on_loopback(ground, system, NODES, |cluster| {
        let settings = cluster.settings_mut();
        let flush = u8::from(strength == Strength::Galera);
        let flush = format!("--innodb-flush-log-at-trx-commit={flush}");
        settings.mariadbd_args.push(flush);
        settings.provider_options = match strength {
            Strength::Galera => String::new(),
            Strength::Os => "repl.durability=os".to_string(),
            Strength::Disk => "repl.durability=disk".to_string(),
        };
    })?;
    let points = Point::all().into_iter();
    let outcome = points
        .map(|point| {
            let load = Load {
                script: point.script,
                ..Load::read_write(1, ROWS, if point.is_single { 1 } else { THREADS })
            };
            let nodes = site.cluster.nodes();
            // The single thread is on the sequencer's node in some trials, on another in others.
            let nodes = match point.is_single {
                true => &nodes[trial % NODES..][..1],
                false => nodes,
            };
            let seed = trial as u32 * 1000;
            run_load(nodes, &load, WARMUP_S, seed + 500)?;
            let summaries = run_load(nodes, &load, seconds, seed)?;
            let tps = summaries.iter();
            let tps = tps.map(|s| s.transactions as f64 / s.seconds.max(0.001));
            let p95_ms = summaries.iter().map(|s| s.p95_ms).fold(0.0, f64::max);
            Ok((tps.sum(), p95_ms))
        })
        .collect::<Result<Vec<_>, LatencyError>>();
    site.end(outcome.is_err())?;
    outcome
}

fn figures(
    point: Point,
    strength: Strength,
    (tps, p95_ms): (f64, f64),
    [galera, os]: [Option<f64>; 2],
) -> Vec<Figure> {
    let mut figures = vec![(TPS, tps), (P95_MS, p95_ms)];
    let ratio = |to: Option<f64>| to.filter(|to| *to > 0.0).map(|to| tps / to);
    let met = |ratio: f64, goal: f64| f64::from(u8::from(ratio >= goal));
    if strength != Strength::Disk {
        return figures;
    }
    if let Some(ratio) = ratio(galera) {
        figures.push((GALERA_RATIO, ratio));
        figures.push(match point.is_single {
            true => (ONE_FIGURE, met(ratio, 1.15)),
            false => (MANY_FIGURE, met(ratio, 1.25)),
        });
    }
    if let Some(ratio) = ratio(os) {
        figures.push((OS_RATIO, ratio));
        if !point.is_single {
            figures.push((OS_FIGURE, met(ratio, 0.85)));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_testbed::packages::GALERA_PROVIDER;

    fn system(name: &str, provider: &str) -> Wsrep {
        Wsrep {
            name: name.to_string(),
            provider: Some(provider.into()),
        }
    }

    #[test]
    fn what_is_compared_with_is_measured_first() {
        let systems = [system("a", "/a.so"), system("g", GALERA_PROVIDER)];
        let order: Vec<String> = turns(&systems)
            .into_iter()
            .map(|(system, strength)| strength.name(system))
            .collect();
        assert_eq!(order, ["g flush=1", "a os flush=0", "a disk flush=0"]);
    }

    #[test]
    fn each_number_of_threads_has_its_goal() {
        let point = |is_single| Point {
            script: "x",
            is_single,
        };
        let of = |is_single, tps| {
            let to = [Some(100.0), Some(150.0)];
            figures(point(is_single), Strength::Disk, (tps, 1.0), to)
        };
        let value = |figures: &[Figure], wanted: Measure| {
            let found = figures.iter().find(|(measure, _)| *measure == wanted);
            found.map(|(_, value)| *value)
        };
        let one = of(true, 120.0);
        assert_eq!(value(&one, GALERA_RATIO), Some(1.2));
        assert_eq!(value(&one, OS_RATIO), Some(0.8));
        assert_eq!(
            (value(&one, ONE_FIGURE), value(&one, OS_FIGURE)),
            (Some(1.0), None)
        );
        let many = of(false, 120.0);
        assert_eq!(
            (value(&many, MANY_FIGURE), value(&many, OS_FIGURE)),
            (Some(0.0), Some(0.0))
        );
        let os = figures(point(true), Strength::Os, (9.0, 1.0), [Some(1.0), None]);
        assert_eq!(os.len(), 2);
    }
}
