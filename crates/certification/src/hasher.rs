//! The hasher for maps whose keys are already key hashes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from key hash to `V`. Its iteration order must never reach a result.
pub(crate) type KeyMap<V> = HashMap<u64, V, BuildHasherDefault<KeyHasher>>;

/// Hashes by one folded multiply. Key hashes from an honest peer are uniform and need no hashing. A dishonest peer may
/// pick hashes with equal low or high bits: the multiply spreads them, so that a simple pattern cannot degrade the
/// index.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write_u64(&mut self, key: u64) {
        // Odd, with bits in no pattern (2^64 / golden ratio).
        const MULTIPLIER: u128 = 0x9E37_79B9_7F4A_7C15;
        // The high half keeps the bits that the low half loses. A zero high half (small keys) leaves the low half,
        // which is still spread.
        let product = u128::from(key) * MULTIPLIER;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        // This crate uses only u64 keys; this function keeps the trait's promise for other keys.
        for &byte in bytes {
            self.write_u64(self.0.rotate_left(8) ^ u64::from(byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn hash(key: u64) -> u64 {
        let mut hasher = KeyHasher::default();
        hasher.write_u64(key);
        hasher.finish()
    }

    #[test]
    fn keys_with_equal_low_or_high_bits_are_spread() {
        for shift in [0, 20, 48] {
            let buckets: HashSet<u64> = (0..4096u64).map(|i| hash(i << shift) & 0xffff).collect();
            assert!(
                buckets.len() > 3500,
                "shift {shift}: {} buckets",
                buckets.len()
            );
            let tags: HashSet<u64> = (0..4096u64).map(|i| hash(i << shift) >> 57).collect();
            assert!(tags.len() > 100, "shift {shift}: {} tags", tags.len());
        }
    }

    #[test]
    fn keys_of_another_type_would_be_told_apart() {
        let hash = |bytes: &[u8]| {
            let mut hasher = KeyHasher::default();
            hasher.write(bytes);
            hasher.finish()
        };
        let hashes: HashSet<u64> = (0..=u16::MAX).map(|i| hash(&i.to_le_bytes())).collect();
        assert_eq!(hashes.len(), 1 << 16);
    }
}
