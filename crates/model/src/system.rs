//! One state of the model: processes, connections, and the group's history.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use trireme_group::{Body, Incarnation, Recovered, Term};

use crate::bound::{Bound, Spent};
use crate::breach::Breach;
use crate::fingerprint::Known;
use crate::memo::Memo;
use crate::network::{NODES, Network};
use crate::process::{Fact, Input, Process, incarnation, replica};
use crate::truth::Truth;

/// A data directory, and the process that may run on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub process: Option<Arc<Known<Process>>>,
    pub starts: u8,
    /// The promise on disk while no process runs.
    pub promised: Term,
}

impl Node {
    pub fn running(&self) -> Option<&Process> {
        self.process.as_ref().map(|process| &process.value)
    }
}

/// Events of the last action, for coverage. They are no part of a state's identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub commit_after_crash: bool,
    pub commit_in_new_term: bool,
    pub truncation: bool,
    pub removal: bool,
    pub readmission: bool,
    pub vote_regained: bool,
}

/// One state of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    pub nodes: [Node; NODES],
    pub network: Network,
    pub truth: Arc<Known<Truth>>,
    pub spent: Spent,
    /// The highest term whose leader has crashed.
    pub crashed: Term,
    pub breach: Option<Arc<Breach>>,
    pub seen: Seen,
}

impl Hash for System {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for node in &self.nodes {
            let process = node.process.as_ref();
            state.write_u64(process.map_or(0, |process| process.fingerprint));
            state.write_u8(node.starts);
            if process.is_none() {
                node.promised.hash(state);
            }
        }
        self.network.hash(state);
        state.write_u64(self.truth.fingerprint);
        self.spent.hash(state);
        self.breach.is_some().hash(state);
    }
}

impl System {
    /// Three data directories; no process runs.
    pub fn new() -> System {
        System {
            nodes: Default::default(),
            network: Network::default(),
            truth: Arc::new(Known::new(Truth::default())),
            spent: Spent::default(),
            crashed: Term::default(),
            breach: None,
            seen: Seen::default(),
        }
    }

    pub fn start(&mut self, node: usize, bound: &Bound) {
        let this = &mut self.nodes[node];
        let recovered = Recovered {
            promised: this.promised,
            amnesiac: this.starts > 0,
            lost_views: false,
            log: None,
            ..Recovered::default()
        };
        this.starts += 1;
        let process = Process::new(node as u8, this.starts, recovered, &bound.settings);
        this.process = Some(Arc::new(Known::new(process)));
    }

    /// Ends the process. Its peers notice later.
    pub fn crash(&mut self, node: usize) {
        let Some(process) = self.nodes[node].process.take() else {
            return;
        };
        self.nodes[node].promised = process.value.persisted;
        if process.value.group.is_leader() {
            self.crashed = self.crashed.max(process.value.group.term());
        }
        for other in (0..NODES).filter(|other| *other != node) {
            self.network.break_off(node, other);
            self.network.close(other, node);
        }
        let mut truth = self.truth.value.clone();
        truth.crashed(process.value.incarnation);
        self.truth = Arc::new(Known::new(truth));
    }

    /// Hands `input` to the node's process.
    pub fn input(&mut self, node: usize, input: Input, memo: &Memo) {
        let Some(process) = &self.nodes[node].process else {
            return;
        };
        let who = process.value.incarnation;
        let outcome = memo.handle(process, input);
        for (to, bulk) in &outcome.sent {
            let target = (0..NODES).find(|target| self.current(*target) == Some(*to));
            if let Some(target) = target {
                self.network.send(node, target, bulk.clone());
            }
        }
        self.nodes[node].process = Some(outcome.process.clone());
        if outcome.facts.is_empty() {
            return;
        }
        let mut truth = self.truth.value.clone();
        for fact in &outcome.facts {
            self.watch(fact, &truth);
            if let Err(breach) = truth.learn(who, fact) {
                self.breach = Some(Arc::new(breach));
                break;
            }
        }
        self.truth = Arc::new(Known::new(truth));
    }

    /// The incarnation of the process that runs on a node, or ran last.
    pub fn last_incarnation(&self, node: usize) -> Incarnation {
        incarnation(node as u8, self.nodes[node].starts)
    }

    fn current(&self, node: usize) -> Option<Incarnation> {
        let process = self.nodes[node].running();
        process.map(|process| process.incarnation)
    }

    fn watch(&mut self, fact: &Fact, truth: &Truth) {
        match fact {
            Fact::Committed { entry, term, .. } if entry.value.position > truth.end() => {
                let crashed = self.crashed > Term::default();
                self.seen.commit_after_crash |= crashed && *term > self.crashed;
                let known = truth.configuration();
                if let (Body::Configuration(now), Some(before)) = (&entry.value.body, known) {
                    let returned = |start: u8, node: usize| incarnation(node as u8, start);
                    for (node, state) in self.nodes.iter().enumerate() {
                        let seat = now.replica(replica(node as u8));
                        let seated = before.replica(replica(node as u8)).is_some();
                        self.seen.removal |= seated && seat.is_none();
                        let back = seat.filter(|seat| {
                            state.starts > 1 && seat.incarnation == returned(state.starts, node)
                        });
                        self.seen.readmission |= back.is_some();
                        self.seen.vote_regained |= back.is_some_and(|seat| seat.voter);
                    }
                }
            }
            Fact::Truncated => self.seen.truncation = true,
            _ => {}
        }
    }
}

impl Default for System {
    fn default() -> Self {
        System::new()
    }
}
