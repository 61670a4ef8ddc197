//! Who speaks: a certificate or a secret admits a peer, and a key of its own says which data directory it is.
//!
//! A proof is a signature over the exporter of one TLS session, the speaker's role in its handshake, and the ids that it
//! claims: on any other session, and from the other side, it is worth nothing.

use openssl::error::ErrorStack;
use openssl::pkey::{Id, PKey, Private};
use openssl::sha::sha256;
use openssl::sign::{Signer, Verifier};

use crate::Role;
use crate::certificate::hex;

/// A public key of Ed25519.
pub type PublicKey = [u8; 32];

/// What both sides of a session know, and nobody else.
pub(crate) const EXPORTER_LABEL: &str = "EXPORTER-trireme-identity-1";

/// What every signed text begins with.
const PURPOSE: &[u8] = b"trireme identity 1\0";

/// The key of a data directory.
#[derive(Clone)]
pub struct IdentityKey {
    private: PKey<Private>,
    public: PublicKey,
}

impl std::fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IdentityKey({})", fingerprint(&self.public))
    }
}

impl IdentityKey {
    /// The key that these 32 random bytes stand for.
    pub fn from_seed(seed: &[u8; 32]) -> Result<IdentityKey, ErrorStack> {
        let private = PKey::private_key_from_raw_bytes(seed, Id::ED25519)?;
        let mut public = [0; 32];
        public.copy_from_slice(&private.raw_public_key()?); // OpenSSL gives 32 bytes for this kind of key
        Ok(IdentityKey { private, public })
    }

    /// What others know it by.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Proves a claim of this node's own.
    pub fn prove(&self, claim: &Claim) -> Result<Proof, ErrorStack> {
        let mut signature = [0; 64];
        Signer::new_without_digest(&self.private)?.sign_oneshot(&mut signature, &claim.text())?;
        let key = self.public;
        Ok(Proof { key, signature })
    }
}

/// What a speaker says of itself on one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Of the session ([`crate::Session::binding`]).
    pub exporter: [u8; 32],
    /// The speaker's part in the handshake.
    pub role: Role,
    /// Its data directory.
    pub replica: [u8; 16],
    /// Its process.
    pub incarnation: [u8; 16],
}

impl Claim {
    /// What is signed.
    fn text(&self) -> Vec<u8> {
        let role = match self.role {
            Role::Dialer => 1,
            Role::Acceptor => 2,
        };
        let parts = [
            PURPOSE,
            &self.exporter,
            &[role],
            &self.replica,
            &self.incarnation,
        ];
        parts.concat()
    }
}

/// A key, and a signature that was made with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The speaker's.
    pub key: PublicKey,
    /// Over its claim.
    pub signature: [u8; 64],
}

impl Proof {
    /// Whether this is the proof of that claim.
    pub fn is_of(&self, claim: &Claim) -> bool {
        let verify = || -> Result<bool, ErrorStack> {
            let key = PKey::public_key_from_raw_bytes(&self.key, Id::ED25519)?;
            Verifier::new_without_digest(&key)?.verify_oneshot(&self.signature, &claim.text())
        };
        let is_good = verify().unwrap_or(false); // bytes that are no key prove nothing
        drop(ErrorStack::get()); // nor do they leave an error for the next session of this thread
        is_good
    }
}

/// The replica id of a key: the first 16 bytes of its SHA-256, marked as a UUID of version 8 (RFC 9562).
pub fn replica_of(key: &PublicKey) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&sha256(key)[..16]);
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    id
}

/// Whether an id says of itself that it is of a key. Data directories from before keys have ids of other versions.
pub fn is_of_a_key(replica: &[u8; 16]) -> bool {
    replica[6] >> 4 == 8 && replica[8] >> 6 == 2
}

/// SHA-256 of a key, for a line of a log.
pub fn fingerprint(key: &PublicKey) -> String {
    hex(&sha256(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
    const REPLICA: &str = "fe812c12f3ab8ce6ac5db69ac352f906";
    const SIGNATURE: &str = "7688fddb61979966fbce424d97a7f6531c36979ba358cf56c68884eeba1af7401ab4c7137ae6394955e5194e15f14a4c02835a545e4469acb3ab0bd6b8363d07";

    fn claim() -> Claim {
        Claim {
            exporter: [1; 32],
            role: Role::Dialer,
            replica: [2; 16],
            incarnation: [3; 16],
        }
    }

    #[test]
    fn golden_proof() {
        let key = IdentityKey::from_seed(&[7; 32]).unwrap();
        assert_eq!(hex(key.public()), PUBLIC, "the wire format changed");
        assert_eq!(hex(&replica_of(key.public())), REPLICA);
        assert_eq!(hex(&key.prove(&claim()).unwrap().signature), SIGNATURE);
        assert!(fingerprint(key.public()).starts_with(&REPLICA[..12]));
    }

    #[test]
    fn a_proof_is_of_one_claim() {
        let key = IdentityKey::from_seed(&[7; 32]).unwrap();
        let proof = key.prove(&claim()).unwrap();
        assert!(proof.is_of(&claim()));
        let others = [
            Claim {
                exporter: [9; 32],
                ..claim()
            },
            Claim {
                role: Role::Acceptor,
                ..claim()
            },
            Claim {
                replica: [9; 16],
                ..claim()
            },
            Claim {
                incarnation: [9; 16],
                ..claim()
            },
        ];
        assert!(others.iter().all(|other| !proof.is_of(other)));
        let another = IdentityKey::from_seed(&[8; 32]).unwrap();
        let foreign = Proof {
            key: *another.public(),
            ..proof.clone()
        };
        assert!(!foreign.is_of(&claim()));
        let damaged = |at: usize| {
            let mut proof = proof.clone();
            proof.signature[at] ^= 1;
            proof.is_of(&claim())
        };
        assert!(!(0..64).any(damaged));
        let nonsense = Proof {
            key: [0xff; 32],
            signature: [0xff; 64],
        };
        assert!(!nonsense.is_of(&claim()));
    }

    #[test]
    fn ids_of_keys_are_told_apart() {
        for seed in 0..100 {
            let key = IdentityKey::from_seed(&[seed; 32]).unwrap();
            assert!(is_of_a_key(&replica_of(key.public())));
        }
        // Version 7 and version 4.
        let mut old = [0x55; 16];
        for version in [0x70, 0x40] {
            (old[6], old[8]) = (version, 0x80);
            assert!(!is_of_a_key(&old));
        }
    }
}
