//! The agent: it answers HTTP requests from readings of the server. Requests at about the same time share one reading,
//! so the server is read at most four times a second. If the server is silent, the node's state file is read instead.

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

/// The age up to which a reading is used again, so that the server is read at most four times a second.
const REUSE: Duration = Duration::from_millis(250);
/// The time limit for each step of an answer of the server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why the agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent cannot listen at the address.
    #[error("cannot listen at {address}: {source}; choose another address with --listen")]
    Listen {
        /// The address.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The system starts no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// A running agent. It serves until the process ends.
pub struct Agent {
    address: SocketAddr,
}

impl Agent {
    /// Listens at `address` (host:port) and answers from then on, even while the server is down.
    ///
    /// `dir` is the node's data directory: while SQL is closed, the state file in it says what the node does.
    pub fn start(login: Login, dir: Option<PathBuf>, address: &str) -> Result<Self, AgentError> {
        let listen = |source| AgentError::Listen {
            address: address.to_owned(),
            source,
        };
        let listener = TcpListener::bind(address).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let desk = Desk {
            readings: Mutex::new(Readings {
                database: Database::new(login.clone(), SERVER_TIMEOUT),
                dir,
                last: None,
            }),
            freshness: Freshness::start(login)?,
        };
        http::serve(listener, move |request| desk.answer(request))?;
        Ok(Self { address })
    }

    /// The address at which the agent listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The result of one reading.
struct Reading {
    sample: Result<Sample, DatabaseError>,
    /// The state file, if the server does not answer and the node has written the file lately.
    state: Option<StateFile>,
}

impl Reading {
    /// Whether the server answers, or its node lives while SQL is closed.
    fn live(&self) -> Verdict {
        match &self.state {
            Some(state) => Verdict::yes(format!(
                "SQL is closed, and the node lives: {}",
                sentence(state)
            )),
            None => health::live(self.sample.as_ref()),
        }
    }

    fn ready(&self) -> Verdict {
        self.closed()
            .unwrap_or_else(|| health::ready(self.sample.as_ref()))
    }

    fn write(&self) -> Verdict {
        self.closed()
            .unwrap_or_else(|| health::write(self.sample.as_ref()))
    }

    /// The verdict on statements while SQL is closed.
    fn closed(&self) -> Option<Verdict> {
        let state = self.state.as_ref()?;
        Some(Verdict::no(format!("SQL is closed: {}", sentence(state))))
    }
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

/// The state file of a running node; None if the file is stale or the node has closed.
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
        match request.question {
            Question::Live => verdict(&reading.live()),
            Question::Ready => verdict(&reading.ready()),
            Question::Write => verdict(&reading.write()),
            Question::Read(limit) => {
                let ready = reading.ready();
                verdict(&match limit {
                    Some(limit) if ready.ok => self.freshness.within(limit),
                    _ => ready,
                })
            }
            Question::Metrics => match metrics::text(reading.sample.as_ref()) {
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

    /// Reads the server, or reuses the last reading. It holds the lock meanwhile, so that other requests wait for the
    /// same reading.
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
            "live": check(reading.live()),
            "ready": check(reading.ready()),
            "write": check(reading.write()),
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
            sample: Database::new(login, SERVER_TIMEOUT).sample(),
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
            database: Database::new(login, SERVER_TIMEOUT),
            dir: Some(dir.path().to_owned()),
            last: None,
        };
        let status = status(&readings.read());
        assert_eq!(status["waits_for"]["reason"], "majority");
        // As /health/live and /health/ready say it.
        assert_eq!(status["checks"]["live"]["ok"], true);
        let ready = &status["checks"]["ready"];
        assert_eq!(ready["reason"], "SQL is closed: waiting for n2");
    }
}
