//! The experiment without servers: a surface that is known takes their place.

use std::collections::BTreeSet;

use super::design::PHASE;
use super::*;
use crate::doe::{Fit, Maximum, Place, quadratic};
use crate::frame::{Preset, State, fixtures};

fn optimum(arguments: &[&str]) -> Optimum {
    let mut plan: Plan = fixtures::parse(arguments).unwrap();
    plan.frame.default_systems(&SYSTEMS);
    Optimum {
        design: plan.design().unwrap(),
        plan,
    }
}

/// Why the arguments make no experiment.
fn refusal(arguments: &[&str]) -> String {
    match fixtures::parse::<Plan>(arguments) {
        Ok(plan) => plan.design().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

fn record(cell: &Cell, tps: f64) -> Record {
    fixtures::record(cell.clone(), [(THROUGHPUT, tps)])
}

/// A number between -1 and 1 that belongs to the cell: the runs' noise.
fn noise(cell: &Cell) -> f64 {
    let text = cell.to_string();
    let seed = text.bytes().fold(7u64, |sum, byte| {
        sum.wrapping_mul(131).wrapping_add(byte.into())
    });
    fastrand::Rng::with_seed(seed).f64() * 2.0 - 1.0
}

/// All cells that are known by now.
fn known(optimum: &Optimum, records: &[Record]) -> Vec<Cell> {
    let mut cells = optimum.cells();
    cells.extend(optimum.further_cells(records));
    cells
}

/// Measures like the frame until nothing is left.
fn run_all(optimum: &Optimum, tps: impl Fn(&Cell) -> f64) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let cells = known(optimum, &records);
        let mut open = cells
            .iter()
            .filter(|cell| records.iter().all(|r| r.cell != **cell));
        let Some(next) = open.next() else {
            return records;
        };
        records.push(record(next, tps(next)));
    }
}

/// Highest at 4 nodes and some 50 connections; appliers do nothing. Runs differ by up to 1 %.
fn hill(cell: &Cell) -> f64 {
    hill_with_its_top_at((4.0, 50.0), cell) * (0.01 * noise(cell)).exp()
}

/// A hill of 1200 transactions/s whose logarithm is a quadratic.
fn hill_with_its_top_at(top: (f64, f64), cell: &Cell) -> f64 {
    let nodes = (cell.number(NODES) as f64 - top.0) / 4.0;
    let connections = (cell.number(CONNECTIONS) as f64 / top.1).ln() / 1.5;
    1200.0 * (-0.21 * nodes * nodes - 0.25 * connections * connections).exp()
}

#[test]
fn phases_follow_from_records_and_systems_take_turns() {
    let optimum = optimum(&[]);
    let first = optimum.cells();
    // 8 corners, three times each, and 4 centres, of two systems.
    assert_eq!(first.len(), (3 * 8 + 4) * 2);
    let systems: Vec<&str> = first[..4].iter().map(|c| c.system.as_str()).collect();
    assert_eq!(systems, ["galera", "trireme", "galera", "trireme"]);
    assert!(optimum.further_cells(&[]).is_empty());

    let records = run_all(&optimum, hill);
    let phases: BTreeSet<&str> = records.iter().map(|r| r.cell.level(PHASE)).collect();
    assert_eq!(phases.len(), 3);
    // Bent, so that all three factors go on: 6 stars, three times each, 3 centres; then 3 to confirm.
    assert_eq!(records.len(), first.len() + 2 * (3 * 6 + 3) + 2 * 3);
    let cells: BTreeSet<&Cell> = records.iter().map(|r| &r.cell).collect();
    assert_eq!(cells.len(), records.len());
}

#[test]
fn only_box_repeats_every_point() {
    let repetitions = |arguments: &[&str]| optimum(arguments).design.repetitions;
    assert_eq!(repetitions(&[]), 3);
    assert_eq!(repetitions(&["--repetitions", "2"]), 2);
    assert_eq!(repetitions(&["--quick"]), 1);
    assert_eq!(repetitions(&["--preset", "article"]), 1);
}

