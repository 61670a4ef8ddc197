//! Examines this machine: the volumes, files and process of a node.

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use trireme_agent::state_file;
use trireme_encryption::crl_days_left;
use trireme_tls::{days_left, exposed_mode};

use super::facts::{CRL, Host, SecurityFile};
use super::sst;
use crate::local::{end_of, file_names, journal, log_files, output, replica, small};
use crate::node::Node;

/// The most bytes to read from the end of an error log.
const MAX_LOG_BYTES: u64 = 4 << 20;
/// The most lines to read of a journal.
const MAX_JOURNAL_LINES: u32 = 20_000;
/// `f_type` of tmpfs and ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
/// The directories of programs.
const PATHS: [&str; 4] = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin"];
/// The options that name files, and the kinds of these files.
const SECURITY_FILES: [(&str, Kind); 6] = [
    ("socket.ssl_cert", Kind::Certificates),
    ("socket.ssl_ca", Kind::Certificates),
    (CRL, Kind::RevocationLists),
    ("socket.ssl_key", Kind::Private),
    ("socket.ssl_password_file", Kind::Private),
    ("repl.secret_file", Kind::Private),
];
const PROGRAMS: [&str; 5] = ["rsync", "mariadb-backup", "mbstream", "socat", "stunnel"];

/// The content of a file that an option names.
#[derive(Clone, Copy)]
enum Kind {
    Certificates,
    RevocationLists,
    Private,
}

/// Examines the machine of a node; None if its data directory is not here or cannot be read.
pub(super) fn examine(node: &Node) -> Option<Host> {
    let datadir = PathBuf::from(node.variable("datadir"));
    fs::read_dir(&datadir).ok()?;
    let within = |name: &str| datadir.join(name);
    if !is_of(node, &within(node.option("base_dir"))) {
        return None;
    }
    // The server's working directory is its data directory.
    let log_dir = within(node.option("gcache.dir"));
    let pid = pid(&within(node.variable("pid_file")));
    let unit = pid.and_then(unit);
    let arguments = pid.and_then(|pid| words(&format!("/proc/{pid}/cmdline")));
    let files = file_names(&log_dir).map(|names| log_files(&log_dir, &names));
    let (log_bytes, damaged) = match files {
        Ok(files) => (Some(files.bytes), Some(files.damaged)),
        Err(_) => (None, None),
    };
    Some(Host {
        log_volume: volume(&log_dir),
        data_volume: volume(&datadir),
        log_bytes,
        damaged,
        programs: programs(),
        mark_dir_in_memory: is_in_memory(&within(node.option("repl.mark_dir"))),
        sst_encrypts: sst::encrypts(arguments.as_deref().unwrap_or_default()),
        arguments,
        environment: pid
            .and_then(|pid| words(&format!("/proc/{pid}/environ")))
            .map(|all| {
                let name = |pair: String| pair.split('=').next().unwrap_or_default().to_owned();
                all.into_iter().map(name).collect()
            }),
        error_log: match node.variable("log_error") {
            "" => (unit.as_deref()).and_then(|unit| journal(unit, MAX_JOURNAL_LINES)),
            file => end_of(&within(file), MAX_LOG_BYTES),
        },
        security_files: security_files(node, &datadir),
        same_replica: same_replica(&within(node.option("base_dir"))),
        start_timeout_s: unit.as_deref().and_then(start_timeout_s),
        agent_answers: agent_answers(),
    })
}

/// Whether a directory of this machine is the node's. Behind a tunnel or in a container the node has another one at the
/// same path: the state file names its node, and without this file the machine decides.
fn is_of(node: &Node, base_dir: &Path) -> bool {
    match state_file::read(base_dir) {
        Ok(Some(state)) => state.node.name == node.name(),
        _ => {
            let here = small(Path::new("/proc/sys/kernel/hostname"));
            here.is_some_and(|name| name.trim() == node.variable("hostname"))
        }
    }
}

fn volume(dir: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(dir).ok()?;
    Some((
        found.f_bavail * found.f_frsize,
        found.f_blocks * found.f_frsize,
    ))
}

fn is_in_memory(dir: &Path) -> Option<bool> {
    let found = rustix::fs::statfs(dir).ok()?;
    #[allow(clippy::unnecessary_cast)] // its type depends on the platform
    let kind = found.f_type as i64;
    Some(IN_MEMORY.contains(&kind))
}

