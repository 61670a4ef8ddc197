//! Each system with real servers: it starts, takes writes, has them on all nodes, and a check tells when it did not.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-testbed --test real_systems -- --test-threads=1` runs them; without the
//! variable each does nothing. They need the `libtrireme.so` of the same build, or another in
//! `TRIREME_PROVIDER`, and Galera. Those of MySQL do nothing without the root
//! that `scripts/mysql-root.sh` makes.

use std::path::PathBuf;

use tempfile::TempDir;
use trireme_testbed::systems::{self, DeployError, Deployed, Durability, System};
use trireme_testbed::{Settings, interrupt};

fn system(name: &str) -> Option<Box<dyn System>> {
    if std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: TRIREME_REAL is not set");
        return None;
    }
    interrupt::install().expect("signal handlers can be installed");
    let provider = std::env::var_os("TRIREME_PROVIDER").map(PathBuf::from);
    match systems::find(name, provider.as_deref()) {
        Ok(system) => Some(system),
        Err(error) if error.leaves_a_row() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn start<'a>(system: &'a dyn System, durability: Durability, dir: &TempDir) -> Deployed<'a> {
    start_nodes(system, 2, durability, dir)
}

fn start_nodes<'a>(
    system: &'a dyn System,
    nodes: usize,
    durability: Durability,
    dir: &TempDir,
) -> Deployed<'a> {
    let settings = Settings::new(dir.path().join("c"), nodes, None);
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
    writes_arrive("plain-binlog", 1);
}

#[test]
fn a_replica_has_what_its_source_acknowledged() {
    writes_arrive("semisync", 2);
    writes_arrive("semisync-source-flush", 2);
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
fn a_plain_mysql_server_keeps_rows() {
    writes_arrive("plain-mysql", 1);
}

#[test]
fn group_replication_has_rows_on_both_nodes() {
    writes_arrive("group-replication", 2);
}

#[test]
fn a_secondary_has_what_the_primary_acknowledged() {
    writes_arrive("group-replication-single", 2);
}

#[test]
fn a_single_primary_alone_takes_writes() {
    let Some(system) = system("group-replication-single") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut deployed = start(system.as_ref(), Durability::Lazy, &dir);
    fill(&deployed);
    deployed.verify(&["d"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(deployed.writers().len(), 1);
    let mut secondary = deployed.cluster().sql(1).expect("a connection");
    let refused = secondary.exec("INSERT INTO d.t VALUES (4)").err();
    // The server is read-only.
    assert_eq!(refused.and_then(|error| error.code()), Some(1290));
}

/// Of two transactions on different nodes that change the same row one commits; the other meets a conflict.
#[test]
fn a_lost_certification_is_a_conflict() {
    let Some(system) = system("group-replication") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut deployed = start(system.as_ref(), Durability::Lazy, &dir);
    fill(&deployed);
    deployed.verify(&["d"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(deployed.writers().len(), 2);
    let mut sessions = [0, 1].map(|i| deployed.cluster().sql(i).expect("a connection"));
    for (i, sql) in sessions.iter_mut().enumerate() {
        sql.exec("BEGIN").expect("BEGIN");
        let update = format!("UPDATE d.t SET id = {} WHERE id = 1", 11 + i);
        sql.exec(&update).expect("the row is free on each node");
    }
    let [first, second] = sessions.map(|mut sql| sql.exec("COMMIT"));
    assert!(first.is_ok(), "{first:?}");
    assert!(
        second.as_ref().is_err_and(|error| error.is_conflict()),
        "{second:?}"
    );
    deployed.verify(&["d"]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn a_member_that_left_is_found() {
    let Some(system) = system("group-replication") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut deployed = start(system.as_ref(), Durability::Lazy, &dir);
    fill(&deployed);
    deployed.settle().unwrap_or_else(|e| panic!("{e}"));
    let mut sql = deployed.cluster().sql(1).expect("a connection");
    sql.exec("STOP GROUP_REPLICATION").expect("it leaves");
    let error = deployed.verify(&["d"]).expect_err("a member is missing");
    assert!(
        error
            .to_string()
            .contains("node1 does not replicate: it sees node2 as"),
        "{error}"
    );
}

/// A member without clients that was left out, and has come back by the end.
#[test]
fn a_member_that_was_lost_for_a_time_is_found() {
    let Some(system) = system("trireme") else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut deployed = start_nodes(system.as_ref(), 3, Durability::Lazy, &dir);
    fill(&deployed);
    deployed.verify(&["d"]).unwrap_or_else(|e| panic!("{e}"));
    let pid = deployed.cluster().node(2).pid().expect("it runs");
    let signal = |signal| {
        let pid = rustix::process::Pid::from_raw(pid as i32).expect("a process");
        rustix::process::kill_process(pid, signal).expect("it is there");
    };
    signal(rustix::process::Signal::STOP);
    std::thread::sleep(std::time::Duration::from_secs(12));
    signal(rustix::process::Signal::CONT);
    std::thread::sleep(std::time::Duration::from_secs(5));
    let error = deployed.verify(&["d"]).expect_err("a member was lost");
    assert!(error.to_string().contains("another view"), "{error}");
}

/// A node that was killed takes part again, and has what was committed without it.
fn a_killed_node_comes_back(name: &str) {
    let Some(system) = system(name) else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let mut deployed = start_nodes(system.as_ref(), 3, Durability::Origin, &dir);
    fill(&deployed);
    deployed.restart(2).unwrap_or_else(|e| panic!("{e}"));
    let mut sql = deployed.first().sql().expect("a connection");
    sql.exec("INSERT INTO d.t VALUES (4)").expect("a commit");
    let tables = deployed.verify(&["d"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(tables[0].rows, 4);
}

#[test]
fn a_killed_member_of_a_group_comes_back() {
    a_killed_node_comes_back("group-replication");
}

#[test]
fn a_killed_replica_comes_back() {
    a_killed_node_comes_back("semisync");
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
