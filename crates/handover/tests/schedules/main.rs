//! The hand-over under schedules that shuttle chooses: a lost wake-up shows as a deadlock, a lost
//! answer or work as a failed assertion. A failure prints a schedule, which `shuttle::replay` plays
//! again.

// The files of src/ themselves, built upon this crate's `sync`.
#[path = "../../src/handover.rs"]
#[allow(dead_code)]
mod handover;
mod model;
mod sync;
use sync as core_lock;
#[path = "../../src/waiting.rs"]
#[allow(dead_code)]
mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::thread::{self, JoinHandle};

use handover::Handover;
use model::{Answer, Event, Model, Task};

type Node = Arc<Handover<Model>>;

/// Random schedules find what needs many switches; PCT's what needs few but rare ones.
fn check(scenario: fn(&Node)) {
    let run = move || {
        let node = Arc::new(Handover::new(Model::new()));
        scenario(&node);
        node.peek(Model::assert_at_rest);
        assert_eq!(node.appliers.load(Ordering::SeqCst), 0);
    };
    shuttle::check_random(run, 1000);
    shuttle::check_pct(run, 1000, 3);
}

fn spawn<T: Send + 'static>(
    node: &Node,
    body: impl FnOnce(&Node) -> T + Send + 'static,
) -> JoinHandle<T> {
    let node = node.clone();
    thread::spawn(move || body(&node))
}

fn join<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    let ended = threads.into_iter().map(JoinHandle::join);
    ended.map(|t| t.expect("no panic")).collect()
}

/// A call whose answer must be its own.
fn call(node: &Node, event: impl FnOnce(u64) -> Event) -> Answer {
    let mut mine = 0;
    let answer = node.call(|_, ticket| {
        mine = ticket;
        event(ticket)
    });
    assert_eq!(answer.ticket, mine);
    answer
}

/// Goes through commit order, as a client does and apply() on an applier's thread.
fn commit(node: &Node, place: u64) {
    call(node, |ticket| Event::CommitOrderEnter { ticket, place });
    call(node, |ticket| Event::CommitOrderLeave { ticket, place });
}

/// How an applier ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    FirstExit,
    Exit,
    Left,
}

/// What recv() does; `leaves` says after which apply() the server wants the thread back.
fn applier(node: &Node, leaves: impl Fn() -> bool) -> End {
    node.enter();
    let mut done = None;
    loop {
        let work = node.next_work(done.take());
        let mut exit_loop = false;
        match work.task {
            Task::Exit { first } => {
                node.exit();
                return if first { End::FirstExit } else { End::Exit };
            }
            Task::Apply(place) => {
                commit(node, place);
                exit_loop = leaves();
            }
            Task::View | Task::FinalView => {}
        }
        let event = Event::Done { work: work.id };
        if !exit_loop {
            done = Some(event);
        } else if node.leave(event) {
            return End::Left;
        }
    }
}

fn appliers(node: &Node, count: usize, leaves: fn() -> bool) -> Vec<JoinHandle<End>> {
    (0..count)
        .map(|_| spawn(node, move |node| applier(node, leaves)))
        .collect()
}

fn never() -> bool {
    false
}

/// What the network's thread does for callers until it has answered `count` of them.
fn network(node: &Node, count: usize) -> JoinHandle<()> {
    spawn(node, move |node| {
        let mut answered = 0;
        while answered < count {
            answered += usize::from(node.with(Model::answer_oldest));
            thread::yield_now();
        }
    })
}

#[test]
fn every_call_is_answered() {
    check(|node| {
        let client = |node: &Node| {
            assert!(call(node, |ticket| Event::Ask { ticket }).ok);
            assert!(call(node, |ticket| Event::AskNetwork { ticket }).ok);
        };
        let clients = (0..3).map(|_| spawn(node, client)).collect();
        let network = network(node, 3);
        join(clients);
        join(vec![network]);
    });
}

#[test]
fn every_work_is_done_and_every_applier_ends() {
    check(|node| {
        let threads = appliers(node, 3, never);
        node.with(|model| model.deliver(&[Task::View, Task::Apply(1), Task::Apply(2)]));
        node.with(|model| model.deliver(&[Task::Apply(3)]));
        node.with(|model| model.deliver(&[Task::View, Task::Apply(4)]));
        node.with(Model::close);
        let ends = join(threads);
        assert_eq!(ends.iter().filter(|e| **e == End::FirstExit).count(), 1);
        assert_eq!(ends.iter().filter(|e| **e == End::Exit).count(), 2);
        node.peek(|model| {
            assert_eq!(model.done.len(), 7);
            assert_eq!(model.done[0], Task::View);
            assert_eq!(model.done[4], Task::View);
            assert_eq!(model.done[6], Task::FinalView);
        });
    });
}

/// Fewer works at a time than appliers, so that each has to be woken from its sleep.
#[test]
fn a_sleeping_applier_is_woken_for_every_work() {
    check(|node| {
        let threads = appliers(node, 2, never);
        for place in 1..=3 {
            node.with(|model| model.deliver(&[Task::Apply(place)]));
            // Nobody else comes by until it is done.
            while node.peek(|model| model.done.len() as u64) < place {
                thread::yield_now();
            }
        }
        node.with(Model::close);
        join(threads);
    });
}

