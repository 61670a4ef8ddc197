//! Collects the keys of a transaction at its origin.

use crate::KeyType;
use crate::hasher::KeyMap;
use crate::key::{extend_chain, hash_chain};
use crate::key_set;

/// The keys that a transaction has appended so far.
///
/// Of duplicates only one remains, with the strongest type. With each key, every proper prefix of it is added as a
/// *branch key* of type [`KeyType::Reference`]: the server (no parts), the schema, the table. So an exclusive key on a
/// table or schema conflicts with the rows below (server-contract.md#append_key).
#[derive(Clone, Debug, Default)]
pub struct KeySetBuilder {
    keys: KeyMap<KeyType>,
    /// Scratch buffer: the hashed bytes of the key that is being appended.
    chain: Vec<u8>,
}

impl KeySetBuilder {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the key named by `parts` (`[db]`, `[db, table]`, `[db, table, row]`) with type `ty`, and its branch keys.
    ///
    /// Empty `parts` name the whole server. `append(&[], KeyType::Exclusive)` conflicts with everything: for a
    /// total-order-isolation action without keys. `append(&[], KeyType::Reference)` conflicts only with such a key: for
    /// a transaction that has appended no keys.
    pub fn append(&mut self, parts: &[&[u8]], ty: KeyType) {
        self.chain.clear();
        for part in parts {
            self.raise(KeyType::BRANCH);
            extend_chain(&mut self.chain, part);
        }
        self.raise(ty);
    }

    /// Adds the key in `chain`, or strengthens its type.
    fn raise(&mut self, ty: KeyType) {
        let present = self.keys.entry(hash_chain(&self.chain)).or_insert(ty);
        *present = (*present).max(ty);
    }

    /// Whether no key was appended.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Number of distinct keys, branch keys included.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Number of bytes that [`encode`](Self::encode) appends.
    pub fn bytes(&self) -> usize {
        key_set::encoded_bytes(self.keys.len())
    }

    /// Appends the wire form (see [`crate::KeySet`]) to `out`. Equal sets give equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut keys: Vec<(u64, KeyType)> =
            self.keys.iter().map(|(&hash, &ty)| (hash, ty)).collect();
        keys.sort_unstable_by_key(|&(hash, _)| hash);
        key_set::encode_sorted(&keys, out);
    }

    /// Forgets all keys: the next fragment of a streaming transaction starts afresh.
    pub fn clear(&mut self) {
        // A connection lives long, and its largest transaction must not keep memory for ever.
        const KEPT_KEYS: usize = 256;
        self.keys.clear();
        self.keys.shrink_to(KEPT_KEYS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeySet, key_hash};
    use std::collections::BTreeMap;

    fn keys_of(builder: &KeySetBuilder) -> BTreeMap<u64, KeyType> {
        let mut bytes = Vec::new();
        builder.encode(&mut bytes);
        assert_eq!(bytes.len(), builder.bytes());
        let (keys, consumed) = KeySet::parse(&bytes).expect("own encoding");
        assert_eq!(consumed, bytes.len());
        assert_eq!(keys.len(), builder.len());
        keys.iter().collect()
    }

    #[test]
    fn a_row_key_brings_its_branches() {
        let mut builder = KeySetBuilder::new();
        assert!(builder.is_empty());
        builder.append(&[b"db", b"t", b"row"], KeyType::Update);
        let expected = BTreeMap::from([
            (key_hash(&[]), KeyType::Reference),
            (key_hash(&[b"db"]), KeyType::Reference),
            (key_hash(&[b"db", b"t"]), KeyType::Reference),
            (key_hash(&[b"db", b"t", b"row"]), KeyType::Update),
        ]);
        assert_eq!(keys_of(&builder), expected);
    }

    #[test]
    fn the_strongest_type_wins_in_any_order() {
        for weak in KeyType::ALL {
            for strong in KeyType::ALL.into_iter().filter(|&ty| ty >= weak) {
                for (first, second) in [(weak, strong), (strong, weak)] {
                    let mut builder = KeySetBuilder::new();
                    builder.append(&[b"db"], first);
                    builder.append(&[b"db"], second);
                    assert_eq!(keys_of(&builder)[&key_hash(&[b"db"])], strong);
                    assert_eq!(builder.len(), 2);
                }
            }
        }
    }

    #[test]
    fn a_leaf_and_a_branch_of_the_same_name_are_one_key() {
        let mut builder = KeySetBuilder::new();
        builder.append(&[b"db", b"t"], KeyType::Shared);
        builder.append(&[b"db", b"t", b"row"], KeyType::Exclusive);
        assert_eq!(builder.len(), 4);
        assert_eq!(
            keys_of(&builder)[&key_hash(&[b"db", b"t"])],
            KeyType::Reference
        );
    }

    #[test]
    fn no_parts_name_the_server() {
        let mut builder = KeySetBuilder::new();
        builder.append(&[], KeyType::Exclusive);
        assert_eq!(
            keys_of(&builder),
            BTreeMap::from([(key_hash(&[]), KeyType::Exclusive)])
        );
    }

    #[test]
    fn clear_forgets_everything() {
        let mut builder = KeySetBuilder::new();
        builder.append(&[b"db"], KeyType::Exclusive);
        builder.clear();
        assert!(builder.is_empty());
        assert!(keys_of(&builder).is_empty());
    }
}
