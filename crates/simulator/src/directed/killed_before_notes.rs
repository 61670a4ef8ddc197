//! A node is bootstrapped at an action that it may hold, and killed when its new log has its name, and not yet its
//! notes (rule 13).
//!
//! As in `killed_in_bootstrap`; here the seed decides how far the founding gets. The node must go on with its database
//! and its log, without a second bootstrap, or, if its old log still stands, as before the bootstrap.

use super::killed_in_bootstrap::{die_within_ddl, goes_on_by_itself, slow_ddl};
use super::{Directed, N3, Play, Stage};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: slow_ddl,
    play,
};

fn play(stage: &mut Stage) -> Play {
    die_within_ddl(stage, false)?;
    stage.world.machines[N3].bootstrap = true;
    stage.world.machines[N3].dies_at_rename = Some(1 + stage.world.plan.seed % 7);
    stage.start(N3);
    stage.until("it is dead", |s| s.process(N3).is_none())?;
    goes_on_by_itself(stage, 20_000)
}
