//! Each system with real servers: it starts, takes writes, has them on all nodes, and a check tells when it did not.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-testbed --test real_systems -- --test-threads=1` runs them; without the
//! variable each does nothing. They need the `libtrireme.so` of the same build, and Galera.

use tempfile::TempDir;
use trireme_testbed::systems::{self, DeployError, Deployed, Durability, System};
use trireme_testbed::{Settings, interrupt};

fn system(name: &str) -> Option<Box<dyn System>> {
    if std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: TRIREME_REAL is not set");
        return None;
    }
    interrupt::install().expect("signal handlers can be installed");
    Some(systems::find(name, None).unwrap_or_else(|error| panic!("{error}")))
}

fn start<'a>(system: &'a dyn System, durability: Durability, dir: &TempDir) -> Deployed<'a> {
    let settings = Settings::new(dir.path().join("c"), 2, None);
    Deployed::start(system, durability, settings).unwrap_or_else(|error| panic!("{error}"))
}

fn fill(deployed: &Deployed) {
    let mut sql = deployed.first().sql().expect("a connection");
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (1), (2), (3)",
    ] {
        sql.exec(statement).expect(statement);
    }
}

/// The rows of an insert are on all nodes, in any durability.
fn writes_arrive(name: &str, nodes: usize) {
    for durability in [Durability::Lazy, Durability::Origin, Durability::Full] {
        let Some(system) = system(name) else { return };
        let dir = tempfile::tempdir().expect("a directory");
        let mut deployed = start(system.as_ref(), durability, &dir);
        assert_eq!(deployed.cluster().nodes().len(), nodes);
        fill(&deployed);
        let tables = deployed.verify(&["d"]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(tables[0].rows, 3);
        deployed.end().expect("it ends");
    }
}

#[test]
fn a_plain_server_keeps_rows() {
    writes_arrive("plain", 1);
}

#[test]
fn a_replica_has_what_its_source_acknowledged() {
    writes_arrive("semisync", 2);
}

#[test]
fn galera_has_rows_on_both_nodes() {
    writes_arrive("galera", 2);
}

#[test]
fn trireme_has_rows_on_both_nodes() {
    writes_arrive("trireme", 2);
}

#[test]
fn commits_without_a_replica_do_not_count() {
    let Some(system) = system("semisync") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut deployed = start(system.as_ref(), Durability::Lazy, &dir);
    fill(&deployed);
    let mut sql = deployed.first().sql().expect("a connection");
    for statement in [
        "SET GLOBAL rpl_semi_sync_master_enabled=OFF",
        "INSERT INTO d.t VALUES (4)",
    ] {
        sql.exec(statement).expect(statement);
    }
    assert!(matches!(
        deployed.verify(&["d"]),
        Err(DeployError::FellBack { .. })
    ));
}

#[test]
fn rows_of_one_node_alone_are_found() {
    let Some(system) = system("semisync") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut deployed = start(system.as_ref(), Durability::Lazy, &dir);
    fill(&deployed);
    let replica = deployed.cluster().node(1);
    let mut sql = replica.sql().expect("a connection");
    sql.exec("SET sql_log_bin=0").expect("it is root");
    sql.exec("INSERT INTO d.t VALUES (9)")
        .expect("root may write");
    assert!(matches!(
        deployed.verify(&["d"]),
        Err(DeployError::Verify(_))
    ));
}
