//! Draws a surface from above: bands of equal height over two factors, the runs, and the predicted maximum.

use plotters::prelude::*;
use plotters::style::colors::colormaps::{ColorMap, ViridisRGB};

use super::design::Design;
use super::drawing::{SIZE, Ticks};
use super::study::Surface;
use crate::doe::{Factor, percent};
use crate::frame::number;

/// The value that the map shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The fitted throughput.
    Height,
    /// The distance to the upper end of the throughput's interval, in percent.
    Uncertainty,
}

/// The tiles along each axis.
const TILES: usize = 60;

/// The bands between the lowest and the highest value.
const BANDS: usize = 12;

/// The factor by which the axes exceed the ranges, so that points on the border are visible.
const REACH: f64 = 1.08;

/// The width of the map itself, in pixels. The legend has the rest.
const MAP_WIDTH: i32 = 520;

/// The map as an SVG element; None if the surface has no intervals to show. `axes`: the factors along the horizontal
/// and the vertical axis. The other factors are at the predicted maximum.
pub fn svg(
    design: &Design,
    system: &str,
    surface: &Surface,
    axes: (usize, usize),
    shown: Shown,
) -> Option<String> {
    let map = Map {
        design,
        system,
        surface,
        axes,
        shown,
    };
    let tiles = map.tiles()?;
    let mut out = String::new();
    map.draw(&mut out, &tiles).ok()?;
    Some(out)
}

struct Map<'a> {
    design: &'a Design,
    system: &'a str,
    surface: &'a Surface,
    axes: (usize, usize),
    shown: Shown,
}

/// The values at the centres of the tiles, row by row from below.
struct Tiles {
    values: Vec<Vec<f64>>,
    low: f64,
    high: f64,
}

impl Tiles {
    /// The band of a value, counted from the lowest.
    fn band(&self, value: f64) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        ((share * BANDS as f64) as usize).min(BANDS - 1)
    }
}

fn color(band: usize) -> RGBColor {
    ViridisRGB.get_color_normalized(band as f64 + 0.5, 0.0, BANDS as f64)
}

/// The lower edge of a tile, in coded units.
fn edge(tile: usize) -> f64 {
    2.0 * tile as f64 / TILES as f64 - 1.0
}

