//! A copied data directory is started beside its original (rule 14).
//!
//! n3 is stopped, its log and votes are copied to n4's machine, and both are started. The leader n1 would refuse n4,
//! but n4 cannot reach it. n1 and n3 acknowledge X, n1 dies, and n3 is slow. n4 has n3's replica id and the entries
//! that n3 held before X. n2 and n4 are no majority.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DuplicatesVote],
    plan: |seed| {
        let mut plan = recovering(4, seed);
        plan.suspect_timeout_ms = 10_000;
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
    stage.pass_ms(1_000);
    stage.part(&[N1], &[N4]);
    stage.start(N4);
    stage.pass_ms(1_000);
    stage.part(&[N2], &[N1, N3]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is acknowledged", |s| s.acknowledged(x))?;
    stage.check("n2 has it not", stage.holds(N2, x).is_none())?;
    stage.crash(N1, false);
    stage.pause(N3);
    stage.join(&[N2], &[N3]);
    stage.pass_ms(3_000);
    stage.must("n2 does not lead without n3", !stage.is_leading(N2));
    stage.resume(N3);
    stage.until("n2 has X", |s| s.has_applied(N2, x))?;
    stage.until("n2 and n3 go on", |s| {
        [N2, N3]
            .iter()
            .all(|n| s.component_state(*n) == ComponentState::Primary)
    })?;
    stage.world.start_empty(N4);
    Ok(())
}
