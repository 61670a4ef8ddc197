//! The control messages of the mesh: hello, refusal, gossip. Also the judgement of a peer's hello, on which both sides
//! agree. See `docs/wire-transport.md`.

use std::net::IpAddr;

use crate::codec::{Fields, put_bytes, put_text};
use crate::event::Uuid;
use crate::{FrameError, Identity, PeerId, PeerInfo, Proof, PublicKey, RejectReason};

/// Limit of names and addresses, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 255;
/// Limit of [`Identity::extra`], in bytes.
pub(crate) const MAX_EXTRA_BYTES: usize = 4096;
/// Length of a key and a signature.
const PROOF_BYTES: usize = 32 + 64;
/// Limit of any frame before the connection is established.
pub(crate) const MAX_HANDSHAKE_BYTES: u32 = 8192;
/// Limit of the text of a refusal, in bytes.
const MAX_TEXT_BYTES: usize = 1024;
/// Limit of the addresses in one gossip.
const MAX_GOSSIP: usize = 1024;

/// The first frame of either side. Later versions may append fields; a decoder ignores bytes after the fields that it
/// knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Lowest and highest protocol version that the sender speaks.
    pub versions: (u16, u16),
    /// The sender's identity.
    pub identity: Identity,
    /// The proof of the identity; only on an encrypted connection.
    pub proof: Option<Proof>,
}

impl Hello {
    /// Returns the payload of the frame.
    pub fn encode(&self) -> Vec<u8> {
        let Identity {
            replica,
            incarnation,
            name,
            group_name,
            listen_addr,
            history,
            segment,
            extra,
        } = &self.identity;
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(&self.versions.0.to_le_bytes());
        out.extend_from_slice(&self.versions.1.to_le_bytes());
        out.extend_from_slice(replica);
        out.extend_from_slice(incarnation);
        out.extend_from_slice(history);
        out.push(*segment);
        put_text(&mut out, name, MAX_NAME_BYTES);
        put_text(&mut out, group_name, MAX_NAME_BYTES);
        put_text(&mut out, listen_addr, MAX_NAME_BYTES);
        put_bytes(&mut out, extra, MAX_EXTRA_BYTES);
        if let Some(Proof { key, signature }) = &self.proof {
            put_bytes(&mut out, &[&key[..], signature].concat(), PROOF_BYTES);
        }
        out
    }

    /// Reads the payload of a frame.
    pub fn decode(payload: &[u8]) -> Result<Self, FrameError> {
        let mut fields = Fields(payload);
        let versions = (fields.u16()?, fields.u16()?);
        if versions.0 > versions.1 {
            return Err(FrameError::Malformed("an empty range of versions"));
        }
        let identity = Identity {
            replica: fields.array()?,
            incarnation: fields.array()?,
            history: fields.array()?,
            segment: fields.u8()?,
            name: fields.text(MAX_NAME_BYTES)?,
            group_name: fields.text(MAX_NAME_BYTES)?,
            listen_addr: fields.text(MAX_NAME_BYTES)?,
            extra: fields.bytes(MAX_EXTRA_BYTES)?.to_vec(),
        };
        let proof = match fields.is_empty() {
            true => None,
            false => read_proof(fields.bytes(PROOF_BYTES)?)?,
        };
        Ok(Self {
            versions,
            identity,
            proof,
        })
    }

