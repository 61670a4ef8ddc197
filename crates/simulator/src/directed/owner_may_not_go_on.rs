//! A node that cannot go on alone does not stay primary (rule 11).
//!
//! n1 appends a view without n5. n5 gets it, n4 does not. Then n1, n2 and n3 die. n4 has `pc.ignore_quorum`; n5 has the
//! longer log and would have to lead, but may be voted out. So n4 becomes non-primary, and an operator can decide there.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::TriesAloneForEver],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.configure(N4, |config| {
        config.ignore_quorum = true;
        config.suspect_timeout_ms *= 3;
    });
    let formed = stage.view(N1);
    stage.cut(&[N5], &[N1, N2, N3]);
    stage.cut(&[N1, N2, N3], &[N4]);
    stage.until("n5 knows the view without it", |s| {
        s.find_view(N5, |c| c.number > formed).is_some()
    })?;
    for node in [N1, N2, N3] {
        stage.crash(node, false);
    }
    stage.pass_ms(6_000);
    let waits = stage.component_state(N4) == ComponentState::NonPrimary;
    stage.must("n4 does not stay primary", waits);
    Ok(())
}
