//! Only the arbitrator's log has the entries that a node lacks.
//!
//! n2 dies with its log. n1 goes on with the arbitrator n3, and leaves. n2 comes back and finds only the arbitrator.
//! It gets the control state and the entries that its database lacks from there, and serves.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ArbitratorServesNothing],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let view = stage.view(N1);
    stage.crash(N2, false);
    stage.until("n2 is given up", |s| s.view(N1) > view)?;
    let all = stage.commit_many(N1, 0..5)?;
    stage.leave_until_gone(N1)?;
    stage.start(N2);
    stage.pass_ms(5_000);
    let has_all = all.iter().all(|x| stage.has_applied(N2, *x));
    stage.must("n2 has all that was acknowledged", has_all);
    let is_synced = stage.state(N2) == Some(LocalState::Synced);
    stage.must("n2 serves", is_synced);
    Ok(())
}
