//! The thread that asks the server about addresses. In: an address. Out: the verdict on it.

use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::{AllowAddress, Waker};

/// Time for a running question to be answered when the mesh ends.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// A thread that asks one question after the other. Dropping it waits for the running one, but not for ever: a thread
/// whose question hangs is left behind.
pub(crate) struct Asker {
    questions: Option<Sender<IpAddr>>,
    verdicts: Receiver<(IpAddr, bool)>,
    thread: Option<JoinHandle<()>>,
}

impl Asker {
    /// Starts the thread; `waker` wakes the reactor when there is a verdict.
    pub fn start(allow: &AllowAddress, waker: Waker) -> io::Result<Self> {
        let (questions, todo) = channel::<IpAddr>();
        let (done, verdicts) = channel();
        let ask = allow.clone();
        let run = move || {
            for ip in todo {
                // A panic refuses the caller, and the thread goes on.
                let asked = catch_unwind(AssertUnwindSafe(|| ask(&ip.to_string())));
                if done.send((ip, asked.unwrap_or(false))).is_err() {
                    return;
                }
                waker.wake();
            }
        };
        let thread = std::thread::Builder::new()
            .name("trireme-allow".to_owned())
            .spawn(run)?;
        Ok(Self {
            questions: Some(questions),
            verdicts,
            thread: Some(thread),
        })
    }

    /// Asks about an address. Returns false if the thread is gone.
    pub fn ask(&self, ip: IpAddr) -> bool {
        let questions = self.questions.as_ref();
        questions.is_some_and(|questions| questions.send(ip).is_ok())
    }

    /// Returns a verdict that has come in: true if connections from the address are welcome.
    pub fn next_verdict(&self) -> Option<(IpAddr, bool)> {
        self.verdicts.try_recv().ok()
    }

    /// Asks no further question; does not wait.
    pub fn stop(&mut self) {
        self.questions = None;
    }

    /// Returns true if the thread ends in time. It ends behind its last verdict.
    fn ends(&self) -> bool {
        let until = Instant::now() + LAST_ANSWER;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.verdicts.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.stop();
        let Some(thread) = self.thread.take() else {
            return;
        };
        if self.ends() {
            // Its panics are caught.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn asker(ask: impl Fn(&str) -> bool + Send + Sync + 'static) -> Asker {
        let allow: AllowAddress = Arc::new(ask);
        let poll = mio::Poll::new().unwrap();
        let waker = Waker::of(poll.registry()).unwrap();
        Asker::start(&allow, waker).unwrap()
    }

    fn verdict(asker: &Asker, last: u8) -> bool {
        let ip = IpAddr::from([192, 0, 2, last]);
        assert!(asker.ask(ip));
        let (about, allowed) = asker.verdicts.recv().unwrap();
        assert_eq!(about, ip);
        allowed
    }

    #[test]
    fn a_thread_is_left_behind_only_if_its_question_hangs() {
        let quick = asker(|ip| match ip {
            "192.0.2.9" => panic!("planned"),
            ip => ip == "192.0.2.1",
        });
        assert!(verdict(&quick, 1) && !verdict(&quick, 2));
        assert!(!verdict(&quick, 9), "a panic refuses");
        assert!(verdict(&quick, 1), "and the thread goes on");
        let began = Instant::now();
        drop(quick);
        assert!(began.elapsed() < LAST_ANSWER);
        let (begun, begins) = sync_channel(1);
        let hung = asker(move |_| {
            begun.send(()).unwrap();
            loop {
                std::thread::park();
            }
        });
        assert!(hung.ask(IpAddr::from([192, 0, 2, 1])));
        begins.recv().unwrap();
        let began = Instant::now();
        drop(hung);
        let waited = began.elapsed();
        assert!(
            (LAST_ANSWER..3 * LAST_ANSWER).contains(&waited),
            "{waited:?}"
        );
    }
}
