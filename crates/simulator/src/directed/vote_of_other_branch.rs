//! A candidate hears the promise of a process that has gone on without the candidate's forced view (rule 11).
//!
//! `pc.bootstrap` makes n1 and n2 primary. The rest is a majority of the last view, goes on, and has promised a
//! higher term when they meet. n1 proposes the view that admits the rest. As members of that view they refuse n1's
//! term, so n1 must be elected under a higher one. n2 is far away, so the others' promises come first. They claim
//! many more committed entries, at positions of their branch and under its view. If these counted, neither n1 nor n2
//! could ever be elected, and no other node may be.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OtherBranchElects],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.delay_us[N1][N2] = 40_000;
        plan.delay_us[N2][N1] = 40_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    let rest = [N3, N4, N5];
    stage.force_apart(&all)?;
    stage.until("n1 and n2 are primary", |s| {
        [N1, N2]
            .iter()
            .all(|n| s.component_state(*n) == ComponentState::Primary)
    })?;
    stage.join(&rest, &rest);
    let first = stage.takeover(&rest)?;
    stage.until("the rest is alone", |s| {
        rest.iter().all(|n| s.members(*n) == rest.len())
    })?;
    stage.pause(first);
    let others: Vec<_> = rest.into_iter().filter(|n| *n != first).collect();
    let second = stage.takeover(&others)?;
    stage.resume(first);
    let written = stage.write_many(second, 1..=20);
    let last = *written.last().expect("twenty");
    stage.until("the rest goes on", |s| s.acknowledged(last))?;
    stage.check("under a higher term", stage.term(second) > stage.term(N1))?;
    stage.check("and much further", stage.commit(second) > stage.end(N1))?;
    let before = stage.term(N1);
    stage.join(&all, &all);
    stage.until("n1's term is refused", |s| s.term(N1) > before)?;
    Ok(())
}
