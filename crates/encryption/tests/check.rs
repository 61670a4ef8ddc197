//! What the check finds: in files, and at peers.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use openssl::ssl::{Ssl, SslContext, SslFiletype, SslMethod, SslVerifyMode};
use tempfile::{TempDir, tempdir};
use trireme_encryption::{Expectation, Report, check_files, check_peer, crl_days_left};
use trireme_tls::Files;
use trireme_tls::testing::{Days, NOW, Party, openssl_ca};

fn expected(names: &[&str], days_left: u32) -> Expectation {
    Expectation {
        names: names.iter().map(|name| name.to_string()).collect(),
        days_left,
    }
}

fn node(ca: &Party, days: Days) -> (TempDir, Files) {
    let dir = tempdir().unwrap();
    let files = ca.issue("node", days).files(ca, dir.path(), "node");
    fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
    (dir, files)
}

/// Exactly one complaint has all of `wanted`.
fn assert_complains(report: &Report, wanted: &[&str]) {
    let has_all = |line: &&String| wanted.iter().all(|part| line.contains(part));
    let found = report.bad().iter().filter(has_all).count();
    assert_eq!(found, 1, "{wanted:?} is not one of: {report:#?}");
    assert!(report.bad().iter().all(|line| !line.contains('\n')));
}

#[test]
fn good_files_are_good() {
    let (_dir, files) = node(&Party::authority("ca"), NOW);
    let report = check_files(&files, &expected(&["node"], 20));
    assert!(
        report.bad().is_empty() && report.good().len() >= 5,
        "{report:#?}"
    );
}

#[test]
fn dates_are_looked_at() {
    let ca = Party::authority("ca");
    for (days, wanted) in [
        ((-10, -1), "has expired"),
        // So it is for a node whose clock is two years back.
        ((730, 800), "is not valid before"),
        ((-10, 10), "days more; renew it"),
    ] {
        let (_dir, files) = node(&ca, days);
        let report = check_files(&files, &expected(&[], 20));
        assert_complains(&report, &["node.pem", "CN=node", wanted]);
    }
    let (_dir, files) = node(&ca, NOW);
    assert_complains(
        &check_files(&files, &expected(&[], 90)),
        &["node.pem", "renew it"],
    );
}

/// A revocation list of this authority, as PEM; `days`: its validity.
fn list(ca: &Party, name: &str, days: &str) -> String {
    let dir = tempdir().unwrap();
    ca.write(dir.path(), name);
    let (cert, key) = (format!("{name}.pem"), format!("{name}.key"));
    let arguments = ["-gencrl", "-crldays", days, "-out", "list"];
    openssl_ca(dir.path(), (&cert, &key), &arguments);
    fs::read_to_string(dir.path().join("list")).unwrap()
}

/// Without a list in force a node refuses every peer, so its end is told before.
#[test]
fn the_end_of_a_revocation_list_is_looked_at() {
    let (ca, other) = (Party::authority("ca"), Party::authority("other"));
    let (dir, mut files) = node(&ca, NOW);
    let crl = dir.path().join("lists.pem");
    files.crl = crl.to_str().unwrap().to_owned();
    let check = |lists: &[&str], days_left| {
        fs::write(&crl, lists.concat()).unwrap();
        check_files(&files, &expected(&[], days_left))
    };
    let (short, long) = (list(&ca, "ca", "5"), list(&ca, "ca", "50"));
    let words = ["lists.pem", "list of CN=ca", "days more", "-gencrl"];
    assert_complains(&check(&[&short], 20), &words);
    assert!(check(&[&short], 3).bad().is_empty());
    let good = check(&[&long], 20);
    assert!(good.bad().is_empty(), "{good:#?}");
    assert!(
        good.good()
            .iter()
            .any(|line| line.contains("list of CN=ca is valid until"))
    );
    // Behind another authority's list, after a comment.
    let foreign = list(&other, "other", "50");
    let report = check(&[&foreign, "# of ours\n", &short], 20);
    assert_complains(&report, &words);
    assert_eq!(report.bad().len(), 1, "{report:#?}");
    // OpenSSL takes the one of an authority's lists that is in force.
    assert!(check(&[&short, &long], 20).bad().is_empty());
}

#[test]
fn the_days_of_revocation_lists_are_counted() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("lists.pem");
    let days = |text: &str| {
        fs::write(&file, text).unwrap();
        crl_days_left(file.to_str().unwrap()).map_err(|error| error.to_string())
    };
    let of = |name: &str, days: &str| list(&Party::authority(name), name, days);
    let (short, long) = (of("ca", "5"), of("other", "50"));
    assert!(matches!(days(&short), Ok(4..=5))); // a day that has begun may count
    assert!(matches!(days(&format!("{long}{short}")), Ok(4..=5)));
    for (text, wanted) in [("", "no revocation list"), (&short[..100], "damaged")] {
        let error = days(text).unwrap_err();
        assert!(
            error.contains(wanted) && error.contains("lists.pem") && !error.contains('\n'),
            "{error}"
        );
    }
    let error = crl_days_left("/nowhere/lists.pem").unwrap_err().to_string();
    assert!(error.contains("/nowhere/lists.pem"), "{error}");
}

