//! A node with a pending forced view comes to a majority that has committed other entries since (rule 11).
//!
//! n4 and n5 have lost the others, and an operator makes n4 primary. A flush hangs on n4. So n5 has the view in its log
//! and loses n4, before n4 commits the view by its own weight. The others go on. n5's last term is greater than theirs,
//! but it must not lead: its log lacks what they have committed. It drops the view.

use trireme_group::ComponentState;
use trireme_log::Durability;
use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};
use crate::fault::Fault;

/// n4's flush hangs until n5 has lost n4.
const HANG_MS: u64 = 4_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::PendingOverrideLeads],
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
    let leader = stage.takeover(&rest)?;
    let written = stage.write(leader, &[row(2)]);
    stage.until("the rest goes on", |s| s.acknowledged(written))?;
    stage.join(&[N5], &rest);
    stage.pass_ms(5_000);
    let is_back = is_synced(stage, N5) && stage.members(N5) == 4;
    stage.must(
        "n5 is back, and has dropped it",
        is_back && has_view(stage, N5).is_none(),
    );
    Ok(())
}
