//! Takes every event and hands it to the invariants, the run's fingerprint, and the listeners.

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
    /// The first violation: the name of the invariant, and its text.
    pub violation: Option<(&'static str, String)>,
    /// The fingerprint of all events, if asked for; equal runs have equal fingerprints.
    pub fingerprint: Option<u64>,
    /// The digest of everything that left each core, if asked for.
    pub digest: Option<Digest>,
    /// Keep every event.
    pub keep: bool,
    /// The events kept.
    pub sights: Vec<Sight>,
    /// Number of events.
    pub count: u64,
    /// Time of the last acknowledged commit of a client.
    pub acknowledged_us: TimeUs,
    /// The story for a reader, if asked for.
    pub trace: Option<Trace>,
}

impl Watch {
    /// A watch that shows every event to these invariants.
    pub fn new(invariants: Vec<Box<dyn Invariant>>) -> Watch {
        Watch {
            invariants,
            ..Watch::default()
        }
    }

    /// The same watch with a digest, which takes everything that leaves each core.
    pub fn digesting(self, digest: Option<Digest>) -> Watch {
        Watch { digest, ..self }
    }

    /// A watch that keeps all events and has no invariants.
    pub fn recording() -> Watch {
        Watch {
            keep: true,
            ..Watch::default()
        }
    }

    /// Takes an event on a node.
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

    /// Adds an output of a node to the digest; does nothing without a digest.
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

    /// Prints a line of the story; does nothing without a story.
    pub fn tell(&mut self, at_us: TimeUs, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.line(at_us, &line());
        }
    }

    /// Ends the run: the invariants check its end.
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