#[test]
fn a_run_goes_on_from_any_point() {
    let optimum = optimum(&["--quick"]);
    let records = run_all(&optimum, hill);
    let last: BTreeSet<Cell> = known(&optimum, &records).into_iter().collect();
    for n in 0..records.len() {
        let cells = known(&optimum, &records[..n]);
        assert!(cells.iter().all(|cell| last.contains(cell)), "after {n}");
        let done = |cell: &Cell| records[..n].iter().any(|r| r.cell == *cell);
        assert!(cells.iter().any(|cell| !done(cell)), "stuck after {n}");
    }
}

#[test]
fn the_order_is_random_and_follows_the_seed() {
    let order = |seed: &str| optimum(&["--seed", seed]).cells();
    assert_eq!(order("1"), order("1"));
    assert_ne!(order("1"), order("2"));
    let sorted: BTreeSet<Cell> = order("1").into_iter().collect();
    assert_eq!(sorted, order("2").into_iter().collect());
}

#[test]
fn a_known_hill_is_found_and_confirmed() {
    let optimum = optimum(&[]);
    let records = run_all(&optimum, hill);
    for system in &SYSTEMS {
        let study = study::Study::of(&optimum.design, system, &records);
        let surface = study.surface().unwrap();
        assert_eq!(surface.confirmation, study::Confirmation::Confirmed);
        let levels = &surface.maximum.levels;
        assert_eq!(levels[0], 4.0);
        assert!((40.0..=64.0).contains(&levels[1]), "{levels:?}");
        let (low, high) = surface.maximum.intervals.as_ref().unwrap()[0];
        assert!(
            low <= 4.0 && high >= 4.0 && high - low <= 2.0,
            "{low}, {high}"
        );
    }
    let claims = optimum.claims(&records);
    let states: Vec<State> = claims.iter().map(|c| c.trireme.state).collect();
    // 52 runs instead of 3 x 35; 40 connections are not 50.
    assert_eq!(states, [State::Fails, State::Holds, State::Holds]);
}

#[test]
fn appliers_that_matter_with_many_nodes_are_not_averaged_away() {
    let optimum = optimum(&[]);
    // 12 % with nine nodes, nothing with one: 6 % in the mean.
    let tps = |cell: &Cell| {
        let nodes = (cell.number(NODES) as f64 - 1.0) / 8.0;
        let appliers = (cell.number(APPLIERS) as f64 - 4.5) / 7.0;
        1000.0 * (1.0 + 0.12 * nodes * appliers) + noise(cell)
    };
    let claims = optimum.claims(&run_all(&optimum, tps));
    assert_eq!(claims[1].galera.state, State::Fails);
    let evidence = &claims[1].galera.evidence;
    assert!(evidence.ends_with("% with 9 nodes"), "{evidence}");
    let change = evidence.split("changes by ").nth(1).unwrap();
    let percent: f64 = change.split(' ').next().unwrap().parse().unwrap();
    // From 0.94 to 1.06, in percent of the fewest.
    assert!((percent - 12.77).abs() < 0.5, "{evidence}");
}

#[test]
fn an_optimum_is_settled_only_by_its_confirming_runs() {
    let optimum = optimum(&[]);
    let records = run_all(&optimum, |cell| {
        hill_with_its_top_at((3.0, 40.0), cell) + noise(cell)
    });
    let claims = optimum.claims(&records);
    assert_eq!(claims[0].trireme.state, State::Holds);
    let evidence = &claims[0].trireme.evidence;
    assert!(
        evidence.contains("are predicted to change the throughput by 0 [0, 0] %"),
        "{evidence}"
    );
    let is_confirming = |r: &Record| r.cell.level(PHASE) == "3 confirmation";
    let mut fewer = records.clone();
    let last = fewer.iter().rposition(is_confirming).unwrap();
    fewer.remove(last);
    let open = &optimum.claims(&fewer)[0];
    let both = [&open.galera, &open.trireme];
    let states = both.map(|verdict| verdict.state);
    assert!(states.contains(&State::Open), "{states:?}");
    assert!(both.iter().any(|v| v.evidence.ends_with("are missing")));
}

