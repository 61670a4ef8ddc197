//! What is told of a certificate: how long it is valid, and which one it is.

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::x509::X509Ref;

/// Whole days from now until a time; negative when it has passed.
pub fn days_until(time: &Asn1TimeRef) -> Result<i64, ErrorStack> {
    let left = Asn1Time::days_from_now(0)?.diff(time)?;
    // Part of a day counts as none, and of a day that is over as one.
    Ok(i64::from(left.days) - i64::from(left.secs < 0))
}

/// SHA-256 of a certificate, as logs and reports name it.
pub fn certificate_fingerprint(cert: &X509Ref) -> Result<String, ErrorStack> {
    Ok(hex(&cert.digest(MessageDigest::sha256())?))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
