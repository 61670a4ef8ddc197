//! The only node with a database loses power before the override that its operator has ordered is in its log (rule 11).
//!
//! n1 loses its two arbitrators, and `pc.bootstrap` is set on it. The seed decides how far n1 gets. When all are back,
//! the arbitrators are a majority with n1, and go on. n1's database has nothing of a branch that was never made.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OrderedOverrideForks],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        for node in [N2, N3] {
            plan.nodes[node].arbitrate();
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    stage.scatter(&all)?;
    stage.strike(Fault::Override { node: N1 });
    stage.pass_ms(399); // from its next tick on n1 waits for others to promise
    let steps = stage.world.plan.seed % 6; // later the override is made
    stage.die_after(N1, steps, true)?;
    stage.join(&all, &all);
    stage.start(N1);
    stage.until("n1 serves", |s| s.serves(N1))?;
    let written = stage.write(N1, &[row(1)]);
    stage.until("it writes", |s| s.acknowledged(written))
}
