//! Dials the group port of a running member, and reports on its certificate and on its verdict about ours.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use openssl::error::ErrorStack;
use openssl::ssl::{
    HandshakeError, Ssl, SslContext, SslContextBuilder, SslMethod, SslStream, SslVerifyMode,
    SslVersion,
};
use openssl::x509::X509;
use trireme_tls::{Files, TlsError, certificate_fingerprint};

use crate::certificate;
use crate::check::{self, Expectation, Report};

/// The time limit of the whole look at a peer. At most half of it is for connecting. The rest is longer than the 3 s
/// after which a member gives up a handshake, so a member that has a verdict gives it within this time.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The first bytes that a member sends to a peer whose certificate it accepts (docs/wire-transport.md). The framing
/// version follows them.
const PREAMBLE: [u8; 7] = *b"TRIREME";

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
    #[error(
        "does not end the TLS handshake in time: paused, overloaded, or no Trireme node; check what runs there"
    )]
    Late,
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
    if let Err(error) = look(&mut report, address, files, expected, TIMEOUT) {
        report.complain(format!("{address}: {error}"));
    }
    report
}

fn look(
    report: &mut Report,
    address: &str,
    files: &Files,
    expected: &Expectation,
    timeout: Duration,
) -> Result<(), PeerError> {
    let socket = Timed::connect(address, timeout).map_err(PeerError::Unreachable)?;
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
        match await_verdict(&mut session) {
            Ok(()) => report.say(format!("{address}: it takes this node's certificate")),
            Err(why) => report.complain(format!("{address}: {why}")),
        }
    }
    Ok(())
}

/// A connection all of whose reads and writes end at one time.
#[derive(Debug)]
struct Timed {
    socket: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn connect(address: &str, timeout: Duration) -> io::Result<Timed> {
        let deadline = Instant::now() + timeout;
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        let mut last = io::Error::other("the name has no address");
        let share = timeout / 2 / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        for address in addresses {
            match TcpStream::connect_timeout(&address, share) {
                Ok(socket) => return Ok(Timed { socket, deadline }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The time that is left; it is not zero.
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(left),
        }
    }
}

/// The system says "would block" when the time is over; OpenSSL would take that for a non-blocking socket.
fn over(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        self.socket.read(buffer).map_err(over)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes).map_err(over)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Presents this node's certificate to the peer.
fn present(context: &mut SslContextBuilder, files: &Files) -> Result<(), PresentError> {
    let key = files.read_key()?;
    context.set_certificate_chain_file(&files.cert)?;
    context.set_private_key(&key)?;
    Ok(())
}

/// Shakes hands and accepts any certificate: the caller judges it.
fn shake(socket: Timed, mut context: SslContextBuilder) -> Result<SslStream<Timed>, PeerError> {
    context.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    context.set_verify(SslVerifyMode::NONE);
    let session = Ssl::new(&context.build())?.connect(socket);
    session.map_err(|error| match error {
        HandshakeError::SetupFailure(error) => PeerError::Library(error),
        HandshakeError::Failure(stream) | HandshakeError::WouldBlock(stream) => {
            let error = stream.error();
            match error.io_error().map(io::Error::kind) {
                Some(ErrorKind::TimedOut) => PeerError::Late,
                _ => PeerError::NoTls(error.to_string()),
            }
        }
    })
}

/// Waits for the member's verdict on this side's certificate. It comes only after the handshake has ended on this side:
/// the preamble of a member that accepts, or an alert. Err: the complaint.
fn await_verdict(session: &mut SslStream<Timed>) -> Result<(), String> {
    let (began, mut heard) = (Instant::now(), PREAMBLE.map(|_| 0));
    let refused = |why: &str| {
        format!(
            "it refuses this node's certificate: {why}; its log says more; compare its socket.ssl_ca with socket.ssl_cert here"
        )
    };
    match session.read_exact(&mut heard) {
        Ok(()) if heard == PREAMBLE => Ok(()),
        Ok(()) => Err(
            "it answers as no Trireme node does; check the address: it must be that of the group traffic".to_owned(),
        ),
        Err(error) if error.kind() == ErrorKind::TimedOut => Err(format!(
            "it gave no verdict on this node's certificate within {} s: paused, overloaded, or no Trireme node; check what runs \
             there, then run this again",
            began.elapsed().as_secs()
        )),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(refused("it closes the connection"))
        }
        Err(error) => Err(refused(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use openssl::ssl::SslFiletype;
    use tempfile::{TempDir, tempdir};
    use trireme_tls::testing::{NOW, Party};

    use super::*;

    /// The time of a look in these tests.
    const SHORT: Duration = Duration::from_millis(700);

    /// A listener that does this with one call; its address.
    fn listen(answer: impl FnOnce(TcpStream) + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || answer(listener.accept().unwrap().0));
        address
    }

    fn node() -> (TempDir, Files) {
        let (dir, ca) = (tempdir().unwrap(), Party::authority("ca"));
        let files = ca.issue("node", NOW).files(&ca, dir.path(), "node");
        (dir, files)
    }

    /// Looks at a peer that says `said` behind its handshake, and then nothing. What is complained of.
    fn complaints(said: &'static [u8]) -> Vec<String> {
        let (_dir, files) = node();
        let mut context = SslContext::builder(SslMethod::tls_server()).unwrap();
        context.set_certificate_chain_file(&files.cert).unwrap();
        context
            .set_private_key_file(&files.key, SslFiletype::PEM)
            .unwrap();
        let context = context.build();
        let address = listen(move |socket| {
            let mut session = Ssl::new(&context).unwrap().accept(socket).unwrap();
            session.write_all(said).unwrap();
            let _ = session.read(&mut [0]); // until the other side ends
        });
        let expected = Expectation {
            names: Vec::new(),
            days_left: 1,
        };
        let mut report = Report::default();
        look(&mut report, &address, &files, &expected, SHORT).unwrap();
        report.bad().to_vec()
    }

    #[test]
    fn only_the_preamble_is_an_acceptance() {
        assert_eq!(complaints(b"TRIREME\x01"), [""; 0]);
        for (said, wanted) in [
            (&b""[..], "no verdict"),
            (b"TRI", "no verdict"),
            (b"HTTP/1.1 400 Bad Request", "as no Trireme node does"),
        ] {
            let found = complaints(said);
            assert!(found.len() == 1 && found[0].contains(wanted), "{found:?}");
        }
    }

    #[test]
    fn a_peer_that_trickles_is_given_up() {
        let (_dir, files) = node();
        let address = listen(|mut socket| {
            // The header of a long record, and then byte after byte.
            let mut said = socket.write_all(&[0x16, 3, 3, 0x40, 0]);
            while said.is_ok() {
                thread::sleep(Duration::from_millis(20));
                said = socket.write_all(&[2]);
            }
        });
        let expected = Expectation {
            names: Vec::new(),
            days_left: 1,
        };
        let began = Instant::now();
        let looked = look(&mut Report::default(), &address, &files, &expected, SHORT);
        assert!(matches!(looked, Err(PeerError::Late)), "{looked:?}");
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
    }
}
