//! The founder is far away. Of the two others one is desynced, and the other does not want leadership (rules 2, 24).
//! Leadership stays with the founder until one of them can have it.

use trireme_group::Preference;
use trireme_mutants::Mutant;
use trireme_replicator::LocalState;

use super::far_founder::far_founder;
use super::{Directed, N1, N2, N3, Play, Stage, cluster};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LeadershipToUnable],
    plan: |seed| {
        let mut plan = far_founder(cluster(3, seed));
        plan.nodes[N2].server.admin.hold_us = crate::server::Span(9_000_000, 9_000_000);
        plan.nodes[N3].preference = Preference::Never;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 has leadership", stage.is_leading(N1))?;
    stage.hold_still(N2);
    stage.until("n2 is desynced", |s| s.state(N2) == Some(LocalState::Donor))?;
    stage.until("n2 is synced again, or n1 relieved", |s| {
        s.state(N2) != Some(LocalState::Donor) || !s.is_leading(N1)
    })?;
    stage.must("n1 keeps leadership", stage.is_leading(N1));
    stage.until("leadership moves to n2", |s| s.is_leading(N2))?;
    stage.pass_ms(15_000);
    stage.must(
        "and stays there",
        stage.is_leading(N2) && !stage.is_leading(N3),
    );
    Ok(())
}
