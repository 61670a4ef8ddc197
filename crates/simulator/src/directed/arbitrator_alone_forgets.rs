//! An arbitrator loses power while it is alone in the view (rules 4 and 24).
//!
//! The arbitrator n3 has the weight of a majority. n1 and n2 die, and n3 goes on without them. Then it loses power. All
//! come back: n3 is the only voter of its view, and may have forgotten entries of its own. No voter has a database, and
//! the databases of n1 and n2 are not ahead of that view. n3 goes on by itself, and the others serve again.

use trireme_mutants::Mutant;

use super::cluster::go_on_with;
use super::{Directed, N1, N2, N3, Play, Stage, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ArbitratorNeedsDatabase],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.nodes[N3].weight = 3;
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = stage.commit_many(N1, 0..5)?;
    for node in [N1, N2] {
        stage.crash(node, false);
    }
    stage.until("n3 is alone", |s| s.members(N3) == 1)?;
    stage.lose_power(N3);
    for node in [N3, N1, N2] {
        stage.start(node);
    }
    go_on_with(stage, &[N1, N2], &all)
}
