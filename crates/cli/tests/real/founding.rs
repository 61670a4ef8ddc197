//! A new cluster is formed without choosing a node: `pc.bootstrap_expect`, the same configuration everywhere.

use std::time::Duration;

use trireme_testbed::StartMode;
use trireme_testbed::config::cluster_address;
use trireme_testbed::packages;
use trireme_testbed::ports::NodePorts;

use super::lone::Lone;
use super::trial::{JOIN, SOON, Trial, await_true, pause, provider};

const FOUNDED: &str = "founding a cluster with the support of all 3 nodes";

/// Four nodes that are laid out alike, with the addresses of the first three in their configuration.
fn prepared() -> Option<Trial> {
    let path = provider()?;
    if packages::is_galera(&path) {
        return None; // its users choose a node
    }
    let mut trial = Trial::prepare(path, 4, |settings| {
        settings.provider_options = "pc.bootstrap_expect=3".to_string();
    });
    let ports: Vec<NodePorts> = trial.nodes()[..3].iter().map(|node| node.ports).collect();
    let address = format!("--wsrep-cluster-address={}", cluster_address(&ports));
    trial.settings_mut().mariadbd_args.push(address);
    Some(trial)
}

fn founders(trial: &Trial) -> usize {
    let logs = (0..4).map(|i| trial.node(i).log_text());
    logs.map(|log| log.matches(FOUNDED).count()).sum()
}

#[test]
fn three_new_nodes_form_one_cluster_in_any_order() {
    for (order, apart) in [
        ([0, 1, 2], Duration::ZERO),
        ([2, 0, 1], Duration::from_millis(1_500)),
    ] {
        let Some(mut trial) = prepared() else { return };
        for i in order {
            let spawned = trial.spawn_node(i, StartMode::Join);
            spawned.unwrap_or_else(|error| panic!("{error}"));
            pause(apart);
        }
        for i in 0..3 {
            trial.await_size(i, 3, JOIN);
        }
        assert_eq!(founders(&trial), 1, "one of them has founded it");
        trial.exec(0, "CREATE DATABASE d");
        trial.exec(0, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT NOT NULL)");
        trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
        trial.assert_running_equal();

        // One that is added later has the same configuration, and is not in it.
        trial.restart(3);
        trial.await_size(3, 4, JOIN);
        trial.exec(3, "INSERT INTO d.t VALUES (2, 2)");
        trial.assert_equal();

        // A node that comes back, and a cluster that was killed whole, have a history.
        trial.stop(order[0]);
        trial.restart(order[0]);
        (0..4).for_each(|i| trial.kill(i));
        if let Err(error) = trial.start_all(StartMode::Join) {
            panic!("the cluster does not come back: {error}");
        }
        for i in 0..4 {
            trial.await_size(i, 4, JOIN);
        }
        assert_eq!(trial.value(1, "SELECT COUNT(*) FROM d.t"), "2");
        trial.assert_equal();
        assert_eq!(founders(&trial), 1, "the option means nothing any more");
    }
}

#[test]
fn two_of_three_wait_and_say_for_whom() {
    let Some(mut trial) = prepared() else { return };
    for i in 0..2 {
        let spawned = trial.spawn_node(i, StartMode::Join);
        spawned.unwrap_or_else(|error| panic!("{error}"));
    }
    let absent = format!("nobody answers at 127.0.0.1:{}", trial.node(2).ports.group);
    for i in 0..2 {
        let is_said = || trial.node(i).log_text().contains(&absent);
        assert!(await_true(SOON, is_said), "{absent}");
    }
    pause(Duration::from_secs(2));
    for i in 0..2 {
        assert!(trial.node(i).pid().is_some(), "it waits");
    }
    assert_eq!(founders(&trial), 0);
    trial.stop(1);
    for i in [1, 2] {
        let spawned = trial.spawn_node(i, StartMode::Join);
        spawned.unwrap_or_else(|error| panic!("{error}"));
    }
    for i in 0..3 {
        trial.await_size(i, 3, JOIN);
    }
}

#[test]
fn a_list_that_is_not_all_nodes_is_refused() {
    let Some(path) = provider() else { return };
    if packages::is_galera(&path) {
        return;
    }
    let address = "gcomm://127.0.0.1:4567,127.0.0.1:5567";
    let lone = Lone::join(&path, address, |settings| {
        settings.provider_options += ";pc.bootstrap_expect=3";
    });
    lone.must_give_up(SOON, &["pc.bootstrap_expect=3", "names 2 nodes"]);
}
