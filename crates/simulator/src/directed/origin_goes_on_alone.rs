//! A node goes on by a forced view of its own, and the branch that it left commits its submission (rules 7 and 11).
//!
//! n3 does not hear the leader any more, and submits X, which the others commit. They do not hear n3 either, and remove
//! it. n3 goes on alone (`pc.ignore_quorum`); it still hears n2, a follower that is primary without it. So it orders
//! nothing, gives way, and X fails. Then n5 comes back, which has been cut off, and applies X.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OtherBranchForgotten, Mutant::FollowersWordIgnored],
    plan: |seed| cluster(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.configure(N3, |config| {
        config.ignore_quorum = true;
        config.suspect_timeout_ms *= 2;
    });
    stage.part(&[N5], &[N1, N2, N3, N4]);
    stage.cut(&[N1, N4], &[N3]);
    let x = stage.write(N3, &[row(1)]);
    stage.until("the others commit X", |s| s.has_committed(N2, x))?;
    stage.cut(&[N3], &[N1, N2, N4]);
    stage.until("the others have removed n3", |s| s.members(N2) == 3)?;
    stage.check("X waits", stage.told(x).is_none())?;
    stage.until("n3 goes on alone", |s| s.members(N3) == 1)?;
    stage.pass_ms(500);
    stage.must("n3 gives way", stage.told(x).is_some());
    stage.join(&[N5], &[N1, N2, N4]);
    stage.until("n5 has X", |s| s.has_committed(N5, x))
}
