//! The waits that all threads of a server share; a thread waits for one thing at a time.

use std::ops::ControlFlow;

use trireme_replicator::{Answer, Event, Ticket};

use super::ctx::{BLOCKED, Ctx, Next, Stride, ThreadId};
use super::server::Server;

/// The thing for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// The answer to a call into the provider, with the call's name.
    Answer(Ticket, &'static str),
    /// A row that another thread holds.
    Row(u32),
    /// A table that another thread holds.
    Table(u32),
    /// Something else within the server.
    Server(&'static str),
}

/// A thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub waits: Option<Waits>,
    pub answer: Option<Answer>,
}

/// Tickets carry their thread in the low bits.
const THREAD_BITS: u32 = 8;
/// The thread number of calls that are answered at once and whose answer is ignored.
const NOBODY: ThreadId = (1 << THREAD_BITS) - 1;

/// The thread of a ticket.
pub(super) fn thread_of(ticket: Ticket) -> ThreadId {
    ticket as usize & NOBODY
}

impl Server {
    fn ticket(&mut self, who: ThreadId) -> Ticket {
        self.last_ticket += 1;
        self.last_ticket << THREAD_BITS | who as u64
    }

    /// Makes a call into the provider, and lets the thread wait for the answer.
    pub(super) fn ask(
        &mut self,
        who: ThreadId,
        what: &'static str,
        ctx: &mut Ctx,
        event: impl FnOnce(Ticket) -> Event,
    ) -> Stride {
        debug_assert!(self.threads[who].waits.is_none() && who < NOBODY);
        let ticket = self.ticket(who);
        self.threads[who].waits = Some(Waits::Answer(ticket, what));
        ctx.call(event(ticket));
        BLOCKED
    }

    /// Makes a call that is answered at once and cannot fail in a way that matters to the server.
    pub(super) fn tell(&mut self, ctx: &mut Ctx, event: impl FnOnce(Ticket) -> Event) -> Ticket {
        let ticket = self.ticket(NOBODY);
        ctx.call(event(ticket));
        ticket
    }

    /// The answer to the thread's call; the thread waits for it.
    pub(super) fn await_answer(&mut self, who: ThreadId) -> ControlFlow<Next, Answer> {
        match self.take_answer(who) {
            Some(answer) => ControlFlow::Continue(answer),
            None => ControlFlow::Break(Next::Blocked),
        }
    }

    /// The answer to the thread's call, if it has come.
    pub(super) fn take_answer(&mut self, who: ThreadId) -> Option<Answer> {
        let answer = self.threads[who].answer.take();
        if answer.is_some() {
            self.threads[who].waits = None;
        }
        answer
    }

    /// Ends the thread's wait for the provider's answer.
    pub(super) fn give_up_waiting(&mut self, who: ThreadId, ctx: &mut Ctx) {
        if let Some(Waits::Answer(ticket, _)) = self.threads[who].waits.take() {
            ctx.call(Event::CancelTicket { ticket });
        }
    }

    /// Called by the provider: takes the answer to a call.
    ///
    /// # Panics
    /// If no thread waits for the answer.
    pub fn answered(&mut self, ticket: Ticket, answer: Answer) {
        let who = thread_of(ticket);
        if who == NOBODY {
            return self.abort_answered(ticket, &answer);
        }
        self.place_used_up(who, &answer);
        let thread = &mut self.threads[who];
        let asked = matches!(thread.waits, Some(Waits::Answer(waiting, _)) if waiting == ticket);
        assert!(
            asked && thread.answer.is_none(),
            "an answer that nobody waits for (any more): {answer:?}; thread {who} waits for {:?}",
            thread.waits
        );
        thread.answer = Some(answer);
        self.runnable.push(who);
    }

    /// Lets the thread wait until another part of the server wakes it.
    pub(super) fn park(&mut self, who: ThreadId, why: &'static str) -> Stride {
        self.threads[who].waits = Some(Waits::Server(why));
        BLOCKED
    }

    /// Wakes a thread if it is parked.
    pub(super) fn wake_if_parked(&mut self, who: ThreadId) {
        if matches!(self.threads[who].waits, Some(Waits::Server(_))) {
            self.wake(who);
        }
    }

    /// Wakes a thread that is parked or asleep.
    pub(super) fn wake(&mut self, who: ThreadId) {
        if matches!(self.threads[who].waits, Some(Waits::Server(_))) {
            self.threads[who].waits = None;
        }
        self.runnable.push(who);
    }

    /// Wakes the threads that have got released locks.
    pub(super) fn wake_granted(&mut self) {
        for who in self.locks.granted.drain(..) {
            self.threads[who].waits = None;
            self.runnable.push(who);
        }
    }
}
