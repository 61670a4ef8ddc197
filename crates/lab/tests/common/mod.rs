//! What the tests of experiments with real servers share.
#![allow(dead_code)] // no test needs all of it

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::{Args, Command};
use trireme_lab::frame::Record;

/// True, and said, unless tests with real servers are asked for.
pub fn is_skipped() -> bool {
    let skipped = std::env::var_os("TRIREME_REAL").is_none();
    if skipped {
        eprintln!("skipped: TRIREME_REAL is not set");
    }
    skipped
}

/// The words of a command line, ended by a path.
pub fn words(text: &str, path: &Path) -> Vec<OsString> {
    let words = text.split_whitespace().map(OsString::from);
    words.chain([path.into()]).collect()
}

/// The same with the library that TRIREME_PROVIDER names; else an experiment takes that beside its program.
pub fn words_with_provider(text: &str, path: &Path) -> Vec<OsString> {
    let mut words = words(text, path);
    if let Some(library) = std::env::var_os("TRIREME_PROVIDER") {
        words.extend(["--provider".into(), library]);
    }
    words
}

/// The choices that these words make.
pub fn choices<P: Args>(words: &[OsString]) -> P {
    let program = OsString::from("x");
    let command = P::augment_args(Command::new("x"));
    let matches = command.get_matches_from([&program].into_iter().chain(words));
    P::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{error}"))
}

/// The records that a run has left in `out`.
pub fn records(out: &Path) -> Vec<Record> {
    let text = fs::read_to_string(out.join("results.json")).expect("results");
    serde_json::from_str(&text).expect("records")
}

/// Its report.
pub fn report(out: &Path) -> String {
    fs::read_to_string(out.join("report.html")).expect("a report")
}

/// All records but the first `kept` are lost: a run that goes on measures them again.
pub fn lose_all_but(kept: usize, out: &Path) {
    let path = out.join("records.jsonl");
    let lines = fs::read_to_string(&path).expect("records");
    let kept: Vec<&str> = lines.lines().take(kept).collect();
    fs::write(&path, kept.join("\n")).expect("written");
}
