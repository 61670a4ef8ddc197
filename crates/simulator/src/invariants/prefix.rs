//! Delivered sequences are prefixes of one another (rules 1, 3, 9).
//!
//! Two members that deliver different entries at one position are two clusters under one name: the lost acknowledged
//! commits of Raft's figure 8. The invariant checks the logs themselves, entry by entry:
//! - (position, term) names one entry and one predecessor, in every log that was ever written;
//! - a committed entry has one successor. Of any two paths one must hold a forced view above the fork point, whose
//!   members did not know the entries above that point as committed (`fork_after`);
//! - every process delivers the committed entries, in order, and leaves out only entries that no process delivers
//!   (term starts, voided submissions, submissions of processes outside of the view);
//! - an origin's submissions are committed once each, in its order; only voided ones may be missing;
//! - a forced view keeps what its members held ([`promises`](super::promises));
//! - at most one view is pending, except forced views;
//! - a log that begins anew does so at a committed entry, with the view in force there.

use super::logs::Logs;
use super::{Invariant, Shared};
use crate::seen::Sight;

/// Keeps [`Logs`] for the other invariants.
pub struct Prefix {
    logs: Shared<Logs>,
}

impl Prefix {
    /// An invariant that keeps these logs.
    pub fn new(logs: &Shared<Logs>) -> Prefix {
        Prefix { logs: logs.clone() }
    }
}

impl Invariant for Prefix {
    fn name(&self) -> &'static str {
        "prefix"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        self.logs.borrow_mut().see(sight)
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::{Body, Configuration, Position, SubmissionId, Uuid};

    use crate::invariants::story::*;
    use crate::seen::Seen;

    const NAME: &str = "prefix";

    #[test]
    fn clean_logs_pass() {
        let mut story = Story::logs();
        // The group delivers no term start, no voided submission, and no submission of an outsider.
        for node in [1, 2] {
            story.append(node, entry(6, term(2), Body::TermStart));
            let id = SubmissionId {
                incarnation: incarnation(1),
                number: 2,
            };
            story.append(node, entry(7, term(2), Body::Voided { id }));
            story.append(node, entry(8, term(2), submission(5, 1, "outside")));
        }
        story.commit_in(2, &[1, 2], 9, submission(2, 2, "c"));
        story.is_clean();
    }

    #[test]
    fn a_void_uses_up_all_numbers_up_to_its_own() {
        let mut story = Story::logs();
        let incarnation = incarnation(1);
        let void = |number| Body::Voided {
            id: SubmissionId {
                incarnation,
                number,
            },
        };
        story.append(1, entry(6, term(1), void(4)));
        let mut again = story.clone();
        story.commit_in(1, &[1], 7, submission(1, 5, "c"));
        story.is_clean();
        again.append(1, entry(7, term(1), void(3)));
        again.append(1, entry(8, term(1), submission(1, 5, "c")));
        again.deliver(1, 8, &submission(1, 5, "c")).violates(NAME);
    }

    #[test]
    fn a_suffix_that_was_not_committed_may_be_replaced() {
        let mut story = Story::logs();
        story.append(0, entry(6, term(1), submission(0, 1, "lost")));
        for node in [1, 2] {
            story.append(node, entry(6, term(2), Body::TermStart));
        }
        story.commit_in(2, &[1, 2], 7, submission(1, 2, "c"));
        story.see(0, Seen::Truncated { after: 5 });
        story.append(0, entry(6, term(2), Body::TermStart));
        story.commit_in(2, &[0], 7, submission(1, 2, "c"));
        story.is_clean();
    }

    #[test]
    fn two_entries_committed_at_one_position() {
        let mut story = Story::logs();
        story.commit_in(1, &[0], 6, submission(0, 1, "one"));
        let body = submission(1, 2, "two");
        story.append(1, entry(6, term(2), body.clone()));
        story.deliver(1, 6, &body).violates(NAME);
    }

    #[test]
    fn an_override_forks_the_history() {
        let mut story = Story::logs();
        story.commit_in(1, &[0, 1], 6, submission(0, 1, "one"));
        let configuration = Configuration {
            override_id: Some(Uuid([9; 16])),
            ..view(3, &[2])
        };
        story.append(2, entry(6, term(2), Body::TermStart));
        story.commit_in(2, &[2], 7, Body::Configuration(configuration.clone()));
        story.commit_in(2, &[2], 8, submission(2, 2, "two"));
        // The other branch goes on until it hears of it; then it begins anew.
        story.commit_in(1, &[0, 1], 7, submission(0, 2, "three"));
        let mut restarted = story.clone();
        restarted.see(0, Seen::Stopped { clean: false });
        restarted.see(0, Seen::Started { database: NOWHERE });
        restarted.begins_anew(0, 7, 2, configuration).is_clean();
        // But it is one branch.
        let body = submission(1, 2, "two");
        story.append(1, entry(8, term(1), body.clone()));
        story.deliver(1, 8, &body);
        let body = submission(0, 3, "four");
        story.append(0, entry(8, term(3), body.clone()));
        story.deliver(0, 8, &body).violates(NAME);
    }

