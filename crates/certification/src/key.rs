//! Keys: their types, their identity, and the relation between two uses of one key.

use trireme_mutants::{Mutant, planted};
use xxhash_rust::xxh3::xxh3_64;

/// A transaction's use of the object that a key names, ordered by strength (values of wsrep API v26 `wsrep_key_type`).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyType {
    /// Reads the object, or uses a whole table in a weaker way (sequences, commit of a streaming transaction).
    Shared = 0,
    /// Needs the object to exist: the parent row of a foreign key; and every branch key (see [`crate::KeySetBuilder`]).
    Reference = 1,
    /// Changes the object, but not its identity.
    Update = 2,
    /// Creates or deletes the object, or isolates it as a whole (total-order isolation).
    Exclusive = 3,
}

impl KeyType {
    /// All types, in the order of their numbers.
    pub const ALL: [KeyType; 4] = [
        KeyType::Shared,
        KeyType::Reference,
        KeyType::Update,
        KeyType::Exclusive,
    ];

    /// The type of branch keys, as in Galera 4.21 and later (server-contract.md#append_key). With it, an exclusive key
    /// on a table, a schema or the server conflicts with the rows below.
    pub(crate) const BRANCH: KeyType = KeyType::Reference;

    /// True if a write-set with this use of a key fails because of an unseen write-set that used the key as `earlier`.
    pub fn fails_for(self, earlier: KeyType) -> bool {
        Relation::of(earlier, self) == Relation::Conflicts
    }

    /// The type whose number is in the low two bits.
    pub(crate) fn from_low_bits(bits: u8) -> KeyType {
        Self::ALL[usize::from(bits & 3)]
    }
}

/// The relation of an earlier use of a key to a later write-set that uses the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// None: both may be applied in any order.
    Free,
    /// The later one must be applied after the earlier one.
    Depends,
    /// As `Depends`; also, the later one fails if its origin had not seen the earlier one.
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

/// Returns the identity of the key that `parts` names: `[]` is the server; then `[db]`, `[db, table]`,
/// `[db, table, row]`.
///
/// XXH3-64 (seed 0) over each part's length (u64, little-endian) followed by its bytes. The lengths keep `["ab", "c"]`
/// and `["a", "bc"]` apart. Part of the wire format: never change it within a key-set version. Two keys with the same
/// hash cause false conflicts or dependencies, never missed ones.
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
