//! A node goes on by a forced view of its own, and the branch that it left commits its submission (rules 7 and 11).
//!
//! n3 has restarted, and n5 was cut off before it heard of n3's new process. n3 submits X, is cut off, and goes on alone
//! (`pc.ignore_quorum`), while the others commit X. n5's last word was that it is primary without this process of n3: so
//! n3 orders nothing, and X waits. n3 hears the others and gives way. Then n5 comes back and applies X.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OtherBranchForgotten],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 1_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.crash(N3, false);
    stage.start(N3);
    stage.until("n3 connects", |s| s.group(N3).is_some())?;
    stage.part(&[N5], &[N1, N2, N4]);
    stage.pass_ms(150);
    stage.part(&[N3], &[N5]);
    stage.until("n3 serves again", |s| s.serves(N3))?;
    stage.configure(N3, |config| config.ignore_quorum = true);
    stage.cut(&[N1, N2, N4], &[N3]);
    let x = stage.write(N3, &[row(1)]);
    stage.until("the others commit X", |s| s.has_committed(N2, x))?;
    stage.cut(&[N3], &[N1, N2, N4]);
    stage.until("n3 is primary alone", |s| {
        s.component_state(N3) == ComponentState::Primary && s.members(N3) == 1
    })?;
    stage.until("the others have removed n3", |s| s.members(N1) == 3)?;
    stage.check("X waits", stage.told(x).is_none())?;
    stage.join(&[N1, N2, N4], &[N3]);
    stage.until("n3 answers for X", |s| s.told(x).is_some())?;
    stage.join(&[N5], &[N1, N2, N4]);
    stage.until("n5 has X", |s| s.has_committed(N5, x))
}
