//! One schedule from its beginning to its end: with faults, then without, then at rest.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::coverage::Coverage;
use crate::digest::Digest;
use crate::invariants;
use crate::plan::Plan;
use crate::seen::{Seen, TimeUs};
use crate::watch::Watch;
use crate::world::World;

/// Between two looks at the whole.
const LOOK_US: TimeUs = 50_000;
/// A liar has stopped lying: what it has brought about goes on for so long.
const TRUTH_US: TimeUs = 3_000_000;
/// Faults have stopped: by then everybody must be synced ...
const SETTLE_US: TimeUs = 30_000_000;
/// ... or else after so long without load.
const CATCH_UP_US: TimeUs = 120_000_000;
/// Everybody has recovered: for this long there is load on all nodes without faults.
const BUSY_US: TimeUs = 600_000;
/// By then leadership has left a bad seat: after a rest, and when that has been seen for long enough.
const LEADERSHIP_US: TimeUs = 16_000_000;
/// By then every node's clients must have committed something, or whoever is behind has come nearer.
const SERVE_US: TimeUs = 5_000_000;
/// Clients begin nothing more: by then nobody may wait any more, or whoever is behind has come nearer.
const REST_US: TimeUs = 10_000_000;

/// What broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant, `panic`, or `liveness`.
    pub what: String,
    /// For a person.
    pub text: String,
}

/// How a schedule went.
pub struct Outcome {
    /// What broke.
    pub violation: Option<Violation>,
    /// What it came upon.
    pub coverage: Coverage,
    /// How many events there were.
    pub events: u64,
    /// When it ended.
    pub ended_us: TimeUs,
    /// The watch that saw it all.
    pub watch: Watch,
}

/// Plays a plan with all invariants.
pub fn run(plan: Plan) -> Outcome {
    run_digested(plan, None)
}

/// The same; a digest takes in what leaves each core.
pub fn run_digested(plan: Plan, digest: Option<Digest>) -> Outcome {
    let watch = |invariants| Watch::new(invariants).digesting(digest);
    match plan.liar {
        Some(_) => run_among_liars(plan, watch(invariants::among_liars())),
        None => run_watched(plan, watch(invariants::all())),
    }
}

/// Plays a plan in which a member lies. Nothing is promised then, but that no correct node panics or takes more memory than it
/// is meant to.
fn run_among_liars(plan: Plan, watch: Watch) -> Outcome {
    let mut world = World::new(plan, watch);
    let played = quietly(|| {
        let calm_us = world.plan.calm_us;
        run_until(&mut world, calm_us);
        world.calm_down();
        run_until(&mut world, calm_us + TRUTH_US);
    });
    outcome(world, played.map(Ok))
}

/// Plays a plan.
pub fn run_watched(plan: Plan, watch: Watch) -> Outcome {
    run_world(plan, watch, |world| run_until(world, world.plan.calm_us))
}

/// Plays a plan whose faults are made by `trouble`; nothing goes wrong any more when it returns.
pub(crate) fn run_world(plan: Plan, watch: Watch, trouble: impl FnOnce(&mut World)) -> Outcome {
    let mut world = World::new(plan, watch);
    let played = quietly(|| {
        trouble(&mut world);
        recover(&mut world)
    });
    outcome(world, played)
}

/// `played`: what was said in the end, or how it panicked.
fn outcome(mut world: World, played: Result<Result<(), String>, String>) -> Outcome {
    let broken = world.watch.violation.take();
    let violation = match (broken, played) {
        (Some((name, text)), _) => Some(Violation {
            what: name.to_owned(),
            text,
        }),
        (None, Ok(Err(text))) => Some(Violation {
            what: "liveness".to_owned(),
            text,
        }),
        (None, Err(text)) => Some(Violation {
            what: "panic".to_owned(),
            text,
        }),
        (None, Ok(Ok(()))) => None,
    };
    let ended_us = world.now_us;
    if let Some(violation) = &violation {
        world.tell_waiting();
        let line = || format!("VIOLATION of {}: {}", violation.what, violation.text);
        world.watch.tell(ended_us, line);
    }
    world.count();
    Outcome {
        violation,
        coverage: world.coverage,
        events: world.events,
        ended_us,
        watch: world.watch,
    }
}

