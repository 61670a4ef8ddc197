//! The correct lists of writers of the rows, version by version.

use super::HashMap;
use super::databases::Place;
use crate::seen::{ClientTrx, roll};

/// A row after one of its writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The place of the write.
    pub place: Place,
    /// The length of the list with the write.
    pub len: u32,
    /// The digest of the list with the write.
    pub digest: u64,
    /// The transaction that wrote it.
    pub writer: ClientTrx,
}

impl Version {
    /// The next version, by this writer, committed at this place.
    pub fn after(before: Option<Version>, place: Place, writer: ClientTrx) -> Version {
        Version {
            place,
            len: before.map_or(0, |version| version.len) + 1,
            digest: roll(before.map_or(0, |version| version.digest), writer),
            writer,
        }
    }
}

/// All versions of all rows, those of different branches mixed.
#[derive(Default)]
pub struct Rows {
    versions: HashMap<u32, Vec<Version>>,
}

impl Rows {
    /// Adds a version.
    pub fn push(&mut self, key: u32, version: Version) {
        self.versions.entry(key).or_default().push(version);
    }

    /// The last version for which `counts` is true.
    pub fn last(&self, key: u32, counts: impl Fn(&Version) -> bool) -> Option<Version> {
        let versions = self.versions.get(&key)?;
        versions.iter().rev().find(|v| counts(v)).copied()
    }

    /// The version of this length for which `counts` is true. Without forks its index follows from its length.
    pub fn of_len(&self, key: u32, len: u32, counts: impl Fn(&Version) -> bool) -> Option<Version> {
        let versions = self.versions.get(&key)?;
        let fits = |v: &&Version| v.len == len && counts(v);
        let likely = versions.get((len as usize).wrapping_sub(1)).filter(fits);
        let found = likely.or_else(|| versions.iter().rev().find(fits));
        found.copied()
    }
}
