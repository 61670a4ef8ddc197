//! `trireme agent`: a process beside a MariaDB server. It reads the state of the node through SQL. Over HTTP it answers
//! health checks, Prometheus and people.
//!
//! The agent has at most two connections to the server, of a user without privileges. It reads at most four times a
//! second, however many clients ask. The server works the same without it.

#![forbid(unsafe_code)]

mod agent;
mod database;
mod freshness;
mod grant;
mod health;
mod http;
mod metrics;
mod plain;
mod request;
mod sample;
pub mod state_file;

pub use agent::{Agent, AgentError};
pub use database::{Database, DatabaseError, Endpoint, Login};
pub use grant::{Grantee, NeedsPassword, grant, quoted};
pub use plain::visible;
pub use sample::{Component, Sample};
