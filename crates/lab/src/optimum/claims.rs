//! The article's claims, judged by effects, surface and confirming runs.

use super::design::Design;
use super::plan::{APPLIERS, CONNECTIONS, NODES};
use super::report::{estimate, maximum};
use super::study::{Confirmation, Study};
use crate::doe::{Estimate, Factor};
use crate::frame::{Claim, Record, State, Verdict, number};

/// The article's optimum.
const OPTIMUM: [(&str, f64); 2] = [(NODES, 3.0), (CONNECTIONS, 40.0)];

/// "Hardly": the throughput changes by less than this share. The article's own figures change by 7.5 % from one applier
/// to eight.
const HARDLY: f64 = 0.10;

/// The number of runs in the article, chosen by hand.
const RUNS: usize = 35;

/// A place is unknown if its interval is wider than this share of the range.
const VAGUE: f64 = 0.5;

/// Judges a claim by the results of a system.
type Judge = fn(&Design, &Study) -> Verdict;

/// The claims with their verdicts.
pub fn claims(design: &Design, records: &[Record]) -> Vec<Claim> {
    let on = |system: &str, judge: Judge| judge(design, &Study::of(design, system, records));
    let texts: [(&str, Judge); 3] = [
        (
            "The optimum is near 3 nodes and 40 connections (both are within the intervals of the optimum's place, which are \
             narrower than half of the range).",
            near,
        ),
        (
            "Applier threads hardly matter (from the fewest to the most, the throughput changes by less than 10 %).",
            appliers,
        ),
        (
            "Asked for by the author: a design finds the optimum with fewer than 35 runs (further runs confirm the \
             prediction).",
            fewer,
        ),
    ];
    texts
        .into_iter()
        .map(|(text, judge)| Claim::of(text, |system| on(system, judge)))
        .collect()
}

fn near(design: &Design, study: &Study) -> Verdict {
    let Some(surface) = study.surface() else {
        return not_measured("there is no surface yet");
    };
    let Some(intervals) = &surface.maximum.intervals else {
        return not_measured("too few runs for an interval of the optimum's place");
    };
    let mut states = Vec::new();
    let mut claimed = surface.maximum.point.clone();
    for (name, level) in OPTIMUM {
        let Some(place) = design.factors.iter().position(|f| f.name() == name) else {
            return not_measured(&format!("{name} was not varied"));
        };
        let factor = &design.factors[place];
        let (low, high) = factor.bounds();
        if level < low || level > high {
            return not_measured(&format!("{name} {level} is outside of the range"));
        }
        claimed[place] = factor.coded(level);
        states.push(within(factor, intervals[place], level));
    }
    let state = match states.as_slice() {
        _ if surface.doubt().is_some() => State::Open,
        all if all.contains(&State::Fails) => State::Fails,
        all if all.contains(&State::Open) => State::Open,
        _ => State::Holds,
    };
    let loss = surface.fit.difference(&surface.maximum.point, &claimed);
    Verdict {
        state,
        evidence: format!(
            "{}; 3 nodes and 40 connections are predicted to give {} transactions/s less{}",
            maximum(design, surface),
            estimate(loss),
            surface
                .doubt()
                .map_or(String::new(), |why| format!("; {why}"))
        ),
    }
}

/// Whether a level is within an interval that is narrow enough.
fn within(factor: &Factor, (low, high): (f64, f64), level: f64) -> State {
    let width = (factor.coded(high) - factor.coded(low)) / 2.0;
    if level < low || level > high {
        State::Fails
    } else if width > VAGUE {
        State::Open
    } else {
        State::Holds
    }
}

fn appliers(design: &Design, study: &Study) -> Verdict {
    let Some(place) = design.factors.iter().position(|f| f.name() == APPLIERS) else {
        return not_measured("appliers were not varied");
    };
    let Some(screening) = study.screening() else {
        return not_measured("the screening is not over");
    };
    let runs: Vec<f64> = screening.fit().runs().map(|(_, tps)| tps).collect();
    let mean = runs.iter().sum::<f64>() / runs.len() as f64;
    let change = screening.effects()[place].change.times(1.0 / mean);
    let percent = change.times(100.0);
    Verdict {
        state: small(change, HARDLY),
        evidence: format!(
            "from {} to {} appliers the throughput changes by {} % in the mean of all corners",
            design.factors[place].bounds().0,
            design.factors[place].bounds().1,
            estimate(percent)
        ),
    }
}

/// Whether an estimate is within plus or minus `bound`.
fn small(estimate: Estimate, bound: f64) -> State {
    match estimate.interval {
        Some((low, high)) if low > -bound && high < bound => State::Holds,
        Some((low, high)) if low > bound || high < -bound => State::Fails,
        _ => State::Open,
    }
}

fn fewer(_design: &Design, study: &Study) -> Verdict {
    let Some(surface) = study.surface() else {
        return not_measured("there is no surface yet");
    };
    let runs = study.runs();
    let state = match surface.confirmation {
        Confirmation::Open => State::NotMeasured,
        Confirmation::ModelFailed => State::Fails,
        Confirmation::Confirmed if runs >= RUNS => State::Fails,
        // A misfit widens the interval, so the runs are likely to lie in it anyway.
        Confirmation::Confirmed if surface.misfit().is_some() => State::Open,
        Confirmation::Confirmed => State::Holds,
    };
    let mean = surface.confirmed_mean().map_or("-".to_string(), number);
    Verdict {
        state,
        evidence: format!(
            "{} after {runs} runs: predicted {}, found {mean}{}",
            surface.confirmation.text(),
            estimate(surface.predicted),
            surface
                .misfit()
                .map_or(String::new(), |why| format!("; {why}"))
        ),
    }
}

fn not_measured(why: &str) -> Verdict {
    Verdict {
        state: State::NotMeasured,
        evidence: why.to_string(),
    }
}
