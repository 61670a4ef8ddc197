//! A leader loses its connection to a member, and hears a copy of that member's data directory (rule 14).
//!
//! n3 is stopped, its log and votes are copied to n4's machine, and both are started. n4 meets n3. Then n1, which
//! leads, and n4 are cut off from n2 and n3. n1 and n4 are no majority: n1 acknowledges nothing, and becomes
//! non-primary. n2 and n3 go on.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::CopySpeaks],
    plan: |seed| {
        let mut plan = recovering(4, seed);
        plan.heeds_refusals = false;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    for node in [N4, N3] {
        stage.leave_until_gone(node)?;
    }
    stage.copy(N3, N4);
    stage.start(N3);
    stage.until("n3 is back", |s| s.has_vote(N3) && s.has_vote(N2))?;
    stage.start(N4);
    stage.pass_ms(1_000);
    stage.check("n1 leads", stage.is_leading(N1))?;
    stage.part(&[N1, N4], &[N2, N3]);
    stage.reset(N1, N3);
    let lost = stage.write(N1, &[row(1)]);
    stage.until("n2 and n3 go on", |s| s.is_leading(N2) || s.is_leading(N3))?;
    let kept = stage.write(N2, &[row(2)]);
    stage.until("they acknowledge", |s| s.acknowledged(kept))?;
    stage.pass_ms(15_000);
    stage.must("n1 acknowledges nothing", !stage.acknowledged(lost));
    let is_primary = stage.component_state(N1) == ComponentState::Primary;
    stage.must("n1 has no majority", !is_primary);
    stage.join(&[N1, N4], &[N2, N3]);
    stage.until("n1 has what the others acknowledged", |s| {
        s.has_applied(N1, kept)
    })?;
    stage.world.start_empty(N4);
    Ok(())
}
