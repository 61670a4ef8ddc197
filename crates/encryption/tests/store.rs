//! The operator's directory, from the first node to a change of authority.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::{TempDir, tempdir};
use trireme_encryption::{
    Days, Dropped, Expectation, NodeName, Snippet, Store, StoreError, check_files,
};
use trireme_tls::Files;

const DAYS: Days = Days {
    authority: 100,
    node: 50,
};

fn node(text: &str) -> NodeName {
    text.parse().unwrap()
}

fn snippet() -> Snippet {
    Snippet::new(Path::new("/etc/mysql/trireme"), "").unwrap()
}

/// A store with two nodes.
fn store() -> (TempDir, Store) {
    let parent = tempdir().unwrap();
    let store = Store::open_or_found(&parent.path().join("tls"), DAYS).unwrap();
    store
        .add(&node("node1=192.0.2.1,db1.example.net"), &snippet())
        .unwrap();
    store.add(&node("node2"), &snippet()).unwrap();
    (parent, store)
}

fn files(parent: &TempDir, node: &str) -> Files {
    let path = |file: &str| {
        let path = parent.path().join("tls/nodes").join(node).join(file);
        path.to_str().unwrap().to_owned()
    };
    Files {
        cert: path("cert.pem"),
        key: path("key.pem"),
        ca: path("ca.pem"),
        ..Files::default()
    }
}

/// What is wrong with the files of a node.
fn complaints(files: &Files, names: &[&str]) -> Vec<String> {
    let expected = Expectation {
        names: names.iter().map(|name| name.to_string()).collect(),
        days_left: 30,
    };
    check_files(files, &expected).bad().to_vec()
}

