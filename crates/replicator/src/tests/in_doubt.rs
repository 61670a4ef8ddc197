//! All died within a total-order action, and no database is beyond doubt (rule 13).

use trireme_certification::{KeyType, Seqno};
use trireme_group::Member;

use super::driver::*;
use super::server::Happened;
use crate::action::{Action, HostAction, Level, Note};
use crate::gtid::Gtid;
use crate::last_action::LastAction;
use crate::message::Message;
use crate::{Connect, Event, Replicator};

/// A node killed within an action.
struct Killed {
    /// Its database has committed so much of the log.
    position: Seqno,
    /// It holds the action.
    executed: bool,
    last: LastAction,
}

struct Story {
    cluster: Cluster,
    control: Option<bytes::Bytes>,
    next: usize,
    action: Gtid,
}

/// Two members with the same log, which ends with write-sets, an action, and one more write-set.
fn story() -> Story {
    let mut cluster = Cluster::of(2);
    let control = cluster.nodes[0].replicator.control_snapshot();
    let next = cluster.nodes[0].next;
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    // Nobody has reported that it has executed the action.
    cluster.toi(1, 5);
    cluster.settle_now();
    let action = cluster.nodes[0].replicator.last_committed();
    cluster.certify(1, "b", KeyType::Exclusive);
    cluster.settle_now();
    Story {
        cluster,
        control,
        next,
        action,
    }
}

impl Story {
    fn begun(&self) -> LastAction {
        LastAction {
            gtid: self.action,
            ended: false,
            same_boot: true,
        }
    }

    /// A node that had come to the beginning of the action.
    fn within(&self, executed: bool) -> Killed {
        Killed {
            position: self.action.seqno - 1,
            executed,
            last: self.begun(),
        }
    }

    /// These start again, each with its log, and form a view.
    fn restart(&mut self, killed: &[Killed]) {
        let member_states: Vec<Member> = (0..killed.len())
            .map(|node| Member {
                incarnation: incarnation(10 + node),
                ..member(node)
            })
            .collect();
        for (node, killed) in killed.iter().enumerate() {
            let at = &mut self.cluster.nodes[node];
            at.replicator = Replicator::new(Default::default());
            (at.incarnation, at.next, at.threads) = (member_states[node].incarnation, self.next, 4);
            at.actions.clear();
            at.server.happened.clear();
            at.server.tois.clear();
            at.server.sessions.clear();
            at.server.sst_request = Some(b"rsync".to_vec());
            at.server.commits.retain(|seqno| *seqno <= killed.position);
            let action = self.action.seqno;
            let holds =
                |seqno: &Seqno| *seqno <= killed.position || *seqno == action && killed.executed;
            at.server.database.retain(|seqno, _| holds(seqno));
            let local = Gtid {
                seqno: killed.position,
                ..self.action
            };
            let connect = Connect {
                incarnation: member_states[node].incarnation,
                me: member_states[node].clone(),
                local,
                bootstrap: None,
                server_running: false,
                control: self.control.clone(),
                overrides: Vec::new(),
                last_action: killed.last,
            };
            self.cluster.event(node, Event::Connect(Box::new(connect)));
        }
        for node in 0..killed.len() {
            while self.cluster.deliver(node) {}
        }
        self.cluster.reconfigure(|c| c.members = member_states);
        self.cluster.settle();
    }

    fn asks(&self, node: usize) -> bool {
        let happened = &self.cluster.nodes[node].server.happened;
        happened.iter().any(|h| matches!(h, Happened::SstRequest))
    }

    /// What a node warned of.
    fn warnings(&self, node: usize) -> Vec<&str> {
        let actions = self.cluster.nodes[node].actions.iter();
        let warnings = actions.filter_map(|action| match action {
            Action::Host(HostAction::Log {
                level: Level::Warn,
                text,
            }) => Some(text.as_str()),
            _ => None,
        });
        warnings.collect()
    }