    /// Judges whether two processes may connect. Returns the version to speak, or the reason against it. Both sides
    /// come to the same verdict.
    pub(crate) fn judge(&self, peer: &Hello) -> Result<u16, Verdict> {
        let (own, other) = (&self.identity, &peer.identity);
        let refuse = |code, text: String| {
            let discreet = text.clone();
            Err(Verdict {
                code,
                text,
                discreet,
            })
        };
        if own.incarnation == other.incarnation {
            return refuse(RefusalCode::Oneself, "this is the node itself".to_owned());
        }
        let version = self.versions.1.min(peer.versions.1);
        if version < self.versions.0.max(peer.versions.0) {
            let text = format!(
                "no common protocol version: node {:?} speaks {} to {}, node {:?} {} to {}; \
                 upgrade the older one, release by release",
                own.name,
                self.versions.0,
                self.versions.1,
                other.name,
                peer.versions.0,
                peer.versions.1
            );
            return refuse(RefusalCode::Version, text);
        }
        if own.group_name != other.group_name {
            let text = format!(
                "cluster names differ: node {:?} has {:?}, node {:?} has {:?}; \
                 set one wsrep_cluster_name, or correct wsrep_cluster_address",
                own.name, own.group_name, other.name, other.group_name
            );
            let discreet = format!(
                "cluster names differ: node {:?} has {:?}, and the node that it called another, which that one's log tells; \
                 set one wsrep_cluster_name, or correct wsrep_cluster_address",
                other.name, other.group_name
            );
            return Err(Verdict {
                code: RefusalCode::GroupName,
                text,
                discreet,
            });
        }
        let known = |history: &[u8; 16]| *history != [0; 16];
        if known(&own.history) && known(&other.history) && own.history != other.history {
            let text = format!(
                "node {:?} holds the data of cluster {}, node {:?} of cluster {}; correct wsrep_cluster_address, \
                 or remove grastate.dat of the node whose data may be replaced",
                own.name,
                Uuid(&own.history),
                other.name,
                Uuid(&other.history)
            );
            let discreet = format!(
                "node {:?} holds the data of cluster {}, and the node that it called those of another, which that one's log tells; \
                 correct wsrep_cluster_address, or remove grastate.dat of the node whose data may be replaced",
                other.name,
                Uuid(&other.history)
            );
            return Err(Verdict {
                code: RefusalCode::History,
                text,
                discreet,
            });
        }
        Ok(version)
    }

    /// Returns the peer of a hello that was accepted. `listen_addr` is its address as others can use it.
    pub(crate) fn into_peer(
        self,
        version: u16,
        remote_ip: IpAddr,
        listen_addr: String,
        protection: String,
        key: Option<PublicKey>,
    ) -> PeerInfo {
        let Identity {
            replica,
            incarnation,
            name,
            history,
            segment,
            extra,
            ..
        } = self.identity;
        PeerInfo {
            replica,
            incarnation,
            name,
            listen_addr,
            segment,
            history,
            extra,
            remote_ip,
            version,
            protection,
            key,
        }
    }
}

/// The refusal of a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub code: RefusalCode,
    /// For the own log.
    pub text: String,
    /// The text for a peer that has proven nothing: it reveals neither the cluster's name nor its history.
    pub discreet: String,
}

/// Reads a key and a signature; `None` if there are no bytes.
fn read_proof(bytes: &[u8]) -> Result<Option<Proof>, FrameError> {
    let mut fields = Fields(bytes);
    if fields.is_empty() {
        return Ok(None);
    }
    Ok(Some(Proof {
        key: fields.array()?,
        signature: fields.array()?,
    }))
}

/// The reason for which a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusalCode {
    /// Another cluster name.
    GroupName = 1,
    /// No common protocol version.
    Version = 2,
    /// Another cluster uuid.
    History = 3,
    /// A process called itself.
    Oneself = 4,
    /// The two processes are connected already.
    Duplicate = 5,
    /// Not in the allowlist.
    NotAllowed = 6,
    /// A malformed message.
    Malformed = 7,
    /// The upper layer refuses; also stands for codes of later versions.
    Application = 8,
    /// The peer has not proven its identity.
    Identity = 9,
}

impl RefusalCode {
    fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::GroupName,
            2 => Self::Version,
            3 => Self::History,
            4 => Self::Oneself,
            5 => Self::Duplicate,
            6 => Self::NotAllowed,
            7 => Self::Malformed,
            9 => Self::Identity,
            _ => Self::Application,
        }
    }

    /// Returns the reason to report; `None` if the refusal is not worth a line.
    pub(crate) fn reason(self) -> Option<RejectReason> {
        Some(match self {
            Self::GroupName => RejectReason::GroupName,
            Self::Version => RejectReason::Version,
            Self::History => RejectReason::History,
            Self::NotAllowed => RejectReason::NotAllowed,
            Self::Malformed => RejectReason::Malformed,
            Self::Application => RejectReason::Application,
            Self::Identity => RejectReason::Identity,
            Self::Oneself | Self::Duplicate => return None,
        })
    }
}