#[test]
fn new_nodes_have_what_they_need_and_nobody_else_reads_it() {
    let (parent, _store) = store();
    let none: [String; 0] = [];
    assert_eq!(
        complaints(
            &files(&parent, "node1"),
            &["node1", "192.0.2.1", "db1.example.net"]
        ),
        none
    );
    assert_eq!(complaints(&files(&parent, "node2"), &["node2"]), none);
    let dir = parent.path().join("tls");
    for (path, mode) in [
        ("", 0o700),
        ("authority.pem", 0o600),
        ("ca.pem", 0o644),
        ("nodes", 0o700),
        ("nodes/node1", 0o700),
        ("nodes/node1/key.pem", 0o600),
        ("nodes/node1/cert.pem", 0o644),
        ("nodes/node1/trireme-tls.cnf", 0o644),
    ] {
        let found = fs::metadata(dir.join(path)).unwrap().mode() & 0o777;
        assert_eq!(found, mode, "{path}: {found:o}");
    }
    let mut left: Vec<_> = fs::read_dir(dir.join("nodes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["node1", "node2"]);
}

#[test]
fn a_node_is_added_later_and_none_is_overwritten() {
    let (parent, store) = store();
    drop(store);
    let store = Store::open_or_found(&parent.path().join("tls"), DAYS).unwrap();
    store.add(&node("node3"), &snippet()).unwrap();
    let crossed = Files {
        ca: files(&parent, "node1").ca,
        ..files(&parent, "node3")
    };
    assert!(
        complaints(&crossed, &[]).is_empty(),
        "the authority is the same"
    );
    let again = store.add(&node("node1"), &snippet());
    assert!(
        matches!(again, Err(StoreError::NodeExists { .. })),
        "{again:?}"
    );
    let names: Vec<String> = store
        .nodes()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, ["node1", "node2", "node3"]);
}

/// The remedies are run as they are printed: in another directory, `init` would make a second authority.
#[test]
fn remedies_name_the_store() {
    let (parent, mut store) = store();
    let dir = parent.path().join("tls");
    let says = |error: StoreError, command: &str| {
        let wanted = format!("trireme tls {command}").replace("DIR", dir.to_str().unwrap());
        let text = error.to_string();
        assert!(text.contains(&wanted), "{wanted:?} is not in: {text}");
    };
    let again = store.add(&node("node1"), &snippet());
    says(again.unwrap_err(), "renew --dir DIR node1");
    let none = store.renew(&node("node9"));
    says(none.unwrap_err(), "init --dir DIR node9");
    store.new_authority().unwrap();
    let twice = store.new_authority();
    says(twice.unwrap_err(), "renew --dir DIR --drop-old-authority");
    let early = store.drop_old_authority();
    says(early.unwrap_err(), "renew --dir DIR first");
    let expired = StoreError::AuthorityExpired {
        dir: dir.clone(),
        at: "Jan  1".to_owned(),
    };
    says(expired, "renew --dir DIR --new-authority");
}

#[test]
fn a_renewal_keeps_names_and_configuration() {
    let (parent, store) = store();
    let of = files(&parent, "node1");
    let config = parent.path().join("tls/nodes/node1/trireme-tls.cnf");
    fs::write(&config, "# the operator's\n").unwrap();
    let before = [&of.cert, &of.key].map(|file| fs::read(file).unwrap());
    store.renew(&node("node1")).unwrap();
    let after = [&of.cert, &of.key].map(|file| fs::read(file).unwrap());
    assert!(before[0] != after[0] && before[1] != after[1]);
    assert!(complaints(&of, &["node1", "192.0.2.1", "db1.example.net"]).is_empty());
    assert_eq!(fs::read_to_string(&config).unwrap(), "# the operator's\n");
    store.renew(&node("node1=192.0.2.9")).unwrap();
    assert!(complaints(&of, &["node1", "192.0.2.9"]).is_empty());
    assert_eq!(complaints(&of, &["192.0.2.1"]).len(), 1);
    assert!(matches!(
        store.renew(&node("node9")),
        Err(StoreError::NoNode { .. })
    ));
}

#[test]
fn an_authority_is_changed_without_a_moment_of_mistrust() {
    let (parent, mut store) = store();
    // As copied to the nodes at different times.
    let old = copy(&files(&parent, "node1"), parent.path(), "old");
    store.new_authority().unwrap();
    assert!(matches!(
        store.new_authority(),
        Err(StoreError::ChangeUnderWay { .. })
    ));
    let both = files(&parent, "node2");
    assert!(
        complaints(&both, &[]).is_empty(),
        "a certificate of before is trusted"
    );
    let refused = store.drop_old_authority();
    assert!(
        matches!(refused, Err(StoreError::StillOld { .. })),
        "{refused:?}"
    );
    for name in store.nodes().unwrap() {
        store.renew(&name).unwrap();
    }
    let new = copy(&files(&parent, "node1"), parent.path(), "new");
    let crossed = |cert: &Files, ca: &Files| Files {
        ca: ca.ca.clone(),
        ..cert.clone()
    };
    assert!(complaints(&new, &[]).is_empty());
    assert!(
        complaints(&crossed(&old, &new), &[]).is_empty(),
        "both are trusted"
    );
    assert!(
        !complaints(&crossed(&new, &old), &[]).is_empty(),
        "not yet told of the new one"
    );
    assert_eq!(store.drop_old_authority().unwrap(), Dropped::Old);
    let last = files(&parent, "node1");
    assert!(complaints(&last, &[]).is_empty());
    let outdated = complaints(&crossed(&old, &last), &[]);
    assert!(
        outdated
            .iter()
            .any(|line| line.contains("peers with the same authorities refuse")),
        "{outdated:?}"
    );
    let mut store = Store::open(&parent.path().join("tls"), DAYS).unwrap();
    assert_eq!(store.drop_old_authority().unwrap(), Dropped::Nothing);
}

/// The files in the order in which a change of authority writes them.
const WRITTEN: [&str; 4] = [
    "nodes/node1/ca.pem",
    "nodes/node2/ca.pem",
    "ca.pem",
    "authority.pem",
];

/// Opens the store and calls `change`, which breaks off at `file`, as on a full volume.
fn break_off_at(parent: &TempDir, file: &str, change: fn(&mut Store) -> bool) {
    let dir = parent.path().join("tls");
    let mut store = Store::open(&dir, DAYS).unwrap();
    let (file, kept) = (dir.join(file), parent.path().join("kept"));
    fs::rename(&file, &kept).unwrap();
    fs::create_dir(&file).unwrap(); // no file can be renamed to this name
    assert!(change(&mut store), "it does not break off");
    fs::remove_dir(&file).unwrap();
    fs::rename(&kept, &file).unwrap();
}

fn change_breaks_off(store: &mut Store) -> bool {
    matches!(store.new_authority(), Err(StoreError::Io { .. }))
}

fn drop_breaks_off(store: &mut Store) -> bool {
    matches!(store.drop_old_authority(), Err(StoreError::Io { .. }))
}

fn renew_all(store: &Store) {
    for name in store.nodes().unwrap() {
        store.renew(&name).unwrap();
    }
}

/// A node that is not listed would miss a change of authority.
#[test]
fn a_node_whose_renewal_broke_off_stays_a_node() {
    let (parent, store) = store();
    drop(store);
    let nodes = parent.path().join("tls/nodes");
    // Between the two renames of a renewal.
    fs::rename(nodes.join("node1"), nodes.join(".node1.old")).unwrap();
    let store = Store::open(&parent.path().join("tls"), DAYS).unwrap();
    assert_eq!(store.nodes().unwrap(), [node("node1"), node("node2")]);
    let kept = complaints(&files(&parent, "node1"), &["192.0.2.1"]);
    assert!(kept.is_empty(), "{kept:?}");
    renew_all(&store);
}

/// Everything trusts the authority of `authority.pem`, and nothing else.
#[track_caller]
fn assert_one_authority(parent: &TempDir, after: &str) {
    let dir = parent.path().join("tls");
    let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
    let authority = read("authority.pem");
    let (_, cert) = authority.split_once("-----END PRIVATE KEY-----\n").unwrap();
    for file in &WRITTEN[..3] {
        assert_eq!(read(file), cert, "{file}, after a break at {after}");
    }
    for name in ["node1", "node2"] {
        let wrong = complaints(&files(parent, name), &[]);
        assert!(
            wrong.is_empty(),
            "{name}, after a break at {after}: {wrong:?}"
        );
    }
}

#[test]
fn a_change_of_authority_that_broke_off_begins_anew() {
    for broken in WRITTEN {
        let (parent, store) = store();
        drop(store);
        let dir = parent.path().join("tls");
        let authority = || fs::read(dir.join("authority.pem")).unwrap();
        let old = authority();
        break_off_at(&parent, broken, change_breaks_off);
        let mut store = Store::open(&dir, DAYS).unwrap();
        let again = store.new_authority();
        assert!(again.is_ok(), "after a break at {broken}: {again:?}");
        renew_all(&store);
        assert_eq!(store.drop_old_authority().unwrap(), Dropped::Old);
        assert!(authority() != old);
        assert_one_authority(&parent, broken);
    }
}

#[test]
fn a_change_of_authority_that_broke_off_is_taken_back() {
    for broken in WRITTEN {
        let (parent, store) = store();
        drop(store);
        break_off_at(&parent, broken, change_breaks_off);
        let mut store = Store::open(&parent.path().join("tls"), DAYS).unwrap();
        let wanted = match broken == WRITTEN[0] {
            true => Dropped::Nothing,
            false => Dropped::BrokenOff,
        };
        assert_eq!(store.drop_old_authority().unwrap(), wanted);
        assert_one_authority(&parent, broken);
    }
}

#[test]
fn the_end_of_a_change_that_broke_off_is_done_again() {
    for broken in &WRITTEN[..3] {
        let (parent, mut store) = store();
        store.new_authority().unwrap();
        renew_all(&store);
        drop(store);
        break_off_at(&parent, broken, drop_breaks_off);
        let mut store = Store::open(&parent.path().join("tls"), DAYS).unwrap();
        let dropped = store.drop_old_authority().unwrap();
        assert_eq!(dropped, Dropped::Old, "after a break at {broken}");
        assert_one_authority(&parent, broken);
        assert_eq!(store.drop_old_authority().unwrap(), Dropped::Nothing);
    }
}

/// Earlier versions wrote the store's own `ca.pem` first, and found nothing left to do.
#[test]
fn a_node_whose_file_still_has_the_old_authority_gets_the_new_one_alone() {
    let (parent, mut store) = store();
    store.new_authority().unwrap();
    renew_all(&store);
    let left = parent.path().join("tls/nodes/node2/ca.pem");
    let both = fs::read(&left).unwrap();
    assert_eq!(store.drop_old_authority().unwrap(), Dropped::Old);
    fs::write(&left, both).unwrap();
    assert_eq!(store.drop_old_authority().unwrap(), Dropped::Old);
    assert_one_authority(&parent, "no file");
}

#[test]
fn a_file_among_the_nodes_is_no_node() {
    let (parent, mut store) = store();
    fs::write(parent.path().join("tls/nodes/node1.tar"), "a backup").unwrap();
    assert_eq!(store.nodes().unwrap(), [node("node1"), node("node2")]);
    store.new_authority().unwrap();
    renew_all(&store);
    assert_eq!(store.drop_old_authority().unwrap(), Dropped::Old);
}

/// An operator who took `authority.pem` off the machine and forgot it must not get a second authority.
#[test]
fn a_store_that_lost_its_authority_is_not_refounded() {
    let (parent, store) = store();
    drop(store);
    let dir = parent.path().join("tls");
    fs::rename(dir.join("authority.pem"), parent.path().join("safe")).unwrap();
    let trusted = || ["ca.pem", "nodes/node1/ca.pem"].map(|file| fs::read(dir.join(file)).unwrap());
    let before = trusted();
    for opened in [Store::open_or_found(&dir, DAYS), Store::open(&dir, DAYS)] {
        let text = opened.unwrap_err().to_string();
        assert!(text.contains("put it back"), "{text}");
    }
    assert_eq!(trusted(), before);
    fs::rename(parent.path().join("safe"), dir.join("authority.pem")).unwrap();
    Store::open_or_found(&dir, DAYS).unwrap();
}

#[test]
fn a_founding_that_broke_off_is_done_again() {
    let parent = tempdir().unwrap();
    let dir = parent.path().join("tls");
    drop(Store::open_or_found(&dir, DAYS).unwrap());
    fs::remove_file(dir.join("authority.pem")).unwrap(); // the last thing that is written
    let store = Store::open_or_found(&dir, DAYS).unwrap();
    store.add(&node("node1"), &snippet()).unwrap();
    assert!(complaints(&files(&parent, "node1"), &[]).is_empty());
}

#[test]
fn what_is_wrong_with_the_directory_is_said() {
    let (parent, store) = store();
    drop(store);
    let dir = parent.path().join("tls");
    let said = |wanted: &str| {
        let text = Store::open(&dir, DAYS).unwrap_err().to_string();
        assert!(
            text.contains(wanted) && !text.contains('\n'),
            "{wanted:?} is not in: {text}"
        );
    };
    let authority = fs::read_to_string(dir.join("authority.pem")).unwrap();
    fs::write(dir.join("authority.pem"), &authority[..100]).unwrap();
    said("authority.pem");
    let foreign = tempdir().unwrap();
    Store::open_or_found(foreign.path(), DAYS).unwrap();
    let foreign = fs::read_to_string(foreign.path().join("authority.pem")).unwrap();
    let end = "-----END PRIVATE KEY-----\n";
    let (key, _) = foreign.split_once(end).unwrap();
    let (_, cert) = authority.split_once(end).unwrap();
    fs::write(dir.join("authority.pem"), format!("{key}{end}{cert}")).unwrap();
    said("no pair");
    fs::write(dir.join("authority.pem"), &authority).unwrap();
    fs::remove_file(dir.join("ca.pem")).unwrap();
    said("ca.pem");
    fs::remove_file(dir.join("authority.pem")).unwrap();
    said("put it back");
    fs::remove_dir_all(dir.join("nodes")).unwrap();
    said("trireme tls init");
}

fn copy(files: &Files, to: &Path, name: &str) -> Files {
    let dir = to.join(name);
    fs::create_dir(&dir).unwrap();
    let copy = |file: &str| {
        let to = dir.join(Path::new(file).file_name().unwrap());
        fs::copy(file, &to).unwrap();
        to.to_str().unwrap().to_owned()
    };
    Files {
        cert: copy(&files.cert),
        key: copy(&files.key),
        ca: copy(&files.ca),
        ..Files::default()
    }
}
