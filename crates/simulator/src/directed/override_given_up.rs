//! A node hears of an override, which is lost before the node has adopted it (rule 11).
//!
//! All lose each other, and an operator makes n5 primary alone. n4 hears of that, and no more. n5 loses its disk. The
//! other three, a majority that has never heard of the override, admit n4. Then they leave: n4, the last member, must
//! take leadership.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::GivenUpOverrideCounts],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let (all, rest) = ([N1, N2, N3, N4, N5], [N1, N2, N3]);
    let view = stage.view(N5);
    stage.scatter(&all)?;
    stage.strike(Fault::Override { node: N5 });
    stage.until("n5 is primary alone", |s| s.serves(N5) && s.view(N5) > view)?;
    stage.heal(&[N5], &[N4]);
    stage.until("n4 has heard n5", |s| s.has_promised(N4, N5))?;
    stage.cut(&[N5], &[N4]);
    stage.wipe(N5);
    stage.join(&rest, &rest);
    stage.until("the rest is a majority", |s| {
        s.serve(&rest) && s.view(N1) > view
    })?;
    stage.join(&rest, &[N4]);
    stage.until("they and n4 are the cluster", |s| {
        s.serve(&[N1, N2, N3, N4]) && s.members(N4) == 4 && s.view(N4) == s.view(N1)
    })?;
    for node in rest {
        stage.leave_until_gone(node)?;
    }
    stage.pass_ms(5_000);
    stage.must(
        "n4 serves alone",
        stage.serves(N4) && stage.members(N4) == 1,
    );
    let written = stage.write(N4, &[row(1)]);
    stage.until("n4 goes on", |s| s.acknowledged(written))
}
