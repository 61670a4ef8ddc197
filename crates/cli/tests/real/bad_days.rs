//! Bad days, as docs/runbooks.md describes them: each happens to real servers, a command names the cause in one line, and
//! the runbook's command ends it.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use trireme_testbed::{Server, Sql, StartMode, datadir, preload};

use super::apart::QUICK;
use super::full_disk::SmallDisk;
use super::inspect::{PROGRAM, check, json, told};
use super::trial::{JOIN, SOON, Trial, await_true, provider};

/// Time for a node to say why it waits: its file is written about once a second, and a hung flush is told after 5 s.
const TOLD: Duration = Duration::from_secs(20);

/// The page that an operator reads.
const RUNBOOKS: &str = include_str!("../../../../docs/runbooks.md");

/// A cluster of three, if it is ours that is on trial.
fn three(options: &str) -> Option<Trial> {
    let mut trial = prepared(options)?;
    start(&mut trial);
    Some(trial)
}

/// The same, laid out only.
pub fn prepared(options: &str) -> Option<Trial> {
    let trial = Trial::prepare(provider()?, 3, |settings| {
        settings.provider_options = options.to_owned();
    });
    trial.is_trireme().then_some(trial)
}

pub fn start(trial: &mut Trial) {
    if let Err(error) = trial.start() {
        panic!("the cluster does not start: {error}");
    }
    trial.exec(0, "CREATE DATABASE d");
    trial.exec(0, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT NOT NULL)");
}

/// What `trireme why-waiting` says of node `i`.
pub fn why_waiting(trial: &Trial, i: usize) -> String {
    let output = Command::new(PROGRAM)
        .args(["why-waiting", "--dir"])
        .arg(trial.node(i).datadir())
        .output()
        .expect("the program runs");
    String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8")
}

