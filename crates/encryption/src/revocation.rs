//! Reads revocation lists (`socket.ssl_crl`): for each authority, the list that stays in force longest.

use std::fs;
use std::io;

use openssl::error::ErrorStack;
use openssl::x509::{X509Crl, X509CrlRef};
use trireme_tls::{days_until, is_same_name, revocation_lists};

use crate::certificate;

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
    let found = revocation_lists(&pem).map_err(|source| CrlError::Malformed {
        file: file.to_owned(),
        source,
    })?;
    let mut lists: Vec<X509Crl> = Vec::new();
    for list in found {
        match lists
            .iter_mut()
            .find(|other| is_same_name(other.issuer_name(), list.issuer_name()))
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

fn outlasts(list: &X509CrlRef, other: &X509CrlRef) -> bool {
    match (list.next_update(), other.next_update()) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(end), Some(other)) => end > other,
    }
}
