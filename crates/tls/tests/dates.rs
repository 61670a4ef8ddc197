//! Peers whose certificates are out of date, or seem so to a clock that is wrong; and files that may not be read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use openssl::ssl::{Ssl, SslContext, SslFiletype, SslMethod, SslVerifyMode};
use tempfile::tempdir;
use trireme_tls::testing::{Days, NOW, Party};
use trireme_tls::{Credentials, Failure, Handshake, Progress, Role};

/// Another implementation that presents a certificate of these days, and takes any.
fn foreign(ca: &Party, days: Days) -> SslContext {
    let dir = tempdir().unwrap();
    let files = ca.issue("peer", days).files(ca, dir.path(), "peer");
    let mut context = SslContext::builder(SslMethod::tls()).unwrap();
    context
        .set_certificate_file(&files.cert, SslFiletype::PEM)
        .unwrap();
    context
        .set_private_key_file(&files.key, SslFiletype::PEM)
        .unwrap();
    context.set_verify_callback(SslVerifyMode::PEER, |_, _| true);
    context.build()
}

/// Why a node refuses a peer.
fn refusal(node: &Credentials, role: Role, peer: &SslContext) -> Failure {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let peer = Ssl::new(peer).unwrap();
    let other = std::thread::spawn(move || match role {
        Role::Dialer => peer.accept(far).is_ok(),
        Role::Acceptor => peer.connect(far).is_ok(),
    });
    let mut handshake = Handshake::new(node, role, near).unwrap();
    let failure = loop {
        match handshake.step() {
            Ok(Progress::Waiting(waiting)) => handshake = waiting,
            Ok(Progress::Done(_)) => panic!("the peer is trusted"),
            Err(failure) => break failure,
        }
    };
    let _ = other.join();
    failure
}

#[test]
fn a_peers_dates_are_told_with_the_remedy() {
    let ca = Party::authority("ca");
    let dir = tempdir().unwrap();
    let files = ca.issue("node", NOW).files(&ca, dir.path(), "node");
    let node = Credentials::read(&files).unwrap();
    for (days, wanted) in [
        (
            (-10, -1),
            [
                "certificate has expired",
                "renew socket.ssl_cert there, or correct this node's clock",
            ],
        ),
        // A clock two years back sees a certificate of today so.
        (
            (730, 800),
            [
                "certificate is not yet valid",
                "correct this node's clock, or have the certificate made anew there",
            ],
        ),
    ] {
        let peer = foreign(&ca, days);
        for role in [Role::Dialer, Role::Acceptor] {
            let text = refusal(&node, role, &peer).to_string();
            let all = [wanted[0], wanted[1], "CN=peer", files.ca.as_str()];
            assert!(
                all.iter().all(|part| text.contains(part)) && !text.contains('\n'),
                "{role:?}: {text}"
            );
        }
    }
}

/// Set in a process that may not read the file.
const LOCKED: &str = "TRIREME_TEST_LOCKED";

#[test]
fn a_file_that_may_not_be_read_is_named() {
    if let Ok(file) = std::env::var(LOCKED) {
        let error = trireme_tls::Files {
            cert: file.clone(),
            key: file.clone(),
            ..trireme_tls::Files::default()
        };
        let text = Credentials::read(&error).unwrap_err().to_string();
        println!("{text}");
        assert!(
            text.contains(&file) && text.contains("chmod 0600") && !text.contains('\n'),
            "{text}"
        );
        return;
    }
    let dir = tempdir().unwrap();
    let file = dir.path().join("cert.pem");
    fs::write(&file, "of somebody else").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    // Root may read everything, so another process tries it, as nobody; its program must be where nobody may go.
    let program = dir.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(&program);
    command.args([
        "--exact",
        "a_file_that_may_not_be_read_is_named",
        "--nocapture",
    ]);
    command.env(LOCKED, &file);
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if is_root {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("socket.ssl_cert: cannot read"),
        "{said}"
    );
}
