//! States derived from the log are equal on all nodes with that log (rules 3, 9, 16): member states, desyncs and
//! donations, error votes, in-doubt DDL, views, forced views, the certification index with its floor, and the group's
//! state.
//!
//! Verdicts, donors, error votes and votes follow from these states without a question to another node. If one state
//! differs, the cluster silently diverges, and this may show much later (seed 3005960: a leaving node had kept its
//! state as that of a later position, and its next process voided write-sets of others).
//! - The small parts are compared at each entry that a node has handled, the whole at each 32nd position and at the
//!   end.
//! - Both are compared when the log gets a log checkpoint, when a process resumes from one, and when a state comes
//!   from another node (with the entries above it that the joiner handles at once).
//! - A state that is kept or resumed covers every delivery below the position of its log checkpoint.
//!
//! The key of an entry is (position, term), and so also the branch of a forced view. A state ahead of its own log is
//! compared once the log gets there, because only then its branch is known.
//!
//! Not compared, because local:
//! - everything in the replicator outside of the control state: waits, queues, own submissions, applied entries,
//!   measurements, messages to the server, and progress of a state transfer;
//! - the rest of a state in a node that has left: nothing uses it, and its log may begin anew on another branch;
//! - in the index, records at or below the floor: they are purged a few at a time and change no verdict;
//! - in the group, everything above the commit point: it may still be replaced.

use trireme_group::{Checkpoint, Position};

use super::content;
use super::logs::{Logs, name};
use super::tree::EntryId;
use super::{Invariant, Shared};
use crate::seen::{Extent, NodeId, Seen, Sight};

/// A digest, and the node that reported it first.
type Known = Option<(u64, NodeId)>;

/// The known digests of the states at one entry.
#[derive(Clone, Copy, Default)]
struct States {
    brief: Known,
    whole: Known,
    group: Known,
}

/// The invariant of this module.
pub struct ControlEqual {
    logs: Shared<Logs>,
    /// The states, by entry.
    states: Vec<States>,
    /// States that are ahead of their node's log and so not compared yet.
    ahead: Vec<Ahead>,
}

/// A state of a node whose log does not reach that position yet.
#[derive(Clone, Copy)]
struct Ahead {
    node: NodeId,
    position: Position,
    extent: Extent,
    digest: u64,
}

impl ControlEqual {
    /// An invariant that reads these logs.
    pub fn new(logs: &Shared<Logs>) -> ControlEqual {
        ControlEqual {
            logs: logs.clone(),
            states: Vec::new(),
            ahead: Vec::new(),
        }
    }

    fn at(&mut self, entry: EntryId) -> &mut States {
        let entry = entry as usize;
        if self.states.len() <= entry {
            self.states.resize(entry + 1, States::default());
        }
        &mut self.states[entry]
    }

    fn compare(
        &mut self,
        node: NodeId,
        position: Position,
        extent: Extent,
        digest: u64,
    ) -> Result<(), String> {
        let Some(entry) = self.logs.borrow().committed_on(node, position) else {
            self.ahead.push(Ahead {
                node,
                position,
                extent,
                digest,
            });
            return Ok(());
        };
        let states = self.at(entry);
        let (known, what) = match extent {
            Extent::Brief => (&mut states.brief, "the control state"),
            Extent::Whole => (&mut states.whole, "the control state (all of it)"),
        };
        equal(known, what, node, position, digest)
    }

    fn compare_group(&mut self, node: NodeId, group: &Checkpoint) -> Result<(), String> {
        let position = group.position;
        let Some(entry) = self.logs.borrow().entry_on(node, position) else {
            return Ok(()); // the invariant `prefix` reports this
        };
        let known = &mut self.at(entry).group;
        let digest = content::of_checkpoint(group);
        equal(known, "the group's state", node, position, digest)
    }

    fn leaves_out_nothing(
        &self,
        node: NodeId,
        control: Position,
        position: Position,
    ) -> Result<(), String> {
        let logs = self.logs.borrow();
        match logs.delivered_between(node, control, position) {
            None => Ok(()),
            Some(left_out) => Err(format!(
                "rule 16: {} keeps, or goes on with, its control state of {control} as that of {position}, and \
                 {left_out} was delivered",
                name(node)
            )),
        }
    }

    /// Compares states that the log has now reached.
    fn catch_up(&mut self, node: NodeId, to: Position) -> Result<(), String> {
        if self.ahead.is_empty() {
            return Ok(());
        }
        let is_reached = |of: &Ahead| of.node == node && of.position <= to;
        let (reached, ahead): (Vec<_>, _) = self.ahead.drain(..).partition(is_reached);
        self.ahead = ahead;
        for of in reached {
            self.compare(of.node, of.position, of.extent, of.digest)?;
        }
        Ok(())
    }
}

