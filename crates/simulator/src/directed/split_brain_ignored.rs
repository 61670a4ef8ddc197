//! Half of the cluster goes on alone because its operator has set `pc.ignore_sb`, and the halves meet (rules 11 and
//! 24).
//!
//! n1 is leader and orders X, which reaches no other node: the two have lost each other. n2 makes itself primary, and
//! writes Y in X's place. When they meet, n1 yields: X is dropped, Y is applied. Half must be no majority even so:
//! n2's part outranks n1's possible commits only because it is a forced view.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::HalfIsAMajority],
    plan: |seed| {
        let mut plan = cluster(2, seed);
        plan.suspect_timeout_ms = 1_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.configure(N2, |config| config.ignore_split_brain = true);
    stage.part(&[N1], &[N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("n1 has X", |s| s.holds(N1, x).is_some())?;
    let view = stage.view(N2);
    let goes_on = |s: &Stage| s.component_state(N2) == ComponentState::Primary && s.view(N2) > view;
    stage.until("n2 goes on alone", goes_on)?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("n2 writes Y", |s| s.acknowledged(y))?;
    let waits =
        |s: &Stage| s.component_state(N1) == ComponentState::NonPrimary && s.told(x).is_some();
    stage.until("n1 does not", waits)?;
    stage.check("X is not acknowledged", !stage.acknowledged(x))?;
    stage.join(&[N1], &[N2]);
    stage.until("n1 yields", |s| s.holds(N1, x).is_none())?;
    stage.until("n1 has Y", |s| s.has_applied(N1, y))
}
