//! Scenarios with a known outcome: what docs/guarantees.md promises in numbers.

use trireme_group::TimeMs;

use crate::plan::{Fault, Plan};
use crate::world::World;

/// Plays the faults on `size` near nodes, of which node 0 has founded the group and holds leadership.
fn run(size: usize, until: TimeMs, faults: Vec<(TimeMs, Fault)>) -> World {
    let count = faults.len();
    let mut world = World::new(Plan::directed(size, 60_000, faults), false);
    world.run_until(until);
    assert_eq!(world.active, vec![true; count], "every fault takes place");
    world
}

/// The longest time within which none of `nodes` had a commit acknowledged.
fn longest_gap_ms(world: &World, nodes: &[usize], from: TimeMs, to: TimeMs) -> TimeMs {
    let within = |(at, node): &&(TimeMs, usize)| nodes.contains(node) && (from..to).contains(at);
    let times = world.acknowledged.iter().filter(within).map(|(at, _)| *at);
    let times: Vec<TimeMs> = [from].into_iter().chain(times).chain([to]).collect();
    times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap_or(to - from)
}

fn members(world: &World, node: usize) -> usize {
    world.nodes[node]
        .process
        .as_ref()
        .map_or(0, |p| p.group.configuration().members.len())
}

#[test]
fn three_nodes_commit_within_a_few_round_trips() {
    let world = run(3, 6_000, vec![]);
    for node in 0..3 {
        let gap = longest_gap_ms(&world, &[node], 2_000, 6_000);
        assert!(
            gap <= 40,
            "node {node}: {gap} ms between commits of a client that thinks 20 ms at most"
        );
    }
}

/// Rule 2: < 1 s (Galera: 6.1 s).
#[test]
fn a_killed_leader_is_replaced_within_a_second() {
    let world = run(
        3,
        10_000,
        vec![(
            3_000,
            Fault::Crash {
                node: 0,
                for_ms: 20_000,
            },
        )],
    );
    let gap = longest_gap_ms(&world, &[1, 2], 2_000, 10_000);
    assert!(gap < 1_000, "{gap} ms without a commit");
    assert_eq!(members(&world, 1), 2, "it is removed");
}

/// Rules 2, 24: a takeover with unchanged membership makes no view.
#[test]
fn a_paused_leader_is_replaced_without_a_view() {
    let mut world = World::new(
        Plan::directed(
            3,
            60_000,
            vec![(
                3_000,
                Fault::Pause {
                    node: 0,
                    for_ms: 3_000,
                },
            )],
        ),
        false,
    );
    world.run_until(2_900);
    let before = world.coverage;
    world.run_until(10_000);
    let gap = longest_gap_ms(&world, &[1, 2], 2_000, 10_000);
    assert!(gap < 1_000, "{gap} ms without a commit");
    assert_eq!(world.coverage.views, before.views, "nobody is shown a view");
    assert_eq!(members(&world, 1), 3);
}

/// The slowest member never sets the pace.
#[test]
fn a_paused_member_stalls_nobody() {
    let world = run(
        3,
        8_000,
        vec![(
            3_000,
            Fault::Pause {
                node: 2,
                for_ms: 4_000,
            },
        )],
    );
    let gap = longest_gap_ms(&world, &[0, 1], 2_000, 8_000);
    assert!(gap < 100, "{gap} ms without a commit");
}

/// Rule 3: no timeout in it, whoever leaves.
#[test]
fn a_graceful_leave_takes_no_timeout() {
    for leaver in 0..3 {
        let world = run(
            3,
            4_500,
            vec![(
                3_000,
                Fault::Leave {
                    node: leaver,
                    for_ms: 20_000,
                },
            )],
        );
        assert_eq!(world.coverage.leaves, 1, "node {leaver} has left");
        let others: Vec<usize> = (0..3).filter(|node| *node != leaver).collect();
        assert_eq!(members(&world, others[0]), 2);
        let gap = longest_gap_ms(&world, &others, 2_000, 4_500);
        assert!(gap < 500, "node {leaver} leaves: {gap} ms without a commit");
    }
}

/// Five nodes go on as three, then as two.
#[test]
fn a_component_shrinks_with_its_majority() {
    let crash = |at, node| {
        (
            at,
            Fault::Crash {
                node,
                for_ms: 40_000,
            },
        )
    };
    let world = run(
        5,
        12_000,
        vec![crash(3_000, 0), crash(3_000, 4), crash(7_000, 1)],
    );
    assert_eq!(members(&world, 2), 2);
    let gap = longest_gap_ms(&world, &[2, 3], 2_000, 12_000);
    assert!(gap < 1_000, "{gap} ms without a commit");
}

/// Rule 10: a broken connection is no death.
#[test]
fn a_broken_connection_removes_nobody() {
    let mut world = World::new(
        Plan::directed(3, 60_000, vec![(3_000, Fault::Reset { a: 0, b: 1 })]),
        false,
    );
    world.run_until(2_900);
    let before = world.coverage;
    world.run_until(9_000);
    assert_eq!(world.coverage.views, before.views);
    let gap = longest_gap_ms(&world, &[0, 1, 2], 2_000, 9_000);
    assert!(gap < 300, "{gap} ms without a commit");
}

/// Rule 7: what the leader orders while its origin, whose vote is needed, gives up on it is voided when they meet again.
/// That none of it is delivered is for the judge to see.
#[test]
fn withdrawn_submissions_are_voided() {
    let cut = Fault::Cut {
        from: vec![0],
        to: vec![1],
        both: false,
        reset: true,
        for_ms: 8_000,
    };
    let world = run(2, 20_000, vec![(3_000, cut)]);
    let processes = world.nodes.iter().flat_map(|node| &node.process);
    let voided: u64 = processes.map(|p| p.group.counters().voided).sum();
    assert!(
        world.coverage.withdrawn > 0 && voided > 0,
        "{:?}, {voided} voided",
        world.coverage
    );
    let gap = longest_gap_ms(&world, &[1], 15_000, 20_000);
    assert!(
        gap < 300,
        "{gap} ms without a commit after all is well again"
    );
}
