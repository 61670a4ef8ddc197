//! Errors of the store.

use std::io;
use std::path::{Path, PathBuf};

use openssl::error::ErrorStack;

/// A result of this crate's store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// The reason why no certificate is made: one line with the file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refuses to read or write a file.
    #[error("'{}': {source}; check path, owner and free space", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory has no authority.
    #[error("'{}' holds no authority: make one with trireme tls init --dir {0} NODE...", dir.display())]
    NoAuthority {
        /// The store.
        dir: PathBuf,
    },
    /// The directory has nodes, but their authority is elsewhere.
    #[error(
        "'{}' has nodes, but their authority.pem is missing: put it back; if it is lost, make a new authority in another directory: \
         trireme tls init --dir DIR NODE...",
        dir.display()
    )]
    AuthorityMissing {
        /// The store.
        dir: PathBuf,
    },
    /// The file is not PEM, or is damaged.
    #[error("'{}': {source}; restore the file from a copy", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// OpenSSL's error.
        source: ErrorStack,
    },
    /// Certificate and key of the authority do not belong together.
    #[error(
        "'{}' holds a key and a certificate that are no pair; restore the file from a copy", path.display()
    )]
    WrongKey {
        /// The file.
        path: PathBuf,
    },
    /// The authority's certificate has expired.
    #[error(
        "the authority in '{}' has expired on {at}: make a new one with trireme tls renew --dir {0} --new-authority",
        dir.display()
    )]
    AuthorityExpired {
        /// The store.
        dir: PathBuf,
        /// The time of expiry.
        at: String,
    },
    /// The node already has files.
    #[error(
        "'{}' has the node '{node}' already: to make its certificate anew, trireme tls renew --dir {0} {node}", dir.display()
    )]
    NodeExists {
        /// The node.
        node: String,
        /// The store.
        dir: PathBuf,
    },
    /// The node has no files yet.
    #[error("there is no node '{node}' in '{}': make it with trireme tls init --dir {0} {node}", dir.display())]
    NoNode {
        /// The node.
        node: String,
        /// The store.
        dir: PathBuf,
    },
    /// A change of authority has begun and not ended.
    #[error(
        "'{}' trusts two authorities already, a change is under way: end it with trireme tls renew --dir {0} --drop-old-authority",
        dir.display()
    )]
    ChangeUnderWay {
        /// The store.
        dir: PathBuf,
    },
    /// A node's certificate is still signed by the old authority.
    #[error(
        "the certificate of '{node}' is signed by the old authority: trireme tls renew --dir {} first, copy the files to all \
         nodes and reload them; only then is the old authority dropped",
        dir.display()
    )]
    StillOld {
        /// The node.
        node: String,
        /// The store.
        dir: PathBuf,
    },
    /// The path has characters that an option string or a configuration file does not take unchanged.
    #[error(
        "'{0}' cannot stand in a configuration: give an absolute path of letters, digits and / . _ -"
    )]
    Path(String),
    /// OpenSSL itself failed.
    #[error("OpenSSL fails: {0}; check the installation of libssl and openssl.cnf")]
    Library(#[from] ErrorStack),
}

/// Makes the error of the system about a file.
pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { path, source }
}
