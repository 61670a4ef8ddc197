//! A write-set kills the process of the server that applies it (docs/log-format.md, the blob's trial).
//!
//! n3 is killed four times and makes progress in between. Then it is killed four times while it is cut off and has
//! nothing to apply: it comes back. Then n1 commits a write-set that kills n3's server. The server dies once when the
//! write-set comes, and three times when a start applies it again. After that the node does not start by itself. Its
//! operator orders an SST, which holds the row.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

/// A row that no client writes by itself.
const DEADLY: u32 = 1 << 20;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[
        Mutant::DeathsNotCounted,
        Mutant::IdleDeathsCount,
        Mutant::DeathsElsewhereCount,
    ],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.nodes[N3].server.dies_of_row = Some(DEADLY);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    let refused = |s: &Stage| s.world.coverage.not_started;
    stage.formed()?;
    for _ in 0..4 {
        stage.crash(N3, false);
        let missed = stage.write(N1, &[row(1)]);
        stage.until("n1 has a row", |s| s.acknowledged(missed))?;
        stage.start(N3);
        stage.until("n3 serves", |s| s.serves(N3))?;
        stage.must("it starts by itself after it got on", refused(stage) == 0);
        stage.until("n3 has the row, too", |s| s.has_applied(N3, missed))?;
    }
    stage.crash(N3, false);
    stage.part(&[N1, N2], &[N3]);
    for _ in 0..4 {
        stage.start(N3);
        stage.pass_ms(300);
        stage.crash(N3, false);
    }
    stage.join(&[N1, N2], &[N3]);
    stage.start(N3);
    stage.until("n3 serves again", |s| s.serves(N3))?;
    stage.must(
        "it starts by itself after deaths at rest",
        refused(stage) == 0,
    );
    let starts = |s: &Stage| s.world.machines[N3].starts();
    let first = starts(stage);
    let deadly = stage.write(N1, &[DEADLY]);
    stage.until("n1 has it", |s| s.acknowledged(deadly))?;
    for _ in 0..40 {
        stage.pass_ms(500);
        if refused(stage) > 0 {
            break;
        }
    }
    stage.must("it does not start by itself for ever", refused(stage) > 0);
    // The running one, three that applied it again at their start, and one that refused to start.
    stage.must("it has tried three times", starts(stage) == first + 4);
    stage.until("n3 serves with a snapshot", |s| s.serves(N3))
}
