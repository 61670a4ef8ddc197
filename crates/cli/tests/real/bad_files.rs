//! Files that do not do: certificates, keys and lists are one line that names file and remedy, and no running link is
//! dropped, unless the peer is revoked; a server that cannot write its `grastate.dat` ends.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use trireme_testbed::{StartMode, preload};
use trireme_tls::testing::{NOW, Party, openssl_ca};

use super::encryption::Store;
use super::load::Load;
use super::trial::{JOIN, SOON, Trial, await_true, pause, provider};

const NODES: [&str; 3] = ["node1", "node2", "node3"];
/// So much is the clock of a node late whose battery has failed.
const TWO_YEARS_BACK_S: &str = "-63072000";

/// Options that a SET is to be refused for, and what the line in the log has: the file, and words of the remedy.
type Bad = (String, String, &'static str);

fn bad_settings(dir: &Path) -> Vec<Bad> {
    let ca = Party::authority("ca");
    let text = |path: &Path| path.to_str().expect("a path of ours").to_owned();
    let pair = |name: &str, days| {
        let (cert, key) = ca.issue(name, days).write(dir, name);
        (text(&cert), text(&key))
    };
    let both =
        |(cert, key): &(String, String)| format!("socket.ssl_cert={cert};socket.ssl_key={key}");
    let (late, early) = (pair("late", (-9, -2)), pair("early", (2, 9)));
    let other = pair("other", NOW);
    let half = text(&dir.join("half.pem"));
    let pem = fs::read_to_string(&other.0).expect("a file of ours");
    fs::write(&half, &pem[..pem.len() / 2]).expect("a file of ours");
    let missing = text(&dir.join("missing.pem"));
    let mut bad = vec![
        (both(&late), late.0.clone(), "has expired on"),
        (both(&early), early.0.clone(), "correct this node's clock"),
        (
            format!("socket.ssl_key={}", other.1),
            other.1.clone(),
            "name the key that the certificate was made for",
        ),
    ];
    for option in ["socket.ssl_cert", "socket.ssl_ca", "socket.ssl_crl"] {
        bad.push((
            format!("{option}={half}"),
            half.clone(),
            "copy the file anew",
        ));
    }
    for option in ["socket.ssl_ca", "socket.ssl_password_file"] {
        bad.push((
            format!("{option}={missing}"),
            missing.clone(),
            "correct the path",
        ));
    }
    // Root may read everything, but no directory.
    let dir = text(dir);
    bad.push((
        format!("socket.ssl_ca={dir}"),
        format!("'{dir}'"),
        "check the file",
    ));
    bad
}

/// Whether one line of a node's log has all these words.
fn says(trial: &Trial, i: usize, words: &[&str]) -> bool {
    let log = trial.node(i).log_text();
    let has_all = |line: &str| words.iter().all(|word| line.contains(word));
    log.lines().any(has_all)
}

/// The node refuses a SET with one line in its log.
fn assert_refused(trial: &Trial, i: usize, (options, file, words): &Bad) {
    let set = format!("SET GLOBAL wsrep_provider_options='{options}'");
    assert!(trial.try_exec(i, &set).is_err(), "{set}");
    assert!(
        says(trial, i, &[file, words]),
        "no line names {file} and the remedy ({words})"
    );
}

/// How many views there have been; each dropped link makes one.
fn views(trial: &Trial) -> String {
    trial.status(0, "wsrep_cluster_conf_id")
}

/// Node 1 takes `options`, and the view stays. Then it refuses node 3, which calls it anew.
fn assert_kept_out(trial: &mut Trial, options: &str, words: &[&str]) {
    let before = views(trial);
    trial.set_option(0, options);
    pause(std::time::Duration::from_secs(1));
    assert_eq!(views(trial), before, "a link was dropped");
    assert_refuses_caller(trial, words);
}

/// Node 3 calls node 1 anew, which refuses it with one line that has all these words.
fn assert_refuses_caller(trial: &mut Trial, words: &[&str]) {
    // A server that is killed while it starts may leave a tc.log with which it does not start again (runbooks.md).
    trial.await_size(2, 3, JOIN);
    trial.kill_node(2).expect("node 3 can be killed");
    trial.await_size(0, 2, SOON);
    trial
        .spawn_node(2, StartMode::Join)
        .expect("node 3 can be started");
    let is_told = await_true(JOIN, || says(trial, 0, words));
    assert!(
        is_told,
        "node 1 does not say why it refuses node 3: {words:?}"
    );
}

#[test]
fn files_that_do_not_do_are_refused_and_drop_no_link() {
    let Some(path) = provider() else { return };
    let store = Store::new(&NODES);
    let mut trial = Trial::start_under(path, 3, &store.options("node1")).expect("the tests are on");
    let dir = TempDir::new().expect("a temporary directory");
    let before = views(&trial);
    let load = Load::start(&trial, &[0, 1, 2]);
    for bad in bad_settings(dir.path()) {
        assert_refused(&trial, 0, &bad);
    }
    load.stop().assert_undisturbed();
    assert_eq!(views(&trial), before, "a link was dropped");
    // An authority that signed nobody here: files as good as any, so only new links meet it.
    let (other, _) = Party::authority("other").write(dir.path(), "other-ca");
    let wrong = format!("socket.ssl_ca={}", other.display());
    assert_kept_out(&mut trial, &wrong, &["does not trust", "other-ca.pem"]);
    let right = format!("socket.ssl_ca={}", store.file("node1", "ca.pem"));
    trial.set_option(0, &right);
    trial.await_size(0, 3, JOIN);
    // Node 3 gets a certificate of its own, which is revoked.
    trial.settings_mut().provider_options = store.options("node3");
    let list = revoked(&store, "node3", dir.path());
    let words = ["CN=node3", "revoked", "have a new one made"];
    assert_kept_out(&mut trial, &format!("socket.ssl_crl={list}"), &words);
    trial.set_option(0, "socket.ssl_crl=");
    trial.await_size(0, 3, JOIN);
    trial.assert_equal();
}

/// A revocation list of the operator's authority, with one node on it; made as docs/security.md says.
fn revoked(store: &Store, node: &str, dir: &Path) -> String {
    let authority = store.path("tls/authority.pem");
    let authority = (authority.as_str(), authority.as_str());
    openssl_ca(dir, authority, &["-revoke", &store.file(node, "cert.pem")]);
    openssl_ca(dir, authority, &["-gencrl", "-out", "list.pem"]);
    dir.join("list.pem")
        .to_str()
        .expect("a path of ours")
        .to_owned()
}

#[test]
fn a_clock_two_years_back_refuses_new_files_and_drops_no_link() {
    let Some(path) = provider() else { return };
    let store = Store::new(&NODES);
    let mut trial = Trial::prepare(path, 3, |settings| {
        settings.provider_options = store.options("node1");
    });
    if let Err(error) = preload::into(&mut trial, [0], "clock_off", include_str!("clock_off.c")) {
        eprintln!("skipped: needs a C compiler: {error}");
        return;
    }
    let off = trial.node(0).dir.join("off");
    trial.set_environment(0, "TRIREME_CLOCK_OFF", &off);
    trial.cluster_start();
    trial.exec(0, "CREATE DATABASE d");
    let before = views(&trial);
    let load = Load::start(&trial, &[0, 1, 2]);
    fs::write(&off, TWO_YEARS_BACK_S).expect("a file");
    let certificate = store.file("node1", "cert.pem");
    let bad = (
        "socket.ssl_reload=1".to_owned(),
        certificate,
        "correct this node's clock",
    );
    assert_refused(&trial, 0, &bad);
    load.stop().assert_undisturbed();
    assert_eq!(views(&trial), before, "a link was dropped");
    // A new link: node 1 sees node 3's certificate as one of the future.
    assert_refuses_caller(&mut trial, &["not yet valid", "correct this node's clock"]);
    fs::remove_file(&off).expect("the file is there");
    trial.await_size(0, 3, JOIN);
    trial.assert_equal();
}

/// Otherwise a crash within the snapshot would leave a file that vouches for a database half replaced.
#[test]
fn a_joiner_that_cannot_take_its_position_back_ends() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    trial.stop(2);
    let grastate = trial.node(2).datadir().join("grastate.dat");
    fs::remove_file(&grastate).expect("a stopped node has one");
    // Every write fails: no room. What is read names no history.
    std::os::unix::fs::symlink("/dev/full", &grastate).expect("its directory can be written to");
    assert!(trial.start_node(2).is_err(), "the node runs");
    assert!(
        await_true(SOON, || trial.node(2).pid().is_none()),
        "the server does not end"
    );
    let words = [
        "cannot write grastate.dat",
        "this process ends",
        "Repair the disk",
    ];
    assert!(says(&trial, 2, &words));
    fs::remove_file(&grastate).expect("the link is there");
    trial.restart(2);
    trial.await_size(2, 3, JOIN);
    trial.assert_equal();
}
