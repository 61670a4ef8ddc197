//! A joiner needs a state while the member that could give it is dead, and still in the view (rules 10, 13 and 19).
//!
//! With an even seed all nodes die within a total-order action, and every database is in doubt. n1 and n2 come back a
//! second before n3: their first view lists n3's old process, which was Synced. They must not give their databases up for
//! the one of that process: the order would choose it as their donor, and they would end when its successor takes its
//! place.
//!
//! With an odd seed n3's machine is gone when n4 joins with an empty database. The wait for the state ends when the group
//! has removed n3.

use trireme_group::ComponentState;
use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::cluster::NEVER_US;
use super::{Directed, N1, N2, N3, N4, Play, Stage, recovering, row};
use crate::seen::NodeId;
use crate::server::{Flush, Span};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DonorNotAwaited],
    plan: |seed| {
        let mut plan = recovering(4, seed);
        plan.durability = Durability::Disk;
        plan.sst_donor = "n3,";
        plan.nodes[N4].start_us = NEVER_US;
        for node in &mut plan.nodes {
            node.server.speed.ddl_us = Span(400_000, 500_000);
            node.server.flush = Flush::EachSecond;
        }
        plan
    },
    play,
};

const TRIO: [NodeId; 3] = [N1, N2, N3];

fn play(stage: &mut Stage) -> Play {
    stage.until("they serve", |s| s.serve(&TRIO))?;
    stage.pass_ms(2_000);
    match stage.world.plan.seed % 2 {
        0 => all_die_within_ddl(stage),
        _ => joins_beside_dead(stage),
    }
}

fn all_die_within_ddl(stage: &mut Stage) -> Play {
    let action = stage.ddl(N1, 0);
    stage.until("all know of the action", |s| {
        TRIO.iter().all(|n| s.has_committed(*n, action))
    })?;
    stage.pass_ms(50);
    for node in TRIO {
        stage.crash(node, false);
    }
    stage.start(N1);
    stage.start(N2);
    stage.until("n1 is primary beside the dead", |s| {
        s.component_state(N1) == ComponentState::Primary && s.members(N1) == 3
    })?;
    stage.pass_ms(500);
    stage.start(N3);
    let back = stage.until("they serve again", |s| s.serve(&TRIO));
    stage.must("they come back by themselves", back.is_ok());
    nobody_has_ended(stage, &TRIO, 2);
    let after = stage.write(N2, &[row(1)]);
    stage.until("a write afterwards", |s| s.acknowledged(after))
}

fn joins_beside_dead(stage: &mut Stage) -> Play {
    stage.part(&[N3], &[N1, N2, N4]);
    stage.start(N4);
    stage.until("n3 is a member beside n4", |s| s.members(N1) == 4)?;
    let joined = stage.until("n4 serves", |s| s.serves(N4));
    stage.must("n4 joins", joined.is_ok());
    nobody_has_ended(stage, &[N4], 1);
    Ok(())
}

/// These nodes have begun no more than this number of processes.
fn nobody_has_ended(stage: &mut Stage, nodes: &[NodeId], processes: usize) {
    let begun = |node: &NodeId| stage.world.machines[*node].incarnations.len();
    let none_has = nodes.iter().all(|node| begun(node) == processes);
    stage.must("no server had to end", none_has);
}
