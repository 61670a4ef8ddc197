//! The library's operations on real servers, under Galera's provider. Needs the packages mariadb-server, galera-4 and rsync:
//! `cargo test -p trireme-cli -- --ignored`.

use std::time::Duration;

use trireme_cli::packages::GALERA_PROVIDER;
use trireme_cli::verify::verify_identical;
use trireme_cli::{Cluster, Settings, StartMode};

const PATIENCE: Duration = Duration::from_secs(60);

fn cluster(dir: &std::path::Path) -> Cluster {
    let mut cluster = Cluster::create(
        Settings::new(dir, 3, Some(GALERA_PROVIDER.into())),
        |text| eprintln!("{text}"),
    )
    .unwrap();
    cluster.start().unwrap();
    let mut sql = cluster.sql(0).unwrap();
    sql.exec("CREATE DATABASE d").unwrap();
    sql.exec("CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
        .unwrap();
    cluster
}

fn insert(cluster: &Cluster, node: usize, id: usize) {
    let statement = format!("INSERT INTO d.t VALUES ({id}, 0)");
    assert_eq!(cluster.sql(node).unwrap().exec(&statement).unwrap(), 1);
}

fn count(cluster: &Cluster, node: usize) -> String {
    let mut sql = cluster.sql(node).unwrap();
    sql.exec("SET SESSION wsrep_sync_wait = 15").unwrap();
    sql.value("SELECT COUNT(*) FROM d.t").unwrap().unwrap()
}

#[test]
#[ignore = "starts servers"]
fn nodes_are_killed_paused_stopped_and_come_back() {
    let temp = tempfile::tempdir().unwrap();
    let mut cluster = cluster(temp.path());

    insert(&cluster, 0, 1);
    cluster.kill_node(2).unwrap();
    assert_eq!(cluster.node(2).pid(), None);
    cluster.wait_size(0, 2, PATIENCE).unwrap();
    insert(&cluster, 1, 2);
    assert!(cluster.node(2).recover_position().unwrap().seqno > 0);
    cluster.start_node(2).unwrap();
    cluster.wait_size(2, 3, PATIENCE).unwrap();
    assert_eq!(count(&cluster, 2), "2");

    // A paused node is expelled, and comes back by itself.
    cluster.pause_node(1).unwrap();
    cluster.wait_size(0, 2, PATIENCE).unwrap();
    insert(&cluster, 0, 3);
    cluster.resume_node(1).unwrap();
    // At first it still believes to be a member; the insert tells.
    cluster.wait_caught_up(PATIENCE).unwrap();
    cluster.wait_size(1, 3, PATIENCE).unwrap();
    assert_eq!(count(&cluster, 1), "3");

    assert!(!cluster.stop_node(0).unwrap(), "it had to be killed");
    cluster.wait_size(1, 2, PATIENCE).unwrap();
    cluster.spawn_node(0, StartMode::Join).unwrap();
    cluster.wait_node(0, PATIENCE).unwrap();

    let identical = verify_identical(&mut cluster, &["d"]).unwrap();
    assert_eq!(identical.tables.len(), 1);
    assert_eq!(identical.tables[0].rows, 3);

    // All at once, as after a power cut; nobody is told to be the first.
    for i in 0..3 {
        cluster.kill_node(i).unwrap();
    }
    cluster.start().unwrap();
    assert_eq!(count(&cluster, 0), "3");

    // In order; the last to leave starts first.
    cluster.stop().unwrap();
    cluster.start().unwrap();
    insert(&cluster, 2, 4);
    assert_eq!(
        verify_identical(&mut cluster, &["d"]).unwrap().tables[0].rows,
        4
    );
}

#[test]
#[ignore = "starts servers"]
fn different_rows_are_found_and_errors_have_codes() {
    let temp = tempfile::tempdir().unwrap();
    let mut cluster = cluster(temp.path());
    insert(&cluster, 0, 1);
    let again = cluster
        .sql(0)
        .unwrap()
        .exec("INSERT INTO d.t VALUES (1, 0)")
        .unwrap_err();
    assert_eq!(again.code(), Some(1062));

    let mut sql = cluster.sql(1).unwrap();
    sql.exec("SET SESSION wsrep_on = OFF").unwrap();
    sql.exec("UPDATE d.t SET v = 7").unwrap();
    let error = verify_identical(&mut cluster, &["d"])
        .unwrap_err()
        .to_string();
    assert!(error.contains("`d`.`t` DIFFERS"), "{error}");

    // Dropping the value ends the servers.
    let pid = cluster.node(0).pid().unwrap();
    drop(sql);
    drop(cluster);
    assert!(trireme_cli::process::has_ended(pid));
}
