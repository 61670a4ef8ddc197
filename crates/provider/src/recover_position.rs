//! Finds the database's position when no one has given it. Runs the server's own `--wsrep-recover` on the same data
//! directory, as the distribution's service does before a start (server-contract-reference.md#position-recovery).
//! Containers, and users who start `mariadbd` by hand, omit that step. Without it a node whose database lacks nothing
//! would take a full SST after a crash.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use trireme_wsrep_abi::Gtid;

use crate::termination;
use crate::threads::{self, ThreadError};

/// Limit of the run. It includes InnoDB's own crash recovery, which may take hours on a large redo log. After this time
/// the server is considered hanging, and the node takes a full SST.
const TIMEOUT: Duration = Duration::from_secs(6 * 60 * 60);
const LOOK: Duration = Duration::from_millis(20);
const MARKER: &str = "WSREP: Recovered position:";

/// Arguments that are not passed to the second server.
const NOT_PASSED_ON: [&str; 6] = [
    "wsrep-new-cluster",
    "wsrep-start-position",
    "wsrep-recover",
    "log-error",
    "skip-log-error",
    "disable-log-error",
];

/// The reason why the position stays unknown.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    #[error("this process is not a MariaDB server ({0})")]
    NotAServer(String),
    #[error("cannot run {program} --wsrep-recover: {source}")]
    Run {
        program: String,
        source: std::io::Error,
    },
    #[error("{0}")]
    Thread(#[from] ThreadError),
    #[error("{program} --wsrep-recover has not ended after {} s", .after.as_secs())]
    TooLong { program: String, after: Duration },
    #[error("SIGTERM came while {program} --wsrep-recover ran")]
    Terminated { program: String },
    #[error(
        "{program} --wsrep-recover names no position (its arguments may have paths that are relative to another \
         directory); it ended with: {last_line}"
    )]
    NoPosition { program: String, last_line: String },
}

/// Runs the program of this process, a server, on its own data directory, which must not be open yet.
pub fn recover_position() -> Result<Gtid, RecoverError> {
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with("mariadbd") && !name.starts_with("mysqld") {
        return Err(RecoverError::NotAServer(program.display().to_string()));
    }
    let arguments = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    run(&program, passed_on(&arguments))
}

/// Returns this process's arguments, without those that would disturb the run.
fn passed_on(command_line: &[u8]) -> Vec<OsString> {
    let mut passed = Vec::new();
    let mut arguments = command_line.split(|byte| *byte == 0).skip(1);
    while let Some(argument) = arguments.next() {
        let text = String::from_utf8_lossy(argument);
        let (name, value) = match text.split_once('=') {
            Some((name, _)) => (name, true),
            None => (&*text, false),
        };
        let name = name.trim_start_matches('-').replace('_', "-");
        if argument.is_empty() {
            continue;
        }
        if !NOT_PASSED_ON.contains(&name.as_str()) || !text.starts_with("--") {
            passed.push(OsString::from_vec(argument.to_vec()));
        } else if name == "wsrep-start-position" && !value {
            arguments.next();
        }
    }
    passed
}

fn run(program: &PathBuf, arguments: Vec<OsString>) -> Result<Gtid, RecoverError> {
    let shown = program.display().to_string();
    let fail = |source| RecoverError::Run {
        program: shown.clone(),
        source,
    };
    let mut command = Command::new(program);
    // The server has changed into its data directory since it read its own arguments.
    if let Some(started_in) = std::env::var_os("PWD").filter(|dir| Path::new(dir).is_dir()) {
        command.current_dir(started_in);
    }
    end_with_this_thread(&mut command);
    // The watcher comes first: nobody would end a child without one.
    let (hand, child) = channel::<Child>();
    let watcher = threads::spawn("trireme-ask", move || child.recv().is_ok_and(watch))?;
    let mut child = command
        .args(arguments)
        .args(["--wsrep-recover", "--disable-log-error"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    let output = child.stderr.take();
    // Cannot fail: the watcher waits for the child.
    let _ = hand.send(child);
    let (mut position, mut last_line) = (None, String::new());
    // Names of files and tables may be in any character set.
    for line in output
        .into_iter()
        .flat_map(|o| BufReader::new(o).split(b'\n'))
    {
        let Ok(line) = line else { break };
        last_line = String::from_utf8_lossy(&line).into_owned();
        position = parse(&last_line).or(position);
    }
    let in_time = watcher.join().unwrap_or(false);
    let program = shown;
    // The signal may have ended the child, too.
    if termination::is_wanted() {
        return Err(RecoverError::Terminated { program });
    }
    match position {
        Some(position) => Ok(position),
        None if !in_time => Err(RecoverError::TooLong {
            program,
            after: TIMEOUT,
        }),
        None => Err(RecoverError::NoPosition { program, last_line }),
    }
}

/// Makes the child end with the thread that starts it, which waits for it: a server that outlived its parent would keep
/// the next one from the data.
fn end_with_this_thread(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure only makes two system calls, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // The parent may have died before.
            match libc::getppid().unsigned_abs() == parent {
                true => Ok(()),
                false => Err(std::io::ErrorKind::BrokenPipe.into()),
            }
        });
    }
}

