//! The time of a commit while a member is slow, gone, cut off for a moment or leaves: the numbers of docs/guarantees.md
//! (rules 2, 3, 10).

use super::cluster::{TAKEOVER_MS, commit_each, commit_until_alone};
use super::{Directed, N1, N2, N3, Play, Stage, recovering};
use crate::seen::NodeId;

const ALL: [NodeId; 3] = [N1, N2, N3];
/// A commit takes a few round trips of 0.8 ms at most, and flushes of 0.5 ms.
const CALM_MS: u64 = 10;

/// A view without a member that leaves takes a few round trips.
const LEAVE_MS: u64 = 500;

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
    let began_us = stage.world.now_us;
    stage.leave(leaver);
    commit_each(stage, &others(leaver), LEAVE_MS)?;
    stage.until("the leaver is removed", |s| {
        s.members(others(leaver)[0]) == 2
    })?;
    let took_ms = (stage.world.now_us - began_us) / 1_000;
    stage.must("without a timeout", took_ms <= LEAVE_MS);
    stage.until("the leaver has stopped", |s| s.process(leaver).is_none())?;
    stage.start(leaver);
    stage.until("all serve", |s| s.serve(&ALL))
}

fn a_killed_leader_is_replaced(stage: &mut Stage) -> Play {
    let leader = stage.takeover(&ALL)?;
    stage.crash(leader, false);
    let rest = others(leader);
    commit_each(stage, &rest, TAKEOVER_MS)?;
    commit_until_alone(stage, &rest, LEAVE_MS)?;
    commit_each(stage, &rest, CALM_MS)
}

fn others(node: NodeId) -> Vec<NodeId> {
    ALL.into_iter().filter(|other| *other != node).collect()
}
