//! A peer has said that it is primary without a forced view, and follows that view since (rule 11).
//!
//! n4 was away and hears n3 only, which is primary in a view with n2. n2 and n3 are cut off from each other, and then n3
//! from n4. n2 goes on alone (`pc.ignore_sb`), n3 follows it, and n4 meets n2: it gets n2's log with the forced view. n3's
//! last word to n4 is from before that. n4 must not give way to it.

use trireme_group::{ComponentState, Preference};
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::EarlierWordCounts],
    plan: |seed| {
        let mut plan = recovering(4, seed);
        plan.suspect_timeout_ms = 3_000;
        for node in [N3, N4] {
            plan.nodes[node].preference = Preference::Never;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.crash(N4, false);
    stage.until("n4 is given up", |s| s.members(N2) == 3)?;
    stage.leave_until_gone(N1)?;
    stage.until("n2 leads n3", |s| s.is_leading(N2) && s.members(N3) == 2)?;
    stage.configure(N2, |config| config.ignore_split_brain = true);
    stage.part(&[N4], &[N2]);
    stage.start(N4);
    stage.pass_ms(300);
    stage.part(&[N2], &[N3]);
    stage.pass_ms(2_000);
    stage.part(&[N3], &[N4]);
    stage.until("n2 goes on alone", |s| s.members(N2) == 1)?;
    stage.join(&[N2], &[N3]);
    stage.until("n3 follows it", |s| s.members(N3) == 2)?;
    stage.join(&[N2], &[N4]);
    stage.until("n4 is admitted", |s| s.members(N2) == 3)?;
    let view = stage.view(N2);
    stage.pass_ms(500);
    let is_primary = stage.component_state(N4) == ComponentState::Primary;
    stage.must("n4 stays", is_primary && stage.view(N2) == view);
    Ok(())
}
