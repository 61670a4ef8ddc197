//! Every node computes the same from the same log: certification index, verdicts, member states,
//! the floor of the index (rule 16).
//!
//! A verdict that differs is a transaction committed on one node and rolled back on another. The
//! digest of the control state covers all that decides verdicts; it is compared wherever two nodes
//! show it at the same entry. The verdicts themselves are compared seqno by seqno by `gtid-unique`:
//! a write-set here and a dummy there is one GTID that names two things.

use std::collections::HashMap;

use super::logs::{Logs, name};
use super::tree::EntryId;
use super::{Invariant, Shared};
use crate::seen::{NodeId, Seen, Sight};

/// See the module.
pub struct VerdictsEqual {
    logs: Shared<Logs>,
    digests: HashMap<EntryId, (u64, NodeId)>,
}

impl VerdictsEqual {
    /// Reads these.
    pub fn new(logs: &Shared<Logs>) -> VerdictsEqual {
        VerdictsEqual {
            logs: logs.clone(),
            digests: HashMap::new(),
        }
    }
}

impl Invariant for VerdictsEqual {
    fn name(&self) -> &'static str {
        "verdicts-equal"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let Seen::Control { position, digest } = sight.what else {
            return Ok(());
        };
        let logs = self.logs.borrow();
        // A control state that came from a peer can be ahead of the own log: it is shown again.
        if logs.committed(sight.node).is_none_or(|at| position > at) {
            return Ok(());
        }
        let line = logs.line_of(sight.node);
        let Some(entry) = line.and_then(|line| logs.committed_at(line, position)) else {
            return Ok(());
        };
        let (known, node) = *self.digests.entry(entry).or_insert((digest, sight.node));
        if known != digest {
            return Err(format!(
                "rule 16: at position {position} the control state of {} is not that of {}",
                name(sight.node),
                name(node)
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::story::*;
    use crate::seen::Seen;

    #[test]
    fn equal_at_equal_positions() {
        let mut story = Story::logs();
        for node in 0..3 {
            for (position, digest) in [(4, 40), (5, 50)] {
                story.see(node, Seen::Control { position, digest });
            }
        }
        // A state that came from a peer, ahead of the own log, is not compared yet.
        let (position, digest) = (9, 0);
        story.see(1, Seen::Control { position, digest });
        story.is_clean();
    }

    #[test]
    fn different_at_equal_positions() {
        let mut story = Story::logs();
        let position = 4;
        story.see(
            0,
            Seen::Control {
                position,
                digest: 40,
            },
        );
        story.see(
            1,
            Seen::Control {
                position,
                digest: 41,
            },
        );
        story.violates("verdicts-equal");
    }
}