#[test]
fn throughputs_are_shown_as_such_and_differences_in_percent() {
    let optimum = optimum(&[]);
    let records = run_all(&optimum, hill);
    let number = |text: &str| -> f64 { text.split(' ').next().unwrap().parse().unwrap() };
    let tables = optimum.tables(&records);
    let table = |title: &str| tables.iter().find(|t| t.title.starts_with(title)).unwrap();
    for row in &table("Predicted optimum").rows {
        for shown in [&row[2], &row[3]] {
            assert!((number(shown) - 1200.0).abs() < 25.0, "{shown}");
        }
    }
    let fit = table("Does the surface fit?");
    let deviation = number(&fit.rows[0][3]);
    assert!((0.3..1.0).contains(&deviation), "{deviation} %");
    // From 1 to 9 nodes: 0.21 (1.25² - 0.75²) less in the logarithm.
    let nodes = number(&table("Screening: change").rows[0][1]);
    assert!((nodes + 18.9).abs() < 1.0, "{nodes} %");
    let along = &optimum.charts(&records)[0];
    let highest = along.series[0].points.iter().map(|p| p.y);
    assert!((highest.fold(0.0, f64::max) - 1200.0).abs() < 25.0);
}

#[test]
fn a_run_without_a_transaction_counts_as_not_measured() {
    let optimum = optimum(&["--quick"]);
    let mut records = run_all(&optimum, hill);
    let corner = records.iter().position(|r| r.cell.system == "trireme");
    records[corner.unwrap()] = record(&records[corner.unwrap()].cell, 0.0);
    let claims = optimum.claims(&records);
    assert_eq!(claims[2].trireme.state, State::NotMeasured);
    assert_ne!(claims[2].galera.state, State::NotMeasured);
    assert!(optimum.goes_on(&records));
}

#[test]
fn verdicts_on_several_parts_of_the_run_say_so() {
    let optimum = optimum(&["--quick"]);
    let mut records = run_all(&optimum, hill);
    let told = |records: &[Record]| {
        let evidence = &optimum.claims(records)[2].galera.evidence;
        evidence.ends_with("; mixes 2 parts of the run")
    };
    records.iter_mut().for_each(|r| r.part = Some(0));
    assert!(!told(&records) && !optimum.goes_on(&records));
    for record in &mut records {
        let is_first = record.cell.level(PHASE) == "1 screening";
        record.part = Some(usize::from(!is_first));
    }
    assert!(told(&records));
}

#[test]
fn systems_are_compared_at_the_points_of_the_screening() {
    let optimum = optimum(&["--quick", "--repetitions", "2"]);
    let records = run_all(&optimum, |cell| match cell.system.as_str() {
        "trireme" => 2.0 * hill_with_its_top_at((2.0, 16.0), cell),
        _ => hill_with_its_top_at((2.0, 16.0), cell),
    });
    let tables = optimum.tables(&records);
    let found = tables
        .iter()
        .find(|t| t.title.starts_with("Trireme / Galera"));
    let found = found.unwrap();
    assert_eq!(
        found.header[..3],
        ["nodes", "connections", "transactions/s"]
    );
    // Four corners and the centre, and their mean.
    assert_eq!(found.rows.len(), 6);
    assert_eq!(found.rows[0][..2], ["1", "4"]);
    let ratios: Vec<&str> = found.rows.iter().map(|row| row[2].as_str()).collect();
    assert!(ratios.iter().all(|r| r.starts_with("2.00 [")), "{ratios:?}");
}

#[test]
fn runs_beside_their_interval_say_that_the_model_failed() {
    let optimum = optimum(&[
        "--quick",
        "--factor=nodes=1..9",
        "--factor=connections=8..160:log",
    ]);
    let records = run_all(&optimum, |cell| match cell.level(PHASE) {
        "3 confirmation" => 0.5 * hill(cell),
        _ => hill(cell),
    });
    let tables = optimum.tables(&records);
    assert!(
        tables[0].rows.iter().all(|row| row[4] == "model failed"),
        "{:?}",
        tables[0]
    );
    let claims = optimum.claims(&records);
    assert_eq!(claims[0].galera.state, State::Open);
    assert!(claims[0].galera.evidence.contains("model failed"));
    assert_eq!(claims[2].galera.state, State::Fails);
}

