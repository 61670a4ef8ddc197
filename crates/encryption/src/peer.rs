//! Dials the group port of a running member, and reports on its certificate and on its verdict about ours.

use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use openssl::error::ErrorStack;
use openssl::ssl::{
    HandshakeError, Ssl, SslContext, SslContextBuilder, SslMethod, SslStream, SslVerifyMode,
    SslVersion,
};
use openssl::x509::X509;
use trireme_tls::{Files, TlsError, certificate_fingerprint};

use crate::certificate;
use crate::check::{self, Expectation, Report};

/// The time limit of each step.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time to wait for a refusal: a member that refuses this side's certificate says so at once.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why nothing is known of a peer's certificate.
#[derive(Debug, thiserror::Error)]
enum PeerError {
    #[error("cannot be reached: {0}; check the address, and that the node runs")]
    Unreachable(io::Error),
    #[error(
        "does not speak TLS 1.3 ({0}): it runs without socket.ssl, or a shared secret protects it (repl.secret_file), which \
         presents no certificate"
    )]
    NoTls(String),
    #[error("presents no certificate")]
    NoCertificate,
    #[error("OpenSSL fails: {0}")]
    Library(#[from] ErrorStack),
}

/// The reason why this node's certificate cannot be presented.
#[derive(Debug, thiserror::Error)]
enum PresentError {
    #[error(transparent)]
    Files(#[from] TlsError),
    #[error("socket.ssl_cert: OpenSSL does not take it ({0}); see what is said of the files")]
    Certificate(#[from] ErrorStack),
}

/// Dials `address` (`host:port` of the group traffic) as a node with these files does, and checks the peer's
/// certificate. If `files.cert` and `files.key` are empty, it presents no certificate.
pub fn check_peer(address: &str, files: &Files, expected: &Expectation) -> Report {
    let mut report = Report::default();
    if let Err(error) = look(&mut report, address, files, expected) {
        report.complain(format!("{address}: {error}"));
    }
    report
}

fn look(
    report: &mut Report,
    address: &str,
    files: &Files,
    expected: &Expectation,
) -> Result<(), PeerError> {
    let socket = connect(address).map_err(PeerError::Unreachable)?;
    let mut context = SslContext::builder(SslMethod::tls_client())?;
    let mut is_presented = files.has_certificate();
    if let Some(Err(error)) = is_presented.then(|| present(&mut context, files)) {
        is_presented = false;
        report.complain(format!(
            "{address}: called without this node's certificate, so nothing is known of whether it is taken: {error}"
        ));
    }
    let mut session = shake(socket, context)?;
    let leaf = session
        .ssl()
        .peer_certificate()
        .ok_or(PeerError::NoCertificate)?;
    let chain: Vec<X509> = session
        .ssl()
        .peer_cert_chain()
        .into_iter()
        .flatten()
        .map(ToOwned::to_owned)
        .collect();
    report.say(format!(
        "{address}: {} is for {}; SHA-256 {}",
        certificate::subject(&leaf),
        certificate::names(&leaf).join(", "),
        certificate_fingerprint(&leaf)?
    ));
    check::check_end(report, address, &leaf, expected.days_left)?;
    let (_, trusted) = files.trusted();
    match certificate::read(trusted) {
        None => report.complain(format!(
            "{address}: not compared with an authority: '{trusted}' cannot be read as certificates; name it with --ca"
        )),
        Some(anchors) => {
            let verdict = check::verdict(&leaf, &chain, anchors, &files.crl)?;
            let line = match &verdict {
                None => format!("{address}: this node trusts its certificate"),
                Some(why) => format!("{address}: this node refuses its certificate: {why}"),
            };
            report.judge(verdict.is_none(), line, "compare its socket.ssl_cert with socket.ssl_ca here");
        }
    }
    if is_presented {
        let refusal = refusal(&mut session);
        let line = match &refusal {
            None => format!("{address}: it takes this node's certificate"),
            Some(why) => format!("{address}: it refuses this node's certificate: {why}"),
        };
        report.judge(
            refusal.is_none(),
            line,
            "its log says more; compare its socket.ssl_ca with socket.ssl_cert here",
        );
    }
    Ok(())
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(socket) => {
                socket.set_read_timeout(Some(TIMEOUT))?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Presents this node's certificate to the peer.
fn present(context: &mut SslContextBuilder, files: &Files) -> Result<(), PresentError> {
    let key = files.read_key()?;
    context.set_certificate_chain_file(&files.cert)?;
    context.set_private_key(&key)?;
    Ok(())
}

/// Shakes hands and accepts any certificate: the caller judges it.
fn shake(
    socket: TcpStream,
    mut context: SslContextBuilder,
) -> Result<SslStream<TcpStream>, PeerError> {
    context.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    context.set_verify(SslVerifyMode::NONE);
    let session = Ssl::new(&context.build())?.connect(socket);
    session.map_err(|error| match error {
        HandshakeError::SetupFailure(error) => PeerError::Library(error),
        HandshakeError::Failure(stream) | HandshakeError::WouldBlock(stream) => {
            PeerError::NoTls(stream.error().to_string())
        }
    })
}

/// Returns the member's reason for refusing this side's certificate; None if the member accepts it. A refusal comes
/// only after the handshake has ended on this side. A member that accepts waits for a Hello, or sends its own.
fn refusal(session: &mut SslStream<TcpStream>) -> Option<String> {
    let set = session.get_ref().set_read_timeout(Some(REFUSAL_TIMEOUT));
    let mut byte = [0];
    match set.and_then(|()| session.read(&mut byte)) {
        Ok(1..) => None,
        Ok(0) => Some("it closes the connection".to_owned()),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ) =>
        {
            None
        }
        Err(error) => Some(error.to_string()),
    }
}
