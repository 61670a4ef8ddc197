//! A node's log loses an override that is made all the same, and the node comes to that branch after a restart (rule 11).
//!
//! n4 and n5 have lost the others, and an operator makes n4 primary. A flush hangs on n4. So n5 has the view in its log
//! and loses n4, before n4 commits the view by its own weight. n5 returns to the others, drops the view, and applies
//! their writes. It is killed, and finds only n4, which has other writes at the same seqnos: n5's database is of no use
//! there.

use trireme_group::ComponentState;
use trireme_log::Durability;
use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};
use crate::fault::Fault;

/// n4's flush hangs until n5 has lost n4.
const HANG_MS: u64 = 4_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LostOverrideNoteKept],
    plan: |seed| {
        let mut plan = hasty(5, seed);
        plan.durability = Durability::Disk;
        plan.nodes[N5].weight = 0;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let rest = [N1, N2, N3];
    stage.hang(N4, HANG_MS);
    let before = stage.write(N1, &[row(1)]);
    stage.until("n4 flushes a write", |s| s.holds(N4, before).is_some())?;
    stage.until("all have it", |s| s.has_applied(N5, before))?;
    stage.hang(N4, 0); // only this flush: n4's promise is kept at once
    stage.part(&[N4, N5], &rest);
    stage.until("n4 and n5 have lost the others", |s| {
        let lost = |node| s.component_state(node) == ComponentState::NonPrimary;
        lost(N4) && lost(N5)
    })?;
    stage.pass_ms(500);
    let is_synced = |s: &Stage, node| s.state(node) == Some(LocalState::Synced);
    let has_view = |s: &Stage, node| s.find_view(node, |view| view.override_id.is_some());
    stage.strike(Fault::Override { node: N4 });
    stage.until("n5 has the override", |s| has_view(s, N5).is_some())?;
    stage.part(&[N4], &[N5]);
    stage.reset(N4, N5);
    let uncommitted = has_view(stage, N5) > Some(stage.commit(N5));
    stage.check("n5 does not know that it is made", uncommitted)?;
    stage.until("n4 is primary alone", |s| {
        s.component_state(N4) == ComponentState::Primary
    })?;
    // Their log must be the better one: with n5's, nobody could tell whether the view is made.
    while rest.iter().all(|node| stage.term(*node) <= stage.term(N5)) {
        let leader = stage.takeover(&rest)?;
        let others: Vec<_> = (rest.into_iter()).filter(|node| *node != leader).collect();
        stage.pause(leader);
        let next = stage.takeover(&others)?;
        stage.resume(leader);
        stage.until("the leader has obeyed", |s| s.has_promised(leader, next))?;
    }
    let leader = stage.takeover(&rest)?;
    let written = stage.write(leader, &[row(2)]);
    stage.until("the rest goes on", |s| s.acknowledged(written))?;
    stage.join(&[N5], &rest);
    stage.until("n5 is back, and has dropped it", |s| {
        is_synced(s, N5) && s.members(N5) == 4 && has_view(s, N5).is_none()
    })?;
    for number in 0..3 {
        let written = stage.write(N2, &[row(number)]);
        stage.until("n5 has their writes", |s| s.has_applied(N5, written))?;
    }
    for number in 10..30 {
        let written = stage.write(N4, &[row(number)]);
        stage.until("n4 writes", |s| s.acknowledged(written))?;
    }
    stage.crash(N5, false);
    stage.part(&[N5], &rest);
    stage.join(&[N5], &[N4]);
    stage.start(N5);
    stage.until("n5 serves with n4", |s| {
        is_synced(s, N5) && s.members(N5) == 2
    })?;
    let written = stage.write(N5, &[row(1)]);
    stage.until("they go on", |s| s.acknowledged(written))
}
