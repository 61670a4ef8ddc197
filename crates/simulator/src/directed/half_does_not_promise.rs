//! `pc.ignore_sb` lets a node go on with half of the votes, and those must promise (rule 11).
//!
//! n1 is cut off from n2 and n3. It hears n4, which does not hear it. n1 and n4 would be half of the four; n1 alone is
//! less.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, hasty};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UnpromisedHalfCounts],
    plan: |seed| hasty(4, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.configure(N1, |config| config.ignore_split_brain = true);
    stage.part(&[N1], &[N2, N3]);
    stage.cut(&[N1], &[N4]);
    stage.pass_ms(5_000);
    let forced = stage.find_view(N1, |c| c.override_id.is_some());
    stage.must("n1 has not gone on alone", forced.is_none());
    stage.join(&[N1], &[N2, N3, N4]);
    stage.until("all serve", |s| s.serve(&[N1, N2, N3, N4]))
}
