//! A node is killed while it founds the history anew on its database (rules 4, 5).
//!
//! All nodes lose power in `os` mode. X is in no log, but in n1's database: they go on with that. n1 is killed within
//! its founding; the seed decides how far it gets. Either its old log or its new one must vouch for its database.
//! Otherwise nobody could compare that database with the logs, and all would wait for an operator.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OldLogRemovedFirst],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    let steps = stage.world.plan.seed * 2 % 7;
    die_in_founding(stage, steps, |stage| stage.lose_power(N1))
}

/// Plays to the end. n1 loses the end of its log by `forget`, while the others lose power, and is killed so many steps
/// after its new log got its name.
pub(super) fn die_in_founding(stage: &mut Stage, steps: u64, forget: fn(&mut Stage)) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    stage.slow_appliers(N2, 10_000);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.check("n2 is behind", !stage.has_applied(N2, x))?;
    let all = [N1, N2, N3];
    forget(stage);
    for node in [N2, N3] {
        stage.lose_power(node);
    }
    stage.join(&[N3], &[N1, N2]);
    for node in all {
        stage.start(node);
    }
    let lost = all.iter().all(|n| stage.holds(*n, x).is_none());
    stage.check("no log has X", lost)?;
    // Nothing before the founding changes a name. The first step gives the new log its name.
    stage.die_at_rename(N1, steps)?;
    stage.start(N1);
    stage.pass_ms(20_000);
    let serve = stage.serve(&all);
    stage.must("they go on by themselves", serve);
    let y = stage.write(N2, &[row(1)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
