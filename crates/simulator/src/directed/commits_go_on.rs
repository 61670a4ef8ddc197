//! What docs/guarantees.md promises in numbers: the time of a commit while a member is slow, gone, cut off for a moment
//! or leaves (rules 2, 3, 10).

use super::cluster::commit_each;
use super::{Directed, N1, N2, N3, Play, Stage, recovering};
use crate::seen::NodeId;

const ALL: [NodeId; 3] = [N1, N2, N3];
/// A commit takes a few round trips of 0.8 ms at most, and flushes of 0.5 ms.
const CALM_MS: u64 = 10;
/// A leader that is gone is replaced within this (Galera, measured: 6.1 s).
const TAKEOVER_MS: u64 = 1_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 leads", stage.is_leading(N1))?;
    commit_each(stage, &ALL, CALM_MS)?;
    a_paused_member_stalls_nobody(stage)?;
    a_broken_connection_removes_nobody(stage)?;
    a_paused_leader_is_replaced_without_a_view(stage)?;
    for _ in 0..2 {
        let leader = stage.takeover(&ALL)?;
        a_leave_takes_no_timeout(stage, leader)?;
    }
    let leader = stage.takeover(&ALL)?;
    a_leave_takes_no_timeout(stage, others(leader)[0])?;
    a_killed_leader_is_replaced(stage)
}

fn a_paused_member_stalls_nobody(stage: &mut Stage) -> Play {
    stage.pause(N3);
    for _ in 0..25 {
        commit_each(stage, &[N1, N2], CALM_MS)?;
        stage.pass_ms(100);
    }
    stage.resume(N3);
    stage.until("n3 has caught up", |s| s.end(N3) == s.end(N1))
}

fn a_broken_connection_removes_nobody(stage: &mut Stage) -> Play {
    let view = stage.view(N1);
    stage.reset(N1, N2);
    commit_each(stage, &ALL, 300)?;
    stage.pass_ms(stage.world.plan.suspect_timeout_ms + 1_000);
    stage.must("nobody was removed", stage.view(N1) == view);
    Ok(())
}

fn a_paused_leader_is_replaced_without_a_view(stage: &mut Stage) -> Play {
    let leader = stage.takeover(&ALL)?;
    let view = stage.view(leader);
    stage.pause(leader);
    commit_each(stage, &others(leader), TAKEOVER_MS)?;
    stage.must("nobody was removed", stage.view(others(leader)[0]) == view);
    stage.resume(leader);
    stage.until("the old leader knows", |s| !s.is_leading(leader))
}

/// A graceful leave, of whomever, takes no timeout.
fn a_leave_takes_no_timeout(stage: &mut Stage, leaver: NodeId) -> Play {
    stage.leave(leaver);
    commit_each(stage, &others(leaver), 500)?;
    stage.must("the leaver is removed", members(stage, others(leaver)[0]) == 2);
    stage.until("the leaver has stopped", |s| s.process(leaver).is_none())?;
    stage.start(leaver);
    stage.until("all serve", |s| s.serve(&ALL))
}

fn a_killed_leader_is_replaced(stage: &mut Stage) -> Play {
    let leader = stage.takeover(&ALL)?;
    stage.crash(leader, false);
    let rest = others(leader);
    commit_each(stage, &rest, TAKEOVER_MS)?;
    stage.until("the leader is removed", |s| members(s, rest[0]) == 2)?;
    commit_each(stage, &rest, CALM_MS)
}

fn others(node: NodeId) -> Vec<NodeId> {
    ALL.into_iter().filter(|other| *other != node).collect()
}

fn members(stage: &Stage, node: NodeId) -> usize {
    let group = stage.group(node);
    group.map_or(0, |group| group.configuration().members.len())
}
