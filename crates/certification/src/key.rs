//! What a key is: its type, its identity, and how two keys of the same identity relate.

use trireme_mutants::{Mutant, planted};
use xxhash_rust::xxh3::xxh3_64;

/// How a transaction uses what a key names, ordered by strength (values of wsrep API v26 `wsrep_key_type`).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyType {
    /// Reads it, or a weaker use of a whole table (sequences, commit of a streaming transaction).
    Shared = 0,
    /// Needs it to exist: the parent row of a foreign key; and every branch key (see [`crate::KeySetBuilder`]).
    Reference = 1,
    /// Changes it, but not its identity.
    Update = 2,
    /// Creates or deletes it, or isolates all of it (total-order isolation).
    Exclusive = 3,
}

impl KeyType {
    /// All types, by their number.
    pub const ALL: [KeyType; 4] = [
        KeyType::Shared,
        KeyType::Reference,
        KeyType::Update,
        KeyType::Exclusive,
    ];

    /// The type of branch keys: Galera 4.21 and later (server-contract.md#append_key). Makes an exclusive key on a
    /// table, a schema or the server conflict with the rows below it.
    pub(crate) const BRANCH: KeyType = KeyType::Reference;

    /// True if a write-set that uses a key in this way fails for one that used it as `earlier`, and that it had not seen.
    pub fn fails_for(self, earlier: KeyType) -> bool {
        Relation::of(earlier, self) == Relation::Conflicts
    }

    /// The type whose number is in the low two bits.
    pub(crate) fn from_low_bits(bits: u8) -> KeyType {
        Self::ALL[usize::from(bits & 3)]
    }
}

/// What an earlier write-set's use of a key means for a later write-set that uses the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// Nothing: they may be applied in any order.
    Free,
    /// The later one must be applied after the earlier one.
    Depends,
    /// As `Depends`; and the later one fails if its origin had not seen the earlier one.
    Conflicts,
}

impl Relation {
    /// The conflict matrix (server-contract.md#conflict-matrix). `found` is in the index, `new` is being certified.
    pub(crate) fn of(found: KeyType, new: KeyType) -> Relation {
        use Relation::{Conflicts, Depends, Free};
        const MATRIX: [[Relation; 4]; 4] = [
            // new: Shared, Reference, Update, Exclusive          found:
            [Free, Free, Depends, Depends],               // Shared
            [Free, Free, Depends, Conflicts],             // Reference
            [Depends, Depends, Conflicts, Conflicts],     // Update
            [Conflicts, Conflicts, Conflicts, Conflicts], // Exclusive
        ];
        let relation = MATRIX[found as usize][new as usize];
        let updates = matches!((found, new), (KeyType::Update, KeyType::Update));
        if updates && planted(Mutant::UpdateKeysFree) {
            return Depends;
        }
        relation
    }
}

/// Identity of the key that `parts` names: `[]` the server, `[db]`, `[db, table]`, `[db, table, row]`.
///
/// XXH3-64 (seed 0) over each part's length (u64, little-endian) followed by its bytes. The lengths keep `["ab", "c"]` and
/// `["a", "bc"]` apart. Part of the wire format: never change it within a key-set version. Two keys with the same hash
/// cause false conflicts or dependencies, never missed ones.
pub fn key_hash(parts: &[&[u8]]) -> u64 {
    let mut chain = Vec::new();
    for part in parts {
        extend_chain(&mut chain, part);
    }
    hash_chain(&chain)
}

/// Appends one part to the bytes that [`hash_chain`] hashes.
pub(crate) fn extend_chain(chain: &mut Vec<u8>, part: &[u8]) {
    chain.extend_from_slice(&(part.len() as u64).to_le_bytes());
    chain.extend_from_slice(part);
}

/// The key hash of the parts in `chain`.
pub(crate) fn hash_chain(chain: &[u8]) -> u64 {
    xxh3_64(chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_depends_on_every_part_and_its_borders() {
        let keys: [&[&[u8]]; 8] = [
            &[],
            &[b""],
            &[b"", b""],
            &[b"ab"],
            &[b"ab", b""],
            &[b"ab", b"c"],
            &[b"a", b"bc"],
            &[b"abc"],
        ];
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i + 1..] {
                assert_ne!(key_hash(a), key_hash(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn hashes_never_change() {
        // XXH3 of no input, and two values from the reference implementation (python-xxhash).
        assert_eq!(key_hash(&[]), 0x2d06_8005_38d3_94c2);
        assert_eq!(key_hash(&[b"test"]), 0xc0b5_0b4c_c604_be4f);
        assert_eq!(key_hash(&[b"test", b"t1"]), 0xf06f_2618_39f6_fa65);
    }
}
