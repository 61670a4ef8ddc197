//! Whole groups of real cores on simulated time, network and disks, with faults. A seed fixes everything: what fails
//! here fails again with `TRIREME_SIM_SEEDS=<seed>`, and is told as a story after the faults that it does not need were left
//! out. `TRIREME_SIM_SEEDS=0..100000` searches, with `TRIREME_SIM_KEEP_GOING=1` for all that fail, one line each;
//! `TRIREME_SIM_TRACE=1000000` keeps every message of the story.

mod coverage;
mod directed;
mod driver;
mod faults;
mod judge;
mod kept;
mod load;
mod network;
mod plan;
mod process;
mod random;
mod survey;
mod trace;
mod world;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use bytes::Bytes;
use coverage::Coverage;
use plan::Plan;
use trireme_group::TimeMs;
use world::World;

/// Faults stopped: after this everybody must be a member again.
const SETTLE_MS: TimeMs = 40_000;
/// Nothing is wrong: a submission commits within this.
const COMMIT_MS: TimeMs = 3_000;

/// Runs a plan to its end.
fn play(world: &mut World) {
    world.run_until(world.plan.calm_at);
    // Load goes on for a while without faults, then everything comes to rest.
    world.run_until(world.plan.calm_at + 1_000);
    world.busy = false;
    settle(world, SETTLE_MS, "after the last fault");
    for node in 0..world.nodes.len() {
        let term = world.process(node).group.term();
        for _ in 0..3 {
            world.submit(node, Bytes::from_static(b"the last word"));
        }
        world.read(node);
        world.flush(node, term);
    }
    settle(world, COMMIT_MS, "with new submissions");
    let ends: Vec<_> = world
        .nodes
        .iter()
        .flat_map(|n| &n.process)
        .map(|p| (p.name.clone(), p.committed))
        .collect();
    world.judge.acknowledged_is_kept(&ends);
    for node in 0..world.nodes.len() {
        let counters = world.process(node).group.counters();
        world.coverage.count(counters);
    }
}

fn settle(world: &mut World, within_ms: TimeMs, when: &str) {
    let deadline = world.now + within_ms;
    loop {
        world.run_until(world.now + 100);
        match world.settled() {
            Ok(()) => return,
            Err(reason) => assert!(
                world.now < deadline,
                "no liveness {when}, after {within_ms} ms: {reason}"
            ),
        }
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Plays a plan; Err: what broke.
fn attempt(world: &mut World) -> Result<Coverage, String> {
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
    let outcome = catch_unwind(AssertUnwindSafe(|| play(world)));
    QUIET.set(false);
    outcome.map(|()| world.coverage).map_err(|_| PANIC.take())
}

/// What broke, without names and numbers.
fn kind(failure: &str) -> String {
    let text = failure.lines().nth(1).unwrap_or(failure);
    let text = match text.strip_prefix("rule ") {
        Some(rule) => return rule.chars().take(2).collect(),
        None => text.rsplit("ms: ").next().unwrap_or(text),
    };
    text.chars()
        .filter(|c| c.is_alphabetic() || c.is_whitespace())
        .take(24)
        .collect()
}

/// Leaves out faults, as long as the same still breaks.
fn shrink(plan: Plan, failure: &str) -> Plan {
    let mut best = plan;
    let mut chunk = best.faults.len().div_ceil(2);
    while chunk > 0 {
        let mut start = 0;
        while start < best.faults.len() {
            let mut fewer = best.clone();
            fewer
                .faults
                .drain(start..(start + chunk).min(fewer.faults.len()));
            let outcome = attempt(&mut World::new(fewer.clone(), false));
            if outcome.is_err_and(|other| kind(&other) == kind(failure)) {
                best = fewer;
            } else {
                start += chunk;
            }
        }
        chunk /= 2;
    }
    best
}

fn report(seed: u64, failure: &str) -> String {
    let plan = shrink(Plan::new(seed), failure);
    let mut world = World::new(plan, true);
    let shrunk = attempt(&mut world).expect_err("a seed fixes everything");
    let trace = world.trace.lines();
    let plan = &world.plan;
    format!(
        "seed {seed} fails: {failure}\nwith fewer faults: {}\n{} nodes, calm at {}; faults:\n{}\nlast events:\n{}\n\
         seed {seed}: {}\n",
        world.trace.readable(&shrunk),
        plan.nodes.len(),
        plan.calm_at,
        plan.faults
            .iter()
            .map(|(at, fault)| format!("  {at} {fault:?}\n"))
            .collect::<String>(),
        trace.join("\n"),
        world.trace.readable(&shrunk),
    )
}

/// Seeds to run, from the environment: "7" or "A..B".
fn wanted_seeds() -> Option<Range<u64>> {
    let text = std::env::var("TRIREME_SIM_SEEDS").ok()?;
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .unwrap_or_else(|_| panic!("TRIREME_SIM_SEEDS: {text}"))
    };
    Some(match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(&text)..number(&text) + 1,
    })
}

#[test]
fn groups_keep_their_promises_under_faults() {
    let default = if cfg!(debug_assertions) {
        0..100
    } else {
        0..300
    };
    let seeds = wanted_seeds().unwrap_or(default);
    let keep_going = std::env::var_os("TRIREME_SIM_KEEP_GOING").is_some();
    let mut failed = Vec::new();
    let mut total = Coverage::default();
    for seed in seeds.clone() {
        match attempt(&mut World::new(Plan::new(seed), false)) {
            Ok(coverage) => total.add(coverage),
            Err(failure) if keep_going => failed.push((seed, failure)),
            Err(failure) => panic!("{}", report(seed, &failure)),
        }
    }
    for (seed, failure) in &failed {
        println!("seed {seed}: {}", failure.replace('\n', " "));
    }
    println!(
        "{} seeds, {} failed, {total:?}",
        seeds.end - seeds.start,
        failed.len()
    );
    assert!(failed.is_empty());
    if seeds.end - seeds.start >= 100 {
        total.is_complete();
    }
}
