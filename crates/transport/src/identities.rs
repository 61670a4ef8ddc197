//! Keys of replicas: the proof of this node's identity, and the keys that may speak for each other replica. Whether a
//! proven peer is a member is decided elsewhere.
//!
//! On an encrypted connection each Hello carries a proof. On plain TCP none does, and none would be worth anything.

use std::collections::BTreeMap;

use trireme_mutants::{Mutant, planted};
use trireme_tls::{Claim, IdentityKey, Proof, PublicKey, is_of_a_key, replica_of};

use crate::event::Uuid;
use crate::stream::Stream;
use crate::{Hello, Identity};

/// Maximum of remembered replica ids that are older than keys: far more than a cluster has.
const MAX_ADOPTED: usize = 1024;

/// The own key, and the known keys of others.
#[derive(Debug)]
pub(crate) struct Identities {
    own: Option<IdentityKey>,
    /// The keys of replica ids that are older than keys, as first seen.
    adopted: BTreeMap<[u8; 16], PublicKey>,
}

impl Identities {
    /// `own`: the key that speaks for `replica`.
    pub fn new(own: Option<IdentityKey>, replica: [u8; 16]) -> Identities {
        let mut identities = Identities {
            own,
            adopted: BTreeMap::new(),
        };
        if let Some(key) = identities.own.as_ref().map(|key| *key.public()) {
            identities.remember(replica, key);
        }
        identities
    }

    /// Returns the proof for a Hello on this stream. None on plain TCP, and if OpenSSL fails: then the peer reports the
    /// missing proof.
    pub fn prove(&self, stream: &Stream, me: &Identity) -> Option<Proof> {
        let (role, exporter) = stream.binding()?.ok()?;
        let claim = Claim {
            exporter,
            role,
            replica: me.replica,
            incarnation: me.incarnation,
        };
        self.own.as_ref()?.prove(&claim).ok()
    }

    /// Returns the key that a peer has proven; none on plain TCP. Err: the reason to refuse the peer.
    pub fn examine(&self, stream: &Stream, hello: &Hello) -> Result<Option<PublicKey>, String> {
        let Some(binding) = stream.binding() else {
            return Ok(None);
        };
        let (own_role, exporter) =
            binding.map_err(|error| format!("its identity cannot be examined: {error}"))?;
        let Some(proof) = &hello.proof else {
            return Err(
                "it proves no identity on an encrypted connection: run the same release of Trireme on both"
                    .to_owned(),
            );
        };
        let Identity {
            replica,
            incarnation,
            ..
        } = hello.identity;
        let claim = Claim {
            exporter,
            role: own_role.other(),
            replica,
            incarnation,
        };
        if !proof.is_of(&claim) && !planted(Mutant::ProofNotExamined) {
            return Err(
                "the proof of its identity is not of this connection: somebody repeats what it has said elsewhere, or it is \
                 damaged; check what runs there"
                    .to_owned(),
            );
        }
        if self.speaks_for(&proof.key, &replica) || planted(Mutant::KeySpeaksForAnybody) {
            return Ok(Some(proof.key));
        }
        Err(format!(
            "replica id {} is that of another key: a data directory has its own trireme.gvwstate.dat, and none other's; move \
             the trireme* files there away if it is a copy, it then joins as a new node",
            Uuid(&replica)
        ))
    }

    fn speaks_for(&self, key: &PublicKey, replica: &[u8; 16]) -> bool {
        match is_of_a_key(replica) {
            true => replica_of(key) == *replica,
            false => self.adopted.get(replica).is_none_or(|known| known == key),
        }
    }

    /// Remembers the key of an admitted peer: from now on no other key speaks for this replica.
    pub fn remember(&mut self, replica: [u8; 16], key: PublicKey) {
        if !is_of_a_key(&replica) && self.adopted.len() < MAX_ADOPTED {
            self.adopted.entry(replica).or_insert(key);
        }
    }
}
