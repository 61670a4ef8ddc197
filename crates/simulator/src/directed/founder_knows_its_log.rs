//! A bootstrapped node's log knows a forced view to which its database has not come (rule 11).
//!
//! All data nodes die in `memory` mode, the arbitrator n3 lives. They go on by a forced view with n2 and n3 as its
//! members. n1 has that view in its log, but no seat in it, when n1 and n2 die. The operator bootstraps n1. Its history
//! begins anew, by an override that follows the forced view: n3 gives way. (With some seeds n1 and n2 change places.)

use trireme_group::Configuration;
use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::cluster::go_on_with;
use super::{Directed, N1, N2, N3, Play, Stage, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FoundersLogUnheeded],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.durability = Durability::Memory;
        plan.nodes[N3].arbitrate();
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = stage.commit_many(N1, 0..5)?;
    stage.until("n2 has it, too", |s| {
        all.iter().all(|x| s.has_applied(N2, *x))
    })?;
    for node in [N1, N2] {
        stage.crash(node, false);
    }
    for node in [N1, N2] {
        stage.start(node);
    }
    let is_forced = |view: &Configuration| view.override_id.is_some();
    let has_it = |s: &Stage, node| s.find_view(node, is_forced).is_some();
    stage.until("the forced view is in both logs", |s| {
        has_it(s, N1) && has_it(s, N2)
    })?;
    let is_in = |node| {
        let me = stage.process(node).map(|process| process.incarnation);
        let lists = |view: &Configuration| me.is_some_and(|me| view.member(me).is_some());
        stage
            .find_view(node, |view| is_forced(view) && lists(view))
            .is_some()
    };
    let without = if is_in(N1) { N2 } else { N1 };
    for node in [N1, N2] {
        stage.crash(node, false);
    }
    stage.world.machines[without].bootstrap = true;
    for node in [without, N1, N2] {
        stage.start(node);
    }
    go_on_with(stage, &[N1, N2], &all)?;
    let follows = stage.until("n3 is back", |s| s.members(N3) == 3);
    stage.must("n3 gives way", follows.is_ok());
    Ok(())
}
