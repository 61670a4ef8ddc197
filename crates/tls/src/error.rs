//! Errors in an operator's TLS files.

use std::io;

use openssl::error::ErrorStack;

use crate::PRIVATE_REMEDY;

/// The reason why credentials cannot be used: one line with the option, the file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// TLS is on, but the certificate or the key is not set.
    #[error(
        "{option} is not set: TLS needs a certificate and its key, set socket.ssl_cert and socket.ssl_key"
    )]
    Missing {
        /// The option.
        option: &'static str,
    },
    /// The system refuses to read the file.
    #[error("{option}: cannot read '{file}': {source}; {}", remedy(.source))]
    Unreadable {
        /// The option.
        option: &'static str,
        /// Its value.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file has something else than the option needs, or only a part of it.
    #[error(
        "{option}: '{file}' holds no complete {wanted} in PEM format ({found}); copy the file anew from its source"
    )]
    Malformed {
        /// The option.
        option: &'static str,
        /// Its value.
        file: String,
        /// The object that the option needs.
        wanted: &'static str,
        /// A few words on the actual content.
        found: String,
    },
    /// The key is encrypted, and the right password is missing.
    #[error(
        "socket.ssl_key: '{file}' is encrypted, and {password}; put its password into the first line of a file and \
         name that in socket.ssl_password_file"
    )]
    Locked {
        /// `socket.ssl_key`.
        file: String,
        /// The state of the password: missing or wrong.
        password: &'static str,
    },
    /// The key does not belong to the certificate.
    #[error(
        "socket.ssl_key: '{key}' is not the key of the certificate in socket.ssl_cert, '{cert}'; name the key that the \
         certificate was made for, or have a new certificate made for this key"
    )]
    WrongKey {
        /// `socket.ssl_key`.
        key: String,
        /// `socket.ssl_cert`.
        cert: String,
    },
    /// The node's own certificate has expired.
    #[error(
        "socket.ssl_cert: the certificate in '{file}' has expired on {at}; renew it, or correct this node's clock"
    )]
    Expired {
        /// `socket.ssl_cert`.
        file: String,
        /// The time of expiry.
        at: String,
    },
    /// The node's own certificate is not valid yet.
    #[error(
        "socket.ssl_cert: the certificate in '{file}' is not valid before {at}; correct this node's clock, or have the \
         certificate made anew"
    )]
    NotYetValid {
        /// `socket.ssl_cert`.
        file: String,
        /// The start of its validity.
        at: String,
    },
    /// OpenSSL refuses the certificate.
    #[error(
        "socket.ssl_cert: OpenSSL refuses the certificate in '{file}' ({why}); have one made with a larger key or a newer signature"
    )]
    Refused {
        /// `socket.ssl_cert`.
        file: String,
        /// OpenSSL's reason.
        why: String,
    },
    /// The file has no secret, or a weak one.
    #[error(
        "repl.secret_file: '{file}' {found}; it must have one line of 32 to 4096 bytes, or two while the secret changes: write \
         random ones (head -c 32 /dev/urandom | base64)"
    )]
    Secret {
        /// `repl.secret_file`.
        file: String,
        /// A few words on the actual content.
        found: String,
    },
    /// Other users of this machine can read or change the private file.
    #[error(
        "{option}: '{file}' has mode {mode:04o}, so others on this machine may read or change it; {PRIVATE_REMEDY}"
    )]
    Open {
        /// The option.
        option: &'static str,
        /// Its value.
        file: String,
        /// The file's mode.
        mode: u32,
    },
    /// Both a secret and certificates are configured; a cluster uses one of them.
    #[error(
        "repl.secret_file and socket.ssl exclude each other; set socket.ssl=no, or leave repl.secret_file out"
    )]
    SecretAndCertificate,
    /// OpenSSL does not know these TLS 1.3 cipher suites.
    #[error(
        "socket.ssl_cipher: OpenSSL knows no '{names}'; leave the option out, or see: openssl ciphers -s -tls1_3"
    )]
    Ciphers {
        /// The option's value.
        names: String,
    },
    /// OpenSSL itself failed.
    #[error("OpenSSL fails: {0}; check the installation of libssl and openssl.cnf")]
    Library(#[from] ErrorStack),
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "correct the path",
        io::ErrorKind::PermissionDenied => {
            "let the user that runs this process read it, and nobody else (chown, chmod 0600)"
        }
        _ => "check the file and its file system",
    }
}
