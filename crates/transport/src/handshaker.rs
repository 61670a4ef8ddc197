//! A thread that proves peers. In: a socket. Out: a stream, or the reason why there is none.
//!
//! The mesh lives under the core's lock, and a handshake costs milliseconds of computing. So this thread owns a socket
//! until its peer has proven its identity. The number of callers is bounded, in all and per address. Dialed sockets and
//! addresses of known members come first.

mod lobby;
mod stage;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::net::TcpStream;

use crate::stream::Stream;
use crate::{HostPort, RejectReason, Security, Waker};
use lobby::Lobby;
pub(crate) use lobby::{Place, Rank, displaced};
use worker::{WAKER, Worker};

/// A socket whose peer must prove its identity.
#[derive(Debug)]
pub(crate) struct Task {
    pub tcp: TcpStream,
    pub remote: SocketAddr,
    /// The address that was called; `None` if the peer called.
    pub target: Option<HostPort>,
    /// A member has been connected from this address.
    pub is_known: bool,
    pub security: Security,
    /// Time limit for connecting and handshake together.
    pub timeout: Duration,
    /// TCP_USER_TIMEOUT.
    pub user_timeout_ms: u32,
}

/// The end of a socket's handshake.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub remote: SocketAddr,
    pub target: Option<HostPort>,
    pub result: Result<Stream, Fault>,
}

/// The reason why a socket became no stream.
#[derive(Debug)]
pub(crate) enum Fault {
    /// TCP did not connect.
    Connect(io::ErrorKind),
    /// The handshake failed; holds the kind of failure and the line to report.
    Rejected(RejectReason, String),
    /// The socket gave way to others; nothing is reported.
    Displaced,
}

/// Handle on the thread. Dropping it waits for the thread, which itself waits for nothing.
#[derive(Debug)]
pub(crate) struct Handshaker {
    lobby: Arc<Mutex<Lobby>>,
    outcomes: Receiver<Outcome>,
    waker: mio::Waker,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Handshaker {
    /// Starts the thread; `done` wakes the reactor when there are outcomes.
    pub fn start(done: Waker) -> io::Result<Self> {
        let poll = mio::Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), WAKER)?;
        let (lobby, stop) = (Arc::<Mutex<Lobby>>::default(), Arc::<AtomicBool>::default());
        let (sender, outcomes) = channel();
        let tell = move |outcome| {
            let heard = sender.send(outcome).is_ok();
            done.wake();
            heard
        };
        let mut worker = Worker::new(poll, Arc::clone(&lobby), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("trireme-tls".to_owned())
            .spawn(move || worker.run(tell))?;
        Ok(Self {
            lobby,
            outcomes,
            waker,
            stop,
            thread: Some(thread),
        })
    }

    /// Hands over a socket. Returns the address of a dialed socket that found no room.
    pub fn hand(&self, task: Task) -> Option<HostPort> {
        let gone = self
            .lobby
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .push(task);
        // Fails only if the eventfd is gone; then no thread waits on it.
        let _ = self.waker.wake();
        gone.and_then(|task| task.target)
    }

    /// Returns false if the thread has ended, which takes a bug.
    pub fn is_alive(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    /// Returns the outcome of a socket that was handed over earlier, if there is one.
    pub fn next_outcome(&self) -> Option<Outcome> {
        self.outcomes.try_recv().ok()
    }

    /// Ends the thread soon; does not wait.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.waker.wake(); // as above
    }
}

impl Drop for Handshaker {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread ends handshakes only.
            let _ = thread.join();
        }
    }
}
