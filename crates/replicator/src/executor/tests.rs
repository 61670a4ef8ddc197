//! The executor alone: what it is given, and what it says.

use bytes::Bytes;
use trireme_certification::Verdict;
use trireme_group::Incarnation;

use super::own_actions::ActionEnded;
use super::*;
use crate::action::{Answer, Code};
use crate::context::Context;
use crate::event::Owner;
use crate::flags;
use crate::options::Options;
use crate::work::Apply;
use crate::writeset::{WriteSet, WriteSetDraft};

const HISTORY: Uuid = Uuid([7; 16]);

fn executor() -> Executor {
    let mut executor = Executor::new();
    executor.begin_at(HISTORY, 4);
    executor
}

fn gtid(seqno: Seqno) -> Gtid {
    Gtid {
        uuid: HISTORY,
        seqno,
    }
}

fn context() -> Context {
    Context::new(Options::default())
}

fn write_set() -> WriteSet {
    let bytes = WriteSetDraft::rollback(1).finish(0, 0, -1);
    match crate::message::Message::decode(&bytes) {
        Ok(crate::message::Message::WriteSet(write_set)) => write_set,
        other => panic!("{other:?}"),
    }
}

fn ordered(seqno: Seqno) -> Ordered {
    Ordered {
        seqno,
        depends_on: seqno - 1,
        write_set: write_set(),
    }
}

fn apply(seqno: Seqno, flags: u32) -> Task {
    Task::Apply(Box::new(Apply {
        gtid: gtid(seqno),
        depends_on: seqno - 1,
        flags,
        source: Incarnation::default(),
        trx: 1,
        conn: 1,
        data: Bytes::new(),
    }))
}

#[test]
fn an_own_transaction_is_answered_and_commits_in_order_behind_an_applied_one() {
    let (mut executor, context) = (executor(), context());
    executor.enqueue(apply(5, 0), Some(5), Payload::None);
    assert!(executor.begin(1, 10, false, true));
    let passed = executor.own_ordered(&context, 1, ordered(6), Verdict::Pass);
    assert_eq!(passed, (10, Answer::at(Code::Ok, gtid(6), 5)));
    assert_eq!(executor.enter_commit_order(11, Owner::Trx(1)), Entry::Waits);
    assert_eq!(executor.next_granted(), None);

    let announced = executor.announce();
    assert!(announced.begins_to_apply && announced.wake == 1);
    let work = executor.take().expect("it was announced");
    assert_eq!(
        executor.done(work.id),
        Some(Running::Apply {
            seqno: 5,
            isolation: false
        })
    );
    executor.applied(5);
    assert_eq!(executor.last_committed(), gtid(5));
    let granted = Some((11, Answer::at(Code::Ok, gtid(6), -1)));
    assert_eq!(executor.next_granted(), granted);
    executor.leave(6);
    assert_eq!(executor.release(1).code, Code::Ok);
    assert_eq!(executor.last_committed(), gtid(6));
    assert_eq!(executor.counters().local_commits, 1);
}

#[test]
fn a_victim_that_is_certified_replays() {
    let (mut executor, context) = (executor(), context());
    assert!(executor.begin(1, 10, false, true));
    assert!(executor.abort(&context, 5, 1, false).is_sent);
    assert!(executor.victim_awaits_order());
    let (_, answer) = executor.own_ordered(&context, 1, ordered(5), Verdict::Pass);
    assert_eq!(answer.code, Code::BfAbort);
    assert!(!executor.victim_awaits_order());
    assert_eq!(executor.await_replay(1, 12), Some(ReplayCause::Abort));
    let (ticket, answer) = executor
        .next_replay(&context)
        .expect("all before have left");
    assert_eq!((ticket, answer.gtid), (12, gtid(5)));
    assert!(answer.replay.is_some());
    assert_eq!(executor.counters().local_replays, 1);
}

#[test]
fn what_cannot_be_known_is_a_node_failure_and_what_was_not_sent_a_definite_one() {
    let mut executor = executor();
    let code = |executor: &mut Executor, waits, is_unknown| {
        assert!(executor.begin(1, 10, waits, true));
        let given_up = executor.give_up(1, is_unknown, Code::ConnFail);
        given_up
            .answer
            .map(|(ticket, answer)| (ticket, answer.code))
    };
    let unknown = code(&mut executor, false, true);
    assert_eq!(unknown, Some((10, Code::NodeFail)));
    let definite = code(&mut executor, true, false);
    assert_eq!(definite, Some((10, Code::ConnFail)));
    assert_eq!(executor.open_transactions(), 0);
}

#[test]
fn an_own_action_has_commit_order_to_itself() {
    let mut executor = executor();
    executor.enqueue(apply(5, 0), Some(5), Payload::None);
    assert!(executor.begin_action(3, 20, true));
    assert!(!executor.begin_action(3, 21, false), "one at a time");
    assert!(executor.send_action(3) && !executor.send_action(3));
    executor.action_ordered(3, 6, 5, false);
    assert_eq!(executor.next_action(), None);
    let entered = executor.enter_commit_order(21, Owner::Applied(5));
    assert!(matches!(entered, Entry::Answered(_)));
    executor.leave(5);
    assert_eq!(executor.next_action(), None, "it is not released yet");
    executor.applied(5);
    let granted = executor.next_action().expect("all before is released");
    assert_eq!((granted.ticket, granted.answer.gtid), (20, gtid(6)));
    assert!(granted.is_executed);
    assert_eq!(executor.action_of(3), Some(6));
    let ended = ActionEnded {
        seqno: 6,
        is_executed: true,
    };
    assert_eq!(executor.end_action(3), Some(ended));
    assert_eq!(executor.end_action(3), None);
    assert!(executor.is_drained());
}

#[test]
fn an_action_of_another_is_noted_before_it_is_handed_out() {
    let mut executor = executor();
    executor.enqueue(apply(5, flags::ISOLATION), Some(5), Payload::None);
    assert_eq!(executor.take().map(|work| work.id), None);
    let announced = executor.announce();
    assert_eq!((announced.action, announced.wake), (Some(gtid(5)), 1));
    assert!(executor.take().is_some());
}

#[test]
fn a_database_that_has_diverged_uses_up_the_places_of_what_waits() {
    let mut executor = executor();
    executor.enqueue(apply(5, 0), Some(5), Payload::None);
    executor.enqueue(Task::Synced, None, Payload::None);
    executor.diverge();
    assert_eq!((executor.low(), executor.waiting_applies()), (5, 0));
    executor.enqueue(apply(6, 0), Some(6), Payload::None);
    assert_eq!(executor.low(), 6);
    assert!(!executor.queue().is_idle(), "Synced waits");
}

#[test]
fn a_new_connection_keeps_the_place_in_the_history_and_nothing_else() {
    let mut executor = executor();
    executor.enqueue(apply(5, 0), Some(5), Payload::None);
    assert!(executor.begin(1, 10, false, true));
    executor.start_over(true);
    assert!(executor.queue().is_idle());
    assert_eq!((executor.open_transactions(), executor.low()), (0, 4));
    executor.forget_history();
    assert_eq!(executor.last_committed(), Gtid::UNDEFINED);
}
