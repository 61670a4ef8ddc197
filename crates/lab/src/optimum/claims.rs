//! The article's claims, judged by effects, surface and confirming runs.

use std::collections::BTreeSet;

use super::design::Design;
use super::plan::{APPLIERS, CONNECTIONS, NODES};
use super::report::{estimate, maximum};
use super::study::{Confirmation, Study};
use crate::doe::{Estimate, Factor};
use crate::frame::{Claim, Record, State, Verdict, number};

/// The article's optimum.
const OPTIMUM: [(&str, f64); 2] = [(NODES, 3.0), (CONNECTIONS, 40.0)];

/// "Hardly": the throughput changes by less, in percent. The article's own figures change by 7.5 % from one applier to
/// eight.
const HARDLY: f64 = 10.0;

/// The number of points in the article, chosen by hand and measured once each.
const POINTS: usize = 35;

/// A place is unknown if its interval is wider than this share of the range.
const VAGUE: f64 = 0.5;

/// Judges a claim by the results of a system.
type Judge = fn(&Design, &Study) -> Verdict;

/// The claims with their verdicts.
pub fn claims(design: &Design, records: &[Record]) -> Vec<Claim> {
    let on = |system: &str, judge: Judge| {
        let own = || records.iter().filter(|r| r.cell.system == system);
        let verdict = judge(design, &Study::of(design, system, records));
        with_parts(verdict.of_one_build(own()), own())
    };
    let texts: [(&str, Judge); 3] = [
        (
            "The optimum is near 3 nodes and 40 connections (both are within the intervals of the optimum's place, which are \
             narrower than half of the range; the intervals are marginal: each is of one factor, whatever the others are).",
            near,
        ),
        (
            "Applier threads hardly matter (with the most nodes, the throughput changes by less than 10 % from the fewest \
             to the most).",
            appliers,
        ),
        (
            "Asked for by the author: a design finds the optimum with fewer runs than the article's 35 points need, each \
             repeated as often as a point of the design (further runs confirm the prediction).",
            fewer,
        ),
    ];
    texts
        .into_iter()
        .map(|(text, judge)| Claim::of(text, |system| on(system, judge)))
        .collect()
}

/// The verdict, whose evidence says so if it mixes parts of the run: the machine may have been another one in each.
fn with_parts<'a>(verdict: Verdict, records: impl Iterator<Item = &'a Record>) -> Verdict {
    let complete = records.filter(|r| r.complete);
    let parts: BTreeSet<Option<usize>> = complete.map(|r| r.part).collect();
    match (parts.len(), verdict.state) {
        (0 | 1, _) | (_, State::NotMeasured) => verdict,
        (n, _) => Verdict {
            evidence: format!("{}; mixes {n} parts of the run", verdict.evidence),
            ..verdict
        },
    }
}

fn near(design: &Design, study: &Study) -> Verdict {
    let Some(surface) = study.surface() else {
        return not_measured("there is no surface yet");
    };
    let Some(intervals) = &surface.maximum.intervals else {
        return not_measured("too few runs for an interval of the optimum's place");
    };
    let (mut states, mut unknown) = (Vec::new(), None);
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
        if level <= low || level >= high {
            unknown = Some(format!("the optimum may lie beyond the range of {name}"));
        } else if !surface.quadratic().curved().contains(&place) {
            unknown = Some(format!("the surface is not curved in {name}"));
        }
        claimed[place] = factor.coded(level);
        states.push(within(factor, intervals[place], level));
    }
    let unconfirmed = surface.confirmation == Confirmation::Open;
    let doubt = match unconfirmed {
        true => Some("the runs that confirm the optimum are missing".to_string()),
        false => (surface.doubt().map(str::to_string)).or(unknown),
    };
    let state = match states.as_slice() {
        _ if doubt.is_some() => State::Open,
        all if all.contains(&State::Fails) => State::Fails,
        all if all.contains(&State::Open) => State::Open,
        _ => State::Holds,
    };
    let change = surface.fit.difference(&claimed, &surface.maximum.point);
    Verdict {
        state,
        evidence: format!(
            "{}; 3 nodes and 40 connections are predicted to change the throughput by {} %{}",
            maximum(design, surface),
            estimate(change.percent()),
            doubt.map_or(String::new(), |why| format!("; {why}"))
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
    // A single node applies nothing, so the most nodes show the effect; the article had nine.
    let nodes = design.factors.iter().position(|f| f.name() == NODES);
    let at = |coded: f64| -> Vec<f64> {
        let mut point = vec![0.0; design.factors.len()];
        if let Some(nodes) = nodes {
            point[nodes] = 1.0;
        }
        point[place] = coded;
        point
    };
    if nodes.is_some_and(|nodes| screening.confounds(nodes, place)) {
        return Verdict {
            state: State::Open,
            evidence: "the runs do not tell the interaction of nodes and appliers from another one: vary fewer factors"
                .to_string(),
        };
    }
    let change = screening.fit().difference(&at(1.0), &at(-1.0)).percent();
    let (fewest, most) = design.factors[place].bounds();
    let with = nodes.map_or(String::new(), |nodes| {
        format!(" with {} nodes", design.factors[nodes].bounds().1)
    });
    Verdict {
        state: small(change, HARDLY),
        evidence: format!(
            "from {fewest} to {most} appliers the throughput changes by {} %{with}",
            estimate(change)
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

fn fewer(design: &Design, study: &Study) -> Verdict {
    let Some(surface) = study.surface() else {
        return not_measured("there is no surface yet");
    };
    let runs = study.runs();
    let by_hand = POINTS * design.repetitions as usize;
    let state = match surface.confirmation {
        Confirmation::Open => State::NotMeasured,
        Confirmation::ModelFailed => State::Fails,
        Confirmation::Confirmed if runs >= by_hand => State::Fails,
        // A misfit widens the interval, so the runs are likely to lie in it anyway.
        Confirmation::Confirmed if surface.misfit().is_some() => State::Open,
        Confirmation::Confirmed => State::Holds,
    };
    let mean = surface.confirmed_mean().map_or("-".to_string(), number);
    Verdict {
        state,
        evidence: format!(
            "{} after {runs} runs ({by_hand} by hand): predicted {}, found {mean}{}",
            surface.confirmation.text(),
            estimate(surface.predicted.exp()),
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
