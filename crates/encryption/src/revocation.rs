//! Reads revocation lists (`socket.ssl_crl`): for each authority, the list that stays in force longest.

use std::cmp::Ordering;
use std::fs;
use std::io;

use openssl::error::ErrorStack;
use openssl::x509::{X509Crl, X509CrlRef};
use trireme_tls::days_until;

use crate::certificate;

const BEGIN: &str = "-----BEGIN X509 CRL-----";

/// The reason why nothing is known of a file's revocation lists.
#[derive(Debug, thiserror::Error)]
pub enum CrlError {
    /// The system does not read the file.
    #[error(
        "socket.ssl_crl: cannot read '{file}': {source}; correct the path, or the file's owner and mode"
    )]
    Unreadable {
        /// The file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file has no list.
    #[error("socket.ssl_crl: '{file}' holds no revocation list in PEM format; copy the file anew")]
    Empty {
        /// The file.
        file: String,
    },
    /// A list is damaged.
    #[error(
        "socket.ssl_crl: '{file}' holds a damaged revocation list ({source}); copy the file anew"
    )]
    Malformed {
        /// The file.
        file: String,
        /// OpenSSL's error.
        source: ErrorStack,
    },
    /// OpenSSL itself failed.
    #[error("OpenSSL fails: {0}")]
    Library(#[from] ErrorStack),
}

/// The days until an authority's revocation list in the file of `socket.ssl_crl` ends; negative if one has ended, and
/// `i64::MAX` if none ends. From then on, a node with this file refuses all peers of that authority.
pub fn crl_days_left(file: &str) -> Result<i64, CrlError> {
    let mut days = i64::MAX;
    for list in lists(file)? {
        if let Some(end) = list.next_update() {
            days = days.min(days_until(end)?);
        }
    }
    Ok(days)
}

/// Reads the lists of a file; at least one. OpenSSL uses an authority's list that is in force, so a shorter one beside
/// it does not count.
pub(crate) fn lists(file: &str) -> Result<Vec<X509Crl>, CrlError> {
    let pem = fs::read(file).map_err(|source| CrlError::Unreadable {
        file: file.to_owned(),
        source,
    })?;
    let pem = String::from_utf8_lossy(&pem); // text between the lists may have any encoding
    let mut lists: Vec<X509Crl> = Vec::new();
    for (at, _) in pem.match_indices(BEGIN) {
        let list = X509Crl::from_pem(&pem.as_bytes()[at..]);
        let list = list.map_err(|source| CrlError::Malformed {
            file: file.to_owned(),
            source,
        })?;
        match lists
            .iter_mut()
            .find(|other| have_same_issuer(other, &list))
        {
            None => lists.push(list),
            Some(other) if outlasts(&list, other) => *other = list,
            Some(_) => {}
        }
    }
    match lists.is_empty() {
        true => Err(CrlError::Empty {
            file: file.to_owned(),
        }),
        false => Ok(lists),
    }
}

/// The authority of a list, in a few words.
pub(crate) fn issuer(list: &X509CrlRef) -> String {
    match certificate::common_name(list.issuer_name()) {
        Some(name) => format!("CN={name}"),
        None => "an authority without CN".to_owned(),
    }
}

fn have_same_issuer(a: &X509CrlRef, b: &X509CrlRef) -> bool {
    let order = a.issuer_name().try_cmp(b.issuer_name());
    order.is_ok_and(Ordering::is_eq)
}

fn outlasts(list: &X509CrlRef, other: &X509CrlRef) -> bool {
    match (list.next_update(), other.next_update()) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(end), Some(other)) => end > other,
    }
}
