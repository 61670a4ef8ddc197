//! Two sides with a shared secret, and those in the middle without it.

mod common;

use std::fs;
use std::io::{ErrorKind, IoSlice};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use common::{shake, verdict};
use tempfile::tempdir;
use trireme_tls::testing::{NOW, Party, secret};
use trireme_tls::{Credentials, Failure};

const OLD: &str = "the old secret of this cluster, 32+";
const NEW: &str = "the new secret of this cluster, 32+";

fn write(dir: &Path, text: &str, mode: u32) -> String {
    let file = dir.join("secret");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    file.to_str().unwrap().to_owned()
}

fn are_admitted(acceptor: &Credentials, dialer: &Credentials) {
    let (near, far) = shake(acceptor, dialer);
    let (mut near, mut far) = match (near, far) {
        (Ok(near), Ok(far)) => (near, far),
        (near, far) => panic!("{:?} and {:?}", near.err(), far.err()),
    };
    near.write_vectored(&[IoSlice::new(b"word")], 100).unwrap();
    far.readable(false);
    let mut heard = [0; 16];
    assert_eq!(far.read(&mut heard).unwrap(), 4);
    assert_eq!(&heard[..4], b"word");
    assert_eq!(near.describe(), far.describe());
    let starts = "TLS 1.3 TLS_AES_128_GCM_SHA256, shared secret ";
    assert!(near.describe().starts_with(starts), "{}", near.describe());
}

/// Both sides say that they do not have the same.
fn are_refused(acceptor: &Credentials, dialer: &Credentials) {
    let (near, far) = shake(acceptor, dialer);
    let texts = [near.unwrap_err(), verdict(far)].map(|failure| failure.to_string());
    for text in &texts {
        let (names, fine) = (text.contains("repl.secret_file"), !text.contains('\n'));
        assert!(names && fine, "{texts:?}");
    }
}

#[test]
fn who_has_the_secret_is_admitted() {
    let both = [secret(OLD), secret(&format!("  {OLD}\r\n\n"))];
    are_admitted(&both[0], &both[1]);
}

#[test]
fn another_secret_is_refused_and_named_on_both_sides() {
    are_refused(&secret(OLD), &secret(NEW));
}

#[test]
fn a_secret_changes_in_three_steps() {
    let old = secret(OLD);
    let accepts = secret(&format!("{OLD}\n{NEW}\n"));
    let sends = secret(&format!("{NEW}\n{OLD}\n"));
    let new = secret(NEW);
    for (one, next) in [(&old, &accepts), (&accepts, &sends), (&sends, &new)] {
        for (acceptor, dialer) in [(one, one), (one, next), (next, one), (next, next)] {
            are_admitted(acceptor, dialer);
        }
    }
    // A step that was left out.
    are_refused(&old, &sends);
    are_refused(&new, &accepts);
}

#[test]
fn a_certificate_takes_the_place_of_no_secret() {
    let ca = Party::authority("ca");
    let node = ca.issue("node", NOW).credentials(&ca);
    let secret = secret(OLD);
    // Who answers has a certificate.
    let (near, far) = shake(&node, &secret);
    let text = far.unwrap_err().to_string();
    assert!(text.contains("does not have the secret"), "{text}");
    assert!(matches!(near.unwrap_err(), Failure::Alert { .. }));
    // Who calls has one.
    let (near, far) = shake(&secret, &node);
    let text = near.unwrap_err().to_string();
    assert!(text.contains("does not have the secret"), "{text}");
    let text = verdict(far).to_string();
    assert!(text.contains("repl.secret_file"), "{text}");
}

