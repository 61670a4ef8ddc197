//! A member leaves while another one is silent (rule 3).
//!
//! n3 falls silent, with its connections up. n2 leaves a second later. A view without n2 would need n3's vote. n3 never
//! returns, but n2 does: the two of them are a majority of the last view, and go on.

use trireme_mutants::Mutant;

use super::cluster::{go_on_with, row};
use super::{Directed, N1, N2, N3, Play, Stage, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::SilentMemberCounts],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 leads", stage.is_leading(N1))?;
    let written = stage.write(N1, &[row(2)]);
    stage.until("the client has its answer", |s| s.acknowledged(written))?;
    stage.pause(N3);
    stage.pass_ms(1_000);
    stage.leave_until_gone(N2)?;
    stage.start(N2);
    go_on_with(stage, &[N1, N2], &[written])
}
