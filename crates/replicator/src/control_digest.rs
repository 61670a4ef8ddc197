//! Numbers by which invariants compare the control states of nodes.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use trireme_group::Position;
use xxhash_rust::xxh3::xxh3_64;

use crate::control::Control;

/// What tells one control state from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlDigest {
    /// The last position processed.
    pub position: Position,
    /// Of what is small. Cheap, and not by way of the encoding: it shows, too, what that leaves out.
    pub brief: u64,
    /// Of everything, as it is encoded.
    pub whole: u64,
}

impl ControlDigest {
    /// Of a state as [`crate::Replicator::control_snapshot`] gave it: what a restart will go on with. None: nothing can.
    pub fn of_snapshot(control: &Bytes) -> Option<ControlDigest> {
        let control = Control::decode(control.clone()).ok()?;
        Some(control.digest())
    }
}

impl Control {
    /// Equal for equal states. As costly as to encode them.
    pub(crate) fn digest(&self) -> ControlDigest {
        ControlDigest {
            position: self.position,
            brief: self.brief_digest(),
            whole: xxh3_64(&self.encode()),
        }
    }

    /// A number that is equal for equal states, and seldom for others: of the certification index, the views and the
    /// runs of seqnos only the ends count.
    pub(crate) fn brief_digest(&self) -> u64 {
        // Whoever adds a field decides whether it is small.
        let Control {
            history,
            position,
            certification,
            configuration,
            members,
            forks,
            runs,
            views,
            votes,
        } = self;
        let mut hasher = DefaultHasher::new();
        (history, position, configuration, members).hash(&mut hasher);
        (forks, votes).hash(&mut hasher);
        certification.hash_head(&mut hasher);
        let runs = &runs.first;
        (runs.len(), runs.front(), runs.back()).hash(&mut hasher);
        let view = |view: Option<&(i64, _)>| view.map(|(seqno, _)| *seqno);
        (views.len(), view(views.front()), view(views.back())).hash(&mut hasher);
        hasher.finish()
    }
}
