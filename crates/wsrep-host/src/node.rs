//! A node: a provider that has joined its cluster, and the threads that apply.

use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use trireme_wsrep_abi::host::{HostError, Identity, Library, Loaded, Parameters};

use crate::commits::{Commits, Null};
use crate::load;
use crate::member::Member;
use crate::protocol::{LoadPlan, LoadResult, Start};
use crate::sequence::Digest;

/// The cluster's name.
const CLUSTER: &str = "trireme-lab";

/// Limit for joining a cluster and for catching up with it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How often a node checks for something that it waits for.
const POLL: Duration = Duration::from_millis(2);

/// The reasons why a node cannot carry out a command.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The provider returned an error.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The node did not get in step with its group in time.
    #[error("the node was not in step with its group after {} s", TIMEOUT.as_secs())]
    NotSynced,
    /// The node did not commit all write-sets in time.
    #[error("seqno {wanted} was not committed here after {} s: only {here}", TIMEOUT.as_secs())]
    Behind {
        /// The last seqno that has committed on all nodes.
        wanted: i64,
        /// The last seqno that has committed on this node.
        here: i64,
    },
}

/// Returns a library's name and version.
pub fn probe(library: &Path) -> Result<Identity, NodeError> {
    Ok(Library::open(library)?.identity())
}

/// A node in its cluster.
pub struct Node {
    member: Arc<Member>,
    provider: Provider,
}

enum Provider {
    Null(Null),
    Library(Arc<Loaded>, Appliers),
}

impl Node {
    /// Joins the cluster and waits until the node is in step with it.
    pub fn start(start: &Start) -> Result<Self, NodeError> {
        let member = Arc::new(Member::new(&start.data_dir));
        let Some(library) = &start.library else {
            return Ok(Self {
                member,
                provider: Provider::Null(Null::default()),
            });
        };
        let library = Library::open(library)?;
        let parameters = Parameters {
            name: start.name.clone(),
            address: start.address.clone(),
            data_dir: start.data_dir.to_string_lossy().into_owned(),
            options: start.options.clone(),
        };
        let loaded = Arc::new(library.start(&parameters, member.clone())?);
        loaded.connect(CLUSTER, &start.peers)?;
        let mut appliers = Appliers::default();
        // The same as a server: one applier thread until the node has its state.
        appliers.add(&loaded);
        let in_step = get_in_step(&member, &loaded);
        if in_step.is_ok() {
            for _ in 1..start.appliers {
                appliers.add(&loaded);
            }
        }
        let provider = Provider::Library(loaded, appliers);
        let node = Self { member, provider };
        match in_step {
            Ok(()) => Ok(node),
            // Leave: the cluster must not wait for a member that never gets in step.
            Err(error) => node.leave().and(Err(error)),
        }
    }

    fn commits(&self) -> &dyn Commits {
        match &self.provider {
            Provider::Null(null) => null,
            Provider::Library(loaded, _) => loaded.as_ref(),
        }
    }

    /// Clears the sequence.
    pub fn begin(&self) {
        self.member.sequence().clear();
    }

    /// Runs a load to its end.
    pub fn load(&self, plan: &LoadPlan) -> Result<LoadResult, NodeError> {
        Ok(load::run(plan, self.commits(), self.member.sequence())?)
    }

    /// Waits until everything up to `seqno` has committed here.
    pub fn settle(&self, seqno: i64) -> Result<Digest, NodeError> {
        let end = Instant::now() + TIMEOUT;
        loop {
            let here = self.commits().last_committed()?;
            if here >= seqno {
                return Ok(self.member.sequence().digest());
            }
            if Instant::now() > end {
                return Err(NodeError::Behind {
                    wanted: seqno,
                    here,
                });
            }
            thread::sleep(POLL);
        }
    }

    /// Leaves the cluster and ends the provider.
    pub fn leave(self) -> Result<(), NodeError> {
        if let Provider::Library(loaded, appliers) = self.provider {
            appliers.leaving.store(true, Ordering::SeqCst);
            loaded.disconnect()?;
            for thread in appliers.threads {
                // A panicking thread has already written its message to standard error.
                let _ = thread.join();
            }
            if let Some(loaded) = Arc::into_inner(loaded) {
                loaded.end();
            }
        }
        Ok(())
    }
}

/// Waits until the node is in step with its group, and takes a donor's position if it needs one.
fn get_in_step(member: &Member, loaded: &Loaded) -> Result<(), NodeError> {
    let end = Instant::now() + TIMEOUT;
    while !member.wait_synced(POLL) {
        if let Some(position) = member.take_donated() {
            loaded.state_received(position)?;
        }
        if Instant::now() > end {
            return Err(NodeError::NotSynced);
        }
    }
    Ok(())
}

/// The threads that apply.
#[derive(Default)]
struct Appliers {
    leaving: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Appliers {
    fn add(&mut self, loaded: &Arc<Loaded>) {
        let (loaded, leaving) = (loaded.clone(), self.leaving.clone());
        self.threads.push(thread::spawn(move || {
            let status = loaded.receive();
            if !leaving.load(Ordering::SeqCst) {
                eprintln!("host: an applier ended with {status:?}: the node has lost its cluster");
                process::exit(1);
            }
        }));
    }
}
