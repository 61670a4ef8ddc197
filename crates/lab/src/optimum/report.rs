//! The texts and tables of the report.

use std::cmp::Ordering;

use super::design::{Design, Run};
use super::plan::{APPLIERS, CONNECTIONS, NODES, Plan};
use super::study::{Study, Surface, THROUGHPUT};
use crate::doe::{Effect, Estimate, MAX_CURVED, Place, StationaryKind, Term, percent};
use crate::frame::{self, Record, Table, beside_galera, number, values};
use crate::oltp::ROWS_CHOSEN;

/// One line for the terminal, before any run.
pub fn announcement(design: &Design) -> String {
    let [least, most] = surface_runs(design);
    let surface = match least == most {
        true => least.to_string(),
        false => format!("{least} to {most}"),
    };
    let factors: Vec<String> = design.factors.iter().map(|f| f.to_string()).collect();
    format!(
        "factors {}; runs of each system: {} to screen, {surface} more for the surface, {} to confirm (a grid has {} points); \
         order by seed {}",
        factors.join(", "),
        design.screening().len(),
        design.confirmations,
        design.grid(),
        design.seed
    )
}

/// The least and the largest number of runs for the surface.
fn surface_runs(design: &Design) -> [usize; 2] {
    let most: Vec<usize> = (0..design.factors.len().min(MAX_CURVED)).collect();
    [&most[..2], &most[..]].map(|curved| design.surface(curved).len())
}

/// The paragraphs above the results.
pub fn description(plan: &Plan, design: &Design) -> Vec<String> {
    let fixed: Vec<String> = [NODES, CONNECTIONS, APPLIERS]
        .into_iter()
        .filter(|name| !design.names().contains(name))
        .map(|name| format!("{name} {}", plan.fixed(name)))
        .collect();
    let fixed = match fixed.is_empty() {
        true => String::new(),
        false => format!(" Not varied: {}.", fixed.join(", ")),
    };
    vec![
        "\"How does Galera Cluster behave with many nodes?\" (fromDual, 2025) measured sysbench oltp_read_write on 1 to 9 \
         nodes with 8 to 160 connections in 35 runs by hand, found an optimum near 3 nodes and 40 connections, and asked for a \
         statistical design of experiments to find it with fewer runs. A quadratic surface through the logarithms of the article's \
         own figures (R² 0.99) has its maximum at 1 node [1, 4] and 72 connections [56, 96]."
            .to_string(),
        format!(
            "Here: {}.{fixed} A run is {} s of sysbench oltp_read_write after {} s of warm-up that is not counted, on fresh servers, \
             all on this machine together with the clients. Each client process has {} connections, and a schema of its own with one \
             table of {} rows; clients are spread over the nodes in turns. {ROWS_CHOSEN} Nothing is flushed at commit. After every run \
             the rows of all nodes were compared.",
            announcement(design),
            plan.seconds(),
            plan.warmup().as_secs(),
            plan.threads(),
            plan.schema().rows
        ),
        format!(
            "Screening measures the corners of the factors' ranges (of more than three factors a fraction of them) and the \
             centre. Each point but the centre is measured this often: {}. The factors with an effect go on, at least two and at most {MAX_CURVED}; where the centre shows a curvature, none is \
             dropped, since two levels do not say whose it is. These factors are also measured at the middles of the faces \
             (face-centred central composite design), and a surface is fitted to all runs by least squares: quadratic in them, \
             linear in the others. It is fitted to the logarithm of the throughput, because a factor multiplies the throughput and \
             runs scatter in proportion to it; estimates are given as transactions/s or in percent. Runs are in random order within \
             a phase, systems in turns at each run. Each system's own runs decide about its further ones.",
            design.repetitions
        ),
        "All intervals are of 95 %. Ratios to Galera are geometric means over the repetitions. The surface is tested for lack of \
         fit against the differences between runs at the same point. The interval of the optimum's place comes from 1000 surfaces \
         drawn as the fit allows, rounded outwards to levels that can run. A maximum at the border of the ranges is named as such: \
         the true one may lie beyond. The runs that confirm are new ones; when their mean is outside of its predicted interval the \
         report says \"model failed\". On the maps dots are runs, the red cross is the predicted maximum, and the red lines the \
         interval of its place."
            .to_string(),
    ]
}

