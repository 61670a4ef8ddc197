//! The last word of a silent peer does not outvote a node that has gone on alone (rule 11).
//!
//! n3 has restarted, and n2 was cut off before it heard of n3's new process. n3 is cut off and goes on alone
//! (`pc.ignore_quorum`). n2's last word was that it is primary without this process of n3. n3 must order all the same.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::SilentPeerOutvotes],
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
    stage.part(&[N2], &[N1, N4, N5]);
    stage.pass_ms(150);
    stage.part(&[N3], &[N2]);
    stage.until("n3 serves again", |s| s.serves(N3))?;
    stage.configure(N3, |config| config.ignore_quorum = true);
    stage.part(&[N3], &[N1, N4, N5]);
    let x = stage.write(N3, &[row(1)]);
    stage.until("n3 is primary alone", |s| s.members(N3) == 1)?;
    stage.pass_ms(500);
    stage.must("n3 orders X", stage.acknowledged(x));
    Ok(())
}
