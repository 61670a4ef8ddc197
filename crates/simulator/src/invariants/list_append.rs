//! Clients read only states that the rows really had (list-append, as Jepsen's Elle checks it).
//!
//! Each row is an append-only list of the transactions that wrote it. Every list that a client reads must result from
//! the committed order. Then lists are prefixes of one another. No client reads a transaction that was never
//! committed, was rolled back, or is not committed on this node yet. Nothing disappears from the middle of a row, and
//! writes stand in the order of their GTIDs.

use super::databases::Databases;
use super::logs::name;
use super::{Invariant, Shared};
use crate::seen::{Seen, Sight};

/// The invariant of this module.
pub struct ListAppend {
    databases: Shared<Databases>,
}

impl ListAppend {
    /// An invariant that reads these databases.
    pub fn new(databases: &Shared<Databases>) -> ListAppend {
        ListAppend {
            databases: databases.clone(),
        }
    }
}

impl Invariant for ListAppend {
    fn name(&self) -> &'static str {
        "list-append"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let Seen::Read {
            trx,
            key,
            len,
            digest,
            last,
        } = sight.what
        else {
            return Ok(());
        };
        let databases = self.databases.borrow();
        let Some(tip) = databases.place(sight.node) else {
            return Err(format!(
                "{} lets a client read an unknown state",
                name(sight.node)
            ));
        };
        let version = match len {
            0 => None,
            _ => databases.version_of_len(key, len, tip),
        };
        let expected = version.map(|version| (version.digest, Some(version.writer)));
        if (len > 0 && expected.is_none()) || (digest, last) != expected.unwrap_or((0, None)) {
            return Err(format!(
                "transaction {trx} on {} reads {len} writes of row {key}, the last of {last:?}; no such list was ever \
                 committed there (at {})",
                name(sight.node),
                databases.gtid(tip)
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::story::*;

    const NAME: &str = "list-append";

    #[test]
    fn every_state_that_was() {
        let mut story = Story::databases();
        story.read(1, 200, 2, &[]);
        for list in [&[][..], &[100], &[100, 101]] {
            story.read(1, 200, 1, list);
        }
        story.is_clean();
    }

    #[test]
    fn states_that_never_were() {
        let lists: [&[u64]; 5] = [
            &[101],
            &[101, 100],
            &[100, 102],
            &[100, 101, 102],
            &[100, 100],
        ];
        for list in lists {
            let mut story = Story::databases();
            story.read(1, 200, 1, list).violates(NAME);
        }
    }

    #[test]
    fn not_committed_on_this_node_yet() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]);
        let mut there = story.clone();
        there.read(0, 200, 1, &[100, 101, 102]).is_clean();
        story.read(1, 200, 1, &[100, 101, 102]).violates(NAME);
    }

    #[test]
    fn a_row_of_the_other_branch() {
        let mut story = Story::databases();
        story.overridden();
        story.write(0, 5, 102, &[1]).write(1, 5, 103, &[1]);
        story.read(0, 200, 1, &[100, 101, 102]);
        story.read(1, 201, 1, &[100, 101, 103]).is_clean();
        story.read(1, 202, 1, &[100, 101, 102]).violates(NAME);
    }
}
