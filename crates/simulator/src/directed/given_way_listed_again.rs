//! A node that has given way is no member of the majority before it has the majority's log (rule 11).
//!
//! n3 goes on alone (`pc.ignore_quorum`) and gives way to n1 and n2. n1 lets it in, without a vote. Before n3 gets the
//! log, n1 dies, and n2 alone is no majority. n3 hears no primary component any more and takes its branch up again. n2
//! must not follow it: the two had acknowledged W without it.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::cluster::goes_on_alone;
use super::{Directed, N1, N2, N3, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LearnersSeatCounts],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    goes_on_alone(stage, N3, &[N1, N2])?;
    stage.until("the others have removed n3", |s| s.members(N2) == 2)?;
    let w = stage.write(N2, &[row(1)]);
    stage.until("the others write W", |s| s.acknowledged(w))?;
    stage.join(&[N3], &[N1, N2]);
    stage.until("n1 lets n3 in", |s| s.members(N2) == 3)?;
    stage.check("n3 has not got the log", stage.members(N3) == 1)?;
    stage.part(&[N3], &[N1, N2]);
    stage.crash(N1, false);
    stage.until("n3 is primary again", |s| {
        s.component_state(N3) == ComponentState::Primary
    })?;
    stage.until("n2 has no majority", |s| {
        s.component_state(N2) == ComponentState::NonPrimary
    })?;
    stage.join(&[N3], &[N2]);
    stage.pass_ms(3_000);
    stage.must("n2 keeps W", stage.holds(N2, w).is_some());
    stage.start(N1);
    stage.join(&[N3], &[N1]);
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))?;
    stage.must("W stays", stage.holds(N2, w).is_some());
    Ok(())
}
