//! Checks of `trireme doctor` whose conditions lie in the machine around a server: its programs, systemd, and another
//! server at a member's address.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trireme_testbed::StartMode;

use super::doctor::{assert_found, assert_passes};
use super::inspect::{PROGRAM, check_of};
use super::trial::{JOIN, Trial, provider};

/// The doctor's arguments about the first node.
fn doctor(trial: &Trial) -> Vec<String> {
    let socket = trial.node(0).socket().to_string_lossy().into_owned();
    let words = [PROGRAM, "doctor", "--json", "--user", "root", "--socket"];
    let words = words.iter().map(|word| (*word).to_owned());
    words.chain([socket]).collect()
}

/// The result and text of a check in what the doctor has printed; None, with a line that says so: this user may not make
/// the condition.
fn seen(output: &Output, name: &str) -> Option<(String, String)> {
    let Ok(report) = serde_json::from_slice(&output.stdout) else {
        eprintln!("skipped: {name} needs root: {output:?}");
        return None;
    };
    Some(check_of(&report, name))
}

#[test]
fn a_program_that_is_missing_is_found() {
    let Some(trial) = Trial::start(1, "") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    assert_passes(&trial, "sst-programs");
    // In a mount namespace of its own, where the program is no file.
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg("mount --bind /dev/null /usr/bin/rsync && exec \"$@\"")
        .arg("sh")
        .args(doctor(&trial))
        .output()
        .expect("unshare is in every Debian");
    if let Some((result, text)) = seen(&output, "sst-programs") {
        assert!(result == "failed" && text.contains("rsync"), "{text}");
    }
}

/// A control group as systemd makes one for a service. It is removed when dropped, after its process has ended.
struct Service {
    mount: PathBuf,
    group: PathBuf,
}

impl Service {
    /// Puts the process into it. None: this user may not.
    fn of(dir: &Path, pid: u32) -> Option<Service> {
        let mount = dir.join("cgroup");
        fs::create_dir(&mount).expect("a directory");
        let status = Command::new("mount")
            .args(["-t", "cgroup2", "none"])
            .arg(&mount)
            .status();
        let group = mount.join(format!("trireme-test-{pid}.service"));
        let service = Service { mount, group };
        if !status.is_ok_and(|status| status.success()) {
            return None;
        }
        fs::create_dir(&service.group).ok()?;
        fs::write(service.group.join("cgroup.procs"), pid.to_string()).ok()?;
        Some(service)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.mount)
            .status();
    }
}

#[test]
fn systemds_timeout_is_found() {
    let Some(mut trial) = Trial::start(1, "") else {
        return;
    };
    if !trial.is_trireme() {
        return;
    }
    let dir = trial.settings().dir.clone();
    let pid = trial.node(0).pid().expect("it runs");
    let Some(service) = Service::of(&dir, pid) else {
        eprintln!("skipped: needs a control group, as root");
        return;
    };
    // In the place of systemd, which does not run in every container.
    let programs = dir.join("programs");
    fs::create_dir(&programs).expect("a directory");
    for (timeout, wanted) in [("1min 30s", "failed"), ("infinity", "ok")] {
        let systemctl = programs.join("systemctl");
        let unit = service.group.file_name().expect("a name").to_string_lossy();
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *{unit}) echo 'TimeoutStartUSec={timeout}' ;; *) exit 1 ;; esac\n"
        );
        fs::write(&systemctl, script).expect("a file");
        let output = Command::new("sh")
            .args([
                "-c",
                "chmod +x \"$0\" && PATH=$(dirname \"$0\"):$PATH && exec \"$@\"",
            ])
            .arg(&systemctl)
            .args(doctor(&trial))
            .output()
            .expect("a shell");
        let (result, text) = seen(&output, "start-timeout").expect("a report");
        assert_eq!(result, wanted, "{timeout}: {text}");
    }
    trial.kill(0);
}

/// The second node tells its clients' address wrongly, and another cluster's server listens there.
#[test]
fn a_server_of_another_cluster_at_a_members_address_is_found() {
    let Some(other) = Trial::start(1, "") else {
        return;
    };
    let Some(path) = provider() else { return };
    let mut trial = Trial::prepare(path, 2, |_| {});
    if !trial.is_trireme() {
        return;
    }
    if let Err(error) = trial.start() {
        panic!("the cluster does not start: {error}");
    }
    for name in ["one-history", "one-view"] {
        assert_passes(&trial, name);
    }
    trial.stop(1);
    let elsewhere = format!("127.0.0.1:{}", other.node(0).ports.mysql);
    let argument = format!("--wsrep-node-incoming-address={elsewhere}");
    trial.settings_mut().mariadbd_args.push(argument);
    trial
        .spawn_node(1, StartMode::Join)
        .unwrap_or_else(|error| panic!("it does not start: {error}"));
    trial.await_size(1, 2, JOIN);
    assert_found(&trial, "one-history", "different cluster UUIDs");
    assert_found(&trial, "one-view", "different views");
}
