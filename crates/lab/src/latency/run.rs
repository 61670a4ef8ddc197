//! The order of the trials, and where their figures go.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::away::{self, Departure};
use super::failover::{self, Victim};
use super::fault::Fault;
use super::large::{self, Large};
use super::report::{self, Figure, Record};
use super::site::Ground;
use super::slow::{self, Hindrance};
use super::{LatencyError, Part, Plan, distance, durability, trace, windows};
use trireme_testbed::interrupt;
use trireme_testbed::output::line;
use trireme_testbed::systems::{SystemError, Wsrep};

/// What is done in one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Failover(Fault, Victim),
    Far,
    Away(Departure),
    Trace,
    Regions,
    Slow(Hindrance, Victim),
    Large(Large, Victim),
}

/// Runs the plan: prints each trial, then a table per part. What was measured before a failure is in the file.
pub fn run(plan: &Plan) -> Result<(), LatencyError> {
    let systems = systems(plan)?;
    let cases = cases(plan);
    for case in &cases {
        if let Case::Failover(fault, _) = case {
            fault.check()?;
        }
    }
    let mut notebook = Notebook::open(plan.csv.as_deref())?;
    let outcome = run_cases(plan, &cases, &systems, &mut notebook);
    // What there is, also after an interruption.
    line(&report::tables(&notebook.records));
    outcome?;
    let all = notebook.records.len();
    let failed = notebook.records.iter().filter(|r| r.figures.is_empty());
    match failed.count() {
        0 => Ok(()),
        failed => Err(LatencyError::Failed { failed, all }),
    }
}

fn systems(plan: &Plan) -> Result<Vec<Wsrep>, LatencyError> {
    let texts = plan.systems.iter();
    let systems = texts
        .map(|text| Wsrep::parse(text, plan.provider.as_deref()))
        .collect::<Result<Vec<_>, _>>()?;
    match systems.iter().find(|system| !system.runs_with(3)) {
        Some(system) => Err(SystemError::Unknown(system.name.clone()).into()),
        None => Ok(systems),
    }
}

/// The cases of a plan, all but those of sysbench.
fn cases(plan: &Plan) -> Vec<Case> {
    let mut cases = Vec::new();
    for part in &plan.parts {
        match part {
            Part::Failover => {
                for fault in &plan.faults {
                    let victims = plan.victims.iter();
                    cases.extend(victims.map(|victim| Case::Failover(*fault, *victim)));
                }
            }
            Part::Far => cases.push(Case::Far),
            Part::Away => cases.extend(Departure::ALL.map(Case::Away)),
            Part::Trace => cases.push(Case::Trace),
            Part::Regions => cases.push(Case::Regions),
            Part::Slow => {
                for hindrance in [Hindrance::Cpu, Hindrance::Disk] {
                    let victims = plan.victims.iter();
                    cases.extend(victims.map(|victim| Case::Slow(hindrance, *victim)));
                }
            }
            Part::Large => {
                for streaming in [false, true] {
                    for mib in plan.large_mib.iter().copied() {
                        let large = Large { mib, streaming };
                        let victims = plan.victims.iter();
                        cases.extend(victims.map(|victim| Case::Large(large, *victim)));
                    }
                }
            }
            Part::Durability | Part::Windows => {}
        }
    }
    cases
}

impl Case {
    fn part(self) -> &'static str {
        match self {
            Self::Failover(..) => "failover",
            Self::Far => "far",
            Self::Away(_) => "away",
            Self::Trace => "trace",
            Self::Regions => "regions",
            Self::Slow(..) => "slow",
            Self::Large(..) => "large",
        }
    }

    fn name(self) -> String {
        match self {
            Self::Failover(fault, victim) => format!("{}, {}", fault.name(), victim.name()),
            Self::Far => "third node 100 ms away".to_string(),
            Self::Away(departure) => departure.name().to_string(),
            Self::Trace => "flushes".to_string(),
            Self::Regions => "40 ms apart".to_string(),
            Self::Slow(hindrance, victim) => format!("{}, {}", hindrance.name(), victim.name()),
            Self::Large(large, victim) => format!("{}, {}", large.name(), victim.name()),
        }
    }

    /// Whether `system` is tried in this case: Galera has no sequencer, so that one victim is as good as another.
    fn concerns(self, system: &Wsrep, plan: &Plan) -> bool {
        match self {
            Self::Failover(_, victim) | Self::Slow(_, victim) | Self::Large(_, victim) => {
                !system.is_galera() || plan.victims.first() == Some(&victim)
            }
            Self::Far | Self::Away(_) | Self::Trace | Self::Regions => true,
        }
    }

    /// One trial: rows of figures, each with the name of its case.
    fn trial(
        self,
        plan: &Plan,
        ground: &Ground,
        system: &Wsrep,
    ) -> Result<Vec<(String, Vec<Figure>)>, LatencyError> {
        let length = Duration::from_secs(plan.seconds);
        let figures = match self {
            Self::Failover(fault, victim) => {
                failover::trial(ground, system, fault, victim, plan.office_option.as_deref())?
            }
            Self::Far => {
                let rows = distance::far(ground, system, length)?.into_iter();
                return Ok(rows.map(|(case, f)| (case.to_string(), f)).collect());
            }
            Self::Away(departure) => {
                let away = Duration::from_secs(plan.away_seconds);
                away::trial(ground, system, departure, away, length)?
            }
            Self::Trace => return trace::trial(ground, system, length),
            Self::Regions => distance::regions(ground, system, length)?,
            Self::Slow(hindrance, victim) => {
                slow::trial(ground, system, hindrance, victim, length)?
            }
            Self::Large(large, victim) => large::trial(ground, system, large, victim)?,
        };
        Ok(vec![(self.name(), figures)])
    }
}

