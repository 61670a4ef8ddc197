//! Failures of handshakes and sessions, in words for the operator. Comes in: OpenSSL's errors and alerts. Goes out: a
//! [`Failure`] with the remedy.

use std::cell::RefCell;
use std::io;

use openssl::error::ErrorStack;
use openssl::ssl::{Error, ErrorCode, SslRef};
use openssl::x509::{X509Ref, X509VerifyResult};

use crate::credentials::Trust;

/// OpenSSL's result for a revoked certificate.
pub(crate) const REVOKED: i32 = 23;

thread_local! {
    /// The subject of the last refused certificate. OpenSSL shows the certificate only while it checks the chain.
    static REFUSED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Notes the subject of a certificate that OpenSSL is about to refuse.
pub(crate) fn note_refused(cert: Option<&X509Ref>) {
    REFUSED.set(cert.map(subject).unwrap_or_default());
}

/// The reason why a handshake failed or a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The peer's certificate is not acceptable, or the peer does not have the secret.
    #[error("{0}")]
    Untrusted(String),
    /// The peer ended the session with an alert. Mostly the alert is the peer's verdict on this node's certificate or
    /// secret.
    #[error("the peer ended TLS with the alert {alert:?}: {meaning}")]
    Alert {
        /// The name of the alert.
        alert: String,
        /// The remedy for the operator.
        meaning: &'static str,
    },
    /// The peer sent bytes that are no TLS record.
    #[error("the peer does not speak TLS 1.3")]
    NotTls,
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The socket failed.
    #[error("{0}")]
    Io(String),
    /// Any other error of OpenSSL.
    #[error("TLS failed: {0}")]
    Library(String),
}

/// The meaning of an alert, with the remedy.
fn meaning(alert: &str, trust: &Trust) -> &'static str {
    match alert {
        "unknown ca" | "bad certificate" | "handshake failure" | "illegal parameter"
        | "decrypt error"
            if matches!(trust, Trust::Secret(_)) =>
        {
            "it does not have this node's secret, or runs with socket.ssl; set the same repl.secret_file on all nodes, and while a \
             secret changes, both lines on all"
        }
        "unknown ca"
        | "bad certificate"
        | "certificate unknown"
        | "unsupported certificate"
        | "decrypt error" => {
            "it does not trust this node's certificate; socket.ssl_cert here must be signed by the socket.ssl_ca of the peer"
        }
        "certificate expired" => {
            "this node's certificate is out of date there; renew socket.ssl_cert, or correct the clocks"
        }
        "certificate revoked" => {
            "this node's certificate is revoked there; have a new one made for socket.ssl_cert"
        }
        "certificate required" => {
            "it asks for a certificate; set socket.ssl_cert and socket.ssl_key"
        }
        "protocol version" | "handshake failure" | "insufficient security" => {
            "the two have no version or cipher in common, or only one of them runs with socket.ssl; compare socket.ssl, \
             socket.ssl_cipher and repl.secret_file"
        }
        _ => "see the log of the peer",
    }
}

impl Failure {
    /// Translates an OpenSSL error about a peer. `ended`: the peer has closed the socket.
    pub(crate) fn of(error: &Error, ssl: &SslRef, ended: bool, trust: &Trust) -> Failure {
        if let Some(io) = error.io_error() {
            return Failure::Io(io.to_string());
        }
        if ended || error.code() == ErrorCode::ZERO_RETURN {
            return Failure::Closed;
        }
        let reason = error.ssl_error().map(reason).unwrap_or_default();
        match trust {
            Trust::Secret(file) if is_without_secret(&reason) => {
                return Failure::without_secret(file);
            }
            Trust::Authority(ca)
                if reason.contains("certificate verify failed")
                    && ssl.verify_result() != X509VerifyResult::OK =>
            {
                let who = REFUSED.with_borrow_mut(std::mem::take);
                return Failure::Untrusted(untrusted(ssl.verify_result(), &who, ca));
            }
            _ => {}
        }
        if reason == "peer did not return a certificate" {
            let text =
                "the peer presents no certificate; set socket.ssl_cert and socket.ssl_key there";
            return Failure::Untrusted(text.to_owned());
        }
        match reason.split_once("alert ") {
            Some((_, alert)) => Failure::Alert {
                alert: alert.to_owned(),
                meaning: meaning(alert, trust),
            },
            None if is_foreign(&reason) => Failure::NotTls,
            None => Failure::Library(reason),
        }
    }

    /// The failure of a peer that shows a certificate, has another secret, or has none.
    pub(crate) fn without_secret(file: &str) -> Failure {
        Failure::Untrusted(format!(
            "the peer does not have the secret in '{file}'; set the same repl.secret_file on all nodes, and while a secret \
             changes, both lines on all; a node with socket.ssl has none"
        ))
    }

    /// The failure inside an error of [`crate::Session`], if there is one.
    pub fn from_io(error: &io::Error) -> Failure {
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Failure>());
        inner
            .cloned()
            .unwrap_or_else(|| Failure::Io(error.to_string()))
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        io::Error::other(failure)
    }
}

/// Whether OpenSSL's reason, on either side, means one of these: the peer shows a certificate, names an unknown secret,
/// or does not have the secret that it names.
fn is_without_secret(reason: &str) -> bool {
    let said = [
        "certificate verify failed",
        "no suitable signature algorithm",
        "no shared cipher",
        "binder does not verify",
    ];
    said.contains(&reason)
}

fn is_foreign(reason: &str) -> bool {
    let foreign = [
        "wrong version number",
        "unsupported protocol",
        "http request",
        "https proxy request",
        "packet length too long",
        "record too small",
        "unexpected message",
        "bad record type",
        "not on record boundary",
    ];
    foreign.contains(&reason)
}

/// The newest error of the stack: it is the one that ended the session.
fn reason(stack: &ErrorStack) -> String {
    let last = stack.errors().last().and_then(|error| error.reason());
    last.unwrap_or("unknown reason").to_owned()
}

/// Says why the certificate of `who` is refused, and what to do.
pub(crate) fn untrusted(result: X509VerifyResult, who: &str, ca: &str) -> String {
    let why = result.error_string();
    let remedy = match result.as_raw() {
        9 => "correct this node's clock, or have the certificate made anew there",
        10 => "renew socket.ssl_cert there, or correct this node's clock",
        REVOKED => {
            "it is in the list of socket.ssl_crl here; have a new one made for the peer, or keep it out"
        }
        3 | 11 | 12 => {
            "socket.ssl_crl here must hold a list of that certificate's CA that is in force; have a new list made"
        }
        _ => {
            "it must be signed by a CA in the file that this node trusts; correct socket.ssl_cert there or socket.ssl_ca here"
        }
    };
    format!("this node does not trust the peer's certificate ({who}): {why}, by '{ca}'; {remedy}")
}

/// The subject of a certificate, for a log line.
pub(crate) fn subject(cert: &X509Ref) -> String {
    let entries = cert.subject_name().entries().map(|entry| {
        let key = entry.object().nid().short_name().unwrap_or("?");
        let value = entry.data().to_string().unwrap_or_default();
        let value: String = value
            .chars()
            .take(64)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        format!("{key}={value}")
    });
    entries.collect::<Vec<_>>().join(", ")
}
