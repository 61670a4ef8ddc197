//! What takes a write-set through its life: a provider, or the stand-in that answers at once.

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
    /// What the others apply.
    pub payload: &'a [u8],
}

/// Takes write-sets through their life.
pub trait Commits: Send + Sync {
    /// Takes a write-set from its first key to its release. `commit` gets the seqno in its turn, and whether it commits.
    /// `Ok(false)` if it lost against another one.
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
            // As MariaDB has it: database, table, the number of the index and the row's key in it.
            let mut key = [0_u8; 9];
            key[1..].copy_from_slice(&row.to_be_bytes());
            transaction.append_key(&[b"lab", b"t", &key], KeyType::UPDATE)?;
        }
        transaction.append_data(write_set.payload)?;
        let commits = transaction.certify()?;
        // One that lost has its place in the order all the same.
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

/// A stand-in that replicates nothing and answers at once: what remains is the time of the host itself.
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
