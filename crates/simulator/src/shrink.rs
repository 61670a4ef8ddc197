//! Finds the same violation with fewer faults, in less time, under less load.

use crate::edit::Edit;
use crate::run::{self, Violation};

/// Leaves out everything that the violation does not need. Err: there is no violation, or no such profile.
pub fn shrink(whole: Edit) -> Result<(Edit, Violation), String> {
    let plan = whole.plan()?;
    let faults = plan.faults.len();
    let calm_ms = plan.calm_us / 1000;
    let Some(violation) = run::run(plan).violation else {
        return Err("nothing is violated".to_owned());
    };
    let still = |edit: &Edit| {
        let outcome = edit.plan().map(run::run);
        outcome.is_ok_and(|o| o.violation.is_some_and(|v| v.what == violation.what))
    };
    let mut best = whole;
    let attempt = |best: &mut Edit, change: &dyn Fn(&mut Edit)| {
        let mut edit = best.clone();
        change(&mut edit);
        let better = edit != *best && still(&edit);
        if better {
            *best = edit;
        }
        better
    };
    attempt(&mut best, &|edit| edit.plain_load = true);
    let mut kept: Vec<usize> = best.faults.clone().unwrap_or((0..faults).collect());
    let mut chunk = kept.len();
    while chunk > 0 {
        let mut start = 0;
        while start < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(start..(start + chunk).min(kept.len()));
            if attempt(&mut best, &|edit| edit.faults = Some(fewer.clone())) {
                kept = fewer;
            } else {
                start += chunk;
            }
        }
        chunk /= 2;
    }
    for clients in [1, 2, 3] {
        if attempt(&mut best, &|edit| edit.clients = Some(clients)) {
            break;
        }
    }
    let (mut low, mut high) = (0, calm_ms);
    while high - low > 100 {
        let middle = (low + high) / 2;
        if attempt(&mut best, &|edit| edit.calm_ms = Some(middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let violation = run::run(best.plan()?).violation.unwrap_or(violation);
    Ok((best, violation))
}
