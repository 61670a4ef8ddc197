//! Where everything seen goes: to the invariants, to the run's fingerprint, and to whoever listens.

use trireme_replicator::Code;

use crate::digest::{Channel, Digest};
use crate::invariants::Invariant;
use crate::seen::{NodeId, Seen, Sight, TimeUs};
use crate::sketch::{self, Sketch};
use crate::trace::Trace;

/// Watches a run.
#[derive(Default)]
pub struct Watch {
    invariants: Vec<Box<dyn Invariant>>,
    /// The first violation: name of the invariant, and what it says.
    pub violation: Option<(&'static str, String)>,
    /// Fingerprint of all sights, if asked for: equal runs have equal ones.
    pub fingerprint: Option<u64>,
    /// What has left each core, if asked for.
    pub digest: Option<Digest>,
    /// Keeps every sight.
    pub keep: bool,
    /// The sights kept.
    pub sights: Vec<Sight>,
    /// How many there were.
    pub count: u64,
    /// When a client was last told that it has committed.
    pub acknowledged_us: TimeUs,
    /// The story, for a person, if asked for.
    pub trace: Option<Trace>,
}

impl Watch {
    /// Shows everything to these.
    pub fn new(invariants: Vec<Box<dyn Invariant>>) -> Watch {
        Watch {
            invariants,
            ..Watch::default()
        }
    }

    /// The same; a digest takes in what leaves each core.
    pub fn digesting(self, digest: Option<Digest>) -> Watch {
        Watch { digest, ..self }
    }

    /// Keeps all sights and judges nothing.
    pub fn recording() -> Watch {
        Watch {
            keep: true,
            ..Watch::default()
        }
    }

    /// Something happened on a node.
    pub fn see(&mut self, at_us: TimeUs, node: NodeId, what: Seen) {
        self.count += 1;
        if let Seen::Ended { code: Code::Ok, .. } = what {
            self.acknowledged_us = at_us;
        }
        if let Some(sketch) = self.digest.as_ref().and_then(|_| sketch::seen(&what)) {
            self.leaves(at_us, node, Channel::Host, || sketch);
        }
        let sight = Sight { at_us, node, what };
        if let Some(fingerprint) = &mut self.fingerprint {
            let text = format!("{sight:?}");
            *fingerprint = Sketch::of(*fingerprint).and(&text).number();
        }
        if let Some(trace) = &mut self.trace {
            trace.sight(&sight);
        }
        if self.violation.is_none() {
            for invariant in &mut self.invariants {
                if let Err(text) = invariant.see(&sight) {
                    self.violation = Some((invariant.name(), text));
                    break;
                }
            }
        }
        if self.keep {
            self.sights.push(sight);
        }
    }

    /// Something leaves a node; nothing is done if nobody asks for a digest.
    pub fn leaves(
        &mut self,
        at_us: TimeUs,
        node: NodeId,
        channel: Channel,
        what: impl FnOnce() -> Sketch,
    ) {
        if let Some(digest) = &mut self.digest {
            digest.add(at_us, node, channel, what());
        }
    }

    /// A line of the story; nothing is done if nobody listens.
    pub fn tell(&mut self, at_us: TimeUs, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.line(at_us, &line());
        }
    }

    /// The run is over.
    pub fn end(&mut self) {
        for invariant in &mut self.invariants {
            if self.violation.is_some() {
                return;
            }
            if let Err(text) = invariant.end() {
                self.violation = Some((invariant.name(), text));
            }
        }
    }
}
