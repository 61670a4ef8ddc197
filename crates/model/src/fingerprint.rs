//! Values that cache their own hash. The states together hold thousands of entries and are hashed millions of times.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The hash of a value: 64 bits, the same in every run.
pub fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A value and its fingerprint. Two of them are equal if their fingerprints are.
#[derive(Clone, Debug)]
pub struct Known<T> {
    pub value: T,
    pub fingerprint: u64,
}

impl<T: Hash> Known<T> {
    pub fn new(value: T) -> Known<T> {
        let fingerprint = fingerprint(&value);
        Known { value, fingerprint }
    }
}

impl<T> PartialEq for Known<T> {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl<T> Eq for Known<T> {}

impl<T> Hash for Known<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint);
    }
}
