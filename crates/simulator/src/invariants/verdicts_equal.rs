//! Every node comes to the same verdict on the same entry, and to the same dependencies (rule 16).
//!
//! If a verdict differs, a transaction commits on one node and is rolled back on another. If a dependency differs, a
//! write-set overtakes another one on one node only. The invariant compares the outcomes that each replicator notes
//! in its log beside the entry (seqno, failed or not, `depends_on`); a node also serves later joiners from them. They
//! follow from the control state before the entry (`control-equal`) and from the certification index in memory.
//! `control-equal` sees only the records from which that index was built. `gtid-unique` compares the effects in the
//! databases.
//!
//! If an error vote finds that a write-set failed everywhere, each node notes this once more when the vote is decided
//! (rule 22). The invariant compares these notes among the nodes that make them. Not compared, because local: whether
//! a node still knows the position of the entry.

use trireme_group::Position;
use trireme_log::Outcome;

use super::logs::{Logs, name};
use super::{HashMap, Invariant, Shared};
use crate::seen::{NodeId, Seen, Sight};

/// An outcome, and the node that noted it first.
type Known = Option<(Outcome, NodeId)>;

/// The invariant of this module.
pub struct VerdictsEqual {
    logs: Shared<Logs>,
    /// By entry: the verdict, and the result of an error vote.
    outcomes: Vec<[Known; 2]>,
    /// Position of the last verdict that each process has noted; they are noted in order.
    noted: HashMap<NodeId, Position>,
}

impl VerdictsEqual {
    /// An invariant that reads these logs.
    pub fn new(logs: &Shared<Logs>) -> VerdictsEqual {
        VerdictsEqual {
            logs: logs.clone(),
            outcomes: Vec::new(),
            noted: HashMap::default(),
        }
    }

    fn compare(
        &mut self,
        node: NodeId,
        position: Position,
        outcome: Outcome,
    ) -> Result<(), String> {
        let Some(entry) = self.logs.borrow().committed_on(node, position) else {
            return Err(format!(
                "{} notes what became of {position}, which it has not delivered",
                name(node)
            ));
        };
        let entry = entry as usize;
        if self.outcomes.len() <= entry {
            self.outcomes.resize(entry + 1, [None; 2]);
        }
        let last = self.noted.entry(node).or_default();
        let is_by_vote = position <= *last;
        *last = position.max(*last);
        let known = &mut self.outcomes[entry][usize::from(is_by_vote)];
        let (known, other) = *known.get_or_insert((outcome, node));
        if known != outcome {
            return Err(format!(
                "rule 16: at position {position} {} comes to {outcome:?}, and {} to {known:?}",
                name(node),
                name(other)
            ));
        }
        Ok(())
    }
}

impl Invariant for VerdictsEqual {
    fn name(&self) -> &'static str {
        "verdicts-equal"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        match sight.what {
            Seen::Noted { position, outcome } => self.compare(sight.node, position, outcome),
            Seen::Started { .. } | Seen::BeganAnew { .. } | Seen::Founded { .. } => {
                self.noted.remove(&sight.node);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use trireme_log::Outcome;

    use crate::invariants::story::*;
    use crate::seen::Seen;

    /// n1, n2 and n3 note this dependency of the entry at 4, and n3 whether it has failed.
    fn story(depends_on: [i64; 3], flags: u8) -> Story {
        let mut story = Story::logs();
        for (node, depends_on) in depends_on.into_iter().enumerate() {
            let outcome = Outcome {
                seqno: 3,
                flags: if node == 2 { flags } else { 0 },
                depends_on,
            };
            let position = 4;
            story.see(node, Seen::Noted { position, outcome });
        }
        story
    }

    #[test]
    fn equal_for_equal_entries() {
        story([2, 2, 2], 0).is_clean();
    }

    #[test]
    fn another_dependency() {
        story([2, 2, 1], 0).violates("verdicts-equal");
    }

    #[test]
    fn another_verdict() {
        story([2, 2, 2], Outcome::FAILED).violates("verdicts-equal");
    }

    #[test]
    fn a_vote_finds_that_it_has_failed() {
        let mut story = story([2, 2, 2], 0);
        let outcome = Outcome {
            seqno: 3,
            flags: Outcome::FAILED,
            depends_on: 2,
        };
        let position = 4;
        for node in [1, 2] {
            story.see(node, Seen::Noted { position, outcome });
        }
        story.is_clean();
        // Only a second time.
        story
            .restart(2, -1)
            .begins_anew(2, 3, 1, view(2, &[0, 1, 2]));
        let body = submission(1, 1, "a");
        story.append(2, entry(4, term(1), body.clone()));
        story.deliver(2, 4, &body);
        story.see(2, Seen::Noted { position, outcome });
        story.violates("verdicts-equal");
    }

    #[test]
    fn of_an_entry_that_was_not_delivered() {
        let mut story = story([2, 2, 2], 0);
        let outcome = Outcome {
            seqno: 5,
            flags: 0,
            depends_on: 4,
        };
        let position = 6;
        story.see(1, Seen::Noted { position, outcome });
        story.violates("verdicts-equal");
    }
}
