//! The agent: one reading of the server for all who ask at about the same time.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trireme_node::state_file::StateFile;

use crate::database::{Database, DatabaseError, Login};
use crate::freshness::Freshness;
use crate::health::{self, Verdict};
use crate::http::{self, Response, Status};
use crate::metrics;
use crate::request::{Question, Request};
use crate::sample::Sample;
use crate::state_file::{self, sentence};

/// A reading serves all who ask within this time: the server is asked at most four times a second.
const REUSE: Duration = Duration::from_millis(250);
/// How long each step of an answer of the server may take.
const SERVER_PATIENCE: Duration = Duration::from_secs(1);

/// Why the agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}; choose another address with --listen")]
    Listen {
        /// The address.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
    /// No thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// A running agent. It serves until the process ends.
pub struct Agent {
    address: SocketAddr,
}

impl Agent {
    /// Listens at `address` (host:port) and answers from then on, also while the server is down.
    ///
    /// `dir` is the node's data directory: while SQL is closed, its state file tells what the node does.
    pub fn start(login: Login, dir: Option<PathBuf>, address: &str) -> Result<Self, AgentError> {
        let listen = |source| AgentError::Listen {
            address: address.to_owned(),
            source,
        };
        let listener = TcpListener::bind(address).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let desk = Desk {
            readings: Mutex::new(Readings {
                database: Database::new(login.clone(), SERVER_PATIENCE),
                dir,
                last: None,
            }),
            freshness: Freshness::start(login)?,
        };
        http::serve(listener, move |request| desk.answer(request))?;
        Ok(Self { address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// What a reading has brought.
struct Reading {
    sample: Result<Sample, DatabaseError>,
    /// The state file, if the server is silent and its node has written the file lately.
    state: Option<StateFile>,
}

type Seen = Arc<Reading>;

struct Readings {
    database: Database,
    dir: Option<PathBuf>,
    last: Option<(Instant, Seen)>,
}

impl Readings {
    fn read(&mut self) -> Reading {
        let sample = self.database.sample();
        let state = match &sample {
            Err(DatabaseError::Silent { .. }) => self.dir.as_deref().and_then(living),
            _ => None,
        };
        Reading { sample, state }
    }
}

/// The state file of a node that lives.
fn living(dir: &Path) -> Option<StateFile> {
    if state_file::age_ms(dir)? >= state_file::STALE_MS {
        return None;
    }
    let state = state_file::read(dir).ok().flatten();
    state.filter(|state| state.state.component != "closed")
}

/// Answers requests from readings of the server.
struct Desk {
    readings: Mutex<Readings>,
    freshness: Freshness,
}

impl Desk {
    fn answer(&self, request: Request) -> Response {
        let reading = self.read();
        let seen = reading.sample.as_ref();
        match (request.question, &reading.state) {
            (Question::Live, Some(state)) => {
                return verdict(&Verdict::yes(format!(
                    "SQL is closed, and the node lives: {}",
                    sentence(state)
                )));
            }
            (Question::Ready | Question::Write | Question::Read(_), Some(state)) => {
                return verdict(&Verdict::no(format!("SQL is closed: {}", sentence(state))));
            }
            _ => {}
        }
        match request.question {
            Question::Live => verdict(&health::live(seen)),
            Question::Ready => verdict(&health::ready(seen)),
            Question::Write => verdict(&health::write(seen)),
            Question::Read(limit) => {
                let ready = health::ready(seen);
                verdict(&match limit {
                    Some(limit) if ready.ok => self.freshness.within(limit),
                    _ => ready,
                })
            }
            Question::Metrics => match metrics::text(seen) {
                Ok(body) => Response {
                    status: Status::Ok,
                    content_type: metrics::CONTENT_TYPE,
                    body,
                },
                Err(error) => Response::text(Status::Error, &error.to_string()),
            },
            Question::Status => Response {
                status: Status::Ok,
                content_type: "application/json",
                body: format!("{:#}\n", status(&reading)),
            },
        }
    }

    /// Holds the lock while it asks: others wait for the same answer.
    fn read(&self) -> Seen {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        match &readings.last {
            Some((at, seen)) if at.elapsed() < REUSE => Arc::clone(seen),
            _ => {
                let seen = Arc::new(readings.read());
                readings.last = Some((Instant::now(), Arc::clone(&seen)));
                seen
            }
        }
    }
}

fn verdict(verdict: &Verdict) -> Response {
    let status = if verdict.ok {
        Status::Ok
    } else {
        Status::Unavailable
    };
    Response::text(status, &verdict.to_string())
}

fn status(reading: &Reading) -> Value {
    let seen = reading.sample.as_ref();
    let check = |verdict: Verdict| json!({ "ok": verdict.ok, "reason": verdict.reason });
    json!({
        "version": 1,
        "checks": {
            "live": check(health::live(seen)),
            "ready": check(health::ready(seen)),
            "write": check(health::write(seen)),
        },
        "waits_for": reading.state.as_ref().and_then(|state| state.waits_for.as_ref()).map(|waits| json!({
            "reason": waits.reason,
            "text": waits.text,
        })),
        "error": seen.err().map(DatabaseError::to_string),
        "status": seen.ok().map(Sample::all_status),
        "variables": seen.ok().map(Sample::all_variables),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Endpoint;
    use trireme_node::state_file::STATE_FILE;

    #[test]
    fn without_a_server_the_status_says_so() {
        let login = Login {
            endpoint: Endpoint::Socket("/nonexistent/socket".into()),
            user: "x".to_owned(),
            password: None,
        };
        let status = status(&Reading {
            sample: Database::new(login, SERVER_PATIENCE).sample(),
            state: None,
        });
        assert_eq!(status["checks"]["live"]["ok"], false);
        let error = status["error"].as_str().unwrap();
        assert!(
            error.starts_with("no answer at /nonexistent/socket: "),
            "{error}"
        );
        assert_eq!(status["status"], Value::Null);
    }

    #[test]
    fn a_node_that_waits_lives() {
        let dir = tempfile::tempdir().unwrap();
        let write = |component: &str| {
            let text = format!(
                r#"{{"format":"trireme state and events","version":1,"state":{{"component":"{component}"}},
                "waits_for":{{"reason":"majority","text":"waiting for n2"}}}}"#
            );
            std::fs::write(dir.path().join(STATE_FILE), text).unwrap();
        };
        assert!(living(dir.path()).is_none());
        write("non-primary");
        assert_eq!(sentence(&living(dir.path()).unwrap()), "waiting for n2");
        write("closed");
        assert!(living(dir.path()).is_none());
        let login = Login {
            endpoint: Endpoint::Socket("/nonexistent/socket".into()),
            user: "x".to_owned(),
            password: None,
        };
        write("non-primary");
        let mut readings = Readings {
            database: Database::new(login, SERVER_PATIENCE),
            dir: Some(dir.path().to_owned()),
            last: None,
        };
        assert_eq!(status(&readings.read())["waits_for"]["reason"], "majority");
    }
}
