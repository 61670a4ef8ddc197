//! The log's disk is full: the node leaves with an error that says what to do, the others go on, and it comes back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::load::Load;
use super::trial::{JOIN, SOON, Trial, await_true, pause, provider};

/// A small file system; unmounted when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None, with a line that says so: this user may not mount.
    pub fn mount(at: &Path, size: &str) -> Option<SmallDisk> {
        fs::create_dir_all(at).expect("a directory can be made");
        let options = format!("size={size},mode=0777");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(SmallDisk(at.to_path_buf())),
            other => {
                eprintln!("skipped: needs to mount a small tmpfs, as root: {other:?}");
                None
            }
        }
    }

    /// Makes it larger.
    pub fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        let status = Command::new("mount")
            .args(["-o", &options])
            .arg(&self.0)
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "the disk does not grow"
        );
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_takes_one_node_out_and_not_for_long() {
    for durability in ["os", "disk"] {
        let Some(path) = provider() else {
            return;
        };
        let mut trial = Trial::prepare(path, 3, |settings| {
            // Beside each node's data directory.
            settings.provider_options =
                format!("gcache.dir=../log-disk;repl.durability={durability}");
        });
        if !trial.is_trireme() {
            return;
        }
        let dirs: Vec<PathBuf> = (0..3).map(|i| trial.node(i).dir.join("log-disk")).collect();
        for dir in &dirs[..2] {
            fs::create_dir_all(dir).expect("a directory can be made");
        }
        let Some(disk) = SmallDisk::mount(&dirs[2], "1m") else {
            return;
        };
        if let Err(error) = trial.start() {
            panic!("the cluster does not start: {error}");
        }
        trial.exec(0, "CREATE DATABASE d");
        trial.exec(0, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT NOT NULL)");
        trial.exec(0, "CREATE TABLE d.large (id INT PRIMARY KEY, v LONGBLOB)");
        let load = Load::start(&trial, &[0, 1, 2]);
        pause(Duration::from_secs(1));
        let began = Instant::now();
        trial.exec(0, "INSERT INTO d.large VALUES (1, REPEAT('x', 3000000))");

        trial.await_status(2, "wsrep_ready", "OFF", SOON);
        trial.await_status(2, "wsrep_connected", "OFF", SOON);
        let error = "[ERROR] WSREP: ";
        let log = trial.node(2).log_text();
        let words = [
            "No space left",
            "log-disk/trireme-0",
            "offset",
            "free space",
            "leaves the cluster",
        ];
        let said =
            |line: &&str| line.contains(error) && words.iter().all(|word| line.contains(word));
        assert_eq!(log.lines().filter(said).count(), 1, "one error says it all");
        let refused = trial.try_exec(2, "INSERT INTO d.t VALUES (100, 0)");
        let told = refused.map_or_else(|error| error.to_string(), |rows| format!("{rows} rows"));
        assert!(told.contains("1047"), "{told}");
        for i in 0..2 {
            trial.await_size(i, 2, SOON);
        }
        pause(Duration::from_secs(2));
        let ended = Instant::now();
        let record = load.stop();
        let gap = record.longest_gap(began, ended);
        eprintln!("  {durability}: longest time without a commit {gap:?}");
        assert!(
            gap < Duration::from_secs(5),
            "the others waited for {gap:?}"
        );
        let of_others = |error: &&String| !error.starts_with("node3");
        let errors: Vec<_> = record.errors.keys().filter(of_others).collect();
        assert!(
            errors.is_empty(),
            "the others' clients got errors: {errors:?}"
        );

        disk.grow("64m");
        trial.stop(2);
        trial.restart(2);
        for i in 0..3 {
            trial.await_size(i, 3, JOIN);
        }
        let rows = trial.value(2, "SELECT COUNT(*) FROM d.load");
        let rows: usize = rows.parse().expect("a count");
        assert!(
            rows >= record.commits.len(),
            "{rows} rows, {} acknowledged",
            record.commits.len()
        );
        trial.exec(2, "INSERT INTO d.t VALUES (1, 0)");
        assert!(await_true(SOON, || trial
            .value(0, "SELECT COUNT(*) FROM d.t")
            == "1"));
        trial.assert_equal();
    }
}