/// All tables.
pub fn tables(design: &Design, records: &[Record]) -> Vec<Table> {
    let studies: Vec<(&str, Study)> = design
        .systems
        .iter()
        .map(|system| (system.as_str(), Study::of(design, system, records)))
        .collect();
    let mut tables = vec![
        optima(design, &studies),
        economy(design, &studies),
        adequacy(design, &studies),
        against_galera(design, records),
        coefficients(design, &studies),
        effects(design, &studies),
        runs(design, &studies, records),
    ];
    // A phase that is not over gives empty tables.
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// The name of an effect.
pub fn effect_name(design: &Design, effect: &Effect) -> String {
    let names = design.names();
    let terms: Vec<String> = effect.terms.iter().map(|term| term.text(&names)).collect();
    terms.join(" + ")
}

/// An estimate with its interval, as text.
pub fn estimate(estimate: Estimate) -> String {
    shown(estimate, number)
}

fn shown(estimate: Estimate, number: impl Fn(f64) -> String) -> String {
    let value = number(estimate.value);
    match estimate.interval {
        Some((low, high)) => format!("{value} [{}, {}]", number(low), number(high)),
        None => value,
    }
}

/// The place of the maximum in the range of a factor.
fn place(design: &Design, surface: &Surface, factor: usize) -> String {
    let maximum = &surface.maximum;
    let name = design.factors[factor].name();
    let mut text = format!("{name} {}", maximum.levels[factor]);
    if let Some(intervals) = &maximum.intervals {
        let (low, high) = intervals[factor];
        text += &format!(" [{low}, {high}]");
    }
    match maximum.places[factor] {
        Place::Inside => text,
        Place::LowerBorder => text + ", at the lower border",
        Place::UpperBorder => text + ", at the upper border",
    }
}

/// The predicted maximum, in words.
pub fn maximum(design: &Design, surface: &Surface) -> String {
    let factors = 0..design.factors.len();
    let places: Vec<String> = factors.map(|i| place(design, surface, i)).collect();
    places.join("; ")
}

fn optima(design: &Design, studies: &[(&str, Study)]) -> Table {
    let row = |(system, study): &(&str, Study)| {
        let mut row = vec![system.to_string()];
        let cells = match study.surface() {
            Some(surface) => [
                maximum(design, surface),
                estimate(surface.predicted.exp()),
                surface.confirmed_mean().map_or("-".to_string(), number),
                surface.confirmation.text().to_string(),
            ],
            None => ["-"; 4].map(String::from),
        };
        row.extend(cells);
        row
    };
    table(
        "Predicted optimum and its confirmation",
        &[
            "system",
            "optimum",
            "predicted transactions/s, geometric mean of the confirming runs",
            "confirming runs, geometric mean",
            "verdict",
        ],
        studies.iter().map(row).collect(),
    )
}

fn economy(design: &Design, studies: &[(&str, Study)]) -> Table {
    let grid: Vec<String> = design
        .factors
        .iter()
        .map(|f| format!("{} {}", f.grid().len(), f.name()))
        .collect();
    let row = |(system, study): &(&str, Study)| {
        let (runs, all) = (study.runs(), design.grid());
        let over = study.surface().is_some_and(Surface::is_complete);
        let saved = match runs < all {
            _ if !over => "-".to_string(),
            true => format!("{:.0} %", 100.0 * (1.0 - runs as f64 / all as f64)),
            // A range with few levels has none.
            false => "none".to_string(),
        };
        vec![
            system.to_string(),
            runs.to_string(),
            format!("{all} ({})", grid.join(" x ")),
            saved,
        ]
    };
    table(
        "Runs against the full grid",
        &["system", "runs", "points of the grid, each once", "saved"],
        studies.iter().map(row).collect(),
    )
}

/// Trireme beside Galera at each point of the screening, which both systems measure in turns.
fn against_galera(design: &Design, records: &[Record]) -> Table {
    let mut runs = design.screening();
    runs.sort_by(|a, b| a.levels.partial_cmp(&b.levels).unwrap_or(Ordering::Equal));
    runs.dedup_by(|a, b| a.levels == b.levels);
    let place = |run: &Run| {
        let factors = design.cell("", run).factors;
        frame::Place {
            levels: run.levels.iter().map(f64::to_string).collect(),
            has: Box::new(move |cell| cell.factors == factors),
        }
    };
    let places: Vec<frame::Place> = runs.iter().map(place).collect();
    let figures = [
        (THROUGHPUT, "transactions/s"),
        ("p95_ms", "95th percentile"),
        ("server_cpu_ms_per_tx", "servers, CPU per tx"),
    ];
    let mut table = beside_galera(records, &design.names(), &places, &figures);
    table.title += " in the screening";
    table
}

fn adequacy(design: &Design, studies: &[(&str, Study)]) -> Table {
    let row = |(system, study): &(&str, Study)| {
        let mut row = vec![system.to_string()];
        let curvature = study.screening().map(|s| s.curvature());
        row.push(curvature.map_or("-".to_string(), |c| estimate(c.percent())));
        let Some(surface) = study.surface() else {
            row.extend(["-"; 5].map(String::from));
            return row;
        };
        let deviation = surface
            .fit
            .variance()
            .map(|variance| percent(variance.sqrt()));
        row.push(format!("{:.3}", surface.fit.r_squared()));
        row.push(deviation.map_or("-".to_string(), number));
        row.extend(match surface.lack {
            Some(lack) => [
                format!(
                    "F({}, {}) = {:.2}, p = {:.3}",
                    lack.lack_degrees, lack.error_degrees, lack.f, lack.p
                ),
                match lack.is_significant() {
                    true => "the surface does not fit".to_string(),
                    false => "no lack of fit shown".to_string(),
                },
            ],
            None => ["-".to_string(), "cannot be tested".to_string()],
        });
        row.push(stationary(design, surface));
        row
    };
    table(
        "Does the surface fit?",
        &[
            "system",
            "corners above the centre, %",
            "R²",
            "standard deviation of a run, %",
            "lack of fit",
            "verdict",
            "where the surface is level",
        ],
        studies.iter().map(row).collect(),
    )
}

/// The stationary point, in words.
fn stationary(design: &Design, surface: &Surface) -> String {
    let quadratic = surface.quadratic();
    let Some(level) = quadratic.stationary() else {
        return "nowhere, or on a line".to_string();
    };
    let kind = match level.kind {
        StationaryKind::Maximum => "maximum",
        StationaryKind::Minimum => "minimum",
        StationaryKind::Saddle => "saddle",
    };
    let outside = level.point.iter().any(|x| x.abs() > 1.0);
    let places: Vec<String> = quadratic
        .curved()
        .iter()
        .zip(&level.point)
        .map(|(&i, x)| {
            let factor = &design.factors[i];
            format!("{} {}", factor.name(), number(factor.exact(*x)))
        })
        .collect();
    format!(
        "{kind}{} at {}",
        if outside {
            " outside of the ranges"
        } else {
            ""
        },
        places.join(", ")
    )
}

fn coefficients(design: &Design, studies: &[(&str, Study)]) -> Table {
    let surfaces: Vec<Option<&Surface>> = studies.iter().map(|(_, s)| s.surface()).collect();
    let mut terms: Vec<Term> = Vec::new();
    for term in surfaces.iter().flatten().flat_map(|s| s.fit.terms()) {
        if !terms.contains(term) {
            terms.push(*term);
        }
    }
    let names = design.names();
    let rows = terms.iter().map(|term| {
        let cell = |surface: &Option<&Surface>| {
            let fit = &surface.as_ref()?.fit;
            let place = fit.terms().iter().position(|t| t == term)?;
            Some(shown(fit.coefficient(place), |value| format!("{value:.4}")))
        };
        let cells = surfaces.iter().map(|s| cell(s).unwrap_or("-".to_string()));
        std::iter::once(term.text(&names)).chain(cells).collect()
    });
    table(
        "Coefficients of the surface, in ln(transactions/s); factors from -1 (lower bound) to 1 (upper bound)",
        &with_systems("term", studies),
        rows.collect(),
    )
}

fn effects(design: &Design, studies: &[(&str, Study)]) -> Table {
    let first = studies.iter().find_map(|(_, study)| study.screening());
    let effects = first.map(|s| s.effects()).unwrap_or_default();
    let rows = effects.iter().enumerate().map(|(i, effect)| {
        let cells = studies.iter().map(|(_, study)| match study.screening() {
            Some(screening) => estimate(screening.effects()[i].change.percent()),
            None => "-".to_string(),
        });
        std::iter::once(effect_name(design, effect))
            .chain(cells)
            .collect()
    });
    table(
        "Screening: change of transactions/s from the lower to the upper bound, %",
        &with_systems("effect", studies),
        rows.collect(),
    )
}

/// All runs in order, phase by phase. Of the later phases: the runs that some system has.
fn runs(design: &Design, studies: &[(&str, Study)], records: &[Record]) -> Table {
    let mut all = design.screening();
    let mut add = |runs: Vec<Run>| {
        for run in runs {
            if !all.contains(&run) {
                all.push(run);
            }
        }
    };
    for (_, study) in studies {
        study
            .curved()
            .into_iter()
            .for_each(|c| add(design.surface(&c)));
    }
    for (_, study) in studies {
        if let Some(surface) = study.surface() {
            add(design.confirmation(&surface.maximum.levels));
        }
    }
    let rows = all.iter().map(|run| {
        let mut row = vec![run.phase.name().to_string()];
        row.extend(run.levels.iter().map(f64::to_string));
        row.extend(studies.iter().map(|(system, _)| {
            let cell = design.cell(system, run);
            let found = values(records, system, THROUGHPUT, |known| *known == cell);
            found.first().map_or("-".to_string(), |tps| number(*tps))
        }));
        row
    });
    let mut header = vec!["phase"];
    header.extend(design.names());
    header.extend(studies.iter().map(|(system, _)| *system));
    table(
        &format!("Runs in their order (seed {}), transactions/s", design.seed),
        &header,
        rows.collect(),
    )
}

fn with_systems<'a>(first: &'a str, studies: &[(&'a str, Study)]) -> Vec<&'a str> {
    let systems = studies.iter().map(|(system, _)| *system);
    std::iter::once(first).chain(systems).collect()
}

fn table(title: &str, header: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table {
        title: title.to_string(),
        header: header.iter().map(|name| name.to_string()).collect(),
        rows,
    }
}
