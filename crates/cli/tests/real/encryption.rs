//! The way of an operator: `trireme tls` and its files, on clusters under load.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use trireme_testbed::settings::SstMethod;

use super::inspect::check;
use super::load::Load;
use super::trial::{JOIN, SOON, Trial, pause, provider};

/// How often each change is made; more by `TRIREME_ROUNDS`.
const ROUNDS: usize = 3;
/// Longest pause of all commits that a change may bring: each of those that TRIREME_ROUNDS asks for, on a machine that has nothing
/// else to do; most of the others.
const GAP: Duration = Duration::from_millis(100);
/// The same on a machine that does much else.
const GAP_OF_BUSY: Duration = Duration::from_secs(1);
const NODES: [&str; 3] = ["node1", "node2", "node3"];
const RELOAD: &str = "socket.ssl_reload=1";

fn rounds() -> usize {
    let given = std::env::var("TRIREME_ROUNDS");
    given.map_or(ROUNDS, |text| {
        text.parse().expect("TRIREME_ROUNDS is a number")
    })
}

/// Runs `trireme` with these arguments.
fn trireme(args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_trireme"))
        .args(args)
        .output();
    output.expect("the program can be started")
}

/// The same; it must succeed. What it printed.
fn must(args: &[&str]) -> String {
    let output = trireme(args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "trireme {args:?}: {text}{errors}");
    text
}

/// An operator's directory with files for all nodes, which read them there.
pub struct Store {
    dir: TempDir,
}

impl Store {
    pub fn new(nodes: &[&str]) -> Store {
        Store::lasting("1000", nodes)
    }

    /// Certificates that expire after so many days.
    pub fn lasting(days: &str, nodes: &[&str]) -> Store {
        let store = Store {
            dir: TempDir::new().expect("a temporary directory"),
        };
        let dir = store.path("tls");
        must(&[&["tls", "init", "--dir", &dir, "--days", days], nodes].concat());
        store
    }

    /// A file of the operator's.
    pub fn path(&self, name: &str) -> String {
        let path: PathBuf = self.dir.path().join(name);
        path.to_str().expect("a path of ours").to_owned()
    }

    /// A file of a node; `%n`: of the node that is asked.
    pub fn file(&self, node: &str, name: &str) -> String {
        self.path(&format!("tls/nodes/{node}/{name}"))
    }

    /// Provider options with the files of a node.
    pub fn options(&self, node: &str) -> String {
        format!(
            "socket.ssl_cert={};socket.ssl_key={};socket.ssl_ca={}",
            self.file(node, "cert.pem"),
            self.file(node, "key.pem"),
            self.file(node, "ca.pem")
        )
    }

    /// `tls renew`.
    pub fn renew(&self, args: &[&str]) {
        let dir = self.path("tls");
        must(&[&["tls", "renew", "--dir", &dir], args].concat());
    }

    /// `tls enable` for all nodes of a trial.
    pub fn enable(&self, trial: &Trial, args: &[&str]) -> Output {
        let files = ["cert.pem", "key.pem", "ca.pem"].map(|name| self.file("%n", name));
        let servers: Vec<String> = trial
            .nodes()
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.ports.mysql))
            .collect();
        let mut all = vec![
            "tls", "enable", "--cert", &files[0], "--key", &files[1], "--ca", &files[2],
        ];
        all.extend(args);
        all.extend(servers.iter().map(String::as_str));
        trireme(&all)
    }

    fn must_enable(&self, trial: &Trial) {
        let output = self.enable(trial, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{errors}{}",
            String::from_utf8_lossy(&output.stdout)
        );
        for i in 0..trial.nodes().len() {
            assert_eq!(trial.status(i, "wsrep_trireme_plaintext_links"), "0");
        }
    }
}

/// The way back, by hand.
fn disable(trial: &Trial) {
    for options in [
        "repl.require_encryption=no;socket.dynamic=yes",
        "socket.ssl=no",
        "socket.dynamic=no",
    ] {
        (0..3).for_each(|i| trial.set_option(i, options));
    }
    (0..3).for_each(|i| trial.await_status(i, "wsrep_trireme_plaintext_links", "2", SOON));
}

