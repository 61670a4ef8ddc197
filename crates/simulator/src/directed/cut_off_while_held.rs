//! A node is cut off within FLUSH TABLES WITH READ LOCK (server-contract.md#pause).
//!
//! n3's server is Synced when it desyncs and pauses n3. A view comes, in which n3 is still a member, and waits; then
//! n3 is alone. UNLOCK TABLES depends on the server's state: the server resyncs a node that it believes to be Synced.
//! So it must hear of the lost primary component only after the pause, and the earlier view must not make n3 a member
//! again.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, N4, Play, Stage, cluster, row};
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::NonPrimaryOvertakesPause, Mutant::OldViewIsPrimary],
    plan: |seed| {
        let mut plan = cluster(4, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.nodes[N3].server.admin.hold_us = Span(6_000_000, 6_000_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.flush_tables(N3);
    stage.until("n3 is held still", |s| s.is_held_still(N3))?;
    stage.check("and desynced", stage.state(N3) == Some(LocalState::Donor))?;
    stage.leave(N4);
    let view = stage.view(N3);
    stage.until("n3 knows that n4 has left", |s| s.view(N3) > view)?;
    stage.part(&[N3], &[N1, N2]);
    let alone = |s: &Stage| s.state(N3) == Some(LocalState::Initialized);
    stage.until("n3 has no majority", alone)?;
    stage.check("it is held still", stage.is_held_still(N3))?;
    let write = stage.write(N1, &[row(1)]);
    stage.until("the others go on", |s| s.acknowledged(write))?;
    stage.until("n3 is let go", |s| !s.is_held_still(N3))?;
    stage.pass_ms(500);
    stage.must("n3 is alone still", alone(stage));
    let knows = |s: &Stage| s.process(N3).is_some_and(|p| p.server.knows_of_loss());
    stage.must("and its server knows that", knows(stage));
    stage.join(&[N3], &[N1, N2]);
    stage.pass_ms(10_000);
    stage.must("n3 is back", stage.state(N3) == Some(LocalState::Synced));
    stage.must("and has it all", stage.has_applied(N3, write));
    Ok(())
}
