//! A current read sees every commit that was acknowledged to any client before the read began (rule 17).
//!
//! This is the purpose of `wsrep_sync_wait`; a read without it may be stale. A reader beyond a fork point does not
//! have to see commits that an operator's override left behind.

use trireme_replicator::Code;

use super::databases::{Databases, Place};
use super::logs::name;
use super::{HashMap, Invariant, Shared};
use crate::seen::{ClientTrx, Seen, Sight};

/// The invariant of this module.
pub struct CurrentReads {
    databases: Shared<Databases>,
    /// Number of acknowledgements so far.
    count: u64,
    /// By row: the acknowledged writes, each with the count at its time, in the order of their places.
    acknowledged: HashMap<u32, Vec<(u64, Place)>>,
    /// The open current reads, each with the count at its begin.
    open: HashMap<ClientTrx, u64>,
}

impl CurrentReads {
    /// An invariant that reads these databases.
    pub fn new(databases: &Shared<Databases>) -> CurrentReads {
        CurrentReads {
            databases: databases.clone(),
            count: 0,
            acknowledged: HashMap::default(),
            open: HashMap::default(),
        }
    }

    fn acknowledged(&mut self, trx: ClientTrx, writes: &[u32]) {
        let Some(place) = self.databases.borrow().committed_at(trx) else {
            return;
        };
        self.count += 1;
        for key in writes {
            let of_row = self.acknowledged.entry(*key).or_default();
            // A write below the last one demands nothing more of readers.
            let adds = (of_row.last())
                .is_none_or(|(_, last)| !self.databases.borrow().is_within(place, *last));
            if adds {
                of_row.push((self.count, place));
            }
        }
    }

    /// The last write that a reader must have seen, but whose version its list is too short for.
    fn missed(&self, began: u64, key: u32, len: u32, tip: Place) -> Option<Place> {
        let of_row = self.acknowledged.get(&key)?;
        let before = of_row.partition_point(|(count, _)| *count <= began);
        let databases = self.databases.borrow();
        for (_, place) in of_row[..before].iter().rev() {
            if databases.is_within(*place, tip) {
                let version = databases.version(key, *place);
                return version.is_some_and(|v| v.len > len).then_some(*place);
            }
            if databases.meeting(*place, tip) == Some(databases.normal(tip)) {
                return Some(*place); // the database has not reached that write
            }
            // The write is beyond a fork point.
        }
        None
    }
}

impl Invariant for CurrentReads {
    fn name(&self) -> &'static str {
        "current-reads"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        match &sight.what {
            Seen::Began { trx, current: true } => {
                self.open.insert(*trx, self.count);
            }
            Seen::Ended {
                trx, code, writes, ..
            } => {
                self.open.remove(trx);
                if *code == Code::Ok {
                    self.acknowledged(*trx, writes);
                }
            }
            Seen::Read { trx, key, len, .. } => {
                let (Some(began), Some(tip)) = (
                    self.open.get(trx),
                    self.databases.borrow().place(sight.node),
                ) else {
                    return Ok(());
                };
                if let Some(missed) = self.missed(*began, *key, *len, tip) {
                    let databases = self.databases.borrow();
                    return Err(format!(
                        "rule 17: current read {trx} on {} (at {}) sees {len} writes of row {key} and misses that of {}, \
                         acknowledged before it began",
                        name(sight.node),
                        databases.gtid(tip),
                        databases.gtid(missed)
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

    const NAME: &str = "current-reads";

    #[test]
    fn sees_what_was_acknowledged_before() {
        let mut story = Story::databases();
        story.began(1, 200, true);
        story.write(0, 5, 102, &[1]);
        // Acknowledged after it began; a read that is not current may be older still.
        story.read(1, 200, 1, &[100, 101]);
        story.acknowledged(1, 200, 5, &[]);
        story.began(1, 201, false).read(1, 201, 1, &[100]);
        story.ordered(1, 5, 102, &[1]);
        story.began(1, 202, true).read(1, 202, 1, &[100, 101, 102]);
        story.is_clean();
    }

    #[test]
    fn misses_an_acknowledged_write() {
        let mut story = Story::databases();
        story.began(1, 200, true).read(1, 200, 1, &[100]);
        story.violates(NAME);
    }

    #[test]
    fn on_a_database_that_has_not_come_so_far() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]).began(1, 200, true);
        story.read(1, 200, 1, &[100, 101]).violates(NAME);
    }

    #[test]
    fn beyond_an_overrides_fork() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]).overridden();
        story.ordered_view(1, 5, 13).began(1, 200, true);
        let mut stale = story.clone();
        story.read(1, 200, 1, &[100, 101]).is_clean();
        stale.read(1, 200, 1, &[100]).violates(NAME);
    }
}
