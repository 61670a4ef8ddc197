//! `trireme tls init` and `renew` tell when they make an authority, miss it, or take a change of it back.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn tls(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trireme"));
    command.current_dir(dir).arg("tls").args(arguments);
    command.output().expect("the program can be started")
}

#[track_caller]
fn done(dir: &Path, arguments: &[&str]) -> String {
    let output = tls(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_authority_is_made_once_and_missed_afterwards() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let dir = dir.path();
    const MADE: &str = "made a new authority";
    assert!(done(dir, &["init", "node1"]).contains(MADE));
    assert!(!done(dir, &["init", "node2"]).contains(MADE));
    let trusted = || fs::read(dir.join("trireme-tls/nodes/node1/ca.pem")).expect("a file of ours");
    let before = trusted();
    fs::rename(dir.join("trireme-tls/authority.pem"), dir.join("safe")).expect("a move of ours");
    for arguments in [&["init", "node3"][..], &["renew"]] {
        let output = tls(dir, arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(
            text.contains("authority.pem is missing: put it back"),
            "{text}"
        );
    }
    assert_eq!(trusted(), before);
}

#[test]
fn a_change_of_authority_that_is_taken_back_is_told() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let dir = dir.path();
    done(dir, &["init", "node1"]);
    let authority = dir.join("trireme-tls/authority.pem");
    let old = fs::read(&authority).expect("a file of ours");
    let text = done(dir, &["renew", "--new-authority"]);
    assert!(
        text.ends_with("then: trireme tls renew --dir trireme-tls\n"),
        "{text}"
    );
    fs::write(&authority, old).expect("a file of ours"); // as if the change had broken off before its last step
    let text = done(dir, &["renew", "--drop-old-authority"]);
    let again = "trireme tls renew --dir trireme-tls --new-authority";
    for part in ["taken back", again, "copy ca.pem"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let text = done(dir, &["renew", "--drop-old-authority"]);
    assert!(text.contains("nothing to do"), "{text}");
}