/// The identity is no secret: it stands in the first message. Who has recorded it needs the key all the same.
#[test]
fn whoever_knows_the_identity_alone_is_refused() {
    use openssl::ssl::{Ssl, SslContext, SslMethod};
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use trireme_tls::{Handshake, Progress, Role};

    let honest = secret(OLD);
    let (near, far) = UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    let dialing = Handshake::new(&honest, Role::Dialer, far).unwrap();
    let dialing = dialing.step().unwrap();
    assert!(matches!(dialing, Progress::Waiting(_)));
    let mut hello = [0; 4096];
    let len = (&near).read(&mut hello).unwrap();
    let is_hex = |run: &[u8]| run.iter().all(u8::is_ascii_hexdigit);
    let identity = hello[..len].windows(64).find(|run| is_hex(run)).unwrap();
    let identity = identity.to_vec();

    let mut context = SslContext::builder(SslMethod::tls()).unwrap();
    context.set_psk_client_callback(move |_, _, name, key| {
        name[..identity.len()].copy_from_slice(&identity);
        key[..32].fill(7);
        Ok(32)
    });
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let stranger = Ssl::new(&context.build()).unwrap();
    let stranger = std::thread::spawn(move || stranger.connect(far).map(drop).unwrap_err());
    let mut handshake = Handshake::new(&honest, Role::Acceptor, near).unwrap();
    let failure = loop {
        match handshake.step() {
            Ok(Progress::Waiting(waiting)) => handshake = waiting,
            Ok(Progress::Done(_)) => panic!("a session without the secret"),
            Err(failure) => break failure,
        }
    };
    assert!(
        failure.to_string().contains("does not have the secret"),
        "{failure}"
    );
    stranger.join().unwrap();
}

#[test]
fn a_session_is_not_resumed() {
    let both = secret(OLD);
    let (near, far) = shake(&both, &both);
    let (near, mut far) = (near.unwrap(), far.unwrap());
    drop(near);
    far.readable(false);
    // The acceptor has sent no ticket, and nothing else.
    let read = far.read(&mut [0; 100]).map_err(|error| error.kind());
    assert!(
        matches!(read, Ok(0) | Err(ErrorKind::ConnectionReset)),
        "{read:?}"
    );
}

#[test]
fn what_is_wrong_with_the_file_is_named() {
    let dir = tempdir().unwrap();
    let refused = |text: &str, mode, wanted: &str| {
        let file = write(dir.path(), text, mode);
        let said = Credentials::of_secret(&file).unwrap_err().to_string();
        let is_line = said.starts_with("repl.secret_file") && !said.contains('\n');
        assert!(
            is_line && said.contains(&file) && said.contains(wanted),
            "{wanted}: {said}"
        );
        assert!(!said.contains(OLD), "{said}");
    };
    refused("", 0o600, "is empty");
    refused(" \n\t\n", 0o600, "is empty");
    refused(
        "31 bytes are less than required",
        0o600,
        "31 bytes in line 1",
    );
    refused(&format!("{OLD}\nshort\n"), 0o600, "5 bytes in line 2");
    refused(&"x".repeat(5000), 0o600, "5000 bytes in line 1");
    refused(&format!("{OLD}\n{NEW}\n{OLD}"), 0o600, "has 3 lines");
    for mode in [0o604, 0o660, 0o601] {
        refused(OLD, mode, "chmod 0600");
    }
    let missing = dir.path().join("missing");
    let said = Credentials::of_secret(missing.to_str().unwrap()).unwrap_err();
    assert!(said.to_string().contains("correct the path"), "{said}");
    Credentials::of_secret(&write(dir.path(), OLD, 0o400)).unwrap();
}

/// Root lends a file to the group of the server's user; another owner's group has no business with it.
#[test]
fn a_group_may_read_a_file_of_roots_only() {
    let dir = tempdir().unwrap();
    let file = write(dir.path(), OLD, 0o640);
    let is_root = fs::metadata(&file).unwrap().uid() == 0;
    if is_root {
        Credentials::of_secret(&file).unwrap();
        chown(&file, Some(65_534), None).unwrap();
    }
    let said = Credentials::of_secret(&file).unwrap_err().to_string();
    assert!(said.contains("0640") && said.contains("root"), "{said}");
}
