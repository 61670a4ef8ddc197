//! Databases at the same (history, seqno) have the same contents (server-contract.md#overview).
//!
//! This is the purpose of replication. A database may come to a seqno in any way: own commits, parallel appliers,
//! replays, an SST in the middle of the load, recovery from a crash. Its digest must equal the first digest reported
//! there.

use super::databases::Databases;
use super::logs::name;
use super::{Invariant, Shared};
use crate::seen::{Seen, Sight};

/// The invariant of this module.
pub struct DatabasesEqual {
    databases: Shared<Databases>,
}

impl DatabasesEqual {
    /// An invariant that reads these databases and notes the digests in them.
    pub fn new(databases: &Shared<Databases>) -> DatabasesEqual {
        DatabasesEqual {
            databases: databases.clone(),
        }
    }
}

impl Invariant for DatabasesEqual {
    fn name(&self) -> &'static str {
        "databases-equal"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let Seen::Database {
            history,
            seqno,
            digest,
        } = sight.what
        else {
            return Ok(());
        };
        let mut databases = self.databases.borrow_mut();
        let tip = databases.place(sight.node);
        let place = tip.and_then(|tip| databases.find(history, seqno, tip));
        let Some(place) = place else {
            return Err(format!(
                "{} shows a digest at {history}:{seqno}, where it is not",
                name(sight.node)
            ));
        };
        if databases.digest(place, digest) != digest {
            return Err(format!(
                "the database of {} at {history}:{seqno} differs from what another one held there",
                name(sight.node)
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::story::*;

    #[test]
    fn equal_states_and_different_ones() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]).ordered(1, 5, 102, &[1]);
        let mut other = story.clone();
        story.database(1, 5, 5000).is_clean();
        other.database(1, 5, 5001).violates("databases-equal");
    }

    #[test]
    fn branches_are_compared_apart() {
        let mut story = Story::databases();
        story.overridden();
        story.write(0, 5, 102, &[1]).ordered(1, 5, 103, &[1]);
        story.database(1, 5, 5001).is_clean();
        story.ordered(2, 5, 103, &[1]).database(2, 5, 5000);
        story.violates("databases-equal");
    }
}