/// Under load no client notices anything of `change` but a short pause: how long that is.
fn gap_of(trial: &mut Trial, what: &str, change: impl FnOnce(&mut Trial)) -> Duration {
    let (load, began) = (Load::start(trial, &[0, 1, 2]), Instant::now());
    change(trial);
    pause(Duration::from_millis(200));
    let record = load.stop();
    let gap = record.longest_gap(began, Instant::now());
    eprintln!(
        "  {what}: {} commits, longest gap {gap:?}",
        record.commits.len()
    );
    record.assert_undisturbed();
    gap
}

/// The pauses of all rounds are as short as they have to be.
fn assert_short(what: &str, mut gaps: Vec<Duration>) {
    gaps.sort_unstable();
    let is_asked_for = std::env::var_os("TRIREME_ROUNDS").is_some();
    let strict = match is_asked_for {
        true => gaps.len() - 1,
        false => gaps.len() / 2,
    };
    assert!(
        gaps[strict] < GAP && gaps[gaps.len() - 1] < GAP_OF_BUSY,
        "{what}: no commits for {gaps:?}"
    );
}

#[test]
fn a_live_cluster_is_led_to_tls_and_back() {
    let Some(path) = provider() else { return };
    let store = Store::new(&NODES);
    let mut trial = Trial::start_under(path, 3, "").expect("the tests are on");
    let mut gaps = Vec::new();
    for round in 1..=rounds() {
        gaps.push(gap_of(
            &mut trial,
            &format!("round {round}, to TLS"),
            |trial| {
                store.must_enable(trial);
            },
        ));
        let again = store.enable(&trial, &[]);
        assert!(String::from_utf8_lossy(&again.stdout).contains("nothing to do"));
        if round < rounds() {
            disable(&trial);
        }
    }
    assert_short("to TLS", gaps);
    let refused = trial.try_exec(0, "SET GLOBAL wsrep_provider_options='socket.dynamic=yes'");
    assert!(refused.is_err(), "encryption is required");
    // What the nodes present, and what a stranger's look finds.
    let peers: Vec<String> = trial
        .nodes()
        .iter()
        .map(|node| format!("127.0.0.1:{}", node.ports.group))
        .collect();
    let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| store.file("node1", name));
    let mut check = vec![
        "tls", "check", "--cert", &cert, "--key", &key, "--ca", &ca, "--name", "node1",
    ];
    check.extend(peers.iter().flat_map(|peer| ["--peer", peer]));
    let text = must(&check);
    assert!(
        NODES
            .iter()
            .all(|node| text.contains(&format!("CN={node} is for"))),
        "{text}"
    );
    assert_eq!(
        text.matches("it takes this node's certificate").count(),
        3,
        "{text}"
    );
    let other = Store::new(&["node1"]);
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| other.file("node1", name));
    let found = trireme(&[
        "tls", "check", "--cert", &cert, "--key", &key, "--ca", &ca, "--peer", &peers[0],
    ]);
    let text = String::from_utf8_lossy(&found.stdout);
    assert!(
        !found.status.success() && text.contains("it refuses this node's certificate"),
        "{text}"
    );
    // A node that restarts with what the operator has written down by then.
    trial.kill_node(2).expect("node 3 can be killed");
    trial.settings_mut().provider_options =
        format!("{};repl.require_encryption=yes", store.options("node3"));
    trial.start_node(2).expect("node 3 starts again");
    trial.await_size(0, 3, JOIN);
    trial.assert_equal();
}

#[test]
fn the_authority_of_a_live_cluster_is_changed() {
    let Some(path) = provider() else { return };
    let store = Store::new(&NODES);
    let options = format!("{};repl.require_encryption=yes", store.options("node1"));
    let mut trial = Trial::start_under(path, 3, &options).expect("the tests are on");
    let mut gaps = Vec::new();
    let steps: [&[&str]; 3] = [&["--new-authority"], &[], &["--drop-old-authority"]];
    for round in 1..=rounds() {
        let what = format!("round {round}, another authority");
        gaps.push(gap_of(&mut trial, &what, |trial| {
            for step in steps {
                store.renew(step);
                (0..3).for_each(|i| trial.set_option(i, RELOAD));
            }
            (0..3).for_each(|i| trial.await_size(i, 3, SOON));
        }));
    }
    assert_short("another authority", gaps);
    // Now with links that are made anew in the middle of each step: node 2 has reloaded, node 1 has not yet.
    for step in steps {
        store.renew(step);
        trial.set_option(1, RELOAD);
        trial.kill_node(2).expect("node 3 can be killed");
        trial.start_node(2).expect("node 3 starts again");
        trial.await_size(0, 3, JOIN);
        trial.set_option(0, RELOAD);
    }
    trial.assert_equal();
}

