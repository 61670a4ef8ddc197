//! A bootstrapped node's log knows a forced view to which its database has not come (rule 11).
//!
//! The nodes have lost each other while n2 executes DDL. n1 is made primary by an override with n2, n3 and n5. n2 has
//! that view in its log, and does not hear that it is in force, when n2 is killed. The operator bootstraps n2. Its
//! history begins anew, because its database may hold the DDL, by an override that follows the forced view: the others
//! give way.

use trireme_group::{ComponentState, Configuration};

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, recovering, row};
use crate::fault::Fault;
use crate::server::Span;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| {
        let mut plan = recovering(5, seed);
        plan.suspect_timeout_ms = 1_000;
        plan.nodes[N4].weight = 4; // neither n4 nor the others are a majority
        plan.nodes[N2].server.speed.ddl_us = Span(6_000_000, 6_000_000);
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    let action = stage.ddl(N1, 0);
    stage.until("n2 knows of the DDL", |s| s.has_committed(N2, action))?;
    stage.pass_ms(50);
    stage.scatter(&all)?;
    let part = [N1, N2, N3, N5];
    stage.join(&part, &part);
    stage.pass_ms(500);
    stage.strike(Fault::Override { node: N1 });
    let is_forced = |view: &Configuration| view.override_id.is_some();
    stage.until("n2 has the forced view", |s| {
        s.find_view(N2, is_forced).is_some()
    })?;
    stage.crash(N2, false);
    stage.part(&[N2], &part);
    stage.until("it is in force", |s| {
        s.component_state(N1) == ComponentState::Primary
    })?;
    let is_behind = !stage.has_applied(N2, action);
    stage.check("n2's database may hold the DDL", is_behind)?;
    stage.world.machines[N2].bootstrap = true;
    stage.start(N2);
    stage.until("n2 is primary", |s| s.members(N2) == 1)?;
    stage.join(&all, &all);
    let follow = stage.until("the others follow", |s| s.serve(&all)).is_ok();
    stage.must("they give way", follow);
    let x = stage.write(N2, &[row(1)]);
    stage.until("n2 commits", |s| s.acknowledged(x))
}