fn run_cases(
    plan: &Plan,
    cases: &[Case],
    systems: &[Wsrep],
    notebook: &mut Notebook,
) -> Result<(), LatencyError> {
    let ground = Ground::take()?;
    for case in cases {
        for trial in 1..=usize::from(plan.trials) {
            for system in systems.iter().filter(|s| case.concerns(s, plan)) {
                interrupt::check()?;
                let rows = match case.trial(plan, &ground, system) {
                    Ok(rows) => rows,
                    Err(error) if error.ends_all() => return Err(error),
                    Err(error) => {
                        let part = case.part();
                        let case = case.name();
                        let name = &system.name;
                        line(&format!(
                            "{part}, {case}, trial {trial}, {name}: failed: {error}"
                        ));
                        vec![(case, Vec::new())]
                    }
                };
                for (name, figures) in rows {
                    notebook.take(Record {
                        part: case.part(),
                        case: name,
                        system: system.name.clone(),
                        trial,
                        figures,
                    })?;
                }
            }
        }
    }
    if plan.parts.contains(&Part::Durability) {
        durability::run(plan, &ground, systems, notebook)?;
    }
    if plan.parts.contains(&Part::Windows) {
        windows::run(plan, &ground, systems, notebook)?;
    }
    Ok(())
}

/// All that was measured, in memory and in the CSV file.
pub(super) struct Notebook {
    records: Vec<Record>,
    csv: Option<(PathBuf, File)>,
}

impl Notebook {
    fn open(csv: Option<&Path>) -> Result<Self, LatencyError> {
        let csv = match csv {
            Some(path) => {
                let mut file = File::create(path).map_err(io_error(path))?;
                writeln!(file, "{}", report::CSV_HEADER).map_err(io_error(path))?;
                Some((path.to_path_buf(), file))
            }
            None => None,
        };
        Ok(Self {
            records: Vec::new(),
            csv,
        })
    }

    /// Notes what a trial gave.
    pub(super) fn take(&mut self, record: Record) -> Result<(), LatencyError> {
        if !record.figures.is_empty() {
            line(&record.line());
        }
        if let Some((path, file)) = &mut self.csv {
            file.write_all(record.csv().as_bytes())
                .map_err(io_error(path))?;
        }
        self.records.push(record);
        Ok(())
    }
}

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> LatencyError {
    let path = path.to_path_buf();
    move |source| LatencyError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        plan: Plan,
    }

    fn plan(arguments: &[&str]) -> Plan {
        Command::parse_from([&["latency"], arguments].concat()).plan
    }

    fn system(name: &str) -> Wsrep {
        Wsrep {
            name: name.to_string(),
            provider: Some(format!("/lib{name}_smm.so").into()),
        }
    }

    #[test]
    fn parts_and_faults_are_chosen() {
        let chosen = plan(&["--part", "failover,far", "--faults", "kill,cut"]);
        assert_eq!(
            cases(&chosen),
            [
                Case::Failover(Fault::Kill, Victim::Other),
                Case::Failover(Fault::Kill, Victim::Sequencer),
                Case::Failover(Fault::Cut, Victim::Other),
                Case::Failover(Fault::Cut, Victim::Sequencer),
                Case::Far,
            ]
        );
        assert_eq!(
            cases(&plan(&[])).len(),
            5 * 2 + 1 + 1 + 2 * 2 + 2 + 1 + 2 * 2
        );
        assert_eq!(cases(&plan(&["--part=windows"])), []);
    }

    #[test]
    fn galera_is_struck_once() {
        let both = plan(&[]);
        let times = |name: &str| {
            let all = cases(&both);
            all.iter()
                .filter(|c| c.concerns(&system(name), &both))
                .count()
        };
        assert_eq!(times("trireme"), 23);
        assert_eq!(times("galera"), 14);
        let only = plan(&["--victims", "sequencer"]);
        let case = Case::Failover(Fault::Kill, Victim::Sequencer);
        assert!(case.concerns(&system("galera"), &only));
    }

    #[test]
    fn what_was_measured_is_in_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut notebook = Notebook::open(Some(file.path())).unwrap();
        let record = Record {
            part: "far",
            case: "x".to_string(),
            system: "trireme".to_string(),
            trial: 1,
            figures: vec![(windows::TPS, 2.0)],
        };
        notebook.take(record).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(
            text,
            format!("{}\nfar,x,trireme,1,commits/s,2.000\n", report::CSV_HEADER)
        );
    }
}
