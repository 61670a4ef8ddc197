//! SIGHUP stops a program with servers, unless it was started by `nohup`.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use trireme_testbed::interrupt::{self, Interrupted};

/// The environment variable that makes this test the program.
const PROGRAM: &str = "HANGUP_PROGRAM";

fn run_program() {
    interrupt::install().expect("handlers can be installed");
    interrupt::install_for_hangup().expect("a handler can be installed");
    let mut is_stopped = false;
    // The shell of a terminal that is closed sends the first one, the kernel the second.
    for _ in 0..2 {
        kill_process(getpid(), Signal::HUP).expect("it can send itself a signal");
        // Another thread of the test may take the signal, a little later.
        is_stopped = interrupt::sleep(Duration::from_millis(500)) == Err(Interrupted);
    }
    println!("stopped: {is_stopped}");
}

#[test]
fn a_hangup_stops_the_program_unless_nohup_started_it() {
    if std::env::var_os(PROGRAM).is_some() {
        return run_program();
    }
    let test = std::env::current_exe().expect("the test's own file");
    // The test itself may run under nohup.
    let not_ignored: &[&str] = &["env", "--default-signal=HUP"];
    for (program, is_stopped) in [(not_ignored, true), (&["nohup"], false)] {
        let output = Command::new(program[0])
            .args(&program[1..])
            .arg(&test)
            .arg("--nocapture")
            .env(PROGRAM, "1")
            .output()
            .expect("it can be started");
        let printed = String::from_utf8_lossy(&output.stdout);
        let expected = format!("stopped: {is_stopped}");
        assert!(printed.contains(&expected), "{program:?}: {output:?}");
    }
}
