//! A GTID names one thing, and a transaction has one GTID (rules 5, 9, 11).
//!
//! If a seqno is used twice, a history diverges silently: both servers say `uuid:seqno` and mean different rows. The
//! invariant compares every seqno that any database commits: it is the same transaction (or the same view, or a
//! dummy) on all, and no transaction has two seqnos. Databases fork only where logs fork, once for any two lines of
//! the logs (an override or a founding has made the later line, see `prefix`), or at a founder's own position. In the
//! end all databases lie on one path.

use super::databases::{Databases, Place};
use super::logs::name;
use super::{Invariant, Shared};
use crate::seen::{NodeId, Seen, Sight};

/// Keeps [`Databases`] for the other invariants.
pub struct GtidUnique {
    databases: Shared<Databases>,
    alive: Vec<bool>,
}

impl GtidUnique {
    /// An invariant that keeps these databases.
    pub fn new(databases: &Shared<Databases>) -> GtidUnique {
        GtidUnique {
            databases: databases.clone(),
            alive: Vec::new(),
        }
    }
}

impl Invariant for GtidUnique {
    fn name(&self) -> &'static str {
        "gtid-unique"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        if let Seen::Started { .. } | Seen::Stopped { .. } | Seen::Disconnected = sight.what {
            if self.alive.len() <= sight.node {
                self.alive.resize(sight.node + 1, false);
            }
            self.alive[sight.node] = matches!(sight.what, Seen::Started { .. });
        }
        self.databases.borrow_mut().see(sight)
    }

    fn end(&mut self) -> Result<(), String> {
        let databases = self.databases.borrow();
        let mut first: Option<(NodeId, Place)> = None;
        for node in (0..self.alive.len()).filter(|node| self.alive[*node]) {
            let Some(place) = databases.place(node) else {
                continue;
            };
            let (other, tip) = *first.get_or_insert((node, place));
            if !databases.is_within(place, tip) && !databases.is_within(tip, place) {
                return Err(format!(
                    "in the end the database of {} at {} and that of {} at {} are of different histories",
                    name(other),
                    databases.gtid(tip),
                    name(node),
                    databases.gtid(place)
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use crate::invariants::story::*;
    use crate::seen::Seen;

    const NAME: &str = "gtid-unique";

    #[test]
    fn clean_histories_pass() {
        let story = Story::databases();
        story.is_clean();
        assert_eq!(story.at_end(NAME), Ok(()));
    }

    #[test]
    fn a_gtid_for_two_transactions() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]).ordered(1, 5, 103, &[1]);
        story.violates(NAME);
    }

    #[test]
    fn committed_here_and_a_dummy_there() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]).order(1, 5, (None, None), &[]);
        story.violates(NAME);
    }

    #[test]
    fn a_transaction_with_two_gtids() {
        let mut story = Story::databases();
        story.ordered(0, 5, 101, &[1]).violates(NAME);
    }

    #[test]
    fn a_second_branch_needs_an_override() {
        let mut story = Story::databases();
        story.overridden();
        story.write(0, 5, 102, &[1]).write(1, 5, 103, &[1]);
        story.is_clean();
        assert!(story.at_end(NAME).is_err(), "both are alive");
        // A node that follows one of them is on its branch.
        story.ordered(2, 5, 102, &[1]).write(0, 6, 104, &[1]);
        let mut followed = story.clone();
        followed.ordered(2, 6, 104, &[1]).is_clean();
        // One override, one fork.
        story.ordered(2, 6, 105, &[1]).violates(NAME);
    }

    /// Seed 104071 of `mistakes`: a view changes no row, so both branches have the same digest here.
    #[test]
    fn a_snapshot_is_of_its_donors_branch() {
        let mut story = Story::databases();
        story.overridden();
        story.ordered_view(0, 5, 13).ordered_view(1, 5, 14);
        story.database(0, 5, 5000).database(1, 5, 5000);
        story.snapshot(2, 5, 5000, 0);
        story.write(2, 6, 104, &[1]).write(1, 6, 105, &[1]);
        story.is_clean();
        story.ordered(0, 6, 104, &[1]).is_clean();
    }

    #[test]
    fn a_bootstrap_goes_on_at_the_founders_position() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]);
        for node in 0..3 {
            story.see(node, Seen::Stopped { clean: false });
        }
        for (node, seqno) in [(0, 5), (1, 4), (2, 3)] {
            let database = (HISTORY, seqno);
            story.see(node, Seen::Started { database });
        }
        story.founds(1, 4);
        // n3 commits the founder's view before the founder does; the entries below it are the old ones.
        story.ordered(2, 4, 101, &[1]).ordered_view(2, 5, 13);
        story.ordered_view(1, 5, 13).write(1, 6, 103, &[1]);
        story.ordered(2, 6, 103, &[1]).is_clean();
        assert!(
            story.at_end(NAME).is_err(),
            "n1 is on the branch that was left"
        );
        story.snapshot(0, 6, 6000, 1);
        assert_eq!(story.at_end(NAME), Ok(()));
    }

    #[test]
    fn two_bootstraps_at_one_position() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]);
        for node in 0..3 {
            story.restart(node, 3 + i64::from(node == 0));
        }
        // The first founder gets nowhere.
        story.founds(0, 4).begins_log(0, 7);
        story.restart(0, 4).founds(0, 4).begins_log(0, 8);
        // n2 commits the founder's view before it.
        story.begins_anew(1, 1, 8, view(1, &[0]));
        story.ordered(1, 4, 101, &[1]).ordered_view(1, 5, 13);
        story.ordered_view(0, 5, 13).write(0, 6, 103, &[1]);
        story.ordered(1, 6, 103, &[1]);
        story.acknowledged(1, 103, 6, &[1]).is_clean();
        // The first founding's entries are a branch of their own; there is no third.
        let mut founded = story.clone();
        story.ordered(2, 4, 101, &[1]);
        story.begins_anew(2, 1, 7, view(1, &[0]));
        story.ordered_view(2, 5, 12).is_clean();
        story.restart(2, 4).begins_anew(2, 1, 7, view(1, &[0]));
        story.ordered_view(2, 5, 14).violates(NAME);
        // Nor does the second founding make two.
        founded.ordered(2, 4, 101, &[1]);
        founded.begins_anew(2, 1, 8, view(1, &[0]));
        founded.ordered_view(2, 5, 12).violates(NAME);
    }

    /// Rule 13.
    #[test]
    fn a_founder_that_has_executed_an_action_above_its_position() {
        let mut story = Story::databases();
        story.write(0, 5, 102, &[1]).ordered(1, 5, 102, &[1]);
        story.database(0, 5, 5000).restart(0, 4).restart(0, 4);
        let mut behind = story.clone();
        story.founds(0, 5).ordered_view(0, 6, 13);
        story.ordered_view(1, 6, 13).database(1, 6, 6000);
        story.database(0, 6, 6000).is_clean();
        // Numbers may be left out, and none is taken twice.
        let mut twice = behind.clone();
        twice.founds(0, 3).violates(NAME);
        behind.founds(0, 6).ordered_view(0, 7, 13).is_clean();
    }

    #[test]
    fn a_new_history_on_an_old_database() {
        let mut story = Story::databases();
        let history = Uuid([3; 16]);
        story
            .restart(1, 4)
            .see(1, Seen::Founded { history, seqno: 0 });
        story.see(
            1,
            Seen::Ordered {
                history,
                seqno: 1,
                writer: Some(103),
                view: None,
                writes: vec![1],
                applied: false,
            },
        );
        story.read(1, 104, 1, &[100, 101, 103]).is_clean();
    }

    #[test]
    fn a_history_founded_again() {
        let mut story = Story::databases();
        story.see(1, Seen::Stopped { clean: false });
        story.see(1, Seen::Started { database: NOWHERE });
        story.founds(1, 0).violates(NAME);
    }

    #[test]
    fn a_database_from_nowhere() {
        let mut story = Story::databases();
        story.restart(1, 5).violates(NAME);
        let mut story = Story::databases();
        story.snapshot(1, 5, 5000, 0).violates(NAME);
        let mut story = Story::databases();
        story.snapshot(1, 4, 4001, 0).violates(NAME);
    }
    #[test]
    fn a_crash_takes_a_database_back_to_before_it_diverged() {
        let mut story = Story::databases();
        // It connects again while its server runs, with a write-set left out.
        story.see(1, Seen::Started { database: NOWHERE });
        let mut elsewhere = story.clone();
        story.restart(1, 3).ordered(1, 4, 101, &[1]).is_clean();
        elsewhere.restart(1, 5).violates(NAME);
    }
}
