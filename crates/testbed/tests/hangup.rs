//! SIGHUP stops a program with servers, unless it was started by `nohup`.

use std::process::Command;

use rustix::process::{Signal, getpid, kill_process};
use trireme_testbed::interrupt::{self, Interrupted};

/// The environment variable that makes this test the program.
const PROGRAM: &str = "HANGUP_PROGRAM";

fn run_program() {
    interrupt::install().expect("handlers can be installed");
    interrupt::install_for_hangup().expect("a handler can be installed");
    kill_process(getpid(), Signal::HUP).expect("it can send itself a signal");
    let is_stopped = interrupt::check() == Err(Interrupted);
    println!("stopped: {is_stopped}");
}

#[test]
fn a_hangup_stops_the_program_unless_nohup_started_it() {
    if std::env::var_os(PROGRAM).is_some() {
        return run_program();
    }
    let test = std::env::current_exe().expect("the test's own file");
    for (program, is_stopped) in [("env", true), ("nohup", false)] {
        let output = Command::new(program)
            .arg(&test)
            .arg("--nocapture")
            .env(PROGRAM, "1")
            .output()
            .expect("it can be started");
        let printed = String::from_utf8_lossy(&output.stdout);
        let expected = format!("stopped: {is_stopped}");
        assert!(printed.contains(&expected), "{program}: {output:?}");
    }
}
