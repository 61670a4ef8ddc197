//! All nodes lose power in `os` mode, and a joiner had a control state from beyond the end of its own log (rules 4, 5, 6).
//!
//! n3 joins with an empty directory while a bulk payload travels to it slowly. Its control state comes from a member that
//! has that payload, and X behind it; its log ends before. n1 and n2 lose both from their logs, but not from their
//! databases. n3's log knows of neither: they go on with a database, and X is kept.

use trireme_mutants::Mutant;

use super::cluster::NEVER_US;
use super::small_beside_large::many_rows;
use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::plan::Plan;
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::StateAheadOfLog, Mutant::DatabaseNotHeeded],
    plan,
    play,
};

/// The control state has come, and been written; the bulk payload takes fifty round trips.
const SOON_MS: u64 = 300;

fn plan(seed: u64) -> Plan {
    let mut plan = Plan {
        delay_us: vec![vec![5_000; 3]; 3],
        large_bytes: 500,
        part_bytes: 4,
        staged_bytes: 0,
        ..recovering(3, seed)
    };
    plan.nodes[N3].start_us = NEVER_US;
    for node in [N1, N2] {
        // Not done before the power loss: a vote for n3 would flush all logs.
        plan.nodes[node].server.speed.transfer_us = Span(1_000_000, 1_000_000);
    }
    plan
}

fn play(stage: &mut Stage) -> Play {
    stage.until("two nodes serve", |s| s.serve(&[N1, N2]))?;
    let all = [N1, N2, N3];
    stage.part(&[N1], &[N3]);
    stage.start(N3);
    stage.pass_ms(300);
    stage.join(&[N1], &[N3]);
    let end = stage.end(N1);
    stage.until("n1 admits n3", |s| s.end(N1) > end)?;
    stage.cut(&[N3], &[N1, N2]);
    stage.until("n3 is admitted", |s| s.members(N3) == 3)?;
    let large = stage.write(N2, &many_rows());
    stage.until("the large one is committed", |s| s.acknowledged(large))?;
    let x = stage.write(N1, &[row(101)]);
    stage.until("X is committed", |s| {
        s.acknowledged(x) && s.has_applied(N2, x)
    })?;
    stage.heal(&[N3], &[N1, N2]);
    stage.pass_ms(SOON_MS);
    stage.check("n3 lacks the large one", stage.holds(N3, large).is_none())?;
    for node in all {
        stage.world.machines[node].disk.lose_power(|| node == N3);
        stage.crash(node, true);
    }
    for node in all {
        stage.start(node);
    }
    let lost = all.iter().all(|n| stage.holds(*n, x).is_none());
    stage.check("no log has X", lost)?;
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let y = stage.write(N3, &[row(102)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