#[test]
fn chain_names_and_permissions_are_looked_at() {
    let (ca, other) = (Party::authority("ca"), Party::authority("other"));
    let (dir, mut files) = node(&ca, NOW);
    fs::set_permissions(&files.key, Permissions::from_mode(0o644)).unwrap();
    let report = check_files(&files, &expected(&["db1", "NODE"], 20));
    assert_complains(&report, &["node.key", "0644", "chmod 0600"]);
    assert_complains(&report, &["node.pem", "not for db1", "trireme tls renew"]);
    assert_eq!(report.bad().len(), 2, "{report:#?}");
    fs::set_permissions(&files.key, Permissions::from_mode(0o640)).unwrap(); // a group of the server's
    assert!(check_files(&files, &expected(&[], 20)).bad().is_empty());
    files.ca = other
        .write(dir.path(), "other")
        .0
        .to_str()
        .unwrap()
        .to_owned();
    assert_complains(
        &check_files(&files, &expected(&[], 20)),
        &["node.pem", "socket.ssl_ca"],
    );
}

#[test]
fn what_a_node_would_say_is_said() {
    let ca = Party::authority("ca");
    let (dir, files) = node(&ca, NOW);
    let (_, key) = ca.issue("else", NOW).write(dir.path(), "else");
    let wrong_key = Files {
        key: key.to_str().unwrap().to_owned(),
        ..files.clone()
    };
    assert_complains(
        &check_files(&wrong_key, &expected(&[], 20)),
        &["else.key", "is not the key"],
    );
    let missing = Files {
        cert: "/nowhere/cert.pem".to_owned(),
        ..files.clone()
    };
    assert_complains(
        &check_files(&missing, &expected(&[], 20)),
        &["/nowhere/cert.pem", "correct the path"],
    );
    let text = fs::read_to_string(&files.cert).unwrap();
    fs::write(&files.cert, &text[..text.len() / 2]).unwrap();
    assert_complains(
        &check_files(&files, &expected(&[], 20)),
        &["node.pem", "copy the file anew"],
    );
}

/// A member with these files that takes one call; where.
fn member(files: &Files) -> String {
    let mut context = SslContext::builder(SslMethod::tls_server()).unwrap();
    context.set_certificate_chain_file(&files.cert).unwrap();
    context
        .set_private_key_file(&files.key, SslFiletype::PEM)
        .unwrap();
    context.set_ca_file(&files.ca).unwrap();
    context.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    let context = context.build();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        if let Ok(mut session) = Ssl::new(&context).unwrap().accept(socket) {
            let _ = session.write_all(b"TRIREME\x01");
            let _ = session.read(&mut [0]);
        }
    });
    address
}

#[test]
fn a_peer_of_the_same_authority_is_good() {
    let ca = Party::authority("ca");
    let ((_near, near), (_far, far)) = (node(&ca, NOW), node(&ca, NOW));
    let report = check_peer(&member(&far), &near, &expected(&[], 20));
    assert!(
        report.bad().is_empty() && report.good().len() == 4,
        "{report:#?}"
    );
}

/// The node would not start with these, so nothing is said of whether its certificate is taken.
#[test]
fn a_call_without_the_certificate_is_told() {
    let ca = Party::authority("ca");
    let ((_near, near), (_far, far)) = (node(&ca, NOW), node(&ca, NOW));
    let unreadable = Files {
        password: "/nowhere/password".to_owned(),
        ..near
    };
    let report = check_peer(&member(&far), &unreadable, &expected(&[], 20));
    let words = [
        "called without this node's certificate",
        "/nowhere/password",
        "correct the path",
    ];
    assert_complains(&report, &words);
    let of_taking = |line: &String| line.contains("it takes") || line.contains("it refuses");
    assert!(
        !report.good().iter().chain(report.bad()).any(of_taking),
        "{report:#?}"
    );
}

#[test]
fn what_is_wrong_with_a_peer_is_said() {
    let (ca, other) = (Party::authority("ca"), Party::authority("other"));
    let (_near, near) = node(&ca, NOW);
    let (_far, far) = node(&other, (-10, -1));
    let report = check_peer(&member(&far), &near, &expected(&[], 20));
    assert_complains(&report, &["CN=node has expired"]);
    assert_complains(&report, &["this node refuses its certificate"]);
    assert_complains(&report, &["it refuses this node's certificate"]);
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    assert_complains(
        &check_peer(&free, &near, &expected(&[], 20)),
        &[&free, "cannot be reached"],
    );
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = plain.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut socket, _) = plain.accept().unwrap();
        let _ = socket.write_all(b"TRIREME\0 and so on, in plaintext");
        let _ = socket.read(&mut [0; 64]);
    });
    assert_complains(
        &check_peer(&address, &near, &expected(&[], 20)),
        &[&address, "does not speak TLS"],
    );
}