/// The last frame on a refused connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of reason.
    pub code: RefusalCode,
    /// The text for the log of the other side.
    pub text: String,
}

impl Refusal {
    /// Returns the payload of the frame; a text beyond 1 KiB is cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.code as u8];
        put_text(&mut out, &self.text, MAX_TEXT_BYTES);
        out
    }

    /// Reads the payload of a frame. Control characters are replaced: the text goes to a log.
    pub fn decode(payload: &[u8]) -> Result<Self, FrameError> {
        let mut fields = Fields(payload);
        let code = RefusalCode::from_byte(fields.u8()?);
        let text = fields.text(MAX_TEXT_BYTES)?;
        let text = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        Ok(Self { code, text })
    }
}

/// Members with which the sender is connected: incarnation and `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gossip(pub Vec<(PeerId, String)>);

impl Gossip {
    /// Returns the payload of the frame; at most 1024 members.
    pub fn encode(&self) -> Vec<u8> {
        let members = &self.0[..self.0.len().min(MAX_GOSSIP)];
        let mut out = (members.len() as u16).to_le_bytes().to_vec();
        for (incarnation, address) in members {
            out.extend_from_slice(incarnation);
            put_text(&mut out, address, MAX_NAME_BYTES);
        }
        out
    }

    /// Reads the payload of a frame.
    pub fn decode(payload: &[u8]) -> Result<Self, FrameError> {
        let mut fields = Fields(payload);
        let count = usize::from(fields.u16()?);
        if count > MAX_GOSSIP {
            return Err(FrameError::Malformed("too many addresses"));
        }
        let mut members = Vec::new();
        for _ in 0..count {
            members.push((fields.array()?, fields.text(MAX_NAME_BYTES)?));
        }
        Ok(Self(members))
    }
}

/// The first byte of a TLS record with an alert.
const TLS_ALERT: u8 = 0x15;
/// A TLS record with the alert "handshake failure": it tells a node that speaks plain TCP that this node does not.
pub(crate) const ALERT: [u8; 7] = [TLS_ALERT, 3, 3, 0, 2, 2, 40];
/// The first byte of a TLS record of a handshake.
pub(crate) const TLS_HANDSHAKE: u8 = 0x16;