/// Waits for the end of the child. Kills it after the limit, or if a SIGTERM is pending: the server has not started,
/// and does not see the signal. Returns false if it took too long.
fn watch(mut child: Child) -> bool {
    let since = Instant::now();
    loop {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        let is_late = since.elapsed() > TIMEOUT;
        if is_late || termination::is_wanted() {
            // The child's output ends with the child, and so does the wait for a line.
            let _ = child.kill();
            let _ = child.wait();
            return !is_late;
        }
        thread::sleep(LOOK);
    }
}

/// Returns the position in a line of the server's output.
fn parse(line: &str) -> Option<Gtid> {
    let (_, text) = line.split_once(MARKER)?;
    let text = text.trim();
    let gtid = text.split_once(',').map_or(text, |(gtid, _)| gtid);
    let (uuid, seqno) = gtid.rsplit_once(':')?;
    Some(Gtid {
        uuid: uuid.parse().ok()?,
        seqno: seqno.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::termination::tests;

    #[test]
    fn a_line_of_the_server_names_the_position() {
        let uuid = "37bb872a-ad73-11e6-819f-f3b71d9c5ada";
        let line =
            format!("2026-01-01 0:00:00 0 [Note] WSREP: Recovered position: {uuid}:345,0-1-7");
        let position = parse(&line).expect("a position");
        assert_eq!(
            (position.uuid.to_string(), position.seqno),
            (uuid.to_owned(), 345)
        );
        assert_eq!(
            parse(&format!("{MARKER} {uuid}:-1"))
                .expect("none yet")
                .seqno,
            -1
        );
        assert!(parse("InnoDB: started").is_none());
        assert!(parse(&format!("{MARKER} nonsense:1")).is_none());
    }

    #[test]
    fn the_servers_arguments_are_passed_on_without_those_of_this_start() {
        let line = b"/usr/sbin/mariadbd\0--defaults-file=/etc/my.cnf\0--wsrep_new_cluster\0--wsrep-start-position=u:1\0\
                     --wsrep_start_position\0u:2\0--log-error=/x\0--datadir\0/d\0--wsrep-on=1\0";
        let passed: Vec<_> = passed_on(line)
            .into_iter()
            .map(|a| a.into_string().expect("text"))
            .collect();
        assert_eq!(
            passed,
            [
                "--defaults-file=/etc/my.cnf",
                "--datadir",
                "/d",
                "--wsrep-on=1"
            ]
        );
    }

    #[test]
    fn another_program_is_not_run() {
        assert!(matches!(
            recover_position(),
            Err(RecoverError::NotAServer(_))
        ));
    }

    #[test]
    fn a_server_that_says_nothing_is_quoted() {
        let error = run(
            &"/bin/sh".into(),
            vec![
                "-c".into(),
                "printf '\\377\\n' >&2; echo no such directory >&2; exit 1".into(),
            ],
        );
        let text = error.expect_err("no position").to_string();
        assert!(text.ends_with("it ended with: no such directory"), "{text}");
    }

    #[test]
    fn a_thread_that_cannot_be_started_is_the_reason_why_the_position_stays_unknown() {
        if tests::is_child() {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
            let kib: u64 = size
                .unwrap()
                .trim()
                .trim_end_matches(" kB")
                .parse()
                .unwrap();
            // Enough for all but a thread's stack (2 MiB).
            let bytes = (kib + 1_024) * 1_024;
            let limit = libc::rlimit {
                rlim_cur: bytes,
                rlim_max: bytes,
            };
            // SAFETY: the call takes values only.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
            let error = run(&"/bin/sh".into(), vec![]).unwrap_err();
            assert!(matches!(error, RecoverError::Thread(_)), "{error:?}");
            return;
        }
        let this_test = "recover_position::tests::a_thread_that_cannot_be_started_is_the_reason_why_the_position_stays_unknown";
        let status = tests::run_again(&[], this_test).expect("nothing is before it");
        assert!(status.success(), "{status}");
    }

    /// The node must not go on without its position: it would replace its data, or found a new history.
    #[test]
    fn sigterm_ends_the_run_and_is_told_as_such() {
        if tests::is_child() {
            tests::terminate();
            for script in ["exec sleep 60", "exit 1"] {
                let began = Instant::now();
                let result = run(&"/bin/sh".into(), vec!["-c".into(), script.into()]);
                assert!(
                    matches!(result, Err(RecoverError::Terminated { .. })),
                    "{result:?}"
                );
                assert!(began.elapsed() < Duration::from_secs(30));
            }
            // The process goes on until its reason is logged.
            assert!(termination::is_wanted());
            return;
        }
        let this_test = "recover_position::tests::sigterm_ends_the_run_and_is_told_as_such";
        let status = tests::run_again(&[], this_test).expect("nothing is before it");
        assert!(status.success(), "{status}");
    }
}
