//! Digests of the contents of entries and deliveries.

use std::hash::{Hash, Hasher};

use trireme_group::{Body, Checkpoint, Configuration, Delivery, SubmissionId};

use crate::seen::roll;

/// The digest of an entry's content.
pub fn of_body(body: &Body) -> u64 {
    match body {
        Body::TermStart => 1,
        Body::Voided { id } => digest(&(2, id)),
        Body::Configuration(configuration) => of_configuration(configuration),
        Body::Submission { id, payload } => of_submission(id, payload),
    }
}

/// The digest of a delivery; equal to the digest of its entry.
pub fn of_delivery(delivery: &Delivery) -> u64 {
    match delivery {
        Delivery::Submission { id, payload } => of_submission(id, payload),
        Delivery::Configuration(configuration) => of_configuration(configuration),
    }
}

/// The digest of a configuration.
pub fn of_configuration(configuration: &Configuration) -> u64 {
    digest(configuration)
}

/// The digest of a group's state.
pub fn of_checkpoint(checkpoint: &Checkpoint) -> u64 {
    digest(checkpoint)
}

fn of_submission(id: &SubmissionId, payload: &[u8]) -> u64 {
    digest(&(id, payload))
}

fn digest(what: &impl Hash) -> u64 {
    let mut rolling = Rolling::default();
    what.hash(&mut rolling);
    rolling.finish()
}

/// A hasher that is fast and gives the same result in every run.
#[derive(Default)]
pub struct Rolling(u64);

impl Hasher for Rolling {
    fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((word, after)) = rest.split_first_chunk() {
            self.write_u64(u64::from_le_bytes(*word));
            rest = after;
        }
        if !rest.is_empty() {
            let word = rest.iter().fold(1, |sum, byte| sum << 8 | u64::from(*byte));
            self.write_u64(word);
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = roll(self.0, number);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32 // a map looks at the low bits, which a product takes from low bits only
    }
}
