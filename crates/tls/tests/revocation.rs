//! Certificates that an authority has revoked (`socket.ssl_crl`). The lists are made by the program `openssl`.

mod common;

use std::fs;
use std::path::Path;

use common::{shake, verdict};
use trireme_tls::testing::{NOW, Party, openssl_ca};
use trireme_tls::{Credentials, Files};

/// The authority's files, in the test's directory.
const CA: (&str, &str) = ("ca.pem", "ca.key");

/// A node of `ca` that trusts it, with a list of revocations.
fn node(ca: &Party, dir: &Path, name: &str) -> Files {
    Files {
        crl: dir.join("crl.pem").to_str().unwrap().to_owned(),
        ..ca.issue(name, NOW).files(ca, dir, name)
    }
}

/// Two nodes of an authority, which has its files in the directory, too.
fn two_nodes(dir: &Path) -> (Files, Files) {
    let ca = Party::authority("ca");
    ca.write(dir, "ca");
    (node(&ca, dir, "one"), node(&ca, dir, "other"))
}

fn read(files: &Files) -> Credentials {
    Credentials::read(files).unwrap()
}

#[test]
fn who_is_on_the_list_is_kept_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (one, other) = two_nodes(dir);
    // Nobody is on the first list.
    openssl_ca(dir, CA, &["-gencrl", "-out", "crl.pem"]);
    let (near, far) = shake(&read(&one), &read(&other));
    near.unwrap();
    far.unwrap();
    openssl_ca(dir, CA, &["-revoke", "other.pem"]);
    openssl_ca(dir, CA, &["-gencrl", "-out", "crl.pem"]);
    let (acceptor, dialer) = shake(&read(&one), &read(&other));
    let text = acceptor.unwrap_err().to_string();
    assert!(
        text.contains("CN=other") && text.contains("socket.ssl_crl here"),
        "{text}"
    );
    let text = verdict(dialer).to_string();
    assert!(
        text.contains("certificate revoked") && text.contains("have a new one made"),
        "{text}"
    );
}

#[test]
fn without_a_list_of_the_authority_nobody_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (ca, elsewhere) = (Party::authority("ca"), Party::authority("elsewhere"));
    elsewhere.write(dir, "ca");
    openssl_ca(dir, CA, &["-gencrl", "-out", "crl.pem"]);
    let (one, other) = (node(&ca, dir, "one"), node(&ca, dir, "other"));
    let (acceptor, dialer) = shake(&read(&one), &read(&other));
    drop(acceptor);
    let text = dialer.unwrap_err().to_string();
    assert!(text.contains("have a new list made"), "{text}");
}

/// A session that has begun is looked up in new lists, and only there.
#[test]
fn a_new_list_ends_the_sessions_of_those_who_are_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (one, other) = two_nodes(dir);
    let without_list = |files: &Files| Files {
        crl: String::new(),
        ..files.clone()
    };
    let (near, far) = (read(&without_list(&one)), read(&without_list(&other)));
    let (acceptor, dialer) = shake(&near, &far);
    let (acceptor, dialer) = (acceptor.unwrap(), dialer.unwrap());
    openssl_ca(dir, CA, &["-gencrl", "-out", "crl.pem"]);
    assert_eq!(
        acceptor.revocation(&read(&one)),
        None,
        "nobody is on the list"
    );
    openssl_ca(dir, CA, &["-revoke", "other.pem"]);
    openssl_ca(dir, CA, &["-gencrl", "-out", "crl.pem"]);
    let text = acceptor.revocation(&read(&one)).unwrap();
    let words = ["CN=other", "certificate revoked", "socket.ssl_crl here"];
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    assert_eq!(dialer.revocation(&read(&other)), None, "only one is on it");
    assert_eq!(acceptor.revocation(&near), None, "there is no list");
    // Another authority's list, and other trusted authorities, say nothing of this peer.
    let elsewhere = Party::authority("elsewhere");
    let foreign = elsewhere.issue("else", NOW).files(&elsewhere, dir, "else");
    let foreign = Files {
        crl: one.crl.clone(),
        ..foreign
    };
    assert_eq!(acceptor.revocation(&read(&foreign)), None);
}

/// A root, an authority that it has signed, and two nodes of that authority.
struct Between {
    dir: tempfile::TempDir,
    nodes: [Files; 2],
}

impl Between {
    fn new() -> Between {
        let dir = tempfile::tempdir().unwrap();
        let root = Party::authority("root");
        let between = root.issue_authority("between");
        for (ca, name) in [(&root, "root"), (&between, "between")] {
            let dir = dir.path().join(name);
            fs::create_dir(&dir).unwrap();
            ca.write(&dir, "ca");
            between.write(&dir, "between");
        }
        let nodes = ["one", "other"].map(|name| {
            let party = between.issue(name, NOW);
            let files = party.files(&root, dir.path(), name);
            let [leaf, above] = [Path::new(&files.cert), &dir.path().join("between/ca.pem")]
                .map(|path| fs::read_to_string(path).unwrap());
            fs::write(&files.cert, leaf + &above).unwrap();
            Files {
                crl: dir.path().join("crl.pem").to_str().unwrap().to_owned(),
                ..files
            }
        });
        Between { dir, nodes }
    }

    /// The handshake under new lists of these authorities: the failure of the dialer.
    fn failure(&self, lists: &[&str]) -> Option<String> {
        let lists = lists.iter().map(|name| {
            let dir = self.dir.path().join(name);
            openssl_ca(&dir, CA, &["-gencrl", "-out", "crl.pem"]);
            fs::read_to_string(dir.join("crl.pem")).unwrap()
        });
        fs::write(&self.nodes[0].crl, lists.collect::<String>()).unwrap();
        let [one, other] = (self.nodes.each_ref()).map(read);
        // The dialer is the first that sees a chain.
        let (_acceptor, dialer) = shake(&one, &other);
        dialer.err().map(|failure| failure.to_string())
    }
}

#[test]
fn a_revoked_authority_between_is_refused() {
    let cluster = Between::new();
    let both = ["root", "between"];
    assert_eq!(cluster.failure(&both), None);
    openssl_ca(
        &cluster.dir.path().join("root"),
        CA,
        &["-revoke", "between.pem"],
    );
    let text = cluster.failure(&both).unwrap();
    assert!(
        text.contains("CN=between") && text.contains("certificate revoked"),
        "{text}"
    );
    // Without a list of the root, the authority between is not looked up.
    assert_eq!(cluster.failure(&["between"]), None);
    // With one, each authority must have a list.
    let text = cluster.failure(&["root"]).unwrap();
    assert!(text.contains("have a new list made"), "{text}");
}
