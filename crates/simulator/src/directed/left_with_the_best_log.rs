//! A member leaves, and then all others lose power (rules 4 and 24).
//!
//! The view without n4 is committed, and n4 knows it; the others have not noted it. X is ordered behind it, and only n1
//! and n4 have received X. The others lose power, n1 with X. All come back: the best log is n4's, but n4 has no seat in
//! the last view, and does not lead. The cluster goes on with the best log of the others.

use trireme_group::{Body, Entry};
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, recovering, row};
use crate::server::Flush;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LeaversLogPreferred],
    plan: |seed| {
        let mut plan = recovering(4, seed);
        for node in [N1, N2, N3] {
            plan.nodes[node].server.flush = Flush::EachSecond;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let (all, view) = ([N1, N2, N3, N4], stage.view(N1));
    let has_view = |s: &Stage, node| {
        let is_it =
            |entry: &Entry| matches!(&entry.body, Body::Configuration(c) if c.number > view);
        s.find(node, is_it).is_some()
    };
    // Their acknowledgements of the view wait for a flush.
    for node in [N2, N3] {
        stage.hang(node, 100);
    }
    stage.leave(N4);
    stage.until("n2 and n3 have the view without n4", |s| {
        has_view(s, N2) && has_view(s, N3)
    })?;
    stage.cut(&all, &[N2, N3]);
    // n1 has flushed the view, and flushes nothing more.
    stage.pass_ms(20);
    stage.hang(N1, 60_000);
    let x = stage.write(N1, &[row(1)]);
    stage.until("n4 has X", |s| s.holds(N4, x).is_some())?;
    stage.until("n4 has left", |s| s.process(N4).is_none())?;
    let position = stage.holds(N1, x);
    for node in [N1, N2, N3] {
        stage.lose_power(node);
        stage.hang(node, 0);
    }
    stage.heal(&all, &[N2, N3]);
    for node in all {
        stage.start(node);
    }
    for node in [N1, N2, N3] {
        stage.check("its log lacks X", Some(stage.end(node)) < position)?;
    }
    stage.until("they go on by themselves", |s| s.serve(&all))?;
    let y = stage.write(N2, &[row(1)]);
    stage.until("they serve", |s| s.acknowledged(y))
}
