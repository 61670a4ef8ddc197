//! A database is more views behind than any member remembers, within a streaming transaction (rule 6).
//!
//! n3 dies with fragments of A in its database; A ends without n3. Then n1 restarts once, and n2 so often that the
//! members have forgotten the view with n1's earlier incarnation. n3 has that view in its own log: its server must
//! see that view before A's end is replayed.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::replayed_stream::{fragments, plan, position, stream};
use super::{Directed, N1, N2, N3, Play, Stage};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::ForgottenViewGuessed],
    plan,
    play,
};

/// Number of restarts. Each makes two views; members remember 64.
const RESTARTS: usize = 33;

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let a = stream(stage, 1..=3);
    stage.until("n3 has two fragments of A", |s| fragments(s, N3, a) == 2)?;
    stage.pass_ms(10);
    let applied = |s: &Stage| position(s, N3) == position(s, N2);
    stage.until("and has applied them", applied)?;
    stage.check("A goes on", fragments(stage, N1, a) == 2)?;
    stage.crash(N3, false);
    let view = stage.view(N1);
    stage.until("A is committed", |s| s.acknowledged(a) && s.view(N1) > view)?;
    let before = stage.view(N2);
    for node in std::iter::once(N1).chain(std::iter::repeat_n(N2, RESTARTS)) {
        stage.leave_until_gone(node)?;
        stage.start(node);
        stage.until("it is back", |s| {
            s.serves(node) && s.component_state(N1) == ComponentState::Primary
        })?;
    }
    stage.check("the view is forgotten", stage.view(N1) > before + 64)?;
    stage.start(N3);
    stage.until("n3 is back", |s| s.serves(N3))?;
    stage.must("n3 has replayed A's end", stage.has_applied(N3, a));
    Ok(())
}