/// An applier waits in commit order for a work that another one has to take, and for a client.
#[test]
fn appliers_wait_for_each_other_and_for_clients() {
    check(|node| {
        let threads = appliers(node, 2, never);
        let client = spawn(node, |node| commit(node, 3));
        let network = spawn(node, |node| {
            node.with(|model| model.deliver(&[Task::Apply(2), Task::Apply(4)]));
            node.with(|model| model.deliver(&[Task::Apply(5)]));
        });
        let first = spawn(node, |node| commit(node, 1));
        join(vec![client, network, first]);
        node.with(Model::close);
        join(threads);
        node.peek(|model| assert_eq!(model.done.len(), 4));
    });
}

/// While one applier is busy, the work that its report makes possible is another one's.
#[test]
fn a_report_wakes_others() {
    check(|node| {
        let threads = appliers(node, 2, never);
        // Place 2 waits for place 1; when View is done, both have to run, on two threads.
        let works = [Task::View, Task::Apply(2), Task::Apply(1)];
        node.with(|model| model.deliver(&works));
        while node.peek(|model| model.done.len()) < works.len() {
            thread::yield_now();
        }
        node.with(Model::close);
        join(threads);
    });
}

/// The report that answers a read is the last thing that its applier does before it sleeps.
#[test]
fn a_report_answers_reads() {
    check(|node| {
        let threads = appliers(node, 2, never);
        let read = |node: &Node| {
            for works in 1..=2 {
                assert!(call(node, |ticket| Event::AskDone { ticket, works }).ok);
            }
        };
        let reads = (0..2).map(|_| spawn(node, read)).collect();
        node.with(|model| model.deliver(&[Task::Apply(1)]));
        node.with(|model| model.deliver(&[Task::View]));
        join(reads);
        node.with(Model::close);
        join(threads);
    });
}

#[test]
fn an_answer_meets_the_end_of_timeout() {
    static ANSWERED: AtomicUsize = AtomicUsize::new(0);
    static GIVEN_UP: AtomicUsize = AtomicUsize::new(0);
    check(|node| {
        let client = |node: &Node| {
            let mut mine = 0;
            let answer = node.call_for(Duration::from_secs(1), |_, ticket| {
                mine = ticket;
                Event::AskNetwork { ticket }
            });
            node.peek(|model| {
                assert_eq!(answer.is_some(), model.answered.contains(&mine));
                assert_eq!(answer.is_none(), model.cancelled.contains(&mine));
            });
            let count = if answer.is_some() {
                &ANSWERED
            } else {
                &GIVEN_UP
            };
            count.fetch_add(1, Ordering::Relaxed);
            assert!(answer.is_none_or(|a| a.ticket == mine));
        };
        let clients: Vec<_> = (0..2).map(|_| spawn(node, client)).collect();
        let network = spawn(node, |node| {
            for _ in 0..3 {
                node.with(Model::answer_oldest);
            }
        });
        join(clients);
        join(vec![network]);
    });
    // Else the schedules show nothing.
    assert!(ANSWERED.load(Ordering::Relaxed) > 500);
    assert!(GIVEN_UP.load(Ordering::Relaxed) > 500);
}

#[test]
fn the_last_applier_stays() {
    check(|node| {
        let mut threads = appliers(node, 3, || true);
        node.with(|model| model.deliver(&[Task::Apply(1), Task::Apply(2)]));
        node.with(|model| model.deliver(&[Task::View, Task::Apply(3), Task::Apply(4)]));
        // One comes late.
        threads.extend(appliers(node, 1, || thread_rng().gen_ratio(1, 2)));
        while node.peek(|model| model.done.len()) < 5 {
            thread::yield_now();
        }
        assert_ne!(node.appliers.load(Ordering::SeqCst), 0);
        node.with(|model| model.deliver(&[Task::Apply(5)]));
        node.with(Model::close);
        let ends = join(threads);
        assert!(ends.contains(&End::FirstExit));
        node.peek(|model| assert_eq!(model.done.len(), 7));
    });
}

#[test]
fn nobody_waits_for_a_closed_node() {
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    check(|node| {
        let threads = appliers(node, 2, never);
        let client = |node: &Node| {
            let answer = call(node, |ticket| Event::AskNetwork { ticket });
            REFUSED.fetch_add(usize::from(!answer.ok), Ordering::Relaxed);
        };
        let clients = (0..2).map(|_| spawn(node, client)).collect();
        let patient = spawn(node, |node| {
            node.call_for(Duration::from_secs(1), |_, ticket| Event::AskNetwork {
                ticket,
            })
        });
        node.with(|model| model.deliver(&[Task::Apply(1)]));
        node.with(Model::answer_oldest);
        node.with(Model::close);
        // As disconnect() does.
        while !node.peek(Model::is_closed) || node.appliers.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
        join(clients);
        join(vec![patient]);
        join(threads);
    });
    assert!(REFUSED.load(Ordering::Relaxed) > 500);
}
