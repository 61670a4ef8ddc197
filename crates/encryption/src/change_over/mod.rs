//! Changes a live cluster from plaintext to TLS. All nodes take a step before the first node takes the next one, so
//! that any two members always have a common way to speak (docs/security.md).
//!
//! Nothing is stored here: each run reads the settings of the nodes and does the missing steps. So another run
//! completes one that was interrupted.

mod plan;
mod server;
#[cfg(test)]
mod tests;

use std::thread;
use std::time::{Duration, Instant};

use trireme_agent::{DatabaseError, Endpoint, Login};
use trireme_tls::Files;

pub use plan::Phase;
use plan::{BACK, State};
pub use server::parse_endpoint;
use server::{Node, Server};

/// The interval at which a node is asked whether it has settled.
const POLL: Duration = Duration::from_millis(100);
/// The time in which a node that refuses plaintext must be connected with all members again; commits may wait
/// meanwhile. It is shorter than the default of `evs.suspect_timeout`, so that a node that is put back stays a member.
const LINKS_TIMEOUT: Duration = Duration::from_secs(3);

/// The order: the servers, their files, and how far to go.
#[derive(Clone, Debug)]
pub struct ChangeOver {
    /// All nodes of the cluster.
    pub servers: Vec<Login>,
    /// Members without SQL (arbitrators).
    pub others: usize,
    /// The TLS files, as paths on each server; `%n` stands for its `wsrep_node_name`. Only nodes without TLS files get
    /// these.
    pub files: Files,
    /// The last step to take.
    pub until: Phase,
    /// The time that a node has to settle after each step.
    pub timeout: Duration,
}

/// The reason why the change stops. The steps taken remain: a cluster can run in each state in between.
#[derive(Debug, thiserror::Error)]
pub enum ChangeOverError {
    /// The server answers with an error, or not at all.
    #[error("{server}: {source}")]
    Sql {
        /// Its address.
        server: Endpoint,
        /// Its error.
        source: DatabaseError,
    },
    /// The server's answer makes no sense.
    #[error("{server}: {reason}")]
    Odd {
        /// Its address.
        server: Endpoint,
        /// The fault of the answer.
        reason: String,
    },
    /// The server runs another wsrep provider.
    #[error("{server}: its wsrep provider is '{found}', not Trireme")]
    Foreign {
        /// Its address.
        server: Endpoint,
        /// `wsrep_provider_name`.
        found: String,
    },
    /// The node is not a synced member of a primary component.
    #[error(
        "{name} is not a synced member of a primary component ({state}): wait until it is, then run this again"
    )]
    NotSynced {
        /// The node.
        name: String,
        /// Its state.
        state: String,
    },
    /// One node was named twice, or the nodes belong to different clusters.
    #[error("{first} and {second} are {what}: name each node of one cluster once")]
    NotOneCluster {
        /// One node.
        first: String,
        /// The other node.
        second: String,
        /// The conflict between the two.
        what: &'static str,
    },
    /// Some members of the cluster were not named.
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
    /// The node runs an older release.
    #[error(
        "{name} runs an older release of Trireme, which does not count its links to members: upgrade it, then run this again"
    )]
    Old {
        /// The node.
        name: String,
    },
    /// A node is not connected with all other members, so TLS between the members cannot be tested.
    #[error(
        "{name} is connected with {links} of {others} other members: see the error logs of both sides; trireme tls check --peer, run \
         on each with the other's group address, names the fault of certificates; then run this again"
    )]
    Unlinked {
        /// The node.
        name: String,
        /// The other members that it is connected with.
        links: usize,
        /// The number of other members.
        others: usize,
    },
    /// Without plaintext some members are not connected.
    #[error(
        "without plaintext not all members are connected: within {limit_s} s {found}. These do not trust each other's certificates, or \
         a device between them blocks TLS (if only one is named: between it and a member without SQL). Run trireme tls check --peer \
         on each with the other's group address, and compare socket.ssl_ca with the other's socket.ssl_cert; then run this again"
    )]
    Distrust {
        /// The time that the members had, in seconds.
        limit_s: u64,
        /// The servers that lack connections, and how many they have.
        found: String,
    },
    /// The cluster uses a shared secret.
    #[error(
        "{name} is encrypted by a shared secret: take repl.secret_file out of its options first, or keep the secret"
    )]
    Secret {
        /// The node.
        name: String,
    },
    /// The node refuses the options.
    #[error(
        "{name} refuses \"{options}\" ({source}): its error log names file and remedy; nothing has changed on it. Run this again \
         then"
    )]
    Refused {
        /// The node.
        name: String,
        /// The options.
        options: String,
        /// The server's error.
        source: DatabaseError,
    },
    /// The node does not reach the wanted state in time.
    #[error(
        "{name} has not settled within {timeout_s} s ({state}): see its error log, then run this again"
    )]
    Unsettled {
        /// The node.
        name: String,
        /// The time that the node had.
        timeout_s: u64,
        /// Its state at the end.
        state: String,
    },
}

