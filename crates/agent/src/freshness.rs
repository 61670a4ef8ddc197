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

impl State {
    /// The answer to a request that came at `begin`; None: not yet.
    fn verdict(&self, begin: Instant, now: Instant, limit: Duration) -> Option<Verdict> {
        // A read that ran when the request came serves, too: it began earlier, so the lag that it shows is an upper
        // bound.
        if let Some(last) = self.last.as_ref().filter(|last| last.end + REUSE >= begin) {
            if let Err(error) = &last.result {
                return Some(Verdict::no(error.to_string()));
            }
            let lag = last.end.max(begin) - last.begin;
            if lag <= limit {
                let lag_ms = lag.as_millis();
                return Some(Verdict::yes(format!("lag of at most {lag_ms} ms")));
            }
        }
        let waited = self.waited(begin, now);
        (waited >= limit).then(|| {
            let lag_ms = waited.as_millis();
            Verdict::no(format!("lag of more than {lag_ms} ms"))
        })
    }

    /// The time since the request came, or since the read began that runs now, if that is longer.
    fn waited(&self, begin: Instant, now: Instant) -> Duration {
        now - self.since.map_or(begin, |since| since.min(begin))
    }
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
            let now = Instant::now();
            if let Some(verdict) = state.verdict(begin, now, limit) {
                return verdict;
            }
            if state.since.is_none() && !state.wanted {
                state.wanted = true;
                changed.notify_all();
            }
            let left = limit.saturating_sub(state.waited(begin, now));
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

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn read(begin: Instant, end: Instant) -> State {
        let last = Measured {
            begin,
            end,
            result: Ok(()),
        };
        State {
            last: Some(last),
            ..State::default()
        }
    }

    /// Whether a request at `begin` is answered with yes, `waited` later.
    fn says(state: &State, begin: Instant, waited: Duration) -> Option<(bool, String)> {
        let verdict = state.verdict(begin, begin + waited, LIMIT)?;
        Some((verdict.ok, verdict.reason))
    }

    fn yes(lag_ms: u64) -> Option<(bool, String)> {
        Some((true, format!("lag of at most {lag_ms} ms")))
    }

    fn no(lag_ms: u64) -> Option<(bool, String)> {
        Some((false, format!("lag of more than {lag_ms} ms")))
    }

    #[test]
    fn a_read_within_the_limit_answers() {
        let begin = Instant::now();
        assert_eq!(says(&read(begin, begin + ms(30)), begin, ms(30)), yes(30));
        // It ran when the request came.
        assert_eq!(
            says(&read(begin, begin + ms(60)), begin + ms(20), ms(40)),
            yes(60)
        );
    }

    /// A read need not have seen the commits since it began.
    #[test]
    fn a_read_that_is_used_again_has_aged() {
        let begin = Instant::now();
        let state = read(begin, begin + ms(10));
        assert_eq!(says(&state, begin + ms(90), ms(0)), yes(90));
        assert_eq!(says(&state, begin + ms(150), ms(0)), None);
        let old = begin + ms(10) + REUSE + ms(1);
        assert_eq!(says(&state, old, ms(0)), None);
    }

    #[test]
    fn a_read_that_failed_answers_until_it_is_old() {
        let begin = Instant::now();
        let mut state = read(begin, begin + ms(10));
        let error = DatabaseError::Refused(1205, "Lock wait timeout".to_owned());
        if let Some(last) = &mut state.last {
            last.result = Err(error.clone());
        }
        let refused = Some((false, error.to_string()));
        assert_eq!(says(&state, begin, ms(10)), refused);
        let old = begin + ms(10) + REUSE + ms(1);
        assert_eq!(says(&state, old, ms(0)), None);
    }

    #[test]
    fn nobody_waits_longer_than_the_limit() {
        let begin = Instant::now();
        let mut state = State::default();
        assert_eq!(says(&state, begin, ms(99)), None);
        assert_eq!(says(&state, begin, ms(100)), no(100));
        // The read that runs has shown a greater lag already.
        state.since = Some(begin);
        assert_eq!(says(&state, begin + ms(50), ms(49)), None);
        assert_eq!(says(&state, begin + ms(300), ms(0)), no(300));
    }
}
