//! The certification index of Trireme: first committer wins, on keys, as wsrep defines them.
//!
//! Every node gives the same write-sets, in the same order, to its own [`Certification`]. So all nodes reach the same
//! verdicts, and no node asks another. For each write-set the index answers two questions in one pass:
//!
//! * Does it conflict with an ordered write-set that its origin had not seen ([`Verdict`])?
//! * Which is the last write-set that must be applied before it ([`Outcome::depends_on`])? Everything above that one
//!   may be applied in parallel with it.
//!
//! The crate is pure: it has no clock, no randomness and no I/O, and no result depends on the order of a hash map. It
//! knows neither the network nor the wsrep ABI. Byte formats: `docs/certification-format.md`.
//!
//! ```
//! use trireme_certification::{Certification, KeySet, KeySetBuilder, KeyType, Request, Verdict};
//!
//! let mut keys = KeySetBuilder::new();
//! keys.append(&[b"shop", b"orders", b"\x00\x2a"], KeyType::Update);
//! let mut bytes = Vec::new();
//! keys.encode(&mut bytes);
//! let (keys, _) = KeySet::parse(&bytes)?;
//!
//! let mut certification = Certification::new(0, trireme_certification::DEFAULT_MAX_LENGTH);
//! let mut request = Request {
//!     seqno: 1, last_seen: 0, origin: [1; 16], epoch: 0,
//!     isolation: false, pa_unsafe: false, rollback: false, keys,
//! };
//! assert_eq!(certification.certify(&request).verdict, Verdict::Pass);
//!
//! // Another node updated the same row without having seen seqno 1.
//! request.seqno = 2;
//! request.origin = [2; 16];
//! assert_eq!(certification.certify(&request).verdict, Verdict::Conflict { with: 1 });
//! # Ok::<(), trireme_certification::KeySetError>(())
//! ```

#![forbid(unsafe_code)]

mod certification;
mod hasher;
mod index;
mod key;
mod key_set;
mod key_set_builder;
mod snapshot;
mod window;

pub use certification::{Certification, Outcome, Request, Verdict};
pub use key::{KeyType, key_hash};
pub use key_set::{KeySet, KeySetError};
pub use key_set_builder::KeySetBuilder;
pub use snapshot::DecodeError;

/// The number of a write-set, total-order-isolation action or primary view in the server's history (the second half of
/// a GTID). Contiguous.
pub type Seqno = i64;

/// Default of the option `cert.max_length`: the greatest difference between a write-set's seqno and the last seqno that
/// its origin had seen. Must be equal on all nodes (server-contract.md#certify).
pub const DEFAULT_MAX_LENGTH: Seqno = 16384;