fn equal(
    known: &mut Known,
    what: &str,
    node: NodeId,
    position: Position,
    digest: u64,
) -> Result<(), String> {
    let (known, other) = *known.get_or_insert((digest, node));
    if known == digest {
        return Ok(());
    }
    Err(format!(
        "rule 16: at position {position} {what} of {} is not that of {}",
        name(node),
        name(other)
    ))
}

impl Invariant for ControlEqual {
    fn name(&self) -> &'static str {
        "control-equal"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let node = sight.node;
        match &sight.what {
            Seen::Control {
                position,
                extent,
                digest,
            } => self.compare(node, *position, *extent, *digest),
            Seen::Kept { group, control } => {
                self.leaves_out_nothing(node, *control, group.position)?;
                self.compare_group(node, group)
            }
            Seen::Delivered { position, .. } => self.catch_up(node, *position),
            Seen::BeganAnew { checkpoint } => {
                self.ahead.retain(|of| of.node != node);
                self.compare_group(node, checkpoint)
            }
            Seen::Started { .. } | Seen::Founded { .. } => {
                self.ahead.retain(|of| of.node != node);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::{Body, Checkpoint, Configuration, Position, SubmissionId, Uuid};

    use crate::invariants::story::*;
    use crate::seen::{Extent, NodeId, Seen};

    const NAME: &str = "control-equal";

    impl Story {
        fn shows(&mut self, node: NodeId, position: Position, digest: u64) -> &mut Story {
            let extent = Extent::Brief;
            self.see(
                node,
                Seen::Control {
                    position,
                    extent,
                    digest,
                },
            )
        }

        /// Keeps the group's state after `position`, and the control state after `control`.
        fn keeps(&mut self, node: NodeId, position: Position, control: Position) -> &mut Story {
            let group = Checkpoint {
                position,
                ..Checkpoint::default()
            };
            self.see(node, Seen::Kept { group, control })
        }
    }

    #[test]
    fn equal_at_equal_positions() {
        let mut story = Story::logs();
        for node in 0..3 {
            story.shows(node, 4, 40).shows(node, 5, 50);
            let digest = 55;
            let extent = Extent::Whole;
            let position = 5;
            story.see(
                node,
                Seen::Control {
                    position,
                    extent,
                    digest,
                },
            );
            story.keeps(node, 5, 5);
        }
        story.is_clean();
    }

    #[test]
    fn different_at_equal_positions() {
        let mut story = Story::logs();
        story.shows(0, 4, 40).shows(1, 4, 41).violates(NAME);
    }

    #[test]
    fn one_that_is_ahead_is_compared_when_the_log_gets_there() {
        let mut story = Story::logs();
        let body = submission(0, 1, "c");
        story.commit_body(&[0], 6, body.clone()).shows(0, 6, 60);
        story.append(1, entry(6, term(1), body.clone()));
        let mut other = story.clone();
        story.shows(1, 6, 60).deliver(1, 6, &body).is_clean();
        other.shows(1, 6, 61).deliver(1, 6, &body).violates(NAME);
    }

    #[test]
    fn one_that_is_ahead_means_nothing_to_the_next_log() {
        let mut story = Story::logs();
        let body = submission(0, 1, "c");
        story.commit_body(&[0], 6, body.clone()).shows(0, 6, 60);
        story.shows(1, 6, 61).restart(1, -1);
        story.begins_anew(1, 5, 1, view(2, &[0, 1, 2]));
        story.append(1, entry(6, term(1), body.clone()));
        story.deliver(1, 6, &body).is_clean();
    }

    #[test]
    fn each_branch_has_states_of_its_own() {
        let mut story = Story::logs();
        let configuration = Configuration {
            override_id: Some(Uuid([9; 16])),
            ..view(3, &[2])
        };
        story.commit_in(1, &[0, 1], 6, submission(0, 1, "one"));
        story.commit_in(2, &[2], 6, Body::Configuration(configuration));
        story.shows(0, 6, 60).shows(2, 6, 61).is_clean();
        story.shows(1, 6, 61).violates(NAME);
    }

    #[test]
    fn what_is_kept_leaves_out_nothing_that_was_delivered() {
        let mut story = Story::logs();
        story.keeps(0, 5, 4).violates(NAME);
        // The group delivers no voided submission.
        let mut story = Story::logs();
        let id = SubmissionId {
            incarnation: incarnation(0),
            number: 1,
        };
        story.append(0, entry(6, term(1), Body::Voided { id }));
        story.keeps(0, 6, 5).is_clean();
    }

    #[test]
    fn another_state_of_the_group() {
        let mut story = Story::logs();
        let mut group = Checkpoint {
            position: 5,
            ..Checkpoint::default()
        };
        let control = 5;
        story.keeps(0, 5, control);
        group.history = HISTORY;
        story.see(1, Seen::Kept { group, control }).violates(NAME);
    }
}