/// Faults are over. Err: no liveness.
fn recover(world: &mut World) -> Result<(), String> {
    world.calm_down();
    if wait(world, SETTLE_US, "", World::recovered).is_err() {
        // A joiner slower than the load is the operator's matter, who lowers it.
        world.set_busy(false);
        world.operator_helps();
    }
    wait(world, CATCH_UP_US, "after the last fault", World::recovered)?;
    rest(world)?;
    world.set_busy(true);
    let before = world.acknowledged();
    match world.plan.bad_seat {
        Some(_) if world.plan.leadership_moves => settle_leadership(world)?,
        _ => run_until(world, world.now_us + BUSY_US),
    }
    let serves = |world: &World, node: usize| world.acknowledged()[node] > before[node];
    let serve = |world: &mut World| {
        let mut nodes = world.data_nodes();
        match nodes.find(|node| !serves(world, *node)) {
            Some(node) => Err(format!("n{}'s clients commit nothing", node + 1)),
            None => Ok(()),
        }
    };
    if wait(world, SERVE_US, "", serve).is_err() {
        // A far node's clients may lose every conflict with a near one's.
        let nodes = 0..world.machines.len();
        let served: Vec<usize> = nodes.filter(|node| serves(world, *node)).collect();
        world.silence(&served);
    }
    // Left out of flow control while it was slow: its clients wait until it has caught up.
    wait_while_nearer(world, SERVE_US, "after everybody has recovered", serve)?;
    rest(world)?;
    for node in 0..world.machines.len() {
        world.show_control(node);
    }
    world.watch.end();
    Ok(())
}

/// Leadership has to move by itself, and then to stay.
fn settle_leadership(world: &mut World) -> Result<(), String> {
    let slowed = world.slow_leadership();
    let (begin_us, before) = (world.now_us, world.leaderships_handed());
    let seated = |world: &mut World| world.leader_sits_well();
    wait(world, LEADERSHIP_US, "", seated).map_err(|why| format!("the leader sits badly{why}"))?;
    run_until(world, begin_us + LEADERSHIP_US);
    if world.watch.violation.is_some() {
        return Ok(());
    }
    world.leader_sits_well()?;
    if let Some((node, work_us)) = slowed {
        world.plan.nodes[node].work_us = work_us;
    }
    // At most one for each ten seconds, and one that was due when the faults were over.
    let moves = world.leaderships_handed() - before;
    let most = 2 + LEADERSHIP_US / 10_000_000;
    if moves > most {
        let s = LEADERSHIP_US / 1_000_000;
        return Err(format!(
            "leadership was handed over {moves} times within {s} s"
        ));
    }
    Ok(())
}

/// Lets time pass, looking at the whole now and then.
fn run_until(world: &mut World, end_us: TimeUs) {
    while world.now_us < end_us && world.watch.violation.is_none() {
        world.run_until((world.now_us + LOOK_US).min(end_us));
        world.look();
    }
}

/// Clients begin nothing more: everything must come to rest.
fn rest(world: &mut World) -> Result<(), String> {
    world.set_busy(false);
    // Large payloads through a window of 1,000 bytes: a far member gets a few in a round trip.
    let quiet = wait_while_nearer(world, REST_US, "while clients rest", |world| world.quiet());
    if let Err(what) = &quiet {
        let what = what.clone();
        world.watch.see(world.now_us, 0, Seen::Waiting { what });
    }
    quiet
}

/// As `wait`, again and again while whoever is behind comes nearer.
fn wait_while_nearer(
    world: &mut World,
    within_us: TimeUs,
    when: &str,
    mut holds: impl FnMut(&mut World) -> Result<(), String>,
) -> Result<(), String> {
    let deadline = world.now_us + CATCH_UP_US;
    loop {
        let behind = world.behind();
        let held = wait(world, within_us, when, &mut holds);
        let comes_nearer = world.behind() < behind && world.now_us < deadline;
        if held.is_ok() || !comes_nearer {
            return held;
        }
    }
}

fn wait(
    world: &mut World,
    within_us: TimeUs,
    when: &str,
    mut holds: impl FnMut(&mut World) -> Result<(), String>,
) -> Result<(), String> {
    let deadline = world.now_us + within_us;
    loop {
        if world.watch.violation.is_some() {
            return Ok(());
        }
        match holds(world) {
            Ok(()) => return Ok(()),
            Err(reason) if world.now_us >= deadline => {
                let s = within_us / 1_000_000;
                return Err(format!("{when}, for {s} s: {reason}"));
            }
            Err(_) => world.run_until(world.now_us + LOOK_US),
        }
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What this thread has panicked with last.
pub(crate) fn last_panic() -> String {
    PANIC.with_borrow(String::clone)
}

/// Err: it panicked, and what it said.
fn quietly<T>(what: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                PANIC.set(info.to_string());
            } else {
                default(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(what));
    QUIET.set(false);
    outcome.map_err(|_| PANIC.take())
}