    fn ends_well(mut self, donor: usize, joiner: usize) {
        assert!(!self.asks(donor), "it goes on with its own database");
        assert!(self.asks(joiner), "it is given a snapshot");
        self.cluster.snapshot_from(donor, joiner);
        self.cluster.settle();
        for node in [donor, joiner] {
            assert_eq!(self.cluster.comment(node), "Synced");
        }
        let database = &self.cluster.nodes[donor].server.database;
        assert!(database.contains_key(&self.action.seqno));
        self.cluster.assert_settled();
    }
}

#[test]
fn the_furthest_goes_on_and_the_others_take_its_snapshot() {
    for (behind, furthest) in [(0, 1), (1, 0)] {
        let mut story = story();
        let mut killed = [story.within(false), story.within(false)];
        killed[behind].position -= 1;
        story.restart(&killed);
        let warnings = story.warnings(furthest).join("\n");
        assert!(warnings.contains("goes on with the database of this node"));
        assert!(
            warnings.contains("is executed again: 1/toi5"),
            "it lists the statement: {warnings}"
        );
        story.ends_well(furthest, behind);
    }
}

#[test]
fn an_action_that_was_executed_already_counts_as_done() {
    let mut story = story();
    let killed = [story.within(true), story.within(true)];
    let error = b" Error_code: 1050;".to_vec();
    let at = &mut story.cluster.nodes[0].server;
    at.errors.insert(story.action.seqno, error);
    story.restart(&killed);
    let logs = &story.cluster.nodes[0].logs;
    assert!(logs.iter().any(|text| text.contains("had been executed")));
    // Equal positions: the one with the least name.
    story.ends_well(0, 1);
}

/// What fails otherwise is taken for the action's outcome, and voted on.
#[test]
fn an_action_that_fails_for_another_reason_is_voted_on() {
    let mut story = story();
    let killed = [story.within(false), story.within(false)];
    let error = b" Error_code: 1114;".to_vec();
    let at = &mut story.cluster.nodes[0].server;
    at.errors.insert(story.action.seqno, error);
    story.restart(&killed);
    story.cluster.snapshot_from(0, 1);
    story.cluster.settle();
    let logs = &story.cluster.nodes[0].logs;
    assert!(logs.iter().any(|text| text.contains("initiates vote on")));
    assert_eq!(story.cluster.comment(0), "Synced");
    story.cluster.assert_settled();
}

#[test]
fn a_database_beyond_doubt_is_preferred_to_a_further_one() {
    let mut story = story();
    let clear = Killed {
        position: story.action.seqno - 2,
        executed: false,
        last: LastAction::NONE,
    };
    let killed = [story.within(true), clear];
    story.restart(&killed);
    assert!(!story.warnings(1).join("\n").contains("goes on"));
    story.ends_well(1, 0);
}

#[test]
fn one_without_a_database_is_not_waited_for() {
    let mut story = story();
    let empty = Killed {
        position: -1,
        executed: false,
        last: LastAction::NONE,
    };
    let killed = [empty, story.within(false)];
    story.restart(&killed);
    story.ends_well(1, 0);
}

/// Ended before the process was killed, its position not flushed: it is passed over, nobody is in doubt.
#[test]
fn an_action_that_had_ended_is_not_executed_again() {
    let mut story = story();
    let ended = LastAction {
        ended: true,
        ..story.begun()
    };
    let killed = [true, true].map(|executed| Killed {
        position: story.action.seqno - 1,
        executed,
        last: ended,
    });
    story.restart(&killed);
    for node in 0..2 {
        assert!(!story.asks(node));
        let database = &story.cluster.nodes[node].server.database;
        assert!(database.contains_key(&story.action.seqno));
    }
    story.cluster.assert_settled();
}