/// Returns the report on a peer whose bytes are no valid handshake.
pub(crate) fn describe_invalid(address: &str, error: &FrameError) -> (RejectReason, String) {
    match error {
        FrameError::ForeignProtocol(first)
            if matches!(first.first(), Some(&(TLS_ALERT | TLS_HANDSHAKE))) =>
        {
            (
                RejectReason::ForeignProtocol,
                format!(
                    "peer {address} speaks TLS, this node does not: set the same socket.ssl or repl.secret_file on all nodes"
                ),
            )
        }
        FrameError::ForeignProtocol(first) => (
            RejectReason::ForeignProtocol,
            format!(
                "peer {address} speaks another protocol (Galera?): Trireme and Galera nodes cannot share a cluster; \
                 correct wsrep_cluster_address or load libtrireme.so there (first bytes {first:02x?})"
            ),
        ),
        FrameError::FramingVersion(_) => (
            RejectReason::Version,
            format!(
                "peer {address} is of an incompatible release of Trireme ({error}): run the same release on both"
            ),
        ),
        _ => (
            RejectReason::Malformed,
            format!(
                "peer {address} sent an invalid handshake ({error}): check what runs there and its release"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello(name: &str) -> Hello {
        let identity = Identity {
            replica: [1; 16],
            incarnation: [name.as_bytes()[0]; 16],
            name: name.to_owned(),
            group_name: "g".to_owned(),
            listen_addr: "h:1".to_owned(),
            history: [0; 16],
            segment: 5,
            extra: vec![9],
        };
        Hello {
            versions: (1, 3),
            identity,
            proof: None,
        }
    }

    #[test]
    fn golden_messages() {
        let mut golden = vec![1, 0, 3, 0];
        golden.extend([1; 16]);
        golden.extend([b'n'; 16]);
        golden.extend([0; 16]);
        golden.extend([5, 1, 0, b'n', 1, 0, b'g', 3, 0, b'h', b':', b'1', 1, 0, 9]);
        assert_eq!(
            hello("n").encode(),
            golden,
            "the wire format changed: raise the framing version"
        );
        assert_eq!(Hello::decode(&golden), Ok(hello("n")), "without a proof");
        let mut proven = hello("n");
        proven.proof = Some(Proof {
            key: [7; 32],
            signature: [8; 64],
        });
        golden.extend([96, 0]);
        golden.extend([7; 32]);
        golden.extend([8; 64]);
        assert_eq!(proven.encode(), golden);
        golden.extend(b"appended by a later version");
        assert_eq!(Hello::decode(&golden), Ok(proven));
        let refusal = Refusal {
            code: RefusalCode::History,
            text: "no".to_owned(),
        };
        assert_eq!(refusal.encode(), [3, 2, 0, b'n', b'o']);
        let mut golden = vec![1, 0];
        golden.extend([7; 16]);
        golden.extend([1, 0, b'a']);
        assert_eq!(Gossip(vec![([7; 16], "a".to_owned())]).encode(), golden);
    }

    #[test]
    fn the_highest_common_version_is_chosen() {
        let (a, mut b) = (hello("a"), hello("b"));
        b.versions = (2, 9);
        assert_eq!((a.judge(&b), b.judge(&a)), (Ok(3), Ok(3)));
        b.versions = (4, 9);
        assert_eq!(a.judge(&b).unwrap_err().code, RefusalCode::Version);
        assert_eq!(b.judge(&a).unwrap_err().code, RefusalCode::Version);
    }

    #[test]
    fn strangers_are_refused() {
        let (mut a, mut b) = (hello("a"), hello("b"));
        a.identity.history = [1; 16];
        assert_eq!(a.judge(&b), Ok(3), "an unknown history meets any");
        b.identity.history = [2; 16];
        assert_eq!(a.judge(&b).unwrap_err().code, RefusalCode::History);
        b.identity.group_name = "other".to_owned();
        assert_eq!(a.judge(&b).unwrap_err().code, RefusalCode::GroupName);
        assert_eq!(a.judge(&a).unwrap_err().code, RefusalCode::Oneself);
    }

    proptest! {
        #[test]
        fn messages_read_back_and_arbitrary_bytes_never_panic(
            name in ".{1,80}", extra in prop::collection::vec(any::<u8>(), 0..4096),
            noise in prop::collection::vec(any::<u8>(), 0..200), cut: prop::sample::Index,
        ) {
            let mut sent = hello("n");
            sent.identity.name = name.clone();
            sent.identity.extra = extra;
            // Names beyond the limit never get here (Identity::check).
            prop_assume!(name.len() <= MAX_NAME_BYTES);
            let unproven_bytes = sent.encode().len();
            sent.proof = Some(Proof { key: [5; 32], signature: [6; 64] });
            let wire = sent.encode();
            prop_assert!(wire.len() <= MAX_HANDSHAKE_BYTES as usize);
            prop_assert_eq!(Hello::decode(&wire), Ok(sent));
            let cut = cut.index(wire.len());
            // A proof may be left out as a whole: earlier versions know of none.
            prop_assert!(cut == unproven_bytes || Hello::decode(&wire[..cut]).is_err());
            let gossip = Gossip(vec![([3; 16], name.clone()), ([4; 16], name)]);
            prop_assert_eq!(Gossip::decode(&gossip.encode()), Ok(gossip));
            let _ = (Hello::decode(&noise), Refusal::decode(&noise), Gossip::decode(&noise));
        }
    }
}