#[test]
fn the_secret_of_a_live_cluster_is_changed() {
    let Some(path) = provider() else { return };
    let dir = TempDir::new().expect("a temporary directory");
    let file = dir.path().join("secret");
    let file = file.to_str().expect("a path of ours");
    must(&["secret", "new", file]);
    let options = format!("repl.secret_file={file};repl.require_encryption=yes");
    let mut trial = Trial::start_under(path, 3, &options).expect("the tests are on");
    let mut gaps = Vec::new();
    for round in 1..=rounds() {
        let what = format!("round {round}, another secret");
        gaps.push(gap_of(&mut trial, &what, |trial| {
            for step in ["stage", "swap", "drop-old"] {
                must(&["secret", step, file]);
                (0..3).for_each(|i| trial.set_option(i, RELOAD));
            }
            (0..3).for_each(|i| trial.await_size(i, 3, SOON));
        }));
    }
    assert_short("another secret", gaps);
    // The doctor knows what protects the cluster, and who may read it.
    for name in ["plaintext", "mixed-tls", "key-mode"] {
        assert_eq!(check(&trial, 0, name).0, "ok", "{name}");
    }
    let set_mode = |mode| fs::set_permissions(file, fs::Permissions::from_mode(mode));
    set_mode(0o644).expect("a file of ours");
    let (result, text) = check(&trial, 0, "key-mode");
    assert!(
        result == "failed" && text.contains(file),
        "{result}: {text}"
    );
    // A secret that others can read is not taken: nothing changes, and no link is dropped.
    let refused = trial.try_exec(0, "SET GLOBAL wsrep_provider_options='socket.ssl_reload=1'");
    assert!(refused.is_err() && trial.node(0).log_text().contains("has mode 0644"));
    set_mode(0o600).expect("a file of ours");
    // Now with links that are made anew in the middle of each step: node 2 has reloaded, node 1 has not yet.
    for step in ["stage", "swap", "drop-old"] {
        must(&["secret", step, file]);
        trial.set_option(1, RELOAD);
        trial.kill_node(2).expect("node 3 can be killed");
        trial.start_node(2).expect("node 3 starts again");
        trial.await_size(0, 3, JOIN);
        trial.set_option(0, RELOAD);
    }
    trial.assert_equal();
}

#[test]
fn full_copies_are_encrypted_as_the_snippet_says() {
    let Some(path) = provider() else { return };
    let store = Store::new(&["node1"]);
    let dir = store.file("node1", "");
    let snippet =
        std::fs::read_to_string(store.file("node1", "trireme-tls.cnf")).expect("the snippet");
    let (_, sst) = snippet.split_once("[sst]\n").expect("it has the section");
    let sst = sst.replace("/etc/mysql/trireme/", &dir);
    for (method, said) in [
        (SstMethod::Rsync, "Using stunnel for SSL encryption"),
        (
            SstMethod::Mariabackup,
            "Using openssl based encryption with socat",
        ),
    ] {
        let mut trial = Trial::prepare(path.clone(), 2, |settings| {
            settings.provider_options =
                format!("{};repl.require_encryption=yes", store.options("node1"));
            settings.sst_method = method;
            settings.sst_lines = sst.lines().map(str::to_owned).collect();
        });
        trial.cluster_start();
        trial.exec(0, "CREATE DATABASE d");
        trial.await_size(1, 2, JOIN);
        let log = trial.node(1).log_text();
        assert!(
            log.contains(said) && log.contains("VERIFY_CA"),
            "{method} is not encrypted on {}",
            trial.name(1)
        );
    }
}
