//! Plays one schedule to its end: with faults, then without faults, then at rest.

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

/// Time between two looks at the whole world.
const LOOK_US: TimeUs = 50_000;
/// Time for the effects of the lies after the liar has stopped lying.
const TRUTH_US: TimeUs = 3_000_000;
/// Time after the faults within which every node must be synced ...
const SETTLE_US: TimeUs = 30_000_000;
/// ... or else this time, without load, or lagging nodes must have come nearer.
const CATCH_UP_US: TimeUs = 120_000_000;
/// The longest time for lagging nodes that come nearer: an IST of the smallest chunks from far away takes long.
const NEARER_US: TimeUs = 1_200_000_000;
/// Duration of the load without faults on all nodes, after the recovery.
const BUSY_US: TimeUs = 600_000;
/// Time within which leadership must leave a bad leader: a rest, and then a long enough observation.
const LEADERSHIP_US: TimeUs = 16_000_000;
/// Time within which the clients of every node must commit, or lagging nodes must have come nearer.
const SERVE_US: TimeUs = 5_000_000;
/// Time within which clients commit although a member is silent and another one restarts (measured: at most 3.5 s).
const MISSED_US: TimeUs = 10_000_000;
/// Time after the last new transaction within which all waits must end, or lagging nodes must have come nearer.
const REST_US: TimeUs = 10_000_000;

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant, `panic`, or `liveness`.
    pub what: String,
    /// The description, for a reader.
    pub text: String,
}

/// The result of a schedule.
pub struct Outcome {
    /// The violation, if there is one.
    pub violation: Option<Violation>,
    /// The counts of its events.
    pub coverage: Coverage,
    /// Number of events.
    pub events: u64,
    /// Time of its end.
    pub ended_us: TimeUs,
    /// The watch, with all that it has seen.
    pub watch: Watch,
}

/// Plays a plan with all invariants.
pub fn run(plan: Plan) -> Outcome {
    run_digested(plan, None)
}

/// Plays a plan with all invariants; a digest takes everything that leaves each core.
pub fn run_digested(plan: Plan, digest: Option<Digest>) -> Outcome {
    let watch = |invariants| Watch::new(invariants).digesting(digest);
    match plan.liar {
        Some(_) => run_among_liars(plan, watch(invariants::among_liars())),
        None => run_watched(plan, watch(invariants::all())),
    }
}

/// Plays a plan in which a member lies. Then only this is promised: no correct node panics or takes more memory than
/// its limit.
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

/// Plays a plan with this watch.
pub fn run_watched(plan: Plan, watch: Watch) -> Outcome {
    run_world(plan, watch, |world| run_until(world, world.plan.calm_us))
}

/// Plays a plan whose faults come from `trouble`; after its return there are no faults.
pub(crate) fn run_world(plan: Plan, watch: Watch, trouble: impl FnOnce(&mut World)) -> Outcome {
    let mut world = World::new(plan, watch);
    let played = quietly(|| {
        trouble(&mut world);
        recover(&mut world)
    });
    outcome(world, played)
}

/// The outcome. `played` is the result of the run, or the message of a panic.
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

/// Checks that the world recovers after the faults. Err: no liveness.
fn recover(world: &mut World) -> Result<(), String> {
    world.calm_down();
    if wait(world, SETTLE_US, "", World::recovered).is_err() {
        // If a joiner is slower than the load, the operator lowers the load.
        world.set_busy(false);
        world.operator_helps();
    }
    wait_while_nearer(world, CATCH_UP_US, "after the last fault", World::recovered)?;
    rest(world)?;
    world.set_busy(true);
    let before = world.acknowledged();
    match world.plan.bad_seat {
        Some(_) if world.plan.leadership_moves => settle_leadership(world)?,
        _ => run_until(world, world.now_us + BUSY_US),
    }
    let serves = |world: &World, node: usize| has_committed(world, &before, node);
    let serve = |world: &mut World| {
        let mut nodes = world.data_nodes();
        match nodes.find(|node| !serves(world, *node)) {
            Some(node) => Err(format!("n{}'s clients commit nothing", node + 1)),
            None => Ok(()),
        }
    };
    if wait(world, SERVE_US, "", serve).is_err() {
        // The clients of a far node may lose every conflict with those of a near one.
        let nodes = 0..world.machines.len();
        let served: Vec<usize> = nodes.filter(|node| serves(world, *node)).collect();
        world.silence(&served);
    }
    // A node that was left out of flow control while it was slow: its clients wait until it has caught up.
    wait_while_nearer(world, SERVE_US, "after everybody has recovered", serve)?;
    miss_a_member(world)?;
    rest(world)?;
    for node in 0..world.machines.len() {
        world.show_control(node);
    }
    world.watch.end();
    Ok(())
}

