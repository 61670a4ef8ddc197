//! The choice of a connection's beginning. In: the database's position, the log of an earlier process, and the
//! operator's order to bootstrap. Out: the node joins others, goes on with its log, or founds a history alone. Seqnos
//! that a database holds are never given to other entries (rule 5).

use trireme_group::{
    Body, Configuration, Event, Recovered, ReplicaId, Uuid, is_unvouched_override,
};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Connect, FIRST_VIEW, Gtid, LastAction, Seqno};

use crate::recovered_log::Recovery;
use crate::start::StartError;
use crate::storage::Storage;

/// The way in which a node comes to its place in a history.
pub(crate) enum Beginning {
    /// It asks other members for the whole state.
    Join,
    /// It goes on with its log.
    Resume {
        recovery: Box<Recovery>,
        /// The override of a bootstrap: the node forms a view alone, by the operator's order.
        override_id: Option<Uuid>,
    },
    /// It is the first: its database is the state.
    Found {
        history: Uuid,
        /// Some if the history has a past, and may have gone on elsewhere (rule 11): the override, and the last seqno
        /// that other databases surely have in common with this one.
        forks: Option<(Uuid, Seqno)>,
        /// The overrides in the earlier log, if there is one.
        in_log: Option<Vec<Uuid>>,
    },
}

impl Beginning {
    /// Chooses the beginning. `bootstrap`: the UUID of the history or override that the operator's order makes. With an
    /// unvouched override, nobody vouches for the database: other nodes may have other rows under the same seqnos. A
    /// node that was alone in its last view has no such other nodes. It goes on with its log and makes no override,
    /// however often it starts without grastate.dat. `last_action`: the last total-order action that began on the
    /// database at `local`. `diverged`: the database differs from the state that the log produces, so the node may only
    /// found anew at the database's position.
    pub fn of(
        bootstrap: Option<Uuid>,
        (local, diverged): (Gtid, bool),
        last_action: LastAction,
        me: ReplicaId,
        recovery: Option<Box<Recovery>>,
    ) -> Beginning {
        let Some(fresh) = bootstrap else {
            return match recovery {
                Some(recovery) => Beginning::Resume {
                    recovery,
                    override_id: None,
                },
                None => Beginning::Join,
            };
        };
        let unvouched = is_unvouched_override(&fresh);
        // In three cases the node may go on alone only from the database's position (rules 5, 13): the database is
        // ahead of the log, it is too far behind the log, or it may hold an action above its position.
        let goes_on = |recovery: &Recovery| {
            let has_seat = last_view(recovery).replica(me).is_some();
            let is_behind = local.precedes(last_action.gtid);
            let is_doubtful = is_behind && last_action.leaves_in_doubt(local);
            let reaches = recovery.reaches(local.seqno) || planted(Mutant::LogOutranksDatabase);
            let has_others = !elects_itself(recovery, me);
            let stands_apart = diverged || unvouched && has_others;
            reaches && !is_doubtful && has_seat && !stands_apart
        };
        let common = match unvouched || diverged {
            true => local.seqno.min(FIRST_VIEW),
            false => local.seqno,
        };
        let in_log = (recovery.as_ref())
            .filter(|log| !log.forgotten.views)
            .map(|log| log.overrides());
        match recovery.filter(|recovery| goes_on(recovery)) {
            Some(recovery) => {
                let override_id = (!elects_itself(&recovery, me)).then_some(fresh);
                Beginning::Resume {
                    recovery,
                    override_id,
                }
            }
            None if local.is_known() => Beginning::Found {
                history: local.uuid,
                forks: Some((fresh, common)),
                in_log,
            },
            // Seqnos that a database holds are never given to other entries (rule 5).
            None => Beginning::Found {
                history: fresh,
                forks: None,
                in_log: None,
            },
        }
    }

    /// Prepares log, group and replicator for this beginning. Returns the group's first event.
    pub fn prepare(
        self,
        storage: &mut Storage,
        recovered: &mut Recovered,
        connect: &mut Connect,
    ) -> Result<Option<Event>, StartError> {
        match self {
            Beginning::Join => Ok(None),
            Beginning::Resume {
                recovery,
                override_id,
            } => {
                recovered.amnesiac = recovery.forgotten.entries;
                recovered.lost_views = recovery.forgotten.views;
                recovered.log = Some(recovery.log);
                connect.control = Some(recovery.control);
                Ok(override_id.map(|override_id| Event::ForcePrimary { override_id }))
            }
            Beginning::Found {
                history,
                forks,
                in_log,
            } => {
                storage.found(history)?;
                // The operator's order declares this database to be the cluster's.
                storage.note_diverged(false)?;
                connect.bootstrap = Some(history);
                // A database without a history has no overrides in its past.
                let mut past = Vec::new();
                if let Some((id, common)) = forks {
                    past = connect.found_above(in_log.as_deref(), id, common);
                    // Together with the log: see `Recovery::founder_counts_at`.
                    storage.note_overrides(connect.overrides.clone())?;
                }
                Ok(Some(Event::Bootstrap {
                    history,
                    overrides: past,
                    override_id: forks.map(|(id, _)| id),
                }))
            }
        }
    }

    /// Returns the number of overrides before the one that this beginning makes; 0 if it makes none. `noted`: how many
    /// are in the database's past.
    pub fn overrides_before(&self, noted: usize) -> usize {
        match self {
            Beginning::Resume {
                recovery,
                override_id: Some(_),
            } => recovery.overrides().len(),
            Beginning::Found {
                forks: Some(_),
                in_log,
                ..
            } => noted.max(in_log.as_ref().map_or(0, Vec::len)),
            _ => 0,
        }
    }
}

/// Returns true if this replica was alone in its last view: then it overrules no other member. An amnesiac replica does
/// not elect itself, even if it is alone.
fn elects_itself(recovery: &Recovery, me: ReplicaId) -> bool {
    let members = &last_view(recovery).members;
    members.iter().all(|member| member.replica == me) && !recovery.forgotten.entries
}

/// Returns the last view in the log.
fn last_view(recovery: &Recovery) -> &Configuration {
    let in_log = recovery.log.entries.iter().rev();
    let mut configurations = in_log.filter_map(|entry| match &entry.body {
        Body::Configuration(configuration) => Some(configuration),
        _ => None,
    });
    let last = configurations.next();
    last.unwrap_or(&recovery.log.checkpoint.configuration)
}
