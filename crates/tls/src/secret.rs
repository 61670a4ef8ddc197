//! A secret that all nodes share, for clusters without certificates: TLS 1.3 with an external pre-shared key.
//!
//! The file has one line, or two while the secret changes. This node proves itself with the first line, and accepts
//! both from peers. Key and identity are derived from a line. The identity is public; it tells the lines apart.

use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;

use crate::certificate::hex;
use crate::error::TlsError;
use crate::files;

pub(crate) const OPTION: &str = "repl.secret_file";

/// The shortest line, in bytes.
const MIN_BYTES: usize = 32;
/// The longest line, in bytes. A longer line means that the option names the wrong file.
const MAX_BYTES: usize = 4096;
/// The most lines in a file.
const MAX_LINES: usize = 2;

/// The identity and the key that are derived from one line.
#[derive(Clone)]
pub(crate) struct Secret {
    /// 64 hexadecimal digits; the peer sees them.
    identity: String,
    key: Vec<u8>,
}

impl Secret {
    fn of(line: &[u8]) -> Result<Secret, ErrorStack> {
        let identity = derive(line, b"trireme psk identity 1")?;
        Ok(Secret {
            identity: hex(&identity),
            key: derive(line, b"trireme psk key 1")?,
        })
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

/// The one or two secrets of a file.
pub(crate) struct Secrets {
    sent: Secret,
    other: Option<Secret>,
}

impl Secrets {
    /// Reads and checks the file.
    pub fn read(file: &str) -> Result<Secrets, TlsError> {
        let text = files::read_private(OPTION, file)?;
        let weak = |found: String| TlsError::Secret {
            file: file.to_owned(),
            found,
        };
        let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
        if lines.len() > MAX_LINES {
            return Err(weak(format!("has {} lines", lines.len())));
        }
        let wrong = lines
            .iter()
            .position(|line| !(MIN_BYTES..=MAX_BYTES).contains(&line.len()));
        if let Some(at) = wrong {
            let (line, bytes) = (at + 1, lines[at].len());
            return Err(weak(format!("has {bytes} bytes in line {line}")));
        }
        let mut secrets = lines.into_iter().map(Secret::of);
        let Some(sent) = secrets.next() else {
            return Err(weak("is empty".to_owned()));
        };
        Ok(Secrets {
            sent: sent?,
            other: secrets.next().transpose()?,
        })
    }

    /// The secret that this node proves itself with.
    pub fn sent(&self) -> &Secret {
        &self.sent
    }

    /// Finds the secret with the identity that a peer has named.
    pub fn find(&self, identity: &[u8]) -> Option<&Secret> {
        let mut all = [Some(&self.sent), self.other.as_ref()]
            .into_iter()
            .flatten();
        all.find(|secret| secret.identity.as_bytes() == identity)
    }
}

/// HMAC-SHA256. One line yields several values, and none of them reveals another.
fn derive(line: &[u8], purpose: &[u8]) -> Result<Vec<u8>, ErrorStack> {
    let key = PKey::hmac(line)?;
    let mut signer = Signer::new(MessageDigest::sha256(), &key)?;
    signer.update(purpose)?;
    signer.sign_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked with `openssl dgst -sha256 -hmac LINE`: all nodes have to derive the same.
    #[test]
    fn golden_derivation() {
        let secret = Secret::of(b"the old secret of this cluster, 32+").unwrap();
        let changed = "what is derived from a secret changed: nodes of two releases do not meet";
        assert_eq!(secret.identity(), IDENTITY, "{changed}");
        assert_eq!(hex(secret.key()), KEY, "{changed}");
    }

    const IDENTITY: &str = "093219341876d728310dcdaace34f68cd4f080f3b51878a2cb02d64551d7e0ed";
    const KEY: &str = "af3356316a6fe35a7efe93021eeb6b8df0d346127b1f137e84ce122e31daca09";
}