/// True if a client of the node has committed since its [`World::acknowledged`] was this.
fn has_committed(world: &World, before: &[(u64, u64)], node: usize) -> bool {
    let ((process, count), (earlier, least)) = (world.acknowledged()[node], before[node]);
    count > if process == earlier { least } else { 0 }
}

/// Lets a member fall silent for good, and others restart. Checks that they go on without it, and that it comes back.
fn miss_a_member(world: &mut World) -> Result<(), String> {
    let absence = world.plan.absence.clone();
    let Some(absence) = absence.filter(|absence| world.may_miss(absence.node)) else {
        return Ok(());
    };
    let (node, name) = (
        absence.node,
        format!("while n{} is silent", absence.node + 1),
    );
    world.set_busy(true);
    world.falls_silent(node, absence.is_cut_off);
    commits_again(world, MISSED_US, &name)?;
    for (after_us, restart) in &absence.restarts {
        run_until(world, world.now_us + after_us);
        world.restarts(restart);
        commits_again(world, MISSED_US, &name)?;
        go_on(world, &name, |world| world.united_without(node))?;
    }
    if absence.restarts.is_empty() {
        go_on(world, &name, |world| world.united_without(node))?;
    }
    world.speaks_again(node, absence.is_cut_off);
    go_on(world, "after the silence", World::recovered)
}

/// Waits until this holds, if need be without load, and then until a client commits.
fn go_on(
    world: &mut World,
    when: &str,
    mut holds: impl FnMut(&mut World) -> Result<(), String>,
) -> Result<(), String> {
    world.forget_synced();
    if wait(world, SETTLE_US, "", &mut holds).is_err() {
        world.set_busy(false);
    }
    wait_while_nearer(world, CATCH_UP_US, when, &mut holds)?;
    world.set_busy(true);
    commits_again(world, SERVE_US, when)
}

/// Waits until a client commits.
fn commits_again(world: &mut World, within_us: TimeUs, when: &str) -> Result<(), String> {
    let before = world.acknowledged();
    wait(world, within_us, when, |world| {
        let mut nodes = 0..world.machines.len();
        match nodes.any(|node| has_committed(world, &before, node)) {
            true => Ok(()),
            false => Err("nobody commits".to_owned()),
        }
    })
}

/// Checks that leadership moves by itself, and then stays.
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
    // At most one move in ten seconds, and one that was due when the faults ended.
    // A process that has ended meanwhile counts no more.
    let moves = world.leaderships_handed().saturating_sub(before);
    let most = 2 + LEADERSHIP_US / 10_000_000;
    if moves > most {
        let s = LEADERSHIP_US / 1_000_000;
        return Err(format!(
            "leadership was handed over {moves} times within {s} s"
        ));
    }
    Ok(())
}

/// Lets time pass, and looks at the whole world now and then.
fn run_until(world: &mut World, end_us: TimeUs) {
    while world.now_us < end_us && world.watch.violation.is_none() {
        world.run_until((world.now_us + LOOK_US).min(end_us));
        world.look();
    }
}

/// Stops new transactions and checks that everything comes to rest.
fn rest(world: &mut World) -> Result<(), String> {
    world.set_busy(false);
    // Bulk payloads go through a window of 1,000 bytes: a far member gets only a few in a round trip.
    let quiet = wait_while_nearer(world, REST_US, "while clients rest", |world| world.quiet());
    if let Err(what) = &quiet {
        let what = what.clone();
        world.watch.see(world.now_us, 0, Seen::Waiting { what });
    }
    quiet
}

/// As `wait`, but waits again while the lagging nodes come nearer.
fn wait_while_nearer(
    world: &mut World,
    within_us: TimeUs,
    when: &str,
    mut holds: impl FnMut(&mut World) -> Result<(), String>,
) -> Result<(), String> {
    let deadline = world.now_us + NEARER_US;
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

/// The message of this thread's last panic.
pub(crate) fn last_panic() -> String {
    PANIC.with_borrow(String::clone)
}

/// Runs `what` without the output of a panic. Err: the message of the panic.
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
