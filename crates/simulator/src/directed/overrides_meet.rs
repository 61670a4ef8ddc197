//! Operators made both halves of a cluster primary, and the halves meet (rule 11).
//!
//! Neither half knows the other's forced view as later than its own, so neither yields. Both go on, and all four
//! nodes report this, at once and again later. The operator chooses n1 and n2, and moves the logs of the others away:
//! they join.

use trireme_group::{ComponentState, Group};
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, Play, Stage, cluster, row};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::SplitNotTold],
    plan: |seed| {
        let mut plan = cluster(4, seed);
        plan.suspect_timeout_ms = 1_000;
        plan
    },
    play,
};

const ALL: [usize; 4] = [N1, N2, N3, N4];

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N1, N2], &[N3, N4]);
    let stand = |component_state: ComponentState, nodes: &'static [usize]| {
        move |s: &Stage| {
            nodes
                .iter()
                .all(|node| s.component_state(*node) == component_state)
        }
    };
    stage.until("nobody is primary", stand(ComponentState::NonPrimary, &ALL))?;
    for half in [&[N1, N2], &[N3, N4]] {
        stage.strike(Fault::Override { node: half[0] });
        stage.until("a half is primary", stand(ComponentState::Primary, half))?;
    }
    let x = stage.write(N1, &[row(1)]);
    let y = stage.write(N3, &[row(1)]);
    stage.until("both go on", |s| s.acknowledged(x) && s.acknowledged(y))?;
    stage.check("nobody has met anybody", told(stage, 0))?;
    stage.join(&[N1, N2], &[N3, N4]);
    stage.pass_ms(2_000);
    let says = told(stage, 1);
    stage.must("all say that there are two branches", says);
    stage.pass_ms(10_000);
    let says_again = told(stage, 2);
    stage.must("they say it again", says_again);
    stage.check(
        "all are primary",
        stand(ComponentState::Primary, &ALL)(stage),
    )?;
    for node in [N3, N4] {
        stage.world.follows_advice(node);
        stage.crash(node, false);
    }
    stage.pass_ms(1_000);
    [N3, N4].iter().for_each(|node| stage.start(*node));
    stage.until("they have joined n1 and n2", |s| {
        [N3, N4].iter().all(|node| s.view(*node) == s.view(N1))
    })
}

/// True if every node has reported the other branch this many times.
fn told(stage: &Stage, times: u64) -> bool {
    let splits = |node: &usize| stage.group(*node).map(Group::counters).map(|c| c.splits);
    ALL.iter().all(|node| splits(node) == Some(times))
}
