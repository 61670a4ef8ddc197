//! The facts that a data directory gets once, and keeps: its id, its key, and its place among the members.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use trireme_group::Uuid;
use trireme_tls::{IdentityKey, is_of_a_key, replica_of};

use super::VotesError;

/// The facts that were made at the first connect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Birth {
    /// The replica id. It follows from the key, except for data directories that are older than keys.
    pub replica: Uuid,
    /// The private key. It is never written to a log.
    pub seed: [u8; 32],
    /// Time of creation in milliseconds since 1970; 0 if the replica id begins with that time.
    pub made_ms: u64,
}

impl fmt::Debug for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Birth({}, {} ms)", self.replica, self.made_ms)
    }
}

impl Birth {
    /// Makes a new replica. A time before 1970 counts as 1970.
    pub fn at(now: SystemTime) -> Result<Birth, VotesError> {
        let seed = random_seed()?;
        let key = IdentityKey::from_seed(&seed)?;
        let age = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Birth {
            replica: Uuid(replica_of(key.public())),
            seed,
            made_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX).max(1),
        })
    }

    /// Adopts a replica that is older than keys: it keeps its id, and gets a key.
    pub fn adopted(replica: Uuid) -> Result<Birth, VotesError> {
        Ok(Birth {
            replica,
            seed: random_seed()?,
            made_ms: 0,
        })
    }

    pub fn key(&self) -> Result<IdentityKey, VotesError> {
        Ok(IdentityKey::from_seed(&self.seed)?)
    }

    /// Returns true if id and key belong together.
    pub fn is_whole(&self) -> bool {
        let is_of = |key: IdentityKey| replica_of(key.public()) == self.replica.0;
        !is_of_a_key(&self.replica.0) || self.key().is_ok_and(is_of)
    }

    /// Returns the first bytes of its processes' ids: members are sorted by their ids, the oldest data directory first.
    pub fn place(&self) -> [u8; 8] {
        let mut place = [0; 8];
        match self.made_ms {
            0 => place.copy_from_slice(&self.replica.0[..8]),
            made_ms => {
                place[..6].copy_from_slice(&made_ms.to_be_bytes()[2..]);
                place[6..].copy_from_slice(&self.replica.0[..2]);
            }
        }
        place
    }
}

fn random_seed() -> Result<[u8; 32], VotesError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    Ok(seed)
}