impl Map<'_> {
    fn tiles(&self) -> Option<Tiles> {
        let mut values = vec![Vec::new(); TILES];
        for (j, row) in values.iter_mut().enumerate() {
            for i in 0..TILES {
                let mut point = self.surface.maximum.point.clone();
                let middle = 1.0 / TILES as f64;
                point[self.axes.0] = edge(i) + middle;
                point[self.axes.1] = edge(j) + middle;
                let height = self.surface.fit.height(&point);
                row.push(match self.shown {
                    Shown::Height => height.value.exp(),
                    Shown::Uncertainty => percent(height.interval?.1 - height.value),
                });
            }
        }
        let all = || values.iter().flatten().copied();
        let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
        (high > low).then_some(Tiles { values, low, high })
    }

    fn title(&self) -> String {
        match self.shown {
            Shown::Height => format!("{}: fitted transactions/s", self.system),
            Shown::Uncertainty => format!("{}: uncertainty of the fit (95 %), %", self.system),
        }
    }

    fn draw(&self, out: &mut String, tiles: &Tiles) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(out, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(text)?;
        let (left, right) = root.split_horizontally(MAP_WIDTH);
        let across = &self.design.factors[self.axes.0];
        let up = &self.design.factors[self.axes.1];
        let ticks = |factor: &Factor| Ticks {
            range: -REACH..REACH,
            at: factor.grid().iter().map(|x| factor.coded(*x)).collect(),
        };
        let mut chart = ChartBuilder::on(&left)
            .caption(self.title(), ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(56)
            .build_cartesian_2d(ticks(across), ticks(up))
            .map_err(text)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc(across.name())
            .y_desc(up.name())
            .x_labels(20)
            .y_labels(20)
            .x_label_formatter(&|x| across.level(*x).to_string())
            .y_label_formatter(&|y| up.level(*y).to_string())
            .axis_desc_style(("sans-serif", 13))
            .label_style(("sans-serif", 12))
            .draw()
            .map_err(text)?;
        for (j, row) in tiles.values.iter().enumerate() {
            chart.draw_series(bands(tiles, row, j)).map_err(text)?;
        }
        let at = |point: &[f64]| (point[self.axes.0], point[self.axes.1]);
        let runs = || self.surface.fit.runs().map(|(point, _)| at(point));
        let dots = runs().map(|at| Circle::new(at, 4, WHITE.filled()));
        chart.draw_series(dots).map_err(text)?;
        let rings = runs().map(|at| Circle::new(at, 4, BLACK.stroke_width(1)));
        chart.draw_series(rings).map_err(text)?;
        let best = at(&self.surface.maximum.point);
        let red = RGBColor(0xe0, 0x30, 0x30);
        chart.draw_series(self.spread(best, red)).map_err(text)?;
        let cross = Cross::new(best, 7, red.stroke_width(3));
        chart.draw_series([cross]).map_err(text)?;
        legend(&right, tiles)?;
        root.present().map_err(text)?;
        drop(chart);
        Ok(())
    }

    /// The intervals of the maximum's place, as a line along each axis.
    fn spread(&self, best: (f64, f64), color: RGBColor) -> Vec<PathElement<(f64, f64)>> {
        let Some(intervals) = &self.surface.maximum.intervals else {
            return Vec::new();
        };
        let coded = |factor: usize| {
            let (low, high) = intervals[factor];
            let factor = &self.design.factors[factor];
            (factor.coded(low), factor.coded(high))
        };
        let (across, up) = (coded(self.axes.0), coded(self.axes.1));
        let style = color.stroke_width(2);
        vec![
            PathElement::new([(across.0, best.1), (across.1, best.1)], style),
            PathElement::new([(best.0, up.0), (best.0, up.1)], style),
        ]
    }
}

/// The row `j` of tiles. Neighbours in the same band become one rectangle.
fn bands(tiles: &Tiles, row: &[f64], j: usize) -> Vec<Rectangle<(f64, f64)>> {
    let mut all = Vec::new();
    let mut begin = 0;
    for i in 1..=row.len() {
        let band = tiles.band(row[begin]);
        if i == row.len() || tiles.band(row[i]) != band {
            // The rectangles overlap, and later tiles cover the overlap: otherwise fine lines would show between them.
            let (right, top) = (i.min(TILES - 1) + 1, j.min(TILES - 2) + 2);
            let corners = [(edge(begin), edge(j)), (edge(right), edge(top))];
            all.push(Rectangle::new(corners, color(band).filled()));
            begin = i;
        }
    }
    all
}

/// The colours of the bands, with the values between the bands.
fn legend(
    area: &DrawingArea<SVGBackend, plotters::coord::Shift>,
    tiles: &Tiles,
) -> Result<(), Box<dyn std::error::Error>> {
    let (top, bottom, left, width) = (48, SIZE.1 as i32 - 62, 4, 18);
    let y = |band: usize| bottom - (bottom - top) * band as i32 / BANDS as i32;
    for band in 0..BANDS {
        let box_of = [(left, y(band + 1)), (left + width, y(band))];
        let filled = Rectangle::new(box_of, color(band).filled());
        area.draw(&filled).map_err(text)?;
    }
    for band in (0..=BANDS).step_by(2) {
        let value = tiles.low + (tiles.high - tiles.low) * band as f64 / BANDS as f64;
        let label = Text::new(
            number(value),
            (left + width + 6, y(band) - 6),
            ("sans-serif", 12),
        );
        area.draw(&label).map_err(text)?;
    }
    Ok(())
}

/// The error as text, because it must not borrow the drawing area.
fn text(error: impl std::error::Error) -> Box<dyn std::error::Error> {
    error.to_string().into()
}
