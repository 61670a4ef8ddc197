//! First committer wins, on keys (wsrep's certification; server-contract.md#conflict-matrix).
//!
//! Two transactions write the same row, and neither has seen the other's write. Then the first one in the order
//! commits; the other fails certification, or is aborted earlier. So a committed write directly follows the version
//! that its transaction had locked when it wrote. A version in between is a lost update, which row images would make
//! real. Uncommitted reads of unwritten rows are not protected (write skew is possible, as with any snapshot
//! isolation).

use super::databases::Databases;
use super::logs::name;
use super::{HashMap, Invariant, Shared};
use crate::seen::{ClientTrx, Seen, Sight};

/// The invariant of this module.
pub struct FirstCommitterWins {
    databases: Shared<Databases>,
    /// The rows that open transactions have read, with the lengths of their lists.
    read: HashMap<ClientTrx, Vec<(u32, u32)>>,
}

impl FirstCommitterWins {
    /// An invariant that reads these databases.
    pub fn new(databases: &Shared<Databases>) -> FirstCommitterWins {
        FirstCommitterWins {
            databases: databases.clone(),
            read: HashMap::default(),
        }
    }
}

impl Invariant for FirstCommitterWins {
    fn name(&self) -> &'static str {
        "first-committer-wins"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        match &sight.what {
            Seen::Read { trx, key, len, .. } => {
                let reads = self.read.entry(*trx).or_default();
                match reads.iter_mut().find(|(known, _)| known == key) {
                    Some(read) => read.1 = *len,
                    None => reads.push((*key, *len)),
                }
            }
            Seen::Began { trx, .. } | Seen::Ended { trx, .. } => drop(self.read.remove(trx)),
            Seen::Ordered {
                writer: Some(writer),
                writes,
                ..
            } => {
                let Some(reads) = self.read.remove(writer) else {
                    return Ok(());
                };
                let databases = self.databases.borrow();
                let Some(place) = databases.place(sight.node) else {
                    return Ok(());
                };
                for (key, len) in reads.iter().filter(|(key, _)| writes.contains(key)) {
                    let version = databases.version(*key, place);
                    let Some(version) = version.filter(|v| v.writer == *writer) else {
                        continue;
                    };
                    if version.len != len + 1 {
                        return Err(format!(
                            "lost update: transaction {writer} saw {len} writes of row {key}, and commits at {} on \
                             {} as write number {}",
                            databases.gtid(place),
                            name(sight.node),
                            version.len
                        ));
                    }
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

    #[test]
    fn right_behind_what_it_saw() {
        let mut story = Story::databases();
        story.began(1, 102, false).read(1, 102, 1, &[100]);
        story.read(1, 102, 1, &[100, 101]);
        story.ordered(0, 5, 102, &[1]).is_clean();
    }

    /// Found as seed 37433: on a node that has diverged meanwhile, and so does not report its reads.
    #[test]
    fn what_was_read_before_the_servers_own_retry_does_not_count() {
        let mut story = Story::databases();
        story.began(1, 102, false).read(1, 102, 1, &[100]);
        story.began(1, 102, false);
        story.ordered(0, 5, 102, &[1]).is_clean();
    }

    #[test]
    fn a_lost_update() {
        let mut story = Story::databases();
        story.began(1, 102, false).read(1, 102, 1, &[100]);
        story.ordered(0, 5, 102, &[1]);
        story.violates("first-committer-wins");
    }

    #[test]
    fn rows_that_are_only_read_are_not_protected() {
        let mut story = Story::databases();
        story.began(1, 102, false).read(1, 102, 1, &[100]);
        story.ordered(0, 5, 102, &[2]).is_clean();
    }
}
