//! A leader whose forced view is pending meets nodes outside of that view (rule 11).
//!
//! The nodes have lost each other. An operator makes n2 primary, which n1 promises; n2 has the view of n1 and n2 in its
//! log, and n1 does not get it any more. n2 meets n3, n4 and n5. They have not elected n2, and take nothing from it: the
//! view is not in their logs when n1 comes back without it.

use trireme_group::Configuration;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OutsidersFollowForcedView],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let (all, rest) = ([N1, N2, N3, N4, N5], [N3, N4, N5]);
    stage.scatter(&all)?;
    stage.begin_override(N2, N1)?;
    stage.join(&[N2], &rest);
    stage.join(&rest, &rest);
    stage.pass_ms(5_000);
    let forced = |s: &Stage, node| {
        let is_forced = |view: &Configuration| view.override_id.is_some();
        s.find_view(node, is_forced).is_some()
    };
    let taken = rest.iter().any(|node| forced(stage, *node));
    stage.must("nobody else has it", !taken);
    stage.join(&all, &all);
    stage.until("they serve", |s| s.serve(&all))
}
