//! An acknowledged commit is in every later primary history (the central promise; rules 1, 3, 4).
//!
//! A commit is acknowledged when a majority of the view holds it in its log. The world makes no more replicas amnesiac
//! than the durability mode can bear, so enough intact votes are left (`World::survivable`); or an operator's override
//! or bootstrap ends a larger loss. So:
//! - an acknowledgement comes after the commit in the database of its own node, with the same GTID;
//! - in the end every living database holds every acknowledged transaction, except those of a branch that an
//!   operator's decision left behind: there the fork point lies between the database and the commit. Any other
//!   missing transaction is lost.
//!
//! A cluster may go on by itself although half of it may be amnesiac (rule 4). This is a forced view, too, but it
//! excuses less: the databases of all nodes that were heard keep their transactions, until an operator decides
//! otherwise.
//!
//! Meanwhile `gtid-unique` checks that no database goes on without another database's transactions.

use super::databases::{Databases, Place};
use super::logs::name;
use super::{Invariant, Shared};
use crate::seen::{ClientTrx, NodeId, Seen, Sight};

use trireme_replicator::Code;

/// The invariant of this module.
pub struct AcknowledgedKept {
    databases: Shared<Databases>,
    acknowledged: Vec<(ClientTrx, Place)>,
    alive: Vec<bool>,
    /// The contents of the databases when a cluster was reformed from the best log.
    held: Vec<(NodeId, Place)>,
}

impl AcknowledgedKept {
    /// An invariant that reads these databases.
    pub fn new(databases: &Shared<Databases>) -> AcknowledgedKept {
        AcknowledgedKept {
            databases: databases.clone(),
            acknowledged: Vec::new(),
            alive: Vec::new(),
            held: Vec::new(),
        }
    }
}

impl Invariant for AcknowledgedKept {
    fn name(&self) -> &'static str {
        "acknowledged-kept"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        match &sight.what {
            Seen::Started { .. } | Seen::Stopped { .. } | Seen::Disconnected => {
                if self.alive.len() <= sight.node {
                    self.alive.resize(sight.node + 1, false);
                }
                self.alive[sight.node] = matches!(sight.what, Seen::Started { .. });
            }
            // A process that founds with the nodes it has heard does so before this event.
            Seen::Overridden { .. } | Seen::Founded { .. } => self.held.clear(),
            Seen::Reformed { heard } => {
                let databases = self.databases.borrow();
                let Some(own) = databases.place(sight.node) else {
                    return Ok(());
                };
                // A node on a branch that was given up earlier has no say.
                let is_here =
                    |at: &Place| databases.is_within(*at, own) || databases.is_within(own, *at);
                let places = heard
                    .iter()
                    .filter_map(|n| Some((*n, databases.place(*n)?)));
                self.held.extend(places.filter(|(_, at)| is_here(at)));
            }
            Seen::Ended {
                trx,
                code: Code::Ok,
                seqno,
                writes,
                ..
            } if !writes.is_empty() => {
                let databases = self.databases.borrow();
                let tip = databases.place(sight.node);
                let place = databases.committed_at(*trx);
                let here =
                    place.filter(|place| tip.is_some_and(|tip| databases.is_within(*place, tip)));
                let Some(here) = here else {
                    return Err(format!(
                        "{} acknowledges transaction {trx}, which its database has not committed",
                        name(sight.node)
                    ));
                };
                if *seqno != Some(here.seqno) {
                    return Err(format!(
                        "{} acknowledges transaction {trx} as {seqno:?}, it is {}",
                        name(sight.node),
                        databases.gtid(here)
                    ));
                }
                self.acknowledged.push((*trx, here));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let databases = self.databases.borrow();
        for node in (0..self.alive.len()).filter(|node| self.alive[*node]) {
            let Some(tip) = databases.place(node) else {
                continue;
            };
            let was_held = |place: Place| {
                let mut held = self.held.iter();
                held.any(|(_, at)| databases.is_within(place, *at))
            };
            let is_lost = |place: Place| {
                // Not beyond a fork point: the database just ends, or belongs to another history.
                let ends = || {
                    let meeting = databases.meeting(place, tip);
                    meeting.is_none_or(|at| at == databases.normal(tip))
                };
                !databases.is_within(place, tip) && (was_held(place) || ends())
            };
            let mut lost = self.acknowledged.iter().filter(|(_, at)| is_lost(*at));
            if let Some((trx, at)) = lost.next() {
                return Err(format!(
                    "transaction {trx} was acknowledged as {}, and the database of {}, at {}, does not hold it ({} more)",
                    databases.gtid(*at),
                    name(node),
                    databases.gtid(tip),
                    lost.count()
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::story::*;
    use crate::seen::Seen;

    const NAME: &str = "acknowledged-kept";

    #[test]
    fn kept_in_every_living_database() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]);
        assert!(story.at_end(NAME).is_err(), "n2 and n3 do not hold 102");
        story.see(0, Seen::Stopped { clean: false });
        story.ordered(1, 5, 102, &[1]).ordered(2, 5, 102, &[1]);
        assert_eq!(story.at_end(NAME), Ok(()));
        // A crash takes it from one database, and it must come back there.
        story.restart(1, 3);
        assert!(story.at_end(NAME).is_err());
        story.ordered(1, 4, 101, &[1]).ordered(1, 5, 102, &[1]);
        assert_eq!(story.at_end(NAME), Ok(()));
    }

    #[test]
    fn lost_with_the_only_one_that_had_it() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]);
        story.see(0, Seen::Stopped { clean: false });
        assert!(story.at_end(NAME).is_err());
    }