/// The same after a power loss: the disk may have lost what had ended.
#[test]
fn an_action_that_had_ended_before_a_power_loss_is_executed_again() {
    let mut story = story();
    let ended = LastAction {
        ended: true,
        same_boot: false,
        ..story.begun()
    };
    let killed = [false, false].map(|executed| Killed {
        position: story.action.seqno - 1,
        executed,
        last: ended,
    });
    story.restart(&killed);
    story.ends_well(0, 1);
}

/// Killed once more before it has come to the action: the note stands until the action has ended.
#[test]
fn a_doubt_is_noted_as_over_when_the_database_has_passed_it() {
    let mut story = story();
    let mut killed = [story.within(true), story.within(true)];
    // The position is set and the end not noted.
    killed[0].position = story.action.seqno;
    story.restart(&killed);
    let note = Action::Note(Note::Action {
        gtid: story.action,
        ended: true,
    });
    assert!(story.cluster.nodes[0].actions.contains(&note));
    story.ends_well(0, 1);
}

/// A write-set below the certification floor is none the less no action: that it fails is this node's error.
#[test]
fn a_write_set_that_fails_while_the_log_is_read_back_is_an_error_of_this_node() {
    let mut story = story();
    let write_set = story.action.seqno - 1;
    let killed = [Killed {
        position: write_set - 1,
        executed: false,
        last: LastAction::NONE,
    }];
    let at = &mut story.cluster.nodes[0].server;
    at.errors.insert(write_set, b"1032".to_vec());
    story.restart(&killed);
    let logs = story.cluster.nodes[0].logs.join("\n");
    assert!(logs.contains("Inconsistency detected"));
    assert!(
        !logs.contains("is consistent with group"),
        "it was believed for a while: {logs}"
    );
}

/// A ballot of a process that was killed since: the action has failed there.
fn vote(story: &mut Story, voter: usize) {
    let seqno = story.action.seqno;
    let vote = Message::Vote {
        seqno,
        ballot: 5,
        policy: 0,
        text: "exists".into(),
    };
    let id = trireme_group::SubmissionId {
        incarnation: incarnation(voter),
        number: 99,
    };
    story.cluster.append(trireme_group::Delivery::Submission {
        id,
        payload: vote.encode(),
    });
}

/// A server sets its position before it says that an action has failed, and waits for the vote then. Found by
/// the simulator: both databases counted as having executed it, and were thrown away.
#[test]
fn an_action_that_all_died_voting_on_costs_one_database_only() {
    for voter in [0, 1] {
        let mut story = story();
        let action = story.action.seqno;
        vote(&mut story, voter);
        let killed = [(); 2].map(|()| Killed {
            position: action,
            ..story.within(false)
        });
        for node in 0..2 {
            story.cluster.nodes[node].server.database.remove(&action);
        }
        story.restart(&killed);
        assert!(!story.asks(0), "it goes on with its own database");
        assert!(story.asks(1), "it is given a snapshot");
        story.cluster.snapshot_from(0, 1);
        story.cluster.settle();
        for node in 0..2 {
            assert_eq!(story.cluster.comment(node), "Synced");
            assert!(story.cluster.nodes[node].records.by_seqno[&action].failed);
        }
        story.cluster.assert_settled();
    }
}

/// Whoever has noted that it has executed the action is not in doubt: it differs from what is decided.
#[test]
fn a_success_beyond_doubt_is_outvoted_all_the_same() {
    let mut story = story();
    vote(&mut story, 1);
    let action = story.action.seqno;
    let ended = LastAction {
        ended: true,
        ..story.begun()
    };
    let killed = [ended, story.begun()].map(|last| Killed {
        position: action,
        executed: last.ended,
        last,
    });
    story.cluster.nodes[1].server.database.remove(&action);
    story.restart(&killed);
    assert_eq!(story.cluster.comment(0), "Inconsistent");
    assert_eq!(story.cluster.comment(1), "Synced");
    story.cluster.assert_settled();
}
