//! Names and keys that would steer a terminal or a browser: nothing that people look at obeys them.

use super::agent::{Agent, get_whole};
use super::bad_days::why_waiting;
use super::inspect::{ask, told};
use super::trial::{JOIN, SOON, Trial, await_true, provider};

/// Clears the screen, turns the direction of text, begins a line, ends an HTML element, a label and a JSON text.
const EVIL: &str = "\u{1b}[2J\u{202e}\n<script>'}&";
/// What no output may have as it is.
const STEERING: [char; 3] = ['\u{1b}', '\u{202e}', '\u{9b}'];

#[track_caller]
fn assert_harmless(what: &str, text: &str) {
    assert!(!text.contains(STEERING), "{what}: {text:?}");
    let begins = |line: &str| line.starts_with("<script>");
    assert!(!text.lines().any(begins), "{what}: {text:?}");
    assert!(!text.trim().is_empty(), "{what} says nothing");
}

#[test]
fn hostile_names_of_nodes_tables_and_keys_steer_nothing() {
    let Some(path) = provider() else { return };
    let mut trial = Trial::prepare(path, 2, |_| {});
    if !trial.is_trireme() {
        return;
    }
    trial
        .bootstrap_node(0)
        .unwrap_or_else(|error| panic!("it does not begin: {error}"));
    // An option file has one line for each option.
    let name = EVIL.replace('\n', "\\n");
    let name = format!("--wsrep-node-name=\"{name}\"");
    trial.settings_mut().mariadbd_args.push(name);
    trial.restart(1);
    trial.await_size(0, 2, JOIN);
    assert_eq!(trial.value(1, "SELECT @@wsrep_node_name"), EVIL);

    trial.exec(0, "CREATE DATABASE d");
    trial.exec(
        0,
        &format!("CREATE TABLE d.`{EVIL}` (id VARCHAR(40) PRIMARY KEY, v INT) CHARSET utf8mb4"),
    );
    trial.exec(0, &format!("CREATE TABLE d.`heap{EVIL}` (v INT)"));
    trial.exec(0, &format!("INSERT INTO d.`{EVIL}` VALUES (\"{EVIL}\", 0)"));
    let count = format!("SELECT COUNT(*) FROM d.`{EVIL}`");
    trial.await_value(1, &count, "1");
    let update = |v| format!("UPDATE d.`{EVIL}` SET v = {v}");
    let mut loser = trial.client(0);
    loser.exec("BEGIN").expect("a transaction");
    loser.exec(&update(1)).expect("a row");
    trial.exec(1, &update(2));
    let value = format!("SELECT v FROM d.`{EVIL}`");
    trial.await_value(0, &value, "2");
    loser.exec("COMMIT").expect_err("the row is another's");

    let conflicts = await_true(SOON, || told(&trial, 0, &["conflicts"]).contains("script"));
    assert!(conflicts, "{}", told(&trial, 0, &["conflicts"]));
    for command in ["status", "doctor", "conflicts"] {
        for i in 0..2 {
            let text = told(&trial, i, &[command]);
            assert_harmless(command, &text);
            assert!(
                text.contains("\\u{1b}"),
                "{command}: it is not shown: {text}"
            );
            let output = ask(&trial, i, &[command, "--json"]);
            let json = String::from_utf8(output.stdout).expect("UTF-8");
            assert!(!json.contains('\u{1b}'), "{command}: {json:?}");
            serde_json::from_str::<serde_json::Value>(&json).expect("JSON");
        }
    }
    for i in 0..2 {
        assert_harmless("why-waiting", &why_waiting(&trial, i));
    }
    a_browser_is_told_no_html(&trial);
}

/// What an agent answers is text or JSON by its type, which a browser may not guess otherwise.
fn a_browser_is_told_no_html(trial: &Trial) {
    let agent = Agent::start(trial, 1, &["--user", "root"]);
    for path in [
        "/metrics",
        "/status.json",
        "/health/write",
        "/<script>\u{1b}",
    ] {
        let answer = get_whole(agent.address(), path);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let head = head.to_lowercase();
        assert!(!head.contains("html") && !head.contains("script"), "{head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        assert!(!body.contains('\u{1b}'), "{path}: {body:?}");
    }
}
