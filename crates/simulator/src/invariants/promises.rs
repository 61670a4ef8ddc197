//! A forced view must keep the committed entries in the logs of the members that it lists (rule 11).
//!
//! In: promises, each with the promiser's log at that time; the first append of a view. Out: a member whose entries a
//! forced view drops, or one that knew more entries as committed than the view's fork point says. A member of another
//! branch is excepted: an earlier forced view has left its log, or it holds a forced view that gives way.

use trireme_group::{Configuration, Incarnation, Term};

use super::HashMap;
use super::logs::name;
use super::tree::{EntryId, Tree};
use crate::seen::NodeId;

/// A promise, with the log of the process that gave it.
pub struct Promise {
    /// Its node.
    pub node: NodeId,
    /// The process.
    pub by: Incarnation,
    /// The last entry that it had delivered.
    pub committed: EntryId,
    /// The last entry of its log.
    pub end: EntryId,
}

/// All promises, by term.
#[derive(Default)]
pub struct Promises(HashMap<Term, Vec<Promise>>);

impl Promises {
    /// Adds a promise of this term.
    pub fn add(&mut self, term: Term, promise: Promise) {
        self.0.entry(term).or_default().push(promise);
    }

    /// Checks a view when it is first appended, as the entry `at`. Err: it is a forced view that does not keep what its
    /// members held when they promised its term.
    pub fn are_kept(&self, tree: &Tree, at: EntryId, view: &Configuration) -> Result<(), String> {
        let entry = &tree[at];
        let Some(fork) = entry.forks_after else {
            return Ok(());
        };
        let given = self.0.get(&entry.term).into_iter().flatten();
        for promise in given.filter(|promise| view.member(promise.by).is_some()) {
            let is_kept = |id: EntryId| tree.meeting(at, id) == Some(id);
            let is_committed = |id: &EntryId| tree[*id].line.is_some();
            let held = tree.path(promise.end).find(is_committed);
            let lost = held.filter(|id| !is_kept(*id) && !tree.may_lack(entry.parent, *id));
            if let Some(lost) = lost {
                return Err(format!(
                    "rule 11: the forced view at {} lists {}, whose log held {} of term {}, which is committed: the \
                     view's log does not hold it",
                    entry.position,
                    name(promise.node),
                    tree[lost].position,
                    tree[lost].term
                ));
            }
            let known = tree[promise.committed].position;
            if is_kept(promise.committed) && known > fork {
                return Err(format!(
                    "rule 11: the forced view at {} forks after {fork}, and lists {}, which had committed {known}",
                    entry.position,
                    name(promise.node)
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::{Body, Configuration, Position, Uuid};

    use crate::invariants::story::*;
    use crate::seen::{NodeId, Seen};

    const NAME: &str = "prefix";

    /// The node promises a term.
    fn promise(story: &mut Story, node: NodeId, number: u64) {
        let (by, term) = (incarnation(node), term(number));
        story.see(node, Seen::Promised { by, term });
    }

    /// n3 makes a forced view of these members.
    fn force(story: &mut Story, members: &[NodeId], at: Position, fork_after: Position) {
        let forced = Configuration {
            override_id: Some(Uuid([9; 16])),
            fork_after,
            ..view(3, members)
        };
        story.append(2, entry(at, term(2), Body::Configuration(forced)));
    }

    /// n1 alone has delivered 6, n2 has it in its log. n2 and n3 promise term 2.
    fn promised() -> Story {
        let mut story = Story::logs();
        let body = submission(0, 1, "one");
        story.append(1, entry(6, term(1), body.clone()));
        story.commit_in(1, &[0], 6, body);
        promise(&mut story, 1, 2);
        promise(&mut story, 2, 2);
        story
    }

    #[test]
    fn a_forced_view_keeps_what_its_members_logs_hold() {
        let mut story = promised();
        let mut alone = story.clone();
        force(&mut story, &[1, 2], 6, 5);
        story.violates(NAME);
        force(&mut alone, &[2], 6, 5);
        alone.is_clean();
    }

    #[test]
    fn what_a_member_got_after_its_promise_does_not_count() {
        let mut story = Story::logs();
        promise(&mut story, 1, 2);
        promise(&mut story, 2, 2);
        story.commit_in(1, &[0, 1], 6, submission(0, 1, "one"));
        force(&mut story, &[1, 2], 6, 5);
        story.is_clean();
    }

    #[test]
    fn a_forced_view_forks_above_what_its_members_knew() {
        for (fork_after, is_clean) in [(6, true), (5, false)] {
            let mut story = Story::logs();
            let body = submission(0, 1, "one");
            story.commit_in(1, &[0, 1], 6, body.clone());
            story.append(2, entry(6, term(1), body));
            promise(&mut story, 1, 2);
            promise(&mut story, 2, 2);
            force(&mut story, &[1, 2], 7, fork_after);
            match is_clean {
                true => story.is_clean(),
                false => story.violates(NAME),
            }
        }
    }

    #[test]
    fn a_member_of_another_branch_is_excepted() {
        let mut story = promised();
        force(&mut story, &[2], 6, 5);
        promise(&mut story, 1, 3);
        let forced = Configuration {
            override_id: Some(Uuid([8; 16])),
            fork_after: 6,
            ..view(4, &[1, 2])
        };
        story.append(2, entry(7, term(3), Body::Configuration(forced)));
        story.is_clean();
    }
}
