//! A process never takes back an entry that its replicator has got (rules 1, 6).
//!
//! Applying cannot be undone. So a process never drops a log entry that it has delivered, and its log never begins
//! anew below a delivered entry. There are two exceptions: an operator's override forked the history below that entry,
//! or the process gives up its own forced view that yields. Then a database beyond the fork point needs an SST
//! (rule 11); `gtid-unique` and `databases-equal` check this.

use trireme_group::{Delivery, Position, Uuid, override_yields};

use super::logs::{Logs, name};
use super::{Invariant, Shared};
use crate::seen::{NodeId, Seen, Sight};

/// The deliveries of a process.
#[derive(Clone, Default)]
struct Delivered {
    upto: Position,
    overrides: Vec<Uuid>,
}

/// The invariant of this module.
pub struct NoTruncatedApplied {
    logs: Shared<Logs>,
    delivered: Vec<Delivered>,
}

impl NoTruncatedApplied {
    /// An invariant that reads these logs.
    pub fn new(logs: &Shared<Logs>) -> NoTruncatedApplied {
        NoTruncatedApplied {
            logs: logs.clone(),
            delivered: Vec::new(),
        }
    }

    fn of(&mut self, node: NodeId) -> &mut Delivered {
        if self.delivered.len() <= node {
            self.delivered.resize(node + 1, Delivered::default());
        }
        &mut self.delivered[node]
    }
}

impl Invariant for NoTruncatedApplied {
    fn name(&self) -> &'static str {
        "no-truncated-applied"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let process = || name(sight.node); // only for a report
        match &sight.what {
            Seen::Started { .. } | Seen::Founded { .. } => {
                *self.of(sight.node) = Delivered::default()
            }
            Seen::Delivered { position, delivery } => {
                let delivered = self.of(sight.node);
                delivered.upto = *position;
                if let Delivery::Configuration(configuration) = delivery {
                    match configuration.override_id {
                        Some(id) if delivered.overrides.last() != Some(&id) => {
                            delivered.overrides.push(id)
                        }
                        _ => {}
                    }
                }
            }
            Seen::Truncated { after } => {
                let upto = self.of(sight.node).upto;
                if *after < upto {
                    return Err(format!(
                        "rule 1: {} drops its log above {after}, and has delivered up to {upto}",
                        process()
                    ));
                }
            }
            Seen::BeganAnew { checkpoint } => {
                let may_lack = self.logs.borrow().may_lack_before(sight.node);
                let delivered = self.of(sight.node);
                let (own, theirs) = (&delivered.overrides, &checkpoint.overrides);
                let kept = own.iter().zip(theirs).take_while(|(a, b)| a == b).count();
                let is_forked = own != theirs && own[kept..].iter().all(override_yields);
                if checkpoint.position < delivered.upto && !(is_forked && may_lack) {
                    return Err(format!(
                        "rule 1: the log of {} begins anew at {}, it has delivered up to {}",
                        process(),
                        checkpoint.position,
                        delivered.upto
                    ));
                }
                *delivered = Delivered {
                    upto: checkpoint.position,
                    overrides: checkpoint.overrides.clone(),
                };
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::{Checkpoint, Uuid};

    use crate::invariants::story::*;
    use crate::seen::Seen;

    const NAME: &str = "no-truncated-applied";

    #[test]
    fn what_is_not_delivered_may_be_dropped() {
        let mut story = Story::logs();
        story.append(0, entry(6, term(1), submission(0, 1, "lost")));
        story.see(0, Seen::Truncated { after: 5 }).is_clean();
    }

    #[test]
    fn what_is_delivered_may_not() {
        let mut story = Story::logs();
        story.see(0, Seen::Truncated { after: 4 }).violates(NAME);
    }

    #[test]
    fn a_log_begins_anew_below_what_was_delivered() {
        let mut story = Story::logs();
        let mut restarted = story.clone();
        story.begins_anew(0, 4, 1, view(2, &[0, 1, 2]));
        story.violates(NAME);
        // A new process has delivered nothing yet.
        restarted.see(0, Seen::Stopped { clean: false });
        restarted.see(0, Seen::Started { database: NOWHERE });
        restarted.begins_anew(0, 4, 1, view(2, &[0, 1, 2]));
        restarted.is_clean();
    }

    #[test]
    fn an_override_that_leaves_no_delivered_entry_is_no_excuse() {
        let mut story = Story::logs();
        let checkpoint = Checkpoint {
            position: 4,
            term: term(1),
            history: HISTORY,
            configuration: view(2, &[0, 1, 2]),
            overrides: vec![Uuid([9; 16])],
            ..Checkpoint::default()
        };
        story.see(0, Seen::BeganAnew { checkpoint });
        story.violates(NAME);
    }
}