/// The same with single blanks: the first line and the remedy come first.
pub fn why(trial: &Trial, i: usize) -> String {
    let text = why_waiting(trial, i);
    for line in text.lines() {
        assert!(
            line.chars().count() <= 80 || line.starts_with("trireme: error"),
            "{line}"
        );
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits until `tell` says all of `words`; shows the line.
#[track_caller]
pub fn await_told(timeout: Duration, words: &[&str], mut tell: impl FnMut() -> String) {
    let mut text = String::new();
    let found = await_true(timeout, || {
        text = tell();
        words.iter().all(|word| text.contains(word))
    });
    assert!(found, "{words:?} are not all in: {text}");
    let shown: String = text.chars().take(200).collect();
    eprintln!("  told: {shown}");
}

/// A check of the doctor has failed or warns, with these words.
#[track_caller]
fn await_check(trial: &Trial, i: usize, name: &str, words: &[&str]) {
    await_told(TOLD, words, || {
        let (result, text) = check(trial, i, name);
        format!(
            "{} {name}: {text}",
            if result == "ok" { "passes" } else { "fails" }
        )
    });
}

/// The page has a chapter on this day, with this command.
#[track_caller]
fn runbook(chapter: &str, command: &str) {
    let (_, rest) = RUNBOOKS
        .split_once(&format!("\n## {chapter}\n"))
        .unwrap_or_else(|| panic!("no chapter {chapter}"));
    let text = rest.split("\n## ").next().unwrap_or_default();
    assert!(
        text.contains(command),
        "{command} is not in the chapter {chapter}"
    );
}

fn group_address(trial: &Trial, i: usize) -> String {
    format!("127.0.0.1:{}", trial.node(i).ports.group)
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn status(trial: &Trial, i: usize) -> String {
    flat(&told(trial, i, &["status"]))
}

fn assert_all_here(trial: &mut Trial) {
    for i in 0..3 {
        trial.await_size(i, 3, JOIN);
    }
    let text = status(trial, 0);
    assert!(
        !text.contains("not here") && text.contains("survives the loss of 1 member"),
        "{text}"
    );
    trial.exec(0, "REPLACE INTO d.t VALUES (77, 1)");
    trial.assert_equal();
}

#[test]
fn a_node_is_killed() {
    let Some(mut trial) = three("") else { return };
    trial.kill(2);
    let gone = format!("not here: {}", group_address(&trial, 2));
    await_told(SOON, &[&gone, "survives the loss of 0"], || {
        status(&trial, 0)
    });
    await_told(TOLD, &["does not run", "systemctl start mariadb"], || {
        why(&trial, 2)
    });
    runbook("A node is down", "systemctl start mariadb");
    trial.restart(2);
    assert_all_here(&mut trial);
}

#[test]
fn a_disk_is_full() {
    let Some(mut trial) = prepared("gcache.dir=../log-disk") else {
        return;
    };
    let dirs: Vec<_> = (0..3).map(|i| trial.node(i).dir.join("log-disk")).collect();
    for dir in &dirs[..2] {
        fs::create_dir_all(dir).expect("a directory can be made");
    }
    let Some(disk) = SmallDisk::mount(&dirs[2], "1m") else {
        return;
    };
    start(&mut trial);
    trial.exec(0, "CREATE TABLE d.large (id INT PRIMARY KEY, v LONGBLOB)");
    trial.exec(0, "INSERT INTO d.large VALUES (1, REPEAT('x', 3000000))");
    trial.await_status(2, "wsrep_ready", "OFF", SOON);
    await_check(
        &trial,
        2,
        "free-space",
        &["the disk is nearly full", "write-set log"],
    );
    await_told(
        TOLD,
        &[
            "has left the cluster",
            "No space left",
            "systemctl restart mariadb",
        ],
        || why(&trial, 2),
    );
    runbook("A disk is full", "systemctl restart mariadb");
    disk.grow("64m");
    trial.stop(2);
    trial.restart(2);
    assert_all_here(&mut trial);
}

#[test]
fn a_disk_is_slow() {
    let Some(mut trial) = prepared("repl.durability=disk") else {
        return;
    };
    if let Err(error) = preload::into(&mut trial, [2], "slow_disk", include_str!("slow_disk.c")) {
        eprintln!("skipped: needs a C compiler: {error}");
        return;
    }
    let hung = trial.node(2).dir.join("hung");
    trial.set_environment(2, "TRIREME_SLOW_DISK", &hung);
    start(&mut trial);
    fs::write(&hung, "").expect("a file");
    let began = Instant::now();
    trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "the others wait for the slow disk"
    );
    await_told(
        TOLD,
        &["flush of the write-set log", "has not ended for"],
        || why(&trial, 2),
    );
    runbook("A disk is slow or hangs", "kill -9");
    trial.kill(2);
    fs::remove_file(&hung).expect("the file is there");
    trial.restart(2);
    assert_all_here(&mut trial);
}

#[test]
fn a_process_is_paused() {
    let Some(mut trial) = three(QUICK) else {
        return;
    };
    trial.pause_node(2).expect("it can be paused");
    trial.await_size(0, 2, SOON);
    await_told(TOLD, &["was stopped by a signal", "kill -CONT"], || {
        why(&trial, 2)
    });
    let gone = format!("not here: {}", group_address(&trial, 2));
    await_told(SOON, &[&gone], || status(&trial, 0));
    runbook("A disk is slow or hangs", "kill -CONT");
    trial.resume_node(2).expect("it can go on");
    assert_all_here(&mut trial);
}

#[test]
fn a_node_is_cut_off() {
    let Some(mut trial) = three(QUICK) else {
        return;
    };
    trial.set_option(2, "gmcast.isolate=1");
    trial.await_status(2, "wsrep_cluster_status", "non-Primary", SOON);
    await_told(TOLD, &["majority", "missing are", "node1", "node2"], || {
        why(&trial, 2)
    });
    await_told(SOON, &["no majority", "why-waiting"], || status(&trial, 2));
    // The cut-off node's index is of another view than its list of addresses.
    let report = json(&trial, 2, &["status", "--json"]);
    let members = report["members"].as_array().expect("a list");
    let mut names: Vec<_> = (members.iter().filter_map(|member| member["name"].as_str())).collect();
    names.sort_unstable();
    assert_eq!(names, ["node1", "node2", "node3"], "{report}");
    let gone = format!("not here: {}", group_address(&trial, 2));
    await_told(SOON, &[&gone], || status(&trial, 0));
    runbook("A node is cut off", "trireme why-waiting");
    // The network is mended.
    trial.set_option(2, "gmcast.isolate=0");
    assert_all_here(&mut trial);
}

#[test]
fn all_are_down_and_one_is_missing() {
    let Some(mut trial) = three("") else { return };
    trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
    for i in 0..3 {
        trial.kill(i);
    }
    spawn(&mut trial, 0, StartMode::Join);
    await_told(JOIN, &["majority", "missing are", "node2", "node3"], || {
        why(&trial, 0)
    });
    runbook(
        "All nodes were down, and one does not come back",
        "systemctl start mariadb",
    );
    spawn(&mut trial, 1, StartMode::Join);
    for i in 0..2 {
        trial.await_size(i, 2, JOIN);
    }
    assert_eq!(trial.value(1, "SELECT COUNT(*) FROM d.t"), "1");
    let gone = format!("not here: {}", group_address(&trial, 2));
    await_told(SOON, &[&gone], || status(&trial, 0));
}

#[test]
fn only_one_is_left_for_good() {
    let Some(mut trial) = three("") else { return };
    trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
    trial.assert_equal();
    for i in 0..3 {
        trial.kill(i);
    }
    for i in [1, 2] {
        trial.lose_data(i).expect("the data are lost");
    }
    spawn(&mut trial, 0, StartMode::Join);
    await_told(JOIN, &["majority", "missing are", "node2", "node3"], || {
        why(&trial, 0)
    });
    runbook("Most nodes are lost for good", "galera_new_cluster");
    trial.kill(0);
    let grastate = trial.node(0).datadir().join("grastate.dat");
    let text = fs::read_to_string(&grastate).expect("it is there");
    fs::write(
        &grastate,
        text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"),
    )
    .expect("it can be written");
    trial
        .bootstrap_node(0)
        .unwrap_or_else(|error| panic!("it does not begin alone: {error}"));
    assert_eq!(trial.value(0, "SELECT COUNT(*) FROM d.t"), "1");
    for i in [1, 2] {
        datadir::install(Server::MariaDb, &trial.node(i).datadir()).expect("an empty database");
        trial.restart(i);
    }
    assert_all_here(&mut trial);
}

#[test]
fn a_data_directory_is_lost() {
    let Some(mut trial) = three("") else { return };
    trial.exec(0, "INSERT INTO d.t VALUES (1, 1)");
    trial.kill(2);
    let data = trial.node(2).datadir();
    trial.lose_data(2).expect("the data are lost");
    fs::create_dir(&data).expect("a new disk");
    await_told(SOON, &["is no data directory of a Trireme node"], || {
        why(&trial, 2)
    });
    runbook("A data directory is lost", "mariadb-install-db");
    fs::remove_dir(&data).expect("it is empty");
    datadir::install(Server::MariaDb, &data).expect("an empty database");
    trial.restart(2);
    assert_all_here(&mut trial);
}

#[test]
fn a_clock_is_off() {
    let Some(mut trial) = prepared("") else {
        return;
    };
    if let Err(error) = preload::into(&mut trial, [1], "clock_off", include_str!("clock_off.c")) {
        eprintln!("skipped: needs a C compiler: {error}");
        return;
    }
    let off = trial.node(1).dir.join("off");
    trial.set_environment(1, "TRIREME_CLOCK_OFF", &off);
    start(&mut trial);
    fs::write(&off, "").expect("a file");
    await_check(
        &trial,
        0,
        "clocks",
        &["fails", "clocks differ by 3600", "node2 is ahead"],
    );
    trial.exec(1, "INSERT INTO d.t VALUES (1, 1)");
    runbook("A clock is off", "timedatectl set-ntp true");
    fs::remove_file(&off).expect("the file is there");
    await_check(&trial, 0, "clocks", &["passes"]);
    assert_all_here(&mut trial);
}

#[test]
fn a_long_alter_holds_up_everybody() {
    let Some(mut trial) = three("") else { return };
    table_to_alter(&mut trial);
    let client = alter(&trial, 1, "SET SESSION wsrep_OSU_method = TOI");
    let words = [
        "fails",
        "holds up all commits: ALTER TABLE d.u",
        "on node2, connection",
    ];
    await_check(&trial, 0, "long-statement", &words);
    runbook("A long ALTER holds up everybody", "wsrep_OSU_method = RSU");
    client.join().expect("it ends by itself");
    await_check(&trial, 0, "long-statement", &["passes"]);

    // The next one is done as the runbook says: the others go on meanwhile.
    let client = alter(&trial, 1, "SET SESSION wsrep_OSU_method = RSU");
    let desynced = await_true(SOON, || trial.status(1, "wsrep_local_state") == "2");
    assert!(desynced, "the node that alters is not desynced");
    let began = Instant::now();
    trial.exec(0, "INSERT INTO d.t VALUES (2, 2)");
    assert!(
        !client.is_finished(),
        "the ALTER was too short to show anything"
    );
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    client.join().expect("it ends by itself");
    for i in [0, 2] {
        alter(&trial, i, "SET SESSION wsrep_OSU_method = RSU")
            .join()
            .expect("likewise");
    }
    assert_all_here(&mut trial);
}

/// So long [`alter`] works on a server that has the machine for itself.
const ALTER: Duration = Duration::from_secs(5);

/// Makes d.u, for [`alter`], on all nodes. It has more rows on a faster machine.
pub fn table_to_alter(trial: &mut Trial) {
    let row = || {
        let began = Instant::now();
        trial.value(0, "SELECT SHA2(REPEAT('1', 15000000), 512)");
        began.elapsed().as_secs_f64()
    };
    // The quickest: the others were held up.
    let row_s = (0..10).map(|_| row()).fold(1.0, f64::min);
    let rows = (ALTER.as_secs_f64() / row_s).max(2.0);
    trial.exec(0, "CREATE TABLE d.u (id INT PRIMARY KEY, v INT)");
    let insert = format!("INSERT INTO d.u SELECT seq, 1 FROM d.seq_1_to_{rows:.0}");
    trial.exec(0, &insert);
    trial.assert_equal();
}

/// An ALTER of d.u that works for some seconds, since it checks each row; it must succeed.
pub fn alter(trial: &Trial, i: usize, setting: &'static str) -> thread::JoinHandle<()> {
    let socket = trial.node(i).socket();
    // The constraint replaces the one before: two would take twice as long.
    let statement = "ALTER TABLE d.u DROP CONSTRAINT IF EXISTS slow, \
         ADD CONSTRAINT slow CHECK (SHA2(REPEAT(v, 15000000), 512) <> 'x'), ALGORITHM=COPY";
    thread::spawn(move || {
        let mut sql = Sql::connect_socket(&socket, Duration::from_secs(180)).expect("a connection");
        for statement in [setting, statement] {
            if let Err(error) = sql.exec(statement) {
                panic!("{statement}: {error}");
            }
        }
    })
}

/// Starts node `i`, and does not wait for it.
pub fn spawn(trial: &mut Trial, i: usize, mode: StartMode) {
    trial
        .spawn_node(i, mode)
        .unwrap_or_else(|error| panic!("node {i} does not start: {error}"));
}
