//! A live cluster goes over from plaintext to TLS: each step on all nodes before the next, so that no two members lack a
//! common way to speak at any time (docs/security.md).
//!
//! Nothing is kept here: each run looks at what the nodes are set to, and does what is missing. So a run that was broken off
//! is made good by another one.

mod plan;
mod server;

use std::thread;
use std::time::{Duration, Instant};

use trireme_agent::{DatabaseError, Endpoint, Login};
use trireme_tls::Files;

pub use plan::Phase;
use plan::State;
use server::Server;
pub use server::parse_endpoint;

/// How often a node is asked whether it has settled.
const POLL: Duration = Duration::from_millis(100);

/// What is to be done.
#[derive(Clone, Debug)]
pub struct ChangeOver {
    /// All nodes of the cluster.
    pub servers: Vec<Login>,
    /// Members without SQL (arbitrators).
    pub others: usize,
    /// Where each server has its files, as on the server itself; `%n` stands for its `wsrep_node_name`. For nodes that have
    /// none set yet.
    pub files: Files,
    /// The last step to take.
    pub until: Phase,
    /// A node has so long to settle after each step.
    pub patience: Duration,
}

/// Why the change stops. What was done stays: each state in between is one that a cluster can live in.
#[derive(Debug, thiserror::Error)]
pub enum ChangeOverError {
    /// A server.
    #[error("{server}: {source}")]
    Sql {
        /// Its address.
        server: Endpoint,
        /// What it said.
        source: DatabaseError,
    },
    /// An answer that makes no sense.
    #[error("{server}: {reason}")]
    Odd {
        /// Its address.
        server: Endpoint,
        /// What is wrong with it.
        reason: String,
    },
    /// Another provider.
    #[error("{server}: its wsrep provider is '{found}', not Trireme")]
    Foreign {
        /// Its address.
        server: Endpoint,
        /// `wsrep_provider_name`.
        found: String,
    },
    /// Not a synced member of a primary component.
    #[error(
        "{name} is not a synced member of a primary component ({state}): wait until it is, then run this again"
    )]
    NotSynced {
        /// The node.
        name: String,
        /// Its state.
        state: String,
    },
    /// The same node twice, or nodes of different clusters.
    #[error("{first} and {second} are {what}: name each node of one cluster once")]
    NotOneCluster {
        /// A node.
        first: String,
        /// Another.
        second: String,
        /// What is wrong with the two.
        what: &'static str,
    },
    /// Not all members are named.
    #[error(
        "the cluster has {size} members, and {named} nodes were named, with {others} others: name all of them; an arbitrator, which \
         has no SQL, is counted by --others"
    )]
    Members {
        /// `wsrep_cluster_size`.
        size: usize,
        /// Servers named.
        named: usize,
        /// `--others`.
        others: usize,
    },
    /// A secret protects the cluster.
    #[error(
        "{name} is encrypted by a shared secret: take repl.secret_file out of its options first, or keep the secret"
    )]
    Secret {
        /// The node.
        name: String,
    },
    /// Refused by the node.
    #[error(
        "{name} refuses \"{options}\" ({source}): its error log names file and remedy; nothing has changed on it. Run this again \
         then"
    )]
    Refused {
        /// The node.
        name: String,
        /// The options.
        options: String,
        /// What the server said.
        source: DatabaseError,
    },
    /// It does not become what it should be.
    #[error(
        "{name} has not settled within {patience_s} s ({state}): see its error log, then run this again"
    )]
    Unsettled {
        /// The node.
        name: String,
        /// How long it had.
        patience_s: u64,
        /// How it is.
        state: String,
    },
}

/// Leads the cluster through the steps up to `until`. `tell` gets a line for each thing done; false if nothing was to be done.
pub fn change_over(
    change: &ChangeOver,
    mut tell: impl FnMut(&str),
) -> Result<bool, ChangeOverError> {
    let mut servers: Vec<Server> = change.servers.iter().map(Server::new).collect();
    let mut has_changed = false;
    let phases = Phase::ALL
        .into_iter()
        .filter(|phase| *phase <= change.until);
    for phase in phases {
        let states = observe_all(&mut servers, change)?;
        let mut order: Vec<usize> = (0..states.len()).collect();
        // The links of the others are made anew first, so that the leader always has one to a majority.
        order.sort_by_key(|&i| states[i].is_leader);
        for i in order {
            let state = &states[i];
            let Some(options) = plan::options(phase, state, &change.files) else {
                continue;
            };
            tell(&format!("{}: {} ({options})", state.name, phase.meaning()));
            let set = servers[i].set_options(&options);
            set.map_err(|source| ChangeOverError::Refused {
                name: state.name.clone(),
                options,
                source,
            })?;
            has_changed = true;
            settle(&mut servers[i], phase, state, change.patience)?;
            if phase == Phase::RefusePlaintext {
                // Its links have been made anew: the next node's are not before all nodes have heard of each other by them.
                for server in &mut servers {
                    server.reach_others()?;
                }
            }
        }
    }
    Ok(has_changed)
}

fn observe_all(servers: &mut [Server], change: &ChangeOver) -> Result<Vec<State>, ChangeOverError> {
    let mut states: Vec<State> = Vec::new();
    for server in servers {
        let state = server.state()?;
        if state.provider != "Trireme" {
            return Err(ChangeOverError::Foreign {
                server: server.endpoint().clone(),
                found: state.provider,
            });
        }
        if !state.is_synced {
            return Err(ChangeOverError::NotSynced {
                name: state.name.clone(),
                state: state.to_string(),
            });
        }
        if state.has_secret {
            return Err(ChangeOverError::Secret { name: state.name });
        }
        for other in &states {
            let what = match (other.member == state.member, other.history == state.history) {
                (true, _) => "the same node",
                (_, false) => "nodes of different clusters",
                _ => continue,
            };
            return Err(ChangeOverError::NotOneCluster {
                first: other.name.clone(),
                second: state.name,
                what,
            });
        }
        let named = change.servers.len();
        if state.size != named + change.others {
            return Err(ChangeOverError::Members {
                size: state.size,
                named,
                others: change.others,
            });
        }
        states.push(state);
    }
    Ok(states)
}

/// Waits until a node is what a step makes of it, and in the cluster as before.
fn settle(
    server: &mut Server,
    phase: Phase,
    before: &State,
    patience: Duration,
) -> Result<(), ChangeOverError> {
    let began = Instant::now();
    loop {
        let state = server.state()?;
        if state.is_synced && state.size == before.size && phase.is_done(&state) {
            return Ok(());
        }
        if began.elapsed() >= patience {
            return Err(ChangeOverError::Unsettled {
                name: before.name.clone(),
                patience_s: patience.as_secs(),
                state: state.to_string(),
            });
        }
        thread::sleep(POLL);
    }
}
