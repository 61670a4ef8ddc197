//! Why files cannot be made.

use std::io;
use std::path::{Path, PathBuf};

use openssl::error::ErrorStack;

/// Short for results of this crate's store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why certificates are not made: one line that names file and remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system does not let a file be read or written.
    #[error("'{}': {source}; check path, owner and free space", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory has no authority.
    #[error("'{}' holds no authority: make one with trireme tls init --dir {0} NODE...", dir.display())]
    NoAuthority {
        /// The store.
        dir: PathBuf,
    },
    /// Not PEM, or damaged.
    #[error("'{}': {source}; restore the file from a copy", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What OpenSSL said.
        source: ErrorStack,
    },
    /// Certificate and key of the authority are not a pair.
    #[error(
        "'{}' holds a key and a certificate that are no pair; restore the file from a copy", path.display()
    )]
    WrongKey {
        /// The file.
        path: PathBuf,
    },
    /// The authority is out of date.
    #[error(
        "the authority in '{}' has expired on {at}: make a new one with trireme tls renew --new-authority", dir.display()
    )]
    AuthorityExpired {
        /// The store.
        dir: PathBuf,
        /// When.
        at: String,
    },
    /// The node has files already.
    #[error("'{}' is there already: to make its certificate anew, trireme tls renew {node}", dir.display())]
    NodeExists {
        /// The node.
        node: String,
        /// Its directory.
        dir: PathBuf,
    },
    /// The node has no files yet.
    #[error("there is no node '{node}' in '{}': make it with trireme tls init {node}", dir.display())]
    NoNode {
        /// The node.
        node: String,
        /// Directory of all nodes.
        dir: PathBuf,
    },
    /// A change of authority is under way.
    #[error(
        "'{}' trusts two authorities already, a change is under way: end it with trireme tls renew --drop-old-authority",
        dir.display()
    )]
    ChangeUnderWay {
        /// The store.
        dir: PathBuf,
    },
    /// A node's certificate is still one of the old authority.
    #[error(
        "the certificate of '{node}' is signed by the old authority: trireme tls renew first, copy the files to all nodes and \
         reload them; only then is the old authority dropped"
    )]
    StillOld {
        /// The node.
        node: String,
    },
    /// A path that an option string or a configuration file would not take as it is.
    #[error(
        "'{0}' cannot stand in a configuration: give an absolute path of letters, digits and / . _ -"
    )]
    Path(String),
    /// OpenSSL itself fails.
    #[error("OpenSSL fails: {0}; check the installation of libssl and openssl.cnf")]
    Library(#[from] ErrorStack),
}

/// An error of the system about a file.
pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { path, source }
}
