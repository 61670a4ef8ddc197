//! The index: from a key to the last write-sets that used it.

use crate::hasher::KeyMap;
use crate::key::Relation;
use crate::window::{Source, Window};
use crate::{KeyType, Seqno};

/// A seqno before every other.
const NEVER: Seqno = Seqno::MIN;

/// The last write-sets that used a key with one type. Earlier ones do not matter: if the last one is at or below
/// `last_seen`, so are all before it. But a source is exempt from conflicts with itself, and its own use must not hide
/// that of another source. So the last use by any other source is kept, too.
#[derive(Clone, Copy, Debug)]
struct Uses {
    /// The last write-set.
    last: Seqno,
    /// The last write-set that may conflict with the source of `last`; it matters only for that source.
    last_by_others: Seqno,
}

/// The uses of one key, by type.
type Entry = [Uses; 4];

const UNUSED: Entry = [Uses {
    last: NEVER,
    last_by_others: NEVER,
}; 4];

/// The index's findings on the keys of a write-set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Findings {
    /// The last conflicting write-set, if its origin had not seen that.
    pub conflict: Option<Seqno>,
    /// The last write-set before which it must not be applied, conflicting or not.
    pub depends_on: Seqno,
}

/// All keys of the write-sets in the window. Entries of write-sets at or below the floor may remain. They change no
/// result: `last_seen` and `depends_on` are not below the floor, so neither a conflict nor a dependency can come from
/// such an entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    entries: KeyMap<Entry>,
}

impl Index {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Makes room for this many new keys, so that the index grows at most once.
    pub fn make_room(&mut self, keys: usize) {
        self.entries.reserve(keys);
    }

    /// Adds to `findings` those for one key of a write-set from `source` that had seen `last_seen`.
    pub fn test(
        &self,
        key: (u64, KeyType),
        last_seen: Seqno,
        source: Source,
        window: &Window,
        findings: &mut Findings,
    ) {
        let (hash, ty) = key;
        let Some(entry) = self.entries.get(&hash) else {
            return;
        };
        for (uses, found) in entry.iter().zip(KeyType::ALL) {
            let relation = Relation::of(found, ty);
            if relation == Relation::Free {
                continue;
            }
            findings.depends_on = findings.depends_on.max(uses.last);
            if relation == Relation::Conflicts && uses.last > last_seen {
                let exempt = window
                    .get(uses.last)
                    .is_some_and(|record| record.exempts(source));
                let rival = if exempt {
                    uses.last_by_others
                } else {
                    uses.last
                };
                if rival > last_seen {
                    findings.conflict = findings.conflict.max(Some(rival));
                }
            }
        }
    }

    /// Enters one key of the write-set `seqno` of `source`. The window must have the records of all seqnos above the
    /// floor and below `seqno`.
    pub fn insert(&mut self, key: (u64, KeyType), seqno: Seqno, source: Source, window: &Window) {
        let (hash, ty) = key;
        let uses = &mut self.entries.entry(hash).or_insert(UNUSED)[ty as usize];
        // A use that has left the window is below the floor, and so is `last_by_others` before it.
        if window
            .get(uses.last)
            .is_some_and(|record| !record.exempts(source))
        {
            uses.last_by_others = uses.last;
        }
        uses.last = seqno;
    }

    /// Drops the entry of `hash` if no write-set above `floor` uses it.
    pub fn purge(&mut self, hash: u64, floor: Seqno) {
        if let Some(entry) = self.entries.get(&hash) {
            if entry.iter().all(|uses| uses.last <= floor) {
                self.entries.remove(&hash);
            }
        }
    }

    /// Frees memory after a transaction with very many keys has left the index.
    pub fn shrink(&mut self) {
        // The rebuild costs as much as the removals before it, so at most a constant per key.
        const KEPT_KEYS: usize = 64 * 1024;
        let wanted = KEPT_KEYS.max(2 * self.entries.len());
        if self.entries.capacity() > 4 * wanted {
            self.entries.shrink_to(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_transaction_gives_its_memory_back() {
        const KEYS: u64 = 300_000;
        let (mut index, window) = (Index::default(), Window::new(1));
        let source = Source {
            origin: [0; 16],
            epoch: 0,
        };
        for hash in 0..KEYS {
            index.insert((hash, KeyType::Update), 1, source, &window);
        }
        let full = index.entries.capacity();
        index.shrink();
        assert_eq!(index.entries.capacity(), full, "nothing to give back yet");
        for hash in 0..KEYS {
            index.purge(hash, 1);
        }
        index.shrink();
        assert_eq!(index.len(), 0);
        assert!(
            index.entries.capacity() < full / 2,
            "{} of {full}",
            index.entries.capacity()
        );
    }
}
