//! Every seqno passes commit order exactly once in the life of a database, in order
//! (server-contract-traps.md#exactly-one-consumer).
//!
//! A seqno that is left out, passes twice or passes early is a lost, doubled or reordered commit. After a crash, the
//! lost seqnos pass again. An SST puts the database at the donor's seqno. A database in an unknown state commits
//! nothing.

use trireme_group::Uuid;
use trireme_replicator::Seqno;

use super::Invariant;
use super::logs::name;
use crate::seen::{NodeId, Seen, Sight};

/// The invariant of this module.
#[derive(Default)]
pub struct CommitOrder {
    /// The position of each database; None: unknown, or no process runs.
    databases: Vec<Option<(Uuid, Seqno)>>,
}

impl CommitOrder {
    fn of(&mut self, node: NodeId) -> &mut Option<(Uuid, Seqno)> {
        if self.databases.len() <= node {
            self.databases.resize(node + 1, None);
        }
        &mut self.databases[node]
    }
}

impl Invariant for CommitOrder {
    fn name(&self) -> &'static str {
        "commit-order"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let at = self.of(sight.node);
        match &sight.what {
            Seen::Started { database } => *at = (database.1 >= 0).then_some(*database),
            Seen::Stopped { .. } | Seen::Disconnected => *at = None,
            Seen::Founded { history, seqno } | Seen::Counted { history, seqno } => {
                *at = Some((*history, *seqno));
            }
            Seen::Snapshot { history, seqno, .. } => *at = Some((*history, *seqno)),
            Seen::Ordered { history, seqno, .. } => match at {
                Some((known, last)) if known == history && *seqno == *last + 1 => *last = *seqno,
                _ => {
                    let stands = at.map_or("nowhere".to_owned(), |(h, s)| format!("at {h}:{s}"));
                    return Err(format!(
                        "{history}:{seqno} passes commit order on {}, whose database stands {stands}",
                        name(sight.node)
                    ));
                }
            },
            Seen::Database { history, seqno, .. } => {
                let has = at.is_some_and(|(known, last)| known == *history && *seqno <= last);
                if !has {
                    return Err(format!(
                        "the database of {} shows {history}:{seqno}, which has not passed commit order there",
                        name(sight.node)
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::story::*;
    use crate::seen::Seen;

    const NAME: &str = "commit-order";

    #[test]
    fn a_restart_goes_on_where_the_database_is() {
        let mut story = Story::databases();
        story.restart(1, 3).ordered(1, 4, 101, &[1]);
        story.write(0, 5, 102, &[2]);
        story.ordered(1, 5, 102, &[2]).is_clean();
    }

    #[test]
    fn twice_left_out_or_in_another_history() {
        for seqno in [4, 6] {
            let mut story = Story::databases();
            story.ordered(0, seqno, 102, &[1]).violates(NAME);
        }
        let mut story = Story::databases();
        story.restart(1, 3).ordered(1, 5, 102, &[1]);
        story.violates(NAME);
    }

    #[test]
    fn nothing_before_the_snapshot_or_after_the_end() {
        let mut story = Story::new();
        story.ordered(0, 1, 100, &[1]).violates(NAME);
        let mut story = Story::databases();
        story.see(0, Seen::Stopped { clean: true });
        story.ordered(0, 5, 102, &[1]).violates(NAME);
    }

    #[test]
    fn a_state_that_did_not_pass() {
        let mut story = Story::databases();
        story.database(0, 5, 5000).violates(NAME);
    }
}
