//! The identity of a peer. A certificate or a secret admits the peer; a key of its data directory then names it.
//!
//! A proof is a signature over three things: the exporter of one TLS session, the signer's role in the handshake, and
//! the ids that the signer claims. So a proof is worth nothing on another session, or from the other side.

use openssl::error::ErrorStack;
use openssl::pkey::{Id, PKey, Private};
use openssl::sha::sha256;
use openssl::sign::{Signer, Verifier};

use crate::Role;
use crate::certificate::hex;

/// An Ed25519 public key.
pub type PublicKey = [u8; 32];

/// The label of the exporter: a value that only the two sides of a session know.
pub(crate) const EXPORTER_LABEL: &str = "EXPORTER-trireme-identity-1";

/// The first bytes of every signed text.
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
    /// Makes the key from these 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Result<IdentityKey, ErrorStack> {
        let private = PKey::private_key_from_raw_bytes(seed, Id::ED25519)?;
        let mut public = [0; 32];
        public.copy_from_slice(&private.raw_public_key()?); // OpenSSL gives 32 bytes for this kind of key
        Ok(IdentityKey { private, public })
    }

    /// The public key: peers know this data directory by it.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs a claim of this node.
    pub fn prove(&self, claim: &Claim) -> Result<Proof, ErrorStack> {
        let mut signature = [0; 64];
        Signer::new_without_digest(&self.private)?.sign_oneshot(&mut signature, &claim.text())?;
        let key = self.public;
        Ok(Proof { key, signature })
    }
}

/// The claim that one side makes about itself on one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The exporter of the session ([`crate::Session::binding`]).
    pub exporter: [u8; 32],
    /// The signer's role in the handshake.
    pub role: Role,
    /// Its data directory: the replica id.
    pub replica: [u8; 16],
    /// Its process: the incarnation.
    pub incarnation: [u8; 16],
}

impl Claim {
    /// The bytes to sign.
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

/// A public key, and a signature by its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The signer's public key.
    pub key: PublicKey,
    /// The signature of the claim.
    pub signature: [u8; 64],
}

impl Proof {
    /// Whether this proof is a valid signature of that claim.
    pub fn is_of(&self, claim: &Claim) -> bool {
        let verify = || -> Result<bool, ErrorStack> {
            let key = PKey::public_key_from_raw_bytes(&self.key, Id::ED25519)?;
            Verifier::new_without_digest(&key)?.verify_oneshot(&self.signature, &claim.text())
        };
        let is_good = verify().unwrap_or(false); // an invalid key proves nothing
        drop(ErrorStack::get()); // its errors must not reach the next session of this thread
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

/// Whether an id has the form of an id made from a key. Data directories that are older than the keys have UUIDs of
/// other versions.
pub fn is_of_a_key(replica: &[u8; 16]) -> bool {
    replica[6] >> 4 == 8 && replica[8] >> 6 == 2
}

/// SHA-256 of a key in hexadecimal digits, for a log line.
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