fn programs() -> BTreeSet<&'static str> {
    let is_there = |name: &&&str| {
        PATHS
            .iter()
            .any(|path| Path::new(path).join(name).is_file())
    };
    PROGRAMS.iter().filter(is_there).copied().collect()
}

fn pid(file: &Path) -> Option<u32> {
    small(file)?.trim().parse().ok()
}

/// Reads a file whose parts end in zero bytes.
fn words(file: &str) -> Option<Vec<String>> {
    let text = small(Path::new(file))?;
    Some(
        text.split('\0')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

/// Examines the files that options name. The server finds a relative path from its data directory.
fn security_files(node: &Node, datadir: &Path) -> Vec<SecurityFile> {
    let found = SECURITY_FILES
        .into_iter()
        .filter(|(option, _)| !node.option(option).is_empty())
        .map(|(option, kind)| {
            let path = datadir.join(node.option(option));
            let file = path.display().to_string();
            let exposed = match kind {
                Kind::Private => fs::metadata(&path)
                    .map(|about| exposed_mode(&about))
                    .map_err(|error| error.to_string()),
                _ => Ok(None),
            };
            SecurityFile {
                option,
                days: match kind {
                    Kind::Certificates => Some(days_left(option, &file).map_err(|e| e.to_string())),
                    Kind::RevocationLists => Some(crl_days_left(&file).map_err(|e| e.to_string())),
                    Kind::Private => None,
                },
                file,
                exposed,
            }
        });
    found.collect()
}

/// Finds directories with the same replica id next to this one, where operators put copies. None if the own id cannot
/// be read, or if no copy was found among those that could be read.
fn same_replica(dir: &Path) -> Option<Vec<PathBuf>> {
    // A node without an id has not connected yet.
    let Some(own) = replica(dir).ok()? else {
        return Some(Vec::new());
    };
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let here = canonical(dir);
    let beside = here.parent().map(Path::to_owned).unwrap_or_default();
    let mut are_read = true;
    let mut found = Vec::new();
    for name in file_names(&beside).ok()? {
        let path = beside.join(name);
        if canonical(&path) == here {
            continue;
        }
        match replica(&path) {
            Ok(Some(id)) if id == own => found.push(path),
            Ok(_) => {}
            Err(_) => are_read = false,
        }
    }
    found.sort();
    (are_read || !found.is_empty()).then_some(found)
}

/// The unit of systemd that runs the process.
fn unit(pid: u32) -> Option<String> {
    let cgroup = small(Path::new(&format!("/proc/{pid}/cgroup")))?;
    let unit = cgroup.trim().rsplit('/').next()?;
    unit.ends_with(".service").then(|| unit.to_owned())
}

/// The start timeout of a unit, in seconds.
fn start_timeout_s(unit: &str) -> Option<f64> {
    let shown = output(
        "systemctl",
        &["show", "--property=TimeoutStartUSec", "--", unit],
    )?;
    systemd_seconds(shown.trim().strip_prefix("TimeoutStartUSec=")?)
}

/// Parses systemd's time spans: `1min 30s`, `infinity`.
fn systemd_seconds(text: &str) -> Option<f64> {
    if text == "infinity" {
        return Some(f64::INFINITY);
    }
    let mut total = 0.0;
    for part in text.split_whitespace() {
        let at = part.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = match &part[at..] {
            "d" => 86_400.0,
            "h" => 3600.0,
            "min" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        total += part[..at].parse::<f64>().ok()? * unit;
    }
    Some(total)
}

fn agent_answers() -> bool {
    let address = SocketAddr::from(([127, 0, 0, 1], 8077));
    TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_node::state_file::{STATE_FILE, StateFile};

    #[test]
    fn a_copied_directory_is_known_by_its_replica_id() {
        let temp = tempfile::tempdir().unwrap();
        let dir = |name: &str, id: &str| {
            let path = temp.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(
                path.join("trireme.gvwstate.dat"),
                format!("version: 1\nreplica: {id}\n"),
            )
            .unwrap();
            path
        };
        let own = dir("data", "a");
        dir("other", "b");
        assert_eq!(same_replica(&own), Some(Vec::new()));
        let copy = dir("copy", "a");
        let found = same_replica(&own);
        assert_eq!(found, Some(vec![copy.canonicalize().unwrap()]));
    }

    /// A directory in the file's place cannot be read by anybody, even root.
    #[test]
    fn an_id_that_cannot_be_read_is_not_taken_for_none() {
        let temp = tempfile::tempdir().unwrap();
        let own = temp.path().join("data");
        let file = own.join("trireme.gvwstate.dat");
        fs::create_dir_all(&file).unwrap();
        assert_eq!(same_replica(&own), None);
        fs::remove_dir(&file).unwrap();
        fs::write(&file, "replica: a\n").unwrap();
        assert_eq!(same_replica(&own), Some(Vec::new()));
        fs::create_dir_all(temp.path().join("other/trireme.gvwstate.dat")).unwrap();
        assert_eq!(same_replica(&own), None, "the other one may be a copy");
    }

    #[test]
    fn a_host_tells_what_it_could_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let datadir = temp.path().join("data");
        let base_dir = temp.path().join("base/own");
        for (dir, id) in [
            (&base_dir, "a"),
            (&temp.path().join("base/copy"), "a"),
            (&datadir, "b"),
        ] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join("trireme.gvwstate.dat"), format!("replica: {id}\n")).unwrap();
        }
        fs::write(datadir.join("key.pem"), "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        fs::set_permissions(datadir.join("key.pem"), mode).unwrap();
        fs::write(datadir.join("lists.pem"), "no list").unwrap();
        let told = [
            ("@datadir", datadir.to_str().unwrap()),
            ("@hostname", &hostname()),
            ("base_dir", base_dir.to_str().unwrap()),
            ("gcache.dir", "../no-such-directory"),
            ("socket.ssl_crl", "lists.pem"),
            ("socket.ssl_key", "key.pem"),
            ("repl.secret_file", "missing/secret"),
        ];
        let host = examine(&crate::node::testing::node("node1", &told)).unwrap();
        assert_eq!((host.log_bytes, host.damaged), (None, None));
        let copies = host.same_replica.unwrap();
        assert!(
            copies.len() == 1 && copies[0].ends_with("base/copy"),
            "{copies:?}"
        );
        let [lists, key, secret] = &host.security_files[..] else {
            panic!("{:?}", host.security_files)
        };
        // Relative paths begin in the data directory.
        assert_eq!(key.exposed, Ok(Some(0o644)));
        assert!(secret.exposed.is_err());
        let unread = lists.days.clone().unwrap().unwrap_err();
        assert!(unread.contains("no revocation list"), "{unread}");
    }

    fn hostname() -> String {
        let name = small(Path::new("/proc/sys/kernel/hostname")).unwrap();
        name.trim().to_owned()
    }

    /// A node behind a tunnel, or in a container, may have the same path.
    #[test]
    fn the_files_of_another_node_are_not_examined() {
        let temp = tempfile::tempdir().unwrap();
        let base_dir = temp.path().join("base");
        fs::create_dir(&base_dir).unwrap();
        let is_examined = |hostname: &str| {
            let told = [
                ("@datadir", temp.path().to_str().unwrap()),
                ("@hostname", hostname),
                ("base_dir", "base"),
            ];
            examine(&crate::node::testing::node("node1", &told)).is_some()
        };
        let here = hostname();
        assert!(is_examined(&here), "an older library writes no state file");
        assert!(!is_examined("elsewhere"));
        for (name, expected) in [("node1", true), ("node2", false)] {
            let mut state = StateFile::default();
            state.node.name = name.to_owned();
            fs::write(base_dir.join(STATE_FILE), state.encode()).unwrap();
            for hostname in [here.as_str(), "elsewhere"] {
                assert_eq!(is_examined(hostname), expected, "{name} {hostname}");
            }
        }
    }

    #[test]
    fn times_of_systemd() {
        assert_eq!(systemd_seconds("1min 30s"), Some(90.0));
        assert_eq!(systemd_seconds("infinity"), Some(f64::INFINITY));
        assert_eq!(systemd_seconds("soon"), None);
    }

    #[test]
    fn memory_is_told_from_a_disk() {
        assert_eq!(is_in_memory(Path::new("/dev/shm")), Some(true));
        assert_eq!(is_in_memory(Path::new("/nonexistent")), None);
        assert!(volume(Path::new("/")).is_some_and(|(free, total)| free <= total));
    }
}
