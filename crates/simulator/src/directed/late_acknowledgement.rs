//! An acknowledgement of an old term must not count for a new entry at the same position (rule 1).
//!
//! n1's entries are in n2's log. n3 has heard n2's acknowledgements of them, but does not have the entries. n1 and n2
//! are cut off. n3 becomes leader, and its own entries, at the same positions, reach no other node. Together with
//! n2's old acknowledgements they would have a majority (n2 and n3 have two votes each of seven); when n3's machine
//! dies they are gone.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OldTermAcksCount],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 60_000;
        (plan.nodes[N2].weight, plan.nodes[N3].weight) = (2, 2);
        plan.nodes[N1].server.load.clients = 8;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N3, N4, N5]);
    let all = stage.write_many(N1, 0..8);
    stage.until("n2 has n1's entries", |s| {
        all.iter().all(|x| s.holds(N2, *x).is_some())
    })?;
    stage.pass_ms(2);
    stage.part(&[N1, N2], &[N3, N4, N5]);
    stage.part(&[N4], &[N5]);
    stage.reset(N4, N5);
    stage.until("promises for n3", |s| {
        s.has_promised(N4, N3) && s.has_promised(N5, N3)
    })?;
    stage.cut(&[N3], &[N4, N5]);
    stage.until("n3's leadership", |s| s.is_leading(N3))?;
    let y = stage.write(N3, &[row(9)]);
    stage.until("Y is in n3's log", |s| s.holds(N3, y).is_some())?;
    stage.check("within n2's word", stage.end(N3) <= stage.end(N2))?;
    stage.pass_ms(20);
    stage.crash(N3, true);
    stage.join(&[N1, N2, N4, N5], &[N1, N2, N4, N5]);
    stage.until_one("the others go on", &[N1, N2, N4, N5], |s, n| {
        s.is_leading(n) && s.term(n) > 2
    })?;
    Ok(())
}
