//! The end of a wait for amnesiac voters: the node lets the cluster go on with the best state that is left (rule 4,
//! "All voters are here"). That is its log, or its database; then the log begins anew above the database. It reports
//! the first GTID that may be lost.

use trireme_group::{self as group, Checkpoint, Configuration, Uuid};
use trireme_replicator::{self as replicator, Connect, Gtid};

use crate::engine::Engine;
use crate::host::Host;
use crate::session::Forgotten;

/// The act by which this process let an amnesiac cluster go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reformed {
    /// The id of the override that it made.
    id: Uuid,
    /// The first GTID of acknowledged entries that are lost. None: unknown until the override is delivered.
    lost_from: Option<Gtid>,
}

impl Engine {
    /// Returns the first GTID that may have been acknowledged and is lost, if this process has let the cluster go on
    /// without it.
    pub fn lost_from(&self) -> Option<Gtid> {
        self.reformed.and_then(|reformed| reformed.lost_from)
    }

    pub(crate) fn reform(
        &mut self,
        now_ms: u64,
        id: Uuid,
        from_database: bool,
        host: &mut dyn Host,
    ) {
        self.reformed = Some(Reformed {
            id,
            lost_from: None,
        });
        if from_database {
            self.found_on_database(now_ms, id, host);
        }
    }

    /// Begins the log anew above the database, as `--wsrep-new-cluster` does, but without a new process. The database's
    /// seqnos are not given to other entries (rule 5).
    fn found_on_database(&mut self, now_ms: u64, id: Uuid, host: &mut dyn Host) {
        self.drop_deliveries(now_ms, host);
        let Some(link) = self.link.as_mut() else {
            return;
        };
        let history = link.group.history();
        let (last_action, noted) = link.storage.noted();
        let checkpoint = Checkpoint {
            history,
            ..Checkpoint::default()
        };
        let begun = link.storage.begin(&checkpoint, Forgotten::default());
        link.flushes.forget(now_ms);
        link.just_founded = true;
        link.group.begin_anew();
        self.must_write(begun);
        if self.failed.is_some() {
            return;
        }
        let past = noted.iter().map(|(id, _)| *id).collect();
        let mut connect = Connect {
            bootstrap: Some(history),
            last_action,
            overrides: noted,
            ..self.replicator.connect_again()
        };
        let common = connect.local.seqno;
        connect.add_override(id, common);
        self.node(now_ms, replicator::Event::Connect(Box::new(connect)));
        let local = self.replicator.local();
        host.founds_on(local);
        let lost = local.seqno + 1;
        self.tell_lost(
            Gtid {
                seqno: lost,
                ..local
            },
            host,
        );
        let event = group::Event::Bootstrap {
            history,
            overrides: past,
            override_id: Some(id),
        };
        self.group(now_ms, event);
    }

    /// Sees a delivered configuration. If it is the override that this process made, the override is in force.
    pub(crate) fn see_override(&mut self, configuration: &Configuration, host: &mut dyn Host) {
        let is_it = |r: &Reformed| configuration.override_id == Some(r.id) && r.lost_from.is_none();
        if self.reformed.as_ref().is_some_and(is_it) {
            // The seqno of the override's view: entries of the old log have lower seqnos.
            let seqno = i64::try_from(self.replicator.proof().known).unwrap_or(i64::MAX);
            let uuid = (self.link.as_ref()).map_or(Uuid::NIL, |link| link.group.history());
            self.tell_lost(Gtid { uuid, seqno }, host);
        }
    }

    fn tell_lost(&mut self, gtid: Gtid, host: &mut dyn Host) {
        if let Some(reformed) = &mut self.reformed {
            reformed.lost_from = Some(gtid);
        }
        host.alarm(&format!(
            "commits with GTID {gtid} or above, which clients saw before the cluster lost its majority, are lost: no \
             log and no database of the nodes here has them. The cluster gives these GTIDs to new commits"
        ));
    }
}
