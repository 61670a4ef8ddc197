//! One schedule as a story that a person can read.

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

/// Prints it. Err: no such profile.
pub fn replay(edit: &Edit, everything: bool) -> Result<Outcome, String> {
    let plan = edit.plan()?;
    describe(&plan);
    let mut watch = Watch::new(invariants::all());
    watch.trace = Some(Trace::new(everything));
    let outcome = run::run_watched(plan, watch);
    println!("{}", outcome.coverage);
    Ok(outcome)
}

/// What was decided before the run.
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
    for (index, (at, fault)) in plan.faults.iter().enumerate() {
        println!("  fault {index} at {} ms: {fault}", at / 1000);
    }
}
