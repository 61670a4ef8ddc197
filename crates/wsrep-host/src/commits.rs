//! The life of a write-set in the library: key, data, certification, commit order, release. [`Loaded`] passes it to a
//! provider; [`Null`] is a stand-in that answers at once.

use std::sync::atomic::{AtomicI64, Ordering};

use trireme_wsrep_abi::host::{HostError, Loaded};
use trireme_wsrep_abi::{KeyType, Seqno};

/// A write-set to commit.
pub struct WriteSet<'a> {
    /// The client's connection.
    pub connection: u64,
    /// Unique on this node.
    pub id: u64,
    /// The rows that it changes.
    pub rows: &'a [u64],
    /// The bytes that the other nodes apply.
    pub payload: &'a [u8],
}

/// Takes write-sets through their life.
pub trait Commits: Send + Sync {
    /// Takes a write-set from its first key to its release. Calls `commit` in its turn in the commit order, with the
    /// seqno and whether it commits. Returns `Ok(false)` if the write-set lost a conflict.
    fn commit(
        &self,
        write_set: &WriteSet<'_>,
        commit: &dyn Fn(Seqno, bool),
    ) -> Result<bool, HostError>;

    /// The last seqno that is visible here.
    fn last_committed(&self) -> Result<Seqno, HostError>;
}

impl Commits for Loaded {
    fn commit(
        &self,
        write_set: &WriteSet<'_>,
        commit: &dyn Fn(Seqno, bool),
    ) -> Result<bool, HostError> {
        let mut transaction = self.transaction(write_set.connection, write_set.id);
        for row in write_set.rows {
            // MariaDB's key: database, table, index number, and the row's key in that index.
            let mut key = [0_u8; 9];
            key[1..].copy_from_slice(&row.to_be_bytes());
            transaction.append_key(&[b"lab", b"t", &key], KeyType::UPDATE)?;
        }
        transaction.append_data(write_set.payload)?;
        let commits = transaction.certify()?;
        // A write-set that lost takes its place in the commit order all the same.
        if let Some(seqno) = transaction.seqno() {
            transaction.commit_order_enter()?;
            commit(seqno, commits);
            transaction.commit_order_leave()?;
        }
        transaction.release()?;
        Ok(commits)
    }

    fn last_committed(&self) -> Result<Seqno, HostError> {
        Ok(Loaded::last_committed(self)?.seqno)
    }
}

/// A stand-in that replicates nothing and answers at once. With it, a load measures the time of the host itself.
#[derive(Default)]
pub struct Null {
    last: AtomicI64,
}

impl Commits for Null {
    fn commit(
        &self,
        _write_set: &WriteSet<'_>,
        commit: &dyn Fn(Seqno, bool),
    ) -> Result<bool, HostError> {
        commit(self.last.fetch_add(1, Ordering::Relaxed) + 1, true);
        Ok(true)
    }

    fn last_committed(&self) -> Result<Seqno, HostError> {
        Ok(self.last.load(Ordering::Relaxed))
    }
}
