//! The act by which this process lets an amnesiac cluster go on with the best state that is left (rule 4, "All members are
//! here"), and the first GTID that is lost by it.

use trireme_group::Uuid;
use trireme_replicator::Gtid;

/// The override by which this process lets the cluster go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reformed {
    /// The id of the override that this process makes.
    id: Uuid,
    /// The first GTID of acknowledged entries that are lost. None: unknown until the override is delivered.
    lost_from: Option<Gtid>,
}

impl Reformed {
    /// Returns the act that makes the override `id`.
    pub(crate) fn by(id: Uuid) -> Reformed {
        Reformed {
            id,
            lost_from: None,
        }
    }

    /// Returns true if this override is the one, and the lost GTIDs are unknown.
    pub(crate) fn waits_for(&self, override_id: Uuid) -> bool {
        self.id == override_id && self.lost_from.is_none()
    }

    /// Returns the first GTID that may have been acknowledged and is lost.
    pub(crate) fn lost_from(&self) -> Option<Gtid> {
        self.lost_from
    }

    /// Notes the first GTID that is lost. Returns the message for the operator.
    pub(crate) fn note_lost_from(&mut self, gtid: Gtid) -> String {
        self.lost_from = Some(gtid);
        format!(
            "commits with GTID {gtid} or above, which clients saw before the cluster lost its majority, are lost: no log \
             and no database of the nodes here has them. The cluster gives these GTIDs to new commits"
        )
    }
}
