//! A node with `pc.ignore_quorum` is cut off and goes on alone; the majority goes on, too, and they meet (rule 11).
//!
//! n1 and n2 are a primary component without n3's forced view, and never stopped acknowledging: they do not yield. n3
//! yields and takes an SST. With an even seed n3 is stopped before they meet, as in galera_3nodes.galera_allowlist,
//! where the majority used to drop its acknowledged commits; with an odd one n3 is running.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MajorityYieldsToIgnoredQuorum],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let stops = stage.world.plan.seed % 2 == 0;
    stage.configure(N3, |config| config.ignore_quorum = true);
    stage.part(&[N1, N2], &[N3]);
    let view = stage.view(N3);
    let goes_on = |s: &Stage| s.serves(N3) && s.view(N3) > view;
    stage.until("n3 goes on alone", goes_on)?;
    let x = stage.write(N3, &[row(1)]);
    stage.until("n3 writes X", |s| s.acknowledged(x))?;
    let y = stage.write(N1, &[row(1)]);
    stage.until("the majority writes Y", |s| {
        s.acknowledged(y) && s.has_applied(N2, y)
    })?;
    let view = stage.view(N1);
    if stops {
        stage.leave_until_gone(N3)?;
    }
    stage.join(&[N1, N2], &[N3]);
    if stops {
        stage.start(N3);
    }
    for _ in 0..100 {
        stage.pass_ms(100);
        let goes_on = |node| {
            stage.component_state(node) == ComponentState::Primary && stage.holds(node, y).is_some()
        };
        let both = goes_on(N1) && goes_on(N2);
        stage.must("the majority is primary all the time, and keeps Y", both);
    }
    stage.until("all serve in one view", |s| {
        s.view(N3) > view && s.serve(&[N1, N2, N3])
    })?;
    stage.must("X is given up", stage.holds(N3, x).is_none());
    Ok(())
}
