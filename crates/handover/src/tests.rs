//! With real threads and real time.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Handover, Ticket, UnderLock, Waiting};

#[test]
fn an_answer_may_come_before_or_after_the_claim() {
    let mut waiting = Waiting::default();
    let (first, second) = (waiting.ticket(), waiting.ticket());
    waiting.answer(first, "early");
    assert_eq!(waiting.claim(first).ok(), Some("early"));
    let Err(slot) = waiting.claim(second) else {
        panic!("not answered yet");
    };
    assert!(slot.wait_for(Duration::from_millis(1)).is_none());
    waiting.answer(second, "late");
    for (slot, answer) in waiting.take_due() {
        slot.fill(answer);
    }
    assert_eq!(slot.wait(), "late");
    assert!(!waiting.forget(second));
    assert!(waiting.is_idle());
}

/// Works are numbers; a call is answered when an applier has done the work of its number.
#[derive(Default)]
struct Numbers {
    waiting: Waiting<u64>,
    calls: Vec<(Ticket, u64)>,
    ready: Vec<u64>,
    due: usize,
}

enum Event {
    Call(Ticket, u64),
    Done(u64),
}

impl UnderLock for Numbers {
    type Event = Event;
    type Answer = u64;
    type Work = u64;

    fn handle(&mut self, event: Event) {
        match event {
            Event::Call(ticket, number) => {
                self.calls.push((ticket, number));
                self.ready.push(number);
                self.due += 1;
            }
            Event::Done(number) => {
                if let Some(at) = self.calls.iter().position(|(_, n)| *n == number) {
                    self.waiting.answer(self.calls.swap_remove(at).0, number);
                }
            }
        }
    }

    fn pump(&mut self) {}

    fn take_work(&mut self) -> Option<u64> {
        self.ready.pop()
    }

    fn take_appliers_due(&mut self) -> usize {
        std::mem::take(&mut self.due)
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.calls.retain(|(t, _)| *t != ticket);
    }

    fn waiting(&mut self) -> &mut Waiting<u64> {
        &mut self.waiting
    }
}

#[test]
fn nobody_waits_longer_than_he_wants_to() {
    let handover = Handover::new(Numbers::default());
    let timeout = Duration::from_millis(20);
    let event = |_: &mut Numbers, ticket| Event::Call(ticket, 1);
    assert_eq!(handover.call_for(timeout, event), None);
    handover.with(|numbers| {
        assert!(numbers.calls.is_empty());
        assert!(numbers.waiting.is_idle());
    });
}

#[test]
fn callers_and_appliers_meet() {
    const STOP: u64 = u64::MAX;
    let handover = Arc::new(Handover::new(Numbers::default()));
    let appliers: Vec<_> = (0..2)
        .map(|_| {
            let handover = handover.clone();
            std::thread::spawn(move || {
                let mut done = None;
                loop {
                    match handover.next_work(done.take()) {
                        STOP => return,
                        number => done = Some(Event::Done(number)),
                    }
                }
            })
        })
        .collect();
    let callers: Vec<_> = (0..3)
        .map(|caller| {
            let handover = handover.clone();
            std::thread::spawn(move || {
                for number in (caller * 1000..).take(500) {
                    let answer = handover.call(|_, ticket| Event::Call(ticket, number));
                    assert_eq!(answer, number);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().expect("every call is answered");
    }
    handover.with(|numbers| {
        numbers.ready.extend([STOP; 2]);
        numbers.due += 2;
    });
    for applier in appliers {
        applier.join().expect("every applier ends");
    }
}

#[test]
fn a_panic_under_the_lock_is_seen() {
    let handover = Handover::new(Numbers::default());
    let panics = || handover.with(|_| panic!("this panic is part of the test"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    assert!(caught.is_err() && handover.is_broken());
}

/// Runs itself once more: in that process a thread panics in the core, and another one takes the lock after it.
#[test]
fn nothing_comes_out_of_a_broken_core() {
    const SIGABRT: i32 = 6;
    const IN_CHILD: &str = "TRIREME_TEST_BROKEN_CORE";
    if std::env::var_os(IN_CHILD).is_some() {
        let handover = Arc::new(Handover::new(Numbers::default()));
        let other = handover.clone();
        let panics = move || other.with(|_| panic!("this panic is part of the test"));
        assert!(std::thread::spawn(panics).join().is_err());
        handover.with(|_| ());
        std::process::exit(0);
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["nothing_comes_out_of_a_broken_core", "--nocapture"])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    assert_eq!(child.status.signal(), Some(SIGABRT), "{child:?}");
}
