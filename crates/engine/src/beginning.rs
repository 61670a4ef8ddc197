//! The beginning of a connection: others, the log of an earlier process, or this node alone.

use trireme_group::{
    Body, Checkpoint, Configuration, Entry, Event, Recovered, ReplicaId, Uuid,
    is_unvouched_override,
};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{Connect, Gtid, LastAction, Seqno};

use crate::recovery::Recovery;
use crate::session::Forgotten;
use crate::start_error::StartError;
use crate::storage::Storage;

/// How a node comes to its place in a history.
pub(crate) enum Beginning {
    /// It asks others for everything.
    Join,
    /// It goes on with its log.
    Resume {
        recovery: Box<Recovery>,
        /// Alone, because the operator says so.
        override_id: Option<Uuid>,
    },
    /// It is the first: its database is the state.
    Found {
        history: Uuid,
        /// The history has a past, and may have gone on elsewhere (rule 11). With the last seqno that others surely have in
        /// common with this database.
        forks: Option<(Uuid, Seqno)>,
    },
}

/// Every member holds the first view of a history, and whoever is beyond it takes a snapshot.
const FIRST_VIEW: Seqno = 1;

impl Beginning {
    /// `bootstrap` names the history or the override that an operator's order makes. If that is an unvouched one, nobody vouches for the
    /// database: others may have other rows under the same seqnos. A node that was alone in its last view has no others: it goes on
    /// with its log and makes no override, however often it is started without grastate.dat. `last_action`: the last total-order
    /// action that began on the database at `local`. `diverged`: the database differs from what the log makes of it, and goes on from
    /// where it stands, if at all.
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
        // A database that is ahead of the log or too far behind it, or may hold an action above its
        // position, goes on alone only from where it stands (rules 5, 13).
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
            },
            // Numbers that a database holds are never given out again (rule 5).
            None => Beginning::Found {
                history: fresh,
                forks: None,
            },
        }
    }

    /// Prepares log, group and replicator for this beginning. Gives the group's first event.
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
            Beginning::Found { history, forks } => {
                let checkpoint = Checkpoint {
                    history,
                    ..Checkpoint::default()
                };
                storage.begin(&checkpoint, Forgotten::default())?;
                // By the operator's word these are the cluster's data.
                storage.note_diverged(false)?;
                connect.bootstrap = Some(history);
                // A database without a history has none of its overrides either.
                let past = connect.overrides.iter().filter(|_| forks.is_some());
                let past = past.map(|(id, _)| *id).collect();
                if let Some((id, common)) = forks {
                    connect.add_override(id, common);
                }
                Ok(Some(Event::Bootstrap {
                    history,
                    overrides: past,
                    override_id: forks.map(|(id, _)| id),
                }))
            }
        }
    }

    /// How many overrides precede the one that this is; 0 if it is none. `noted`: those in the database's past.
    pub fn overrides_before(&self, noted: &[(Uuid, Seqno)]) -> usize {
        match self {
            Beginning::Resume {
                recovery,
                override_id: Some(_),
            } => {
                let log = &recovery.log;
                let is_override = |entry: &&Entry| match &entry.body {
                    Body::Configuration(made) => made.override_id.is_some(),
                    _ => false,
                };
                log.checkpoint.overrides.len() + log.entries.iter().filter(is_override).count()
            }
            Beginning::Found { forks: Some(_), .. } => noted.len(),
            _ => 0,
        }
    }
}

/// True if nobody else was in the last view: this node overrules nobody. One that may have forgotten is not elected, be it alone.
fn elects_itself(recovery: &Recovery, me: ReplicaId) -> bool {
    let members = &last_view(recovery).members;
    members.iter().all(|member| member.replica == me) && !recovery.forgotten.entries
}

/// The last view that the log knows of.
fn last_view(recovery: &Recovery) -> &Configuration {
    let in_log = recovery.log.entries.iter().rev();
    let mut configurations = in_log.filter_map(|entry| match &entry.body {
        Body::Configuration(configuration) => Some(configuration),
        _ => None,
    });
    let last = configurations.next();
    last.unwrap_or(&recovery.log.checkpoint.configuration)
}
