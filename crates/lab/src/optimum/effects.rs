//! Draws the effects of the screening as bars with their intervals, in percent, the largest on top (a Pareto chart).

use plotters::prelude::*;

use super::design::Design;
use super::drawing::{SIZE, Ticks};
use super::report::effect_name;
use crate::doe::{Effect, Screening};
use crate::frame::number;

/// The colour of an effect that differs from 0.
const CLEAR: RGBColor = RGBColor(0x1f, 0x6f, 0xb4);
/// The colour of an effect that may be 0.
const UNCLEAR: RGBColor = RGBColor(0xb8, 0xc4, 0xd0);

/// Half of the height of a bar. Bars are 1 apart.
const HALF: f64 = 0.34;

/// The plot as an SVG element; `None` without effects.
pub fn svg(design: &Design, system: &str, screening: &Screening) -> Option<String> {
    let mut effects: Vec<Effect> = screening.effects().to_vec();
    for effect in &mut effects {
        effect.change = effect.change.percent();
    }
    effects.sort_by(|a, b| a.change.value.abs().total_cmp(&b.change.value.abs()));
    let ends = effects.iter().flat_map(|effect| {
        let (low, high) = effect.change.interval.unwrap_or_default();
        [effect.change.value, low, high]
    });
    let far = ends.map(f64::abs).fold(0.0, f64::max);
    let mut out = String::new();
    (far > 0.0).then_some(())?;
    draw(&mut out, design, system, &effects, far * 1.08).ok()?;
    Some(out)
}

fn draw(
    out: &mut String,
    design: &Design,
    system: &str,
    effects: &[Effect],
    far: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(out, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(text)?;
    let count = effects.len();
    let mut chart = ChartBuilder::on(&root)
        .caption(
            format!("screening, {system}: change of transactions/s from low to high, %"),
            ("sans-serif", 16),
        )
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(210)
        .build_cartesian_2d(
            -far..far,
            Ticks {
                range: -0.5..count as f64 - 0.5,
                at: (0..count).map(|i| i as f64).collect(),
            },
        )
        .map_err(text)?;
    let names = |y: &f64| {
        let effect = effects.get(y.round().max(0.0) as usize);
        effect.map_or(String::new(), |effect| effect_name(design, effect))
    };
    chart
        .configure_mesh()
        .x_labels(8)
        .y_labels(count + 1)
        .x_label_formatter(&|x| number(*x))
        .y_label_formatter(&names)
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(230, 230, 230))
        .label_style(("sans-serif", 12))
        .draw()
        .map_err(text)?;
    for (i, effect) in effects.iter().enumerate() {
        let (y, value) = (i as f64, effect.change.value);
        let color = if effect.is_significant() {
            CLEAR
        } else {
            UNCLEAR
        };
        let bar = Rectangle::new([(0.0, y - HALF), (value, y + HALF)], color.filled());
        chart.draw_series([bar]).map_err(text)?;
        if let Some((low, high)) = effect.change.interval {
            let line = |points: [(f64, f64); 2]| PathElement::new(points, BLACK.stroke_width(1));
            let ends = [low, high].map(|x| line([(x, y - 0.15), (x, y + 0.15)]));
            chart.draw_series(ends).map_err(text)?;
            chart
                .draw_series([line([(low, y), (high, y)])])
                .map_err(text)?;
        }
    }
    root.present().map_err(text)?;
    drop(chart);
    Ok(())
}

/// The error as text, because it must not borrow the drawing area.
fn text(error: impl std::error::Error) -> Box<dyn std::error::Error> {
    error.to_string().into()
}