#[test]
fn a_surface_that_lacks_fit_settles_nothing_also_when_its_runs_confirm_it() {
    let optimum = optimum(&[]);
    // Corners in turns above and below: no quadratic has that, and its maximum stays where it is.
    let bounds = [(NODES, 1, 9), (CONNECTIONS, 8, 160), (APPLIERS, 1, 8)];
    let corner = |cell: &Cell| -> f64 {
        let sign = |(factor, low, high)| match cell.number(factor) {
            level if level == low => -1.0,
            level if level == high => 1.0,
            _ => 0.0,
        };
        bounds.into_iter().map(sign).product()
    };
    let records = run_all(&optimum, |cell| hill(cell) * (0.05 * corner(cell)).exp());
    let study = study::Study::of(&optimum.design, "trireme", &records);
    let surface = study.surface().unwrap();
    assert_eq!(surface.confirmation, study::Confirmation::Confirmed);
    let claims = optimum.claims(&records);
    for claim in [&claims[0], &claims[2]] {
        assert_eq!(claim.trireme.state, State::Open);
        assert!(claim.trireme.evidence.ends_with("lack of fit"));
    }
}

#[test]
fn a_slope_has_its_optimum_at_the_border_and_says_so() {
    let optimum = optimum(&["--quick"]);
    let records = run_all(&optimum, |cell| {
        500.0 - 40.0 * cell.number(NODES) as f64 + cell.number(CONNECTIONS) as f64 + noise(cell)
    });
    let tables = optimum.tables(&records);
    let found = &tables[0].rows[0][1];
    assert!(
        found.contains("nodes 1 [") && found.contains("at the lower border"),
        "{found}"
    );
    assert!(
        found.contains("connections 32") && found.contains("at the upper border"),
        "{found}"
    );
}

#[test]
fn a_claimed_optimum_at_the_border_is_not_settled() {
    let range = [
        "--factor",
        "nodes=3..9",
        "--factor",
        "connections=40..160:log",
    ];
    let optimum = optimum(&range);
    // Its top is below both ranges.
    let records = run_all(&optimum, |cell| {
        hill_with_its_top_at((-3.0, 5.0), cell) * (0.01 * noise(cell)).exp()
    });
    let near = &optimum.claims(&records)[0].trireme;
    assert_eq!(near.state, State::Open, "{}", near.evidence);
    assert!(
        near.evidence.contains("beyond the range"),
        "{}",
        near.evidence
    );
}

#[test]
fn a_report_of_nothing_and_of_all_has_no_hole() {
    let optimum = optimum(&["--quick"]);
    assert!(optimum.charts(&[]).is_empty() && optimum.drawings(&[]).is_empty());
    assert_eq!(optimum.tables(&[]).len(), 4);
    let claims = optimum.claims(&[]);
    assert!(claims.iter().all(|c| c.galera.state == State::NotMeasured));

    let records = run_all(&optimum, hill);
    assert_eq!(optimum.charts(&records).len(), 2);
    // Of each system effects, surface, uncertainty.
    let drawings = optimum.drawings(&records);
    assert_eq!(drawings.len(), 6);
    for svg in drawings {
        assert!(svg.starts_with("<svg") && !svg.contains("NaN") && svg.len() < 200_000);
    }
    for table in optimum.tables(&records) {
        assert!(
            table.rows.iter().all(|row| row.len() == table.header.len()),
            "{table:?}"
        );
    }
}

/// The article's figures: nodes, connections, transactions per second.
const ARTICLE: [(f64, f64, f64); 22] = [
    (1.0, 8.0, 596.3),
    (2.0, 8.0, 567.8),
    (3.0, 8.0, 531.9),
    (4.0, 8.0, 495.2),
    (5.0, 8.0, 492.2),
    (6.0, 8.0, 502.9),
    (7.0, 8.0, 459.5),
    (8.0, 8.0, 458.6),
    (9.0, 8.0, 429.2),
    (9.0, 16.0, 684.5),
    (9.0, 24.0, 925.2),
    (9.0, 32.0, 1081.1),
    (9.0, 40.0, 1196.0),
    (9.0, 80.0, 1233.8),
    (9.0, 160.0, 1095.7),
    (8.0, 160.0, 1132.4),
    (7.0, 160.0, 1207.6),
    (6.0, 80.0, 1333.3),
    (5.0, 40.0, 1278.6),
    (4.0, 40.0, 1374.1),
    (3.0, 40.0, 1304.3),
    (3.0, 48.0, 1428.9),
];

