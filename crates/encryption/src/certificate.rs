//! Reads certificates, and describes them in words for reports.

use std::fs;
use std::net::IpAddr;

use openssl::nid::Nid;
use openssl::x509::{X509, X509NameRef, X509Ref};

/// Reads the certificates of a file; None if the file cannot be read, or is no PEM.
pub(crate) fn read(file: &str) -> Option<Vec<X509>> {
    X509::stack_from_pem(&fs::read(file).ok()?).ok()
}

/// The names that a certificate is for: those of its extension, or the CN if the extension has none.
pub(crate) fn names(cert: &X509Ref) -> Vec<String> {
    let listed = cert.subject_alt_names();
    let listed: Vec<String> = listed
        .iter()
        .flatten()
        .filter_map(|name| match (name.dnsname(), name.ipaddress()) {
            (Some(dns), _) => Some(printable(dns)),
            (None, Some(ip)) => ip_text(ip),
            (None, None) => None,
        })
        .collect();
    match listed.is_empty() {
        true => common_name(cert.subject_name()).into_iter().collect(),
        false => listed,
    }
}

/// The CN of a subject or an issuer.
pub(crate) fn common_name(name: &X509NameRef) -> Option<String> {
    let entry = name.entries_by_nid(Nid::COMMONNAME).next()?;
    Some(printable(&entry.data().to_string().ok()?))
}

/// The subject, in a few words.
pub(crate) fn subject(cert: &X509Ref) -> String {
    match common_name(cert.subject_name()) {
        Some(name) => format!("CN={name}"),
        None => "a certificate without CN".to_owned(),
    }
}

/// Foreign text, made fit for one line of a terminal.
fn printable(text: &str) -> String {
    let shown = text.chars().take(255);
    shown
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn ip_text(bytes: &[u8]) -> Option<String> {
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some(ip.to_string())
}
