//! Work of the server's recv() threads for a node.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Configuration, Incarnation, Member};

use crate::action::Code;
use crate::context::Context;
use crate::event::{ConnId, TrxId};
use crate::gtid::Gtid;
use crate::writeset::WriteSet;

/// Names one piece of work within a connection.
pub type WorkId = u64;

/// One callback into the server. Handed out in order by [`crate::Replicator::take_work`]; several Apply may run at
/// once, every other task runs alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Comes back with the result.
    pub id: WorkId,
    /// The callback.
    pub task: Task,
}

/// The kind of a callback.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// connected(). Answer with WorkDone.
    Connected(View),
    /// view(). Answer with WorkDone. `last_committed` stays below the view's seqno until then.
    View(View),
    /// sst_request(). Answer with SstRequested.
    SstRequest,
    /// sst_donate(). Answer with Donated.
    Donate {
        /// The joiner's request, as its server made it.
        request: Bytes,
        /// The state to send.
        gtid: Gtid,
        /// True if the server only passes the position on.
        bypass: bool,
    },
    /// apply(). Answer with WorkDone; the server enters and leaves commit order on the way.
    Apply(Box<Apply>),
    /// synced(). Answer with WorkDone.
    Synced,
    /// recv() returns this. Not answered. Every thread gets one.
    Exit {
        /// OK for the thread that delivered the final view, CONN_FAIL for the others.
        code: Code,
    },
}

/// A write-set to be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// Its position.
    pub gtid: Gtid,
    /// Every seqno up to this one must be applied before.
    pub depends_on: Seqno,
    /// `WSREP_FLAG_*`, see [`crate::flags`].
    pub flags: u32,
    /// Its origin.
    pub source: Incarnation,
    /// Its transaction there.
    pub trx: TrxId,
    /// Its connection there.
    pub conn: ConnId,
    /// The server's own bytes; empty for a dummy.
    pub data: Bytes,
}

impl Apply {
    /// Returns the task for a write-set in the order. `failed`: it is a dummy that changes nothing.
    pub(crate) fn of(
        write_set: &WriteSet,
        source: Incarnation,
        gtid: Gtid,
        depends_on: Seqno,
        failed: bool,
    ) -> Apply {
        let (flags, data) = match failed {
            true => (write_set.dummy_flags(), Bytes::new()),
            false => (write_set.apply_flags(), write_set.data.clone()),
        };
        Apply {
            gtid,
            depends_on,
            flags,
            source,
            trx: write_set.trx,
            conn: write_set.conn,
            data,
        }
    }
}

/// `wsrep_view_info_t`.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Position of the view; the last one for a non-primary view.
    pub gtid: Gtid,
    /// Number of the configuration, -1 for a non-primary one.
    pub number: i64,
    /// Primary or not.
    pub primary: bool,
    /// Index of this node in `members`.
    pub my_index: Option<usize>,
    /// The same order on every node; empty in the final view.
    pub members: Vec<Member>,
    /// Application protocol: the lowest of the members'.
    pub app_protocol: i32,
}

impl View {
    /// Returns a primary view as the server sees it. `gtid`: its place in the order.
    pub(crate) fn primary(gtid: Gtid, configuration: &Configuration, me: Incarnation) -> View {
        View {
            gtid,
            number: i64::try_from(configuration.number).unwrap_or(i64::MAX),
            primary: true,
            my_index: configuration.index_of(me),
            members: configuration.members.clone(),
            app_protocol: configuration.app_protocol(),
        }
    }

    /// Returns the view of a component without a majority. `gtid`: the last of the order here.
    pub(crate) fn non_primary(gtid: Gtid, members: Vec<Member>, context: &Context) -> View {
        View {
            gtid,
            number: -1,
            primary: false,
            my_index: members.iter().position(|m| m.incarnation == context.me()),
            app_protocol: context.my_member().app_protocol,
            members,
        }
    }
}
