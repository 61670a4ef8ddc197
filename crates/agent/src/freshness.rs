//! Measures how old a read at this node may be, by a current read: one that waits for the cluster's position.
//!
//! One thread with one connection measures, and only on request. However many clients ask, the server has one such read
//! at a time.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::database::{Database, DatabaseError, Login};
use crate::health::Verdict;

/// The client's time limit for the read. The server gives up earlier, after repl.causal_read_timeout: 30 s by default.
const SERVER_GIVES_UP: Duration = Duration::from_secs(40);
/// The age up to which a measurement serves further requests.
const REUSE: Duration = Duration::from_millis(200);

/// A read that has ended.
struct Measured {
    begin: Instant,
    end: Instant,
    result: Result<(), DatabaseError>,
}

#[derive(Default)]
struct State {
    wanted: bool,
    /// The begin of the read that runs now.
    since: Option<Instant>,
    last: Option<Measured>,
}

/// The requests' side of the measuring thread.
pub(crate) struct Freshness {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Freshness {
    /// Starts the thread. It ends with the process.
    pub(crate) fn start(login: Login) -> std::io::Result<Self> {
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let thread_shared = Arc::clone(&shared);
        let database = Database::new(login, SERVER_GIVES_UP);
        thread::Builder::new()
            .name("freshness".to_owned())
            .spawn(move || measure(&thread_shared, database))?;
        Ok(Self { shared })
    }

    /// Whether a read here shows everything that was committed anywhere before `limit` ago. Answers within `limit`.
    pub(crate) fn within(&self, limit: Duration) -> Verdict {
        let (mutex, changed) = &*self.shared;
        let begin = Instant::now();
        let mut state = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // A read that ran when the request came serves, too: it began earlier, so the lag that it shows is an upper
            // bound.
            if let Some(last) = state.last.as_ref().filter(|last| last.end + REUSE >= begin) {
                if let Err(error) = &last.result {
                    return Verdict::no(error.to_string());
                }
                let lag = last.end.max(begin) - last.begin;
                if lag <= limit {
                    return Verdict::yes(format!("lag of at most {} ms", lag.as_millis()));
                }
            }
            let waiting = state.since.map_or(Duration::ZERO, |since| since.elapsed());
            if waiting > limit || begin.elapsed() >= limit {
                let lag = waiting.max(begin.elapsed());
                return Verdict::no(format!(
                    "lag of more than {} ms",
                    lag.as_millis().max(limit.as_millis())
                ));
            }
            if state.since.is_none() && !state.wanted {
                state.wanted = true;
                changed.notify_all();
            }
            let left = limit.saturating_sub(begin.elapsed().max(waiting));
            let pause = left.max(Duration::from_millis(1));
            (state, _) = changed
                .wait_timeout(state, pause)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn measure(shared: &(Mutex<State>, Condvar), mut database: Database) {
    let (mutex, changed) = shared;
    loop {
        let mut state = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.wanted {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let begin = Instant::now();
        state.wanted = false;
        state.since = Some(begin);
        drop(state);
        let result = database.catch_up();
        let mut state = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        state.since = None;
        state.last = Some(Measured {
            begin,
            end: Instant::now(),
            result,
        });
        changed.notify_all();
    }
}