    #[test]
    fn what_an_override_left_behind_may_be_lost_and_only_that() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]).overridden();
        story.see(0, Seen::Stopped { clean: false });
        for node in [1, 2] {
            story.ordered_view(node, 5, 13);
        }
        story.write(1, 6, 103, &[1]);
        assert!(story.at_end(NAME).is_err(), "n3 does not hold 103");
        story.ordered(2, 6, 103, &[1]);
        assert_eq!(story.at_end(NAME), Ok(()));
    }

    #[test]
    fn what_a_bootstrap_left_behind_may_be_lost() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]);
        for node in 0..3 {
            story.see(node, Seen::Stopped { clean: false });
        }
        let database = (HISTORY, 4);
        story.see(1, Seen::Started { database });
        assert!(story.at_end(NAME).is_err());
        story.founds(1, 4);
        story.ordered_view(1, 5, 13);
        assert_eq!(story.at_end(NAME), Ok(()));
    }

    #[test]
    fn what_a_database_held_that_was_heard_is_kept() {
        for operator in [false, true] {
            let mut story = Story::databases();
            story.write(0, 5, 102, &[1]).overridden();
            let heard = vec![0, 1, 2];
            story.see(1, Seen::Reformed { heard });
            if operator {
                let override_id = trireme_group::Uuid([7; 16]);
                story.see(1, Seen::Overridden { override_id });
            }
            story.see(0, Seen::Stopped { clean: false });
            for node in [1, 2] {
                story.ordered_view(node, 5, 13);
            }
            assert_eq!(story.at_end(NAME).is_ok(), operator);
        }
    }

    #[test]
    fn acknowledged_before_it_is_committed() {
        let mut story = Story::databases();
        story.acknowledged(0, 102, 5, &[1]).violates(NAME);
        let mut story = Story::databases();
        story.ordered(0, 5, 102, &[1]);
        story.acknowledged(1, 102, 5, &[1]).violates(NAME);
    }

    #[test]
    fn acknowledged_with_another_gtid() {
        let mut story = Story::databases();
        story.ordered(0, 5, 102, &[1]);
        story.acknowledged(0, 102, 6, &[1]).violates(NAME);
    }
}
