//! Reports on a certificate: its remaining days and its fingerprint.

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::x509::X509Ref;

/// The whole days from now until `time`; negative if `time` has passed.
pub fn days_until(time: &Asn1TimeRef) -> Result<i64, ErrorStack> {
    let left = Asn1Time::days_from_now(0)?.diff(time)?;
    // The rest of a day rounds down: it counts as no day before the time, and as a whole day after it.
    Ok(i64::from(left.days) - i64::from(left.secs < 0))
}

/// SHA-256 of a certificate in hexadecimal digits: logs and reports name a certificate by it.
pub fn certificate_fingerprint(cert: &X509Ref) -> Result<String, ErrorStack> {
    Ok(hex(&cert.digest(MessageDigest::sha256())?))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
