//! Makes a certificate authority and signs the nodes' certificates. Pure but for random numbers: time comes in, keys
//! and certificates go out.

use openssl::asn1::{Asn1Integer, Asn1Time};
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, PKeyRef, Private};
use openssl::x509::extension::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName,
    SubjectKeyIdentifier,
};
use openssl::x509::{X509, X509Builder, X509Name, X509NameBuilder, X509Ref};

use crate::name::{NodeName, is_ip};

/// New certificates are valid from an hour ago on, because the nodes' clocks differ.
const CLOCKS_DIFFER_S: i64 = 60 * 60;
const DAY_S: i64 = 24 * 60 * 60;
/// X.509 version 3: the field counts from 0.
const VERSION: i32 = 2;

/// A key, and the certificate for it.
pub(crate) struct Pair {
    pub cert: X509,
    pub key: PKey<Private>,
}

/// Makes a new authority. Its name has a random part: during a change of authority there are two.
pub(crate) fn found(days: u32, now_s: i64) -> Result<Pair, ErrorStack> {
    let key = new_key()?;
    let mut id = BigNum::new()?;
    id.rand(32, MsbOption::MAYBE_ZERO, false)?;
    let name = subject(&format!("Trireme cluster authority {}", id.to_hex_str()?))?;
    let mut cert = blank(&name, &name, &key, now_s)?;
    cert.set_not_after(at(now_s + i64::from(days) * DAY_S)?.as_ref())?;
    cert.append_extension(BasicConstraints::new().critical().ca().pathlen(0).build()?)?;
    let usage = KeyUsage::new()
        .critical()
        .key_cert_sign()
        .crl_sign()
        .build()?;
    cert.append_extension(usage)?;
    let id = SubjectKeyIdentifier::new().build(&cert.x509v3_context(None, None))?;
    cert.append_extension(id)?;
    cert.sign(&key, MessageDigest::sha256())?;
    Ok(Pair {
        cert: cert.build(),
        key,
    })
}

/// Makes a key and a certificate for a node. The certificate is valid for `days`, but not longer than the authority.
pub(crate) fn issue(
    authority: &Pair,
    node: &NodeName,
    days: u32,
    now_s: i64,
) -> Result<Pair, ErrorStack> {
    let key = new_key()?;
    let mut cert = blank(
        &subject(node.name())?,
        authority.cert.subject_name(),
        &key,
        now_s,
    )?;
    let wanted = at(now_s + i64::from(days) * DAY_S)?;
    let last = authority.cert.not_after();
    cert.set_not_after(if wanted.as_ref() < last {
        &wanted
    } else {
        last
    })?;
    cert.append_extension(BasicConstraints::new().critical().build()?)?;
    cert.append_extension(KeyUsage::new().critical().digital_signature().build()?)?;
    // A node both dials and accepts.
    cert.append_extension(
        ExtendedKeyUsage::new()
            .server_auth()
            .client_auth()
            .build()?,
    )?;
    let context = cert.x509v3_context(Some(&authority.cert), None);
    let own = SubjectKeyIdentifier::new().build(&context)?;
    let signer = AuthorityKeyIdentifier::new().keyid(true).build(&context)?;
    let mut names = SubjectAlternativeName::new();
    for name in node.all() {
        match is_ip(name) {
            true => names.ip(name),
            false => names.dns(name),
        };
    }
    let names = names.build(&context)?;
    for extension in [own, signer, names] {
        cert.append_extension(extension)?;
    }
    cert.sign(&authority.key, MessageDigest::sha256())?;
    Ok(Pair {
        cert: cert.build(),
        key,
    })
}

/// Whether an authority's key has signed a certificate.
pub(crate) fn has_signed(authority: &X509Ref, cert: &X509Ref) -> Result<bool, ErrorStack> {
    cert.verify(&*authority.public_key()?)
}

fn blank(
    name: &X509Name,
    issuer: &openssl::x509::X509NameRef,
    key: &PKeyRef<Private>,
    now_s: i64,
) -> Result<X509Builder, ErrorStack> {
    let mut serial = BigNum::new()?;
    serial.rand(128, MsbOption::MAYBE_ZERO, false)?;
    let mut cert = X509Builder::new()?;
    cert.set_version(VERSION)?;
    cert.set_serial_number(Asn1Integer::from_bn(&serial)?.as_ref())?;
    cert.set_subject_name(name)?;
    cert.set_issuer_name(issuer)?;
    cert.set_pubkey(key)?;
    cert.set_not_before(at(now_s - CLOCKS_DIFFER_S)?.as_ref())?;
    Ok(cert)
}

fn at(unix_s: i64) -> Result<Asn1Time, ErrorStack> {
    Asn1Time::from_unix(unix_s)
}

fn subject(name: &str) -> Result<X509Name, ErrorStack> {
    let mut subject = X509NameBuilder::new()?;
    subject.append_entry_by_nid(Nid::COMMONNAME, name)?;
    Ok(subject.build())
}

fn new_key() -> Result<PKey<Private>, ErrorStack> {
    let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    PKey::from_ec_key(EcKey::generate(&curve)?)
}
