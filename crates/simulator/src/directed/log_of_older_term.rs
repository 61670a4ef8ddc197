//! All nodes lose power in `os` mode, and a log has another entry at a seqno that databases hold (rules 1, 4, 5).
//!
//! n1 is cut off and appends Y to its log. n2 and n3 elect a leader and commit X at the same seqno: both databases
//! have X, flushed. In the power loss their logs lose X and all signs of the later term; n1's log keeps Y. n1's log
//! is the best one and reaches as far as the databases, but it has Y there: they go on with a database.

use trireme_mutants::Mutant;

use super::cluster::commit_onto_disks;
use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::TailCountsAsKnown, Mutant::DatabaseNotHeeded],
    plan: |seed| recovering(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3];
    commit_onto_disks(stage, N1, &all, 1_000)?;
    stage.part(&[N1], &[N2, N3]);
    let y = stage.write(N1, &[row(2)]);
    stage.until("Y is in n1's log", |s| s.holds(N1, y).is_some())?;
    stage.takeover(&[N2, N3])?;
    let x = stage.write(N2, &[row(3)]);
    stage.until("X is committed", |s| {
        s.acknowledged(x) && s.has_applied(N3, x)
    })?;
    for node in all {
        stage.world.machines[node].disk.lose_power(|| node == N1);
        stage.crash(node, true);
    }
    stage.join(&[N1], &[N2, N3]);
    for node in all {
        stage.start(node);
    }
    stage.check("n1 has kept Y", stage.holds(N1, y).is_some())?;
    let lost = [N2, N3].iter().all(|n| stage.holds(*n, x).is_none());
    stage.check("the others have lost X", lost)?;
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let z = stage.write(N1, &[row(3)]);
    stage.until("they serve", |s| s.acknowledged(z))
}
