//! Draws line charts as SVG for the report's page.

use plotters::prelude::*;

use crate::stats::{median, range};

/// The division of the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Equal steps.
    Linear,
    /// Each step doubles: 1, 2, 4, ...
    Doubling,
}

/// A point, with its range or interval if that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The place on the horizontal axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The ends of its bar.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// The point of a figure: the median of the repetitions with the least and the greatest, as in tables; `None` without
    /// values.
    pub fn of(x: f64, values: &[f64]) -> Option<Self> {
        Some(Self {
            x,
            y: median(values)?,
            interval: range(values),
        })
    }
}

/// The line of one system.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The system's name; it decides the colour of the line.
    pub name: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// A chart. Its vertical axis begins at 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The heading.
    pub title: String,
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// The division of the horizontal axis.
    pub axis: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// A line of at most this many points has a dot at each.
const FEW_POINTS: usize = 10;

/// Width and height in pixels.
const SIZE: (u32, u32) = (620, 380);

impl Chart {
    /// The chart as an SVG element; `None` without points.
    pub fn svg(&self) -> Option<String> {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let x_max = all().map(|p| self.place(p.x)).reduce(f64::max)?;
        let x_min = all().map(|p| self.place(p.x)).reduce(f64::min)?;
        let tops = all().map(|p| p.interval.map_or(p.y, |i| i.1.max(p.y)));
        // Leaves room for the names above the lines.
        let y_max = tops.fold(0.0, f64::max).max(1e-9) * 1.35;
        let mut svg = String::new();
        self.draw(&mut svg, (x_min, x_max.max(x_min + 1.0)), y_max)
            .ok()?;
        Some(svg)
    }

    /// The place of a value on the horizontal axis.
    fn place(&self, x: f64) -> f64 {
        match self.axis {
            Axis::Linear => x,
            Axis::Doubling => x.max(1.0).log2(),
        }
    }

    fn draw(
        &self,
        svg: &mut String,
        (x_min, x_max): (f64, f64),
        y_max: f64,
    ) -> Result<(), Box<dyn std::error::Error + '_>> {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(&self.title, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(x_min..x_max, 0.0..y_max)?;
        let x_text = |x: &f64| match self.axis {
            Axis::Linear => format!("{x:.0}"),
            Axis::Doubling => format!("{:.0}", x.exp2()),
        };
        let steps = match self.axis {
            Axis::Linear => 10.min((x_max - x_min) as usize + 1),
            Axis::Doubling => (x_max - x_min) as usize + 1,
        };
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_labels(steps)
            .x_label_formatter(&x_text)
            .y_label_formatter(&|y| number(*y))
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .axis_desc_style(("sans-serif", 13))
            .label_style(("sans-serif", 12))
            .draw()?;
        for (i, series) in self.series.iter().enumerate() {
            let color = color(&series.name, i);
            let line = series.points.iter().map(|p| (self.place(p.x), p.y));
            chart
                .draw_series(LineSeries::new(line.clone(), color.stroke_width(2)))?
                .label(&series.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], color.stroke_width(3))
                });
            // Dots would hide a line of seconds; a single point has no line.
            if self.axis == Axis::Doubling || series.points.len() <= FEW_POINTS {
                chart.draw_series(line.map(|at| Circle::new(at, 3, color.filled())))?;
            }
            let bars = series.points.iter().filter_map(|p| {
                let (low, high) = p.interval?;
                let x = self.place(p.x);
                Some(ErrorBar::new_vertical(
                    x,
                    low.max(0.0),
                    p.y,
                    high,
                    color.filled(),
                    8,
                ))
            });
            chart.draw_series(bars)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .label_font(("sans-serif", 12))
            .draw()?;
        root.present()?;
        Ok(())
    }
}

/// A number with as few digits as its size allows.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 || v == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The colour of a system, whose name may end with a comma and more text; for an unknown system, the colour of series
/// `i`.
fn color(name: &str, i: usize) -> RGBColor {
    const OTHERS: [RGBColor; 8] = [
        RGBColor(0x2c, 0x8a, 0x4b),
        RGBColor(0x7a, 0x4f, 0xb0),
        RGBColor(0x8a, 0x6d, 0x3b),
        RGBColor(0xd1, 0x4f, 0x9c),
        RGBColor(0x10, 0x9a, 0xa8),
        RGBColor(0xe0, 0x7b, 0x1a),
        RGBColor(0x4a, 0x58, 0xc9),
        RGBColor(0x60, 0x60, 0x60),
    ];
    match name.split(',').next().unwrap_or(name) {
        "plain" => RGBColor(0x70, 0x70, 0x70),
        "semisync" => RGBColor(0xd9, 0x82, 0x00),
        "galera" => RGBColor(0x1f, 0x6f, 0xb4),
        "trireme" => RGBColor(0xc2, 0x2f, 0x3d),
        _ => OTHERS[i % OTHERS.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Chart {
        let points = points.iter().map(|&(x, y)| Point {
            x,
            y,
            interval: Some((y * 0.9, y * 1.1)),
        });
        Chart {
            title: "a < b".to_string(),
            x: "connections".to_string(),
            y: "inserts/s".to_string(),
            axis: Axis::Doubling,
            series: vec![Series {
                name: "trireme".to_string(),
                points: points.collect(),
            }],
        }
    }

    #[test]
    fn a_chart_is_svg_with_its_texts() {
        let svg = chart(&[(1.0, 10.0), (256.0, 900.0)]).svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("a &lt; b") && svg.contains("trireme"));
        assert!(!svg.contains("NaN") && !svg.contains("href"));
    }

    #[test]
    fn small_numbers_keep_digits_that_tell_them_apart() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.0125), "0.0125");
        assert_eq!(number(0.5), "0.50");
        assert_eq!(number(2500.4), "2500");
    }

    #[test]
    fn a_point_has_the_figures_of_the_tables() {
        let point = Point::of(8.0, &[9.0, 1.0, 2.0]).unwrap();
        assert_eq!((point.y, point.interval), (2.0, Some((1.0, 9.0))));
        assert_eq!(Point::of(8.0, &[2.0]).unwrap().interval, None);
    }

    #[test]
    fn one_point_is_drawn_and_none_is_not() {
        assert!(chart(&[(8.0, 0.0)]).svg().is_some());
        assert_eq!(chart(&[]).svg(), None);
    }
}
