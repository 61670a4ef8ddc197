//! A current read sees every commit that was acknowledged to any client before the read began (rule 17).
//!
//! This is the purpose of `wsrep_sync_wait`; a read without it may be stale. A reader beyond a fork point does not
//! have to see commits that an operator's override left behind. A reader on a node that lacks an override does not have
//! to see commits of the nodes with it: a majority does not hear of one who goes on alone.

use trireme_replicator::Code;

use super::databases::{Databases, Place};
use super::logs::{Logs, name};
use super::tree::EntryId;
use super::{HashMap, Invariant, Shared};
use crate::seen::{ClientTrx, NodeId, Seen, Sight};

/// An acknowledged write.
struct Write {
    /// The number of acknowledgements up to this one.
    count: u64,
    place: Place,
    /// The overrides that the acknowledging node knew.
    overrides: Vec<EntryId>,
}

/// The invariant of this module.
pub struct CurrentReads {
    databases: Shared<Databases>,
    logs: Shared<Logs>,
    /// Number of acknowledgements so far.
    count: u64,
    /// By row: the acknowledged writes, in the order of their places.
    acknowledged: HashMap<u32, Vec<Write>>,
    /// The open current reads, each with the count at its begin.
    open: HashMap<ClientTrx, u64>,
}

impl CurrentReads {
    /// An invariant that reads these databases and logs.
    pub fn new(databases: &Shared<Databases>, logs: &Shared<Logs>) -> CurrentReads {
        CurrentReads {
            databases: databases.clone(),
            logs: logs.clone(),
            count: 0,
            acknowledged: HashMap::default(),
            open: HashMap::default(),
        }
    }

    fn acknowledged(&mut self, node: NodeId, trx: ClientTrx, writes: &[u32]) {
        let Some(place) = self.databases.borrow().committed_at(trx) else {
            return;
        };
        self.count += 1;
        let overrides = self.logs.borrow().overrides_of(node);
        for key in writes {
            let of_row = self.acknowledged.entry(*key).or_default();
            // A write below the last one demands nothing more of readers.
            let adds = (of_row.last())
                .is_none_or(|last| !self.databases.borrow().is_within(place, last.place));
            if adds {
                of_row.push(Write {
                    count: self.count,
                    place,
                    overrides: overrides.clone(),
                });
            }
        }
    }

    /// The last write that a reader on this node must have seen, but whose version its list is too short for.
    fn missed(&self, node: NodeId, began: u64, key: u32, len: u32) -> Option<Place> {
        let databases = self.databases.borrow();
        let tip = databases.place(node)?;
        let of_row = self.acknowledged.get(&key)?;
        let before = of_row.partition_point(|write| write.count <= began);
        let is_known = |write: &Write| {
            let lacks = |known: &[EntryId]| write.overrides.iter().any(|id| !known.contains(id));
            write.overrides.is_empty() || !lacks(&self.logs.borrow().overrides_of(node))
        };
        for write in of_row[..before].iter().rev() {
            if databases.is_within(write.place, tip) {
                let version = databases.version(key, write.place);
                return version.is_some_and(|v| v.len > len).then_some(write.place);
            }
            let is_beyond = databases.meeting(write.place, tip) != Some(databases.normal(tip));
            if !is_beyond && is_known(write) {
                return Some(write.place); // the database has not reached that write
            }
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
                    self.acknowledged(sight.node, *trx, writes);
                }
            }
            Seen::Read { trx, key, len, .. } => {
                let Some(began) = self.open.get(trx) else {
                    return Ok(());
                };
                if let Some(missed) = self.missed(sight.node, *began, *key, *len) {
                    let databases = self.databases.borrow();
                    let at = databases.place(sight.node).map(|tip| databases.gtid(tip));
                    return Err(format!(
                        "rule 17: current read {trx} on {} (at {at:?}) sees {len} writes of row {key} and misses that of \
                         {}, acknowledged before it began",
                        name(sight.node),
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
    fn on_a_node_that_lacks_the_writers_override() {
        let mut story = Story::databases();
        story.overridden().write(1, 5, 102, &[1]);
        let mut behind = story.clone();
        story.began(0, 200, true).read(0, 200, 1, &[100, 101]);
        story.is_clean();
        behind.began(2, 200, true).read(2, 200, 1, &[100, 101]);
        behind.violates(NAME);
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
