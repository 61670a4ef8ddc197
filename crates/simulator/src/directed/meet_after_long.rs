//! The leader of three nodes dies, and the two others lose each other for a while, three times (rule 2): each time that
//! they meet again, they serve soon.
//!
//! Alone, each one's attempts to be elected fail, and the pauses between them grow to seconds.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};

/// The longest time from a link that heals to a primary component.
const BACK_MS: u64 = 1_000;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MetElectorNotAsked],
    plan: |seed| cluster(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 leads", stage.is_leading(N1))?;
    let rest = [N2, N3];
    stage.part(&[N1], &rest);
    stage.scatter(&rest)?;
    stage.crash(N1, false);
    for apart_ms in [20_000, 21_900, 23_700] {
        stage.part(&[N2], &[N3]);
        stage.reset(N2, N3);
        stage.pass_ms(apart_ms);
        let alone =
            (rest.iter()).all(|node| stage.component_state(*node) != ComponentState::Primary);
        stage.check("nobody is primary alone", alone)?;
        stage.join(&[N2], &[N3]);
        stage.pass_ms(BACK_MS);
        let back =
            (rest.iter()).all(|node| stage.component_state(*node) == ComponentState::Primary);
        stage.must("they serve soon after they meet", back);
    }
    Ok(())
}
