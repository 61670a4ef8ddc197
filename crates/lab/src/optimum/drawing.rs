//! The plots besides line charts: effects of the screening, and maps of the surface.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

use super::design::Design;
use super::effects;
use super::map::{self, Shown};
use super::study::Study;
use crate::frame::Record;

/// The width and height of a plot in pixels, as in the charts.
pub const SIZE: (u32, u32) = (620, 380);

/// A linear axis with ticks at given places; `plotters` has no such range for numbers.
pub struct Ticks {
    /// The range of the axis.
    pub range: Range<f64>,
    /// The places of the ticks.
    pub at: Vec<f64>,
}

impl Ranged for Ticks {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        begin + (f64::from(end - begin) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // There are none: light lines would be drawn over the ticks.
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.at.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// All plots, system by system.
pub fn drawings(design: &Design, records: &[Record]) -> Vec<String> {
    let mut all = Vec::new();
    for system in &design.systems {
        let study = Study::of(design, system, records);
        all.extend(
            study
                .screening()
                .and_then(|s| effects::svg(design, system, s)),
        );
        if let (Some(surface), Some(screening)) = (study.surface(), study.screening()) {
            let axes = axes(&screening.ranking(), surface.quadratic().curved());
            for shown in [Shown::Height, Shown::Uncertainty] {
                all.extend(map::svg(design, system, surface, axes, shown));
            }
        }
    }
    all
}

/// The two strongest factors among those in which the surface is curved, in the order of the design.
fn axes(ranking: &[usize], curved: &[usize]) -> (usize, usize) {
    let mut strongest = ranking.iter().filter(|factor| curved.contains(factor));
    // A surface is curved in at least two factors.
    let (a, b) = (strongest.next(), strongest.next());
    let (a, b) = (*a.unwrap_or(&0), *b.unwrap_or(&1));
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_are_the_strongest_curved_factors() {
        assert_eq!(axes(&[2, 3, 0, 1], &[0, 2]), (0, 2));
        assert_eq!(axes(&[1, 0], &[0, 1]), (0, 1));
    }
}
