//! A node hears of an override, which is given up before the node has adopted it (rule 11).
//!
//! All lose each other, and `pc.ignore_quorum` makes n3 primary alone. n2 hears of that, and no more. n1 and n2 meet and
//! are a majority, so n3 gives way when it meets them. Then n3 and n1 leave: n2, the last member, must take leadership.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::GivenUpOverrideCounts],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 1_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    stage.configure(N3, |config| config.ignore_quorum = true);
    let view = stage.view(N3);
    stage.part(&all, &all);
    stage.until("n3 goes on alone", |s| s.serves(N3) && s.view(N3) > view)?;
    stage.until("n2 is not primary", |s| {
        s.component_state(N2) == ComponentState::NonPrimary
    })?;
    stage.heal(&[N3], &[N2]);
    stage.until("n2 has heard n3", |s| s.has_promised(N2, N3))?;
    stage.cut(&[N3], &[N2]);
    stage.join(&[N1], &[N2]);
    stage.until("n1 and n2 are a majority", |s| {
        s.serve(&[N1, N2]) && s.view(N2) > view
    })?;
    stage.join(&all, &all);
    stage.until("n3 has given way", |s| {
        s.serve(&all) && s.members(N3) == 3 && s.view(N3) == s.view(N1)
    })?;
    stage.leave_until_gone(N3)?;
    stage.leave_until_gone(N1)?;
    stage.pass_ms(5_000);
    stage.must(
        "n2 serves alone",
        stage.serves(N2) && stage.members(N2) == 1,
    );
    let written = stage.write(N2, &[row(1)]);
    stage.until("n2 goes on", |s| s.acknowledged(written))
}