/// Takes the cluster through the steps up to `until`. `tell` gets a line for each change. Returns false if no node had
/// to change.
pub fn change_over(change: &ChangeOver, tell: impl FnMut(&str)) -> Result<bool, ChangeOverError> {
    let mut servers: Vec<Server> = change.servers.iter().map(Server::new).collect();
    take_steps(&mut servers, change, tell)
}

fn take_steps<N: Node>(
    nodes: &mut [N],
    change: &ChangeOver,
    mut tell: impl FnMut(&str),
) -> Result<bool, ChangeOverError> {
    let mut has_changed = false;
    let phases = Phase::ALL
        .into_iter()
        .filter(|phase| *phase <= change.until);
    for phase in phases {
        let states = observe_all(nodes, change)?;
        let mut order: Vec<usize> = (0..states.len()).collect();
        // The leader comes last: the other nodes renew their links first, so the leader always has links to a majority.
        order.sort_by_key(|&i| states[i].is_leader);
        for i in order {
            let state = &states[i];
            let Some(options) = plan::options(phase, state, &change.files) else {
                continue;
            };
            tell(&format!("{}: {} ({options})", state.name, phase.meaning()));
            let set = nodes[i].set_options(&options);
            set.map_err(|source| ChangeOverError::Refused {
                name: state.name.clone(),
                options,
                source,
            })?;
            has_changed = true;
            if phase == Phase::RefusePlaintext {
                let limit = LINKS_TIMEOUT.min(change.timeout);
                if let Err(error) = await_links(nodes, state.others(), limit) {
                    put_back(nodes, i, state, change.timeout, &mut tell);
                    return Err(error);
                }
            }
            settle(&mut nodes[i], phase, state, change.timeout)?;
            if phase == Phase::RefusePlaintext {
                // This node has renewed its links. Before the next node does so, every node must have heard from the
                // others over the new ones.
                for node in &mut *nodes {
                    node.reach_others()?;
                }
            }
        }
    }
    Ok(has_changed)
}

/// Reads the state of each node. Each must be a synced member of the one cluster, and connected with all other members.
fn observe_all<N: Node>(
    nodes: &mut [N],
    change: &ChangeOver,
) -> Result<Vec<State>, ChangeOverError> {
    let mut states: Vec<State> = Vec::new();
    for node in nodes {
        let state = node.state()?;
        if state.provider != "Trireme" {
            return Err(ChangeOverError::Foreign {
                server: node.endpoint().clone(),
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
        let Some(links) = state.member_links else {
            return Err(ChangeOverError::Old { name: state.name });
        };
        if links < state.others() {
            return Err(ChangeOverError::Unlinked {
                others: state.others(),
                name: state.name,
                links,
            });
        }
        states.push(state);
    }
    Ok(states)
}

/// Waits until each node is connected with all `others`. A node that has just refused plaintext has dropped its
/// plaintext links at once, so these connections are encrypted.
fn await_links<N: Node>(
    nodes: &mut [N],
    others: usize,
    limit: Duration,
) -> Result<(), ChangeOverError> {
    let began = Instant::now();
    loop {
        let mut lacking = Vec::new();
        for node in &mut *nodes {
            let state = node.state()?;
            let links = state.member_links.unwrap_or(0);
            if links < others {
                lacking.push(format!("{} has {links} of {others} links", state.name));
            }
        }
        if lacking.is_empty() {
            return Ok(());
        }
        if began.elapsed() >= limit {
            return Err(ChangeOverError::Distrust {
                limit_s: limit.as_secs(),
                found: lacking.join(", "),
            });
        }
        thread::sleep(POLL);
    }
}

/// Lets a node whose step has failed speak plaintext again, so that the members connect again.
fn put_back<N: Node>(
    nodes: &mut [N],
    at: usize,
    before: &State,
    timeout: Duration,
    tell: &mut impl FnMut(&str),
) {
    let name = &before.name;
    tell(&format!("{name}: dials plaintext, accepts both ({BACK})"));
    if let Err(error) = nodes[at].set_options(BACK) {
        return tell(&format!(
            "{name} is not put back ({error}): run there SET GLOBAL wsrep_provider_options='{BACK}'"
        ));
    }
    let is_whole = await_links(nodes, before.others(), timeout).is_ok();
    tell(match is_whole {
        true => "all members are connected again, as before this step",
        false => "not all members are connected again: see their error logs",
    });
}

/// Waits until the node has completed the step and is in the cluster as before.
fn settle(
    node: &mut impl Node,
    phase: Phase,
    before: &State,
    timeout: Duration,
) -> Result<(), ChangeOverError> {
    let began = Instant::now();
    loop {
        let state = node.state()?;
        if state.is_synced && state.size == before.size && phase.is_done(&state) {
            return Ok(());
        }
        if began.elapsed() >= timeout {
            return Err(ChangeOverError::Unsettled {
                name: before.name.clone(),
                timeout_s: timeout.as_secs(),
                state: state.to_string(),
            });
        }
        thread::sleep(POLL);
    }
}
