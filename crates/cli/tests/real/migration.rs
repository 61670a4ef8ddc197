//! From Galera to Trireme and back, by the steps of docs/from-galera.md.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

use trireme_testbed::packages::{self, GALERA_PROVIDER};

use super::trial::{JOIN, Trial, provider};

/// Where a node's database is, by its own account.
type Position = (String, i64);

/// Length and hash of each file: Galera's caches are too large to be kept, or shown.
type Files = BTreeMap<PathBuf, (usize, u64)>;

#[test]
fn galera_to_trireme_and_back_and_again() {
    let Some(trireme) = provider() else { return };
    let galera = PathBuf::from(GALERA_PROVIDER);
    if packages::is_galera(&trireme) || !galera.exists() {
        eprintln!("skipped: needs both providers");
        return;
    }
    let trial = Trial::start_under(galera.clone(), 3, "");
    let mut trial = trial.expect("the tests are on");
    let mut rows = 0;
    rows = works(&mut trial, rows);

    let (before, theirs) = stopped(&mut trial, is_galeras);
    assert!(!theirs.is_empty(), "Galera leaves its cache");
    started_under(&mut trial, &trireme, &before);
    rows = works(&mut trial, rows);

    let (before, ours) = stopped(&mut trial, is_ours);
    assert_eq!(
        files(&trial, is_galeras),
        theirs,
        "Galera's files are as they were"
    );
    started_under(&mut trial, &galera, &before);
    rows = works(&mut trial, rows);

    // Trireme's logs are older than the databases now.
    let (before, theirs) = stopped(&mut trial, is_galeras);
    assert_eq!(
        files(&trial, is_ours),
        ours,
        "Trireme's files are as they were"
    );
    started_under(&mut trial, &trireme, &before);
    works(&mut trial, rows);
    assert_eq!(
        files(&trial, is_galeras),
        theirs,
        "Galera's files are as they were"
    );
}

/// Everybody writes and has what was written before; how many rows there are.
fn works(trial: &mut Trial, rows: usize) -> usize {
    for i in 0..3 {
        trial.await_size(i, 3, JOIN);
    }
    for i in 0..3 {
        trial.exec(i, &format!("INSERT INTO d.t VALUES ({}, {i})", rows + i));
    }
    trial.exec(0, &format!("ALTER TABLE d.t ADD COLUMN c{rows} INT"));
    trial.exec(0, &format!("ALTER TABLE d.t DROP COLUMN c{rows}"));
    trial.assert_equal();
    let count = trial.value(1, "SELECT COUNT(*) FROM d.t");
    assert_eq!(count, (rows + 3).to_string());
    rows + 3
}

/// Step 2: all are stopped, the first one last. The last position, and the files of one of the two.
fn stopped(trial: &mut Trial, of: fn(&str) -> bool) -> (Position, Files) {
    let status = trial.node(0).status().expect("the node answers");
    trial.cluster_stop();
    for i in 0..3 {
        let text = grastate(trial, i);
        assert!(text.contains(&status.history), "{}: {text}", trial.name(i));
        assert!(!text.contains("seqno:   -1"), "{}: {text}", trial.name(i));
    }
    let files = files(trial, of);
    ((status.history, status.last_committed), files)
}

/// Steps 3 and 4: the line is changed; the one that left last founds, the others follow one by one.
fn started_under(trial: &mut Trial, provider: &Path, before: &Position) {
    trial.settings_mut().provider = Some(provider.to_path_buf());
    let marked: Vec<bool> = (0..3)
        .map(|i| grastate(trial, i).contains("safe_to_bootstrap: 1"))
        .collect();
    assert_eq!(
        marked,
        [true, false, false],
        "the last one to leave is marked"
    );
    trial.cluster_start();
    for i in 0..3 {
        let status = trial.node(i).status().expect("the node answers");
        assert_eq!(
            status.history,
            before.0,
            "{} is in another history",
            trial.name(i)
        );
        assert!(
            status.last_committed > before.1,
            "{} is at {}, all were at {}",
            trial.name(i),
            status.last_committed,
            before.1
        );
    }
}

fn grastate(trial: &Trial, i: usize) -> String {
    let path = trial.node(i).datadir().join("grastate.dat");
    fs::read_to_string(path).expect("grastate.dat is there")
}

fn is_galeras(name: &str) -> bool {
    name == "galera.cache" || name == "gvwstate.dat" || name.starts_with("gcache.page.")
}

fn is_ours(name: &str) -> bool {
    name.starts_with("trireme")
}

/// All nodes' files of this kind.
fn files(trial: &Trial, of: fn(&str) -> bool) -> Files {
    let entries = trial.nodes().iter().flat_map(|node| {
        let listing = fs::read_dir(node.datadir()).expect("the data directory can be read");
        listing.filter_map(|entry| entry.ok().map(|entry| entry.path()))
    });
    let named = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(of)
    };
    let summed = |path: PathBuf| {
        let bytes = fs::read(&path).expect("the file can be read");
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        (path, (bytes.len(), hasher.finish()))
    };
    entries.filter(named).map(summed).collect()
}
