//! A benchmark that is interrupted stops its servers, keeps and marks what it has measured, and goes on later.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-cli --test real_bench` runs it; without the variable it does nothing.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// All points, of 4 s each, with their servers' starts.
const ALL: Duration = Duration::from_secs(120);

/// The servers are killed, and the report is made of what is there.
const STOP: Duration = Duration::from_secs(30);

/// A benchmark of ours. If the test fails it is asked to stop: it stops its servers, which would outlive a kill.
struct Bench(Child);

impl Drop for Bench {
    fn drop(&mut self) {
        let begin = Instant::now();
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        }
        while matches!(self.0.try_wait(), Ok(None)) && begin.elapsed() < STOP {
            thread::sleep(Duration::from_millis(50));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn bench(words: &[&str], out: &Path, dir: &Path) -> Bench {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trireme"));
    command.args(["bench", "inserts"]).args(words).arg(out);
    let command = command.env("TMPDIR", dir).stdout(Stdio::null());
    Bench(command.spawn().expect("the program starts"))
}

fn until<T>(what: &str, limit: Duration, mut found: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begin.elapsed() < limit, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn end(bench: &mut Bench, limit: Duration) -> ExitStatus {
    until("the benchmark ends", limit, || {
        bench.0.try_wait().expect("a child")
    })
}

/// The servers that run below this directory.
fn servers_in(dir: &Path) -> usize {
    let dir = dir.to_str().expect("a name in UTF-8");
    let all = fs::read_dir("/proc").expect("/proc");
    let lines = all.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            let line = String::from_utf8_lossy(line);
            line.contains(dir) && line.contains("mariadbd")
        })
        .count()
}

fn records(out: &Path) -> Vec<String> {
    let text = fs::read_to_string(out.join("records.jsonl")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn an_interrupted_benchmark_keeps_what_it_has_and_leaves_no_server() {
    if std::env::var_os("TRIREME_REAL").is_none() {
        eprintln!("skipped: TRIREME_REAL is not set");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let small = "--quick --systems plain --connections 1,4 --seconds 4 --warmup-seconds 0 --out";
    let small: Vec<&str> = small.split_whitespace().collect();

    let mut first = bench(&small, &out, dir.path());
    until("a point is measured", ALL, || {
        (!records(&out).is_empty()).then_some(())
    });
    until("the next one has a server", ALL, || {
        (servers_in(dir.path()) > 0).then_some(())
    });
    kill_process(Pid::from_child(&first.0), Signal::INT).expect("it runs");
    assert!(!end(&mut first, STOP).success());
    assert_eq!(servers_in(dir.path()), 0, "servers are left");
    let kept = records(&out);
    assert!(kept[0].contains("\"complete\":true"));
    let report = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(report.contains("Partial"));

    let mut second = bench(&["--resume"], &out, dir.path());
    assert!(end(&mut second, ALL).success());
    let all = records(&out);
    assert_eq!(all[0], kept[0]);
    assert!(all.len() > kept.len());
    let report = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(!report.contains("Partial"));
}
