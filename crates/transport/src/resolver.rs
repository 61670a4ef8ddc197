//! Resolves host names on a thread of its own, because the system's look-up blocks.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::{HostPort, Waker};

/// A thread that looks up names, one after the other. Dropping it waits for the running look-up (the process may unload
/// this library next).
#[derive(Debug)]
pub(crate) struct Resolver {
    requests: Option<Sender<HostPort>>,
    answers: Receiver<(HostPort, Vec<SocketAddr>)>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    /// Starts the thread; `waker` wakes the reactor when there are answers.
    pub fn start(waker: Waker) -> io::Result<Self> {
        let (requests, todo) = channel::<HostPort>();
        let (done, answers) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            for address in todo {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let found = (address.host.as_str(), address.port).to_socket_addrs();
                let found = found.map_or_else(|_| Vec::new(), Iterator::collect);
                if done.send((address, found)).is_err() {
                    return;
                }
                waker.wake();
            }
        };
        let thread = std::thread::Builder::new()
            .name("trireme-dns".to_owned())
            .spawn(run)?;
        Ok(Self {
            requests: Some(requests),
            answers,
            stop,
            thread: Some(thread),
        })
    }

    /// Requests a look-up. Returns false if the thread is gone.
    pub fn ask(&self, address: HostPort) -> bool {
        self.requests
            .as_ref()
            .is_some_and(|requests| requests.send(address).is_ok())
    }

    /// Takes no more names; does not wait.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.requests = None;
    }

    /// Returns an answer that has come in; it has no addresses if the name does not resolve.
    pub fn next_answer(&self) -> Option<(HostPort, Vec<SocketAddr>)> {
        self.answers.try_recv().ok()
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // It panics only if the standard library does.
            let _ = thread.join();
        }
    }
}
