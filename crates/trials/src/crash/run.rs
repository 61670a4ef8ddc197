//! Plays all schedules of a plan, one after the other.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::no_faults;
use super::schedule::{NODES, Schedule, seeds};
use super::stage::Stage;
use super::summary::Summary;
use super::trial::Trial;
use super::{CrashError, Plan};
use trireme_testbed::output::{line, piece};
use trireme_testbed::systems::{SystemError, Wsrep};

/// Plays the plan's schedules: prints a line for each, then a summary. Fails if a promise was broken.
pub fn run(plan: &Plan) -> Result<(), CrashError> {
    let system = Wsrep::parse(&plan.provider, None)?;
    if system.provider.is_none() {
        return Err(SystemError::Unknown(system.name).into());
    }
    let first = plan.seed.unwrap_or_else(new_seed);
    let stage = Stage::open()?;
    if plan.no_faults {
        line(&format!(
            "no faults, seed {first:#018x}, {}",
            described(plan, &system)
        ));
        return match no_faults::run(plan, &system, &stage, first)? {
            0 => Ok(()),
            failed => Err(CrashError::Settings(failed)),
        };
    }
    line(&format!(
        "{} schedules from seed {first:#018x} on, {}",
        plan.schedules,
        described(plan, &system)
    ));
    let mut summary = Summary::new(plan);
    let outcome = play(plan, &system, &stage, first, &mut summary);
    // Printed also after an interruption.
    piece(&summary.text());
    outcome?;
    match summary.failed() {
        0 => Ok(()),
        failed => Err(CrashError::Failed {
            failed,
            all: plan.schedules,
        }),
    }
}

fn play(
    plan: &Plan,
    system: &Wsrep,
    stage: &Stage,
    first: u64,
    summary: &mut Summary,
) -> Result<(), CrashError> {
    for (i, seed) in seeds(first, plan.schedules).into_iter().enumerate() {
        let schedule = Schedule::from_seed(seed, plan.fewest_without_power());
        piece(&format!(
            "{:3}/{} {seed:#018x} {schedule}: ",
            i + 1,
            plan.schedules
        ));
        let report = Trial::new(plan, &schedule, stage, system)?.run()?;
        line(&summary.add(seed, report));
    }
    Ok(())
}

fn described(plan: &Plan, system: &Wsrep) -> String {
    let mut text = system.name.clone();
    if !system.is_galera() {
        text += &format!(" with repl.durability={}", plan.durability());
    }
    if plan.power_loss {
        text += match plan.fewest_without_power() {
            Some(NODES) => ", power lost on all nodes at once",
            _ => ", power lost on two nodes or all at once",
        };
    }
    if plan.lying_disk {
        text += ", disks that lie";
    }
    text
}

fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    super::random::Random::new(now.unwrap_or(Duration::ZERO).as_nanos() as u64).number()
}
