//! Tests of the plan: its cells, systems and settings.

use std::time::Duration;

use super::*;
use crate::frame::fixtures;

fn tpcc(arguments: &[&str]) -> Tpcc {
    let mut plan: Plan = fixtures::parse(arguments).unwrap();
    plan.frame.default_systems(default_systems(&plan));
    Tpcc { plan }
}

fn systems(cells: &[Cell]) -> Vec<&str> {
    cells.iter().map(|cell| cell.system.as_str()).collect()
}

#[test]
fn the_message_cache_is_counted_where_group_replication_takes_part() {
    let single = tpcc(&["--systems", "galera,group-replication-single"]);
    assert_eq!(single.message_cache_mib(true), 1024);
    assert_eq!(single.message_cache_mib(false), 0);
    let without = tpcc(&["--systems", "galera,trireme,plain-mysql"]);
    assert_eq!(without.message_cache_mib(true), 0);
}

#[test]
fn systems_take_turns_at_each_point() {
    let plan = tpcc(&["--systems", "plain,galera,trireme", "--nodes", "1,3"]);
    let cells = plan.cells();
    let expected = ["plain", "galera", "trireme", "galera", "trireme"];
    assert_eq!(systems(&cells[..5]), expected);
    let run = &cells[5..12];
    assert!(run.iter().all(|cell| cell.level("connections") == "8"));
    assert_eq!(systems(&run[..3]), expected[..3]);
    let to: Vec<&str> = run.iter().map(|cell| cell.level("to")).collect();
    assert_eq!(to, ["one", "one", "one", "one", "one", "all", "all"]);
}

#[test]
fn a_single_server_is_measured_beside_larger_clusters() {
    let cells = tpcc(&["--systems", "plain,trireme", "--nodes", "3"]).cells();
    assert!(cells.iter().any(|c| c.system == "plain"));
    let single = |c: &&Cell| c.level("nodes") == "1";
    assert!(cells.iter().filter(single).all(|c| c.system == "plain"));
}

#[test]
fn no_two_cells_share_servers() {
    let plan = tpcc(&["--systems", "trireme", "--repetitions", "2"]);
    let mut setups: Vec<u32> = plan
        .cells()
        .iter()
        .map(|cell| plan.setup(cell).generation)
        .collect();
    let all = setups.len();
    setups.dedup();
    assert_eq!(setups.len(), all);
}

#[test]
fn galera_has_no_full_durability() {
    let cells = tpcc(&["--durability", "full"]).cells();
    assert!(!systems(&cells).contains(&"galera"));
}

#[test]
fn a_system_without_runs_is_told_with_the_reason() {
    let why = |arguments: &[&str]| -> Vec<(String, String)> {
        let left = tpcc(arguments).left_out().into_iter();
        left.map(|a| (a.system, a.reason)).collect()
    };
    assert_eq!(why(&[]), []);
    let full = why(&["--durability", "full"]);
    assert!(full.iter().any(|(system, _)| system == "galera"));
    for (arguments, reason) in [
        (
            ["--systems", "galera", "--durability", "full"],
            "--durability",
        ),
        (["--systems", "semisync", "--to", "all"], "--to one"),
        (
            ["--systems", "group-replication", "--nodes", "1"],
            "--nodes",
        ),
    ] {
        let left = why(&arguments);
        assert!(left[0].1.contains(reason), "{left:?}");
    }
}

#[test]
fn a_single_primary_gets_no_load_on_all_nodes() {
    let systems = "group-replication,group-replication-single";
    for durability in ["origin", "full"] {
        let cells = tpcc(&["--systems", systems, "--durability", durability]).cells();
        let to_all = |name| {
            let own = cells.iter().filter(move |c| c.system == name);
            own.filter(|c| c.level("to") == "all").count() > 0
        };
        assert!(!to_all("group-replication-single"));
        // Its other nodes have no setting by which they flush before the answer.
        assert_eq!(to_all("group-replication"), durability == "origin");
    }
}

#[test]
fn a_quick_pass_fits_five_minutes() {
    let quick = tpcc(&["--quick"]);
    let cells = quick.cells();
    let loads: f64 = cells.iter().map(|c| quick.estimate_seconds(c)).sum();
    // Servers start within 8 s on a machine that does nothing else.
    let all = loads + 8.0 * cells.len() as f64;
    assert!(all <= 300.0, "{all}");
}

/// The run in docs/results goes on with `--resume`.
#[test]
fn the_stored_run_keeps_its_cells_and_settings() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/tpcc");
    let resuming: Plan = fixtures::parse(&["--resume", dir]).unwrap();
    let systems = default_systems(&resuming);
    let plan = frame::choices(&resuming, NAME, systems, |plan| &mut plan.frame).unwrap();
    assert_eq!(plan.isolation(), Isolation::RepeatableRead);
    assert_eq!(plan.warmup(), Duration::from_secs(10));
    let cells = plan.cells();
    assert_eq!(cells.len(), 3 * 39);
    let records = std::fs::read_to_string(format!("{dir}/records.jsonl")).unwrap();
    for line in records.lines().filter(|line| !line.is_empty()) {
        let record: Record = serde_json::from_str(line).unwrap();
        assert!(cells.contains(&record.cell), "{}", record.cell);
    }
}

#[test]
fn each_preset_has_the_isolation_of_its_article() {
    let isolation = |arguments: &[&str]| tpcc(arguments).plan.isolation();
    assert_eq!(isolation(&[]), Isolation::RepeatableRead);
    let article = ["--preset", "article"];
    assert_eq!(isolation(&article), Isolation::ReadCommitted);
    let first = [&article[..], &["--isolation", "repeatable-read"]].concat();
    assert_eq!(isolation(&first), Isolation::RepeatableRead);
}

#[test]
fn group_replication_has_a_plain_server_of_its_kind() {
    let has = |arguments: &[&str], system: &str| {
        let cells = tpcc(arguments).cells();
        systems(&cells).contains(&system)
    };
    for (arguments, reference) in [
        (&[][..], true),
        (&["--preset", "article"], true),
        (&["--quick"], false),
    ] {
        assert!(has(arguments, "group-replication"));
        assert_eq!(has(arguments, "plain-mysql"), reference);
    }
}

#[test]
fn a_cold_buffer_pool_has_time_in_the_box() {
    let warmup = |arguments: &[&str]| tpcc(arguments).plan.warmup().as_secs();
    assert_eq!(warmup(&[]), 20);
    assert_eq!(warmup(&["--quick"]), 2);
    assert_eq!(warmup(&["--preset", "article"]), 10);
}

#[test]
fn nodes_with_shares_of_their_own_share_no_processors() {
    let shared = |arguments: &[&str]| tpcc(arguments).shared_processors();
    assert!(shared(&[]).is_some());
    assert_eq!(shared(&["--cpu-per-node", "0.25"]), None);
}

#[test]
fn a_plan_survives_its_file() {
    let plan = tpcc(&["--preset", "article", "--to", "all"]).plan;
    let text = serde_json::to_string(&plan).unwrap();
    let again: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(again.cells(), plan.cells());
}