    /// n3 is made primary alone, after 5 or 6; n1 commits another entry at 6 than n3.
    fn overridden_after(fork_after: Position) -> Story {
        let mut story = Story::logs();
        let configuration = Configuration {
            override_id: Some(Uuid([9; 16])),
            fork_after,
            ..view(3, &[2])
        };
        story.commit_in(2, &[2], 6, submission(2, 2, "there"));
        story.commit_in(2, &[2], 7, Body::Configuration(configuration));
        story.commit_in(1, &[0], 6, submission(0, 1, "here"));
        story
    }

    #[test]
    fn an_override_forks_only_above_what_its_members_knew() {
        overridden_after(5).is_clean();
        overridden_after(6).violates(NAME);
    }

    #[test]
    fn a_fork_excuses_no_other_beside_it() {
        let mut story = overridden_after(5);
        let body = submission(1, 2, "elsewhere");
        story.append(1, entry(6, term(3), body.clone()));
        story.deliver(1, 6, &body).violates(NAME);
    }

    #[test]
    fn two_pending_views() {
        let mut story = Story::logs();
        story.append(0, entry(6, term(1), Body::Configuration(view(3, &[0, 1]))));
        story.append(0, entry(7, term(1), submission(0, 1, "one")));
        story.append(0, entry(8, term(1), Body::Configuration(view(4, &[0]))));
        story.violates(NAME);
    }

    #[test]
    fn one_name_for_two_entries() {
        let mut story = Story::logs();
        story.append(0, entry(6, term(1), submission(0, 1, "one")));
        story.append(1, entry(6, term(1), submission(0, 1, "two")));
        story.violates(NAME);
    }

    #[test]
    fn one_name_after_two_predecessors() {
        let mut story = Story::logs();
        story.append(0, entry(6, term(1), submission(0, 1, "one")));
        story.append(0, entry(7, term(2), Body::TermStart));
        story.append(1, entry(6, term(2), Body::TermStart));
        story.append(1, entry(7, term(2), Body::TermStart));
        story.violates(NAME);
    }

    #[test]
    fn a_hole_in_a_log() {
        let mut story = Story::logs();
        story.append(0, entry(7, term(1), submission(0, 1, "one")));
        story.violates(NAME);
    }

    #[test]
    fn a_term_that_falls() {
        let mut story = Story::logs();
        story.append(0, entry(6, term(0), Body::TermStart));
        story.violates(NAME);
    }

    #[test]
    fn something_left_out_or_changed_in_delivery() {
        let mut story = Story::logs();
        story.append(0, entry(6, term(1), submission(0, 1, "one")));
        story.append(0, entry(7, term(1), submission(0, 2, "two")));
        let mut left_out = story.clone();
        left_out.deliver(0, 7, &submission(0, 2, "two"));
        left_out.violates(NAME);
        story.deliver(0, 6, &submission(0, 1, "another"));
        story.violates(NAME);
    }

    #[test]
    fn an_outsiders_submission_is_delivered() {
        let mut story = Story::logs();
        let body = submission(5, 1, "outside");
        story.append(0, entry(6, term(1), body.clone()));
        story.deliver(0, 6, &body).violates(NAME);
    }

    #[test]
    fn a_submission_twice_or_out_of_turn() {
        for number in [1, 3] {
            let mut story = Story::logs();
            let body = submission(1, number, "a");
            story.append(0, entry(6, term(1), body.clone()));
            story.deliver(0, 6, &body).violates(NAME);
        }
    }

    #[test]
    fn a_log_begins_anew_where_nothing_is_committed() {
        let mut story = Story::logs();
        story.see(2, Seen::Stopped { clean: false });
        story.see(2, Seen::Started { database: NOWHERE });
        let mut unknown = story.clone();
        unknown.begins_anew(2, 5, 3, view(2, &[0, 1, 2]));
        unknown.violates(NAME);
        let mut other_view = story.clone();
        other_view.begins_anew(2, 5, 1, view(2, &[0, 1]));
        other_view.violates(NAME);
        // Another entry is committed there.
        story.append(0, entry(6, term(1), submission(0, 1, "lost")));
        story.commit_in(2, &[1], 6, submission(1, 2, "kept"));
        story.begins_anew(2, 6, 1, view(2, &[0, 1, 2]));
        story.violates(NAME);
    }

    #[test]
    fn the_view_shown_after_beginning_anew() {
        let mut story = Story::logs();
        story.see(2, Seen::Stopped { clean: false });
        story.see(2, Seen::Started { database: NOWHERE });
        story.begins_anew(2, 5, 1, view(2, &[0, 1, 2]));
        let mut other = story.clone();
        story.deliver(2, 5, &Body::Configuration(view(2, &[0, 1, 2])));
        story.is_clean();
        other.deliver(2, 5, &Body::Configuration(view(1, &[0])));
        other.violates(NAME);
    }
}
