//! Prints one schedule as a story for a reader.

use crate::directed;
use crate::edit::Edit;
use crate::invariants;
use crate::plan::Plan;
use crate::run::{self, Outcome};
use crate::trace::Trace;
use crate::watch::Watch;

const LEGEND: &str = "\
legend: times are in ms since the world began. n2 is a node (a data directory), n2#3 its third process.
  FAULT/ENDS: from the plan. Lines beginning with a node are what happened there: 'logs' is what the provider
  would log, 'Standing' the group's view of itself, 'Delivered' a committed entry (position), 'Ordered' a seqno
  that passed commit order in a database, 'Began', 'Read', 'Ended' what a client did (trx).";

/// Plays and prints a schedule. Err: no such profile.
pub fn replay(edit: &Edit, everything: bool) -> Result<Outcome, String> {
    let plan = edit.plan()?;
    describe(&plan);
    let mut watch = Watch::new(invariants::all());
    watch.trace = Some(Trace::new(everything));
    let outcome = run::run_watched(plan, watch);
    println!("{}", outcome.coverage);
    Ok(outcome)
}

/// Plays and prints a directed schedule; true if it reached its situation and nothing was violated. Err: there is no
/// such schedule.
pub fn replay_directed(name: &str, seed: u64, everything: bool) -> Result<bool, String> {
    let directed = directed::named(name)?;
    describe(&(directed.plan)(seed));
    let mut watch = Watch::new(invariants::all());
    watch.trace = Some(Trace::new(everything));
    let (outcome, reached) = directed.run(seed, watch);
    println!("{}", outcome.coverage);
    match &reached {
        Ok(()) => println!("the situation was reached"),
        Err(missed) => println!("NOT REACHED: {}", missed.0),
    }
    Ok(reached.is_ok() && outcome.violation.is_none())
}

/// Prints the plan of a run.
pub fn describe(plan: &Plan) {
    println!("{LEGEND}");
    println!(
        "seed {} of profile {}: durability {:?}, suspect timeout {} ms, jitter {} us, queues of {} frames, log {} bytes, \
         tail {} bytes, window {} bytes, calm at {} ms",
        plan.seed,
        plan.profile,
        plan.durability,
        plan.suspect_timeout_ms,
        plan.jitter_us,
        plan.queue_frames,
        plan.log_bytes,
        plan.tail_bytes,
        plan.window_bytes,
        plan.calm_us / 1000
    );
    for (index, node) in plan.nodes.iter().enumerate() {
        let delays = &plan.delay_us[index];
        println!(
            "  n{} starts at {} ms, weight {}, {} clients, {} appliers, {:?}, drift {} ppm, flush {} us, delays {delays:?} us",
            index + 1,
            node.start_us / 1000,
            node.weight,
            node.server.load.clients,
            node.server.appliers,
            node.server.flush,
            node.drift_ppm,
            node.flush_us,
        );
    }
    if let Some((_, why)) = plan.bad_seat {
        println!("  leadership begins with n1, where it sits badly: {why:?}");
    }
    for (index, (at, fault)) in plan.faults.iter().enumerate() {
        println!("  fault {index} at {} ms: {fault}", at / 1000);
    }
}
