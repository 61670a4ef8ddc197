//! DDL that fails on all nodes with a database is no error of any node (rule 22).
//!
//! n1 is the only node left beside the arbitrator n3, which has executed nothing.

use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ArbitratorVotes],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.leave_until_gone(N2)?;
    let ddl = stage.failing_ddl(N1, 0);
    stage.until("the client is told", |s| s.told(ddl).is_some())?;
    stage.pass_ms(1_000);
    let is_synced = stage.state(N1) == Some(LocalState::Synced);
    stage.must("n1 goes on", is_synced);
    Ok(())
}
