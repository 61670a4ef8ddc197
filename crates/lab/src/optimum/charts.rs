//! Charts of slices through the fitted surfaces: one factor varies, and the others stay at the predicted maximum.

use super::design::Design;
use super::study::{Study, Surface};
use crate::doe::Scale;
use crate::frame::{Axis, Chart, Point, Record, Series};

/// A chart for each factor, with a line for each system that has a surface.
pub fn charts(design: &Design, records: &[Record]) -> Vec<Chart> {
    let studies: Vec<(&String, Study)> = design
        .systems
        .iter()
        .map(|system| (system, Study::of(design, system, records)))
        .collect();
    let slice = |factor: usize| -> Option<Chart> {
        let series: Vec<Series> = studies
            .iter()
            .filter_map(|(system, study)| {
                Some(Series {
                    name: system.to_string(),
                    points: line(design, study.surface()?, factor),
                })
            })
            .collect();
        let varied = &design.factors[factor];
        (!series.is_empty()).then(|| Chart {
            title: format!(
                "fitted surface along {}, the rest at the predicted maximum",
                varied.name()
            ),
            x: varied.name().to_string(),
            y: "transactions/s".to_string(),
            axis: match varied.scale() {
                Scale::Log if varied.bounds().0 >= 1.0 => Axis::Doubling,
                _ => Axis::Linear,
            },
            series,
        })
    };
    (0..design.factors.len()).filter_map(slice).collect()
}

fn line(design: &Design, surface: &Surface, factor: usize) -> Vec<Point> {
    let varied = &design.factors[factor];
    let points = varied.grid().into_iter().map(|level| {
        let mut at = surface.maximum.point.clone();
        at[factor] = varied.coded(level);
        let height = surface.fit.height(&at).exp();
        Point {
            x: level,
            y: height.value,
            interval: height.interval,
        }
    });
    points.collect()
}