#[test]
fn the_articles_own_figures_put_the_optimum_at_few_nodes_and_more_connections_than_40() {
    let factors = &optimum(&[]).design.factors[..2];
    let points = ARTICLE.iter().map(|&(nodes, connections, _)| {
        vec![factors[0].coded(nodes), factors[1].coded(connections)]
    });
    let values = ARTICLE.iter().map(|&(_, _, tps)| tps.ln()).collect();
    let fit = Fit::of(quadratic(2, &[0, 1]), points.collect(), values).unwrap();
    assert!(fit.r_squared() > 0.99);
    let maximum = Maximum::of(&fit, factors);
    assert_eq!(maximum.levels, [1.0, 72.0]);
    assert_eq!(maximum.places, [Place::LowerBorder, Place::Inside]);
    let intervals = maximum.intervals.unwrap();
    assert_eq!(intervals, [(1.0, 4.0), (56.0, 96.0)]);
}

#[test]
fn a_quick_pass_fits_five_minutes() {
    let quick = optimum(&["--quick"]);
    let records = run_all(&quick, hill);
    let loads: f64 = records
        .iter()
        .map(|r| quick.estimate_seconds(&r.cell))
        .sum();
    // Every run has fresh servers; up to three nodes start within 4 s on a machine that does nothing else.
    let all = loads + 4.0 * records.len() as f64;
    assert!(all <= 300.0, "{all} s for {} runs", records.len());
}

#[test]
fn factors_reach_the_servers() {
    let optimum = optimum(&[
        "--factor=nodes=1..5",
        "--factor=appliers=1..8",
        "--factor=option:gcs.fc_limit=16..1024:log",
    ]);
    let cell = &optimum.cells()[0];
    let setup = optimum.setup(cell);
    assert_eq!(setup.nodes as u64, cell.number(NODES));
    let appliers = format!("--wsrep-slave-threads={}", cell.level(APPLIERS));
    assert!(setup.arguments.contains(&appliers));
    let option = format!("gcs.fc_limit={}", cell.level("option:gcs.fc_limit"));
    let mut settings = Settings::new("/x", 3, None);
    optimum.configure(cell, &mut settings);
    assert_eq!(settings.provider_options, option);
    // Connections are not varied: 5 clients of 8.
    assert_eq!(
        (optimum.level(cell, CONNECTIONS), optimum.most_clients()),
        (40, 5)
    );
}

#[test]
fn runs_in_a_row_have_fresh_servers() {
    let optimum = optimum(&["--systems", "trireme", "--quick"]);
    let records = run_all(&optimum, hill);
    let setups: Vec<Setup> = records.iter().map(|r| optimum.setup(&r.cell)).collect();
    assert!(setups.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn choices_that_cannot_be_measured_are_refused() {
    assert!(optimum(&["--cpu-per-node", "64"]).check().is_err());
    assert!(optimum(&[]).check().is_ok());
    assert!(optimum(&["--systems", "trireme,semisync"]).check().is_err());
}

#[test]
fn bad_factors_name_the_remedy() {
    for (arguments, expected) in [
        (&["--factor", "speed=1..9"][..], "choose nodes, connections"),
        (&["--factor", "nodes=1..9"], "choose 2 to 8"),
        (&["--factor", "nodes=1..40"], "narrow the range"),
        (&["--factor", "nodes"], "NAME=LOW..HIGH"),
        (&["--factor", "connections=8..100"], "multiples of 8"),
        (&["--factor", "option:=1..9"], "choose nodes, connections"),
        (
            &["--factor", "option:a;b=1..9"],
            "choose nodes, connections",
        ),
        (
            &["--factor", "nodes=1..9", "--factor", "nodes=1..5"],
            "one range",
        ),
    ] {
        let text = refusal(arguments);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_plan_survives_its_file() {
    let optimum = optimum(&[
        "--preset",
        "article",
        "--factor=nodes=1..5",
        "--factor=appliers=1..8:log",
    ]);
    let text = serde_json::to_string(&optimum.plan).unwrap();
    let again: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(again.frame.preset(), Preset::Article);
    assert_eq!(again.design().unwrap(), optimum.design);
}
