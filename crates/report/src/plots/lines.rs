//! Several lines over one axis: scaling factors over workers, times by kernel over samples, throughput over time.

use crate::draw::{Axis, Frame, Head, Mark, Shape, Spacing, Unit, WIDTH, drawable, extent, nothing, series};
use crate::format::several;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_study::replace::ReplacementReport;

const HEIGHT: f64 = 300.0;
/// Lines of more points than this have no marks.
const MARKED: usize = 40;
/// Numbers that differ by a larger factor have a logarithmic axis.
const WIDE: f64 = 8.0;

type LinePoints = Vec<(f64, f64)>;

#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    pub title: String,
    /// Quantity of the horizontal axis, and its unit.
    pub across: (String, Unit),
    /// Quantity of the vertical axis, and its unit.
    pub upwards: (String, Unit),
    /// Every line with its name, its points from left to right.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl Lines {
    /// The scaling factor before and after layers are replaced, over the number of workers (Liu 2022, Figure 8).
    pub fn from_replacement(report: &ReplacementReport, name: &str) -> Self {
        let line = |factor: fn(&stepcast_study::replace::ReplacedScaling) -> f64| {
            report.scaling.iter().map(|point| (f64::from(point.workers), factor(point))).collect()
        };
        Self {
            title: format!("Scaling of {name} with layers replaced"),
            across: ("workers".to_owned(), Unit::Number),
            upwards: ("scaling factor".to_owned(), Unit::Number),
            lines: vec![
                ("as it is".to_owned(), line(|point| point.before)),
                ("layers replaced".to_owned(), line(|point| point.after)),
            ],
        }
    }

    /// Throughput over time from the start of a simulated run (Li 2020, Figure 16).
    pub fn over_time(throughput: &[(Seconds, SamplesPerSec)], name: &str) -> Self {
        let points = throughput.iter().map(|(time, rate)| (time.get(), rate.get())).collect();
        Self {
            title: format!("Throughput of {name} over time, simulated"),
            across: ("time".to_owned(), Unit::Time),
            upwards: ("throughput".to_owned(), Unit::Rate),
            lines: vec![("all workers".to_owned(), points)],
        }
    }

    pub fn svg(&self) -> String {
        let good = |&(x, y): &(f64, f64)| drawable(x) && drawable(y) && y >= 0.0;
        let lines: Vec<(usize, &str, LinePoints)> = self
            .lines
            .iter()
            .enumerate()
            .map(|(place, (name, points))| {
                (place, name.as_str(), points.iter().copied().filter(good).collect())
            })
            .filter(|(_, _, points): &(usize, &str, LinePoints)| !points.is_empty())
            .collect();
        let all = || lines.iter().flat_map(|(_, _, points)| points.iter().copied());
        let (Some((low, high)), Some((_, top))) =
            (extent(all().map(|(x, _)| x)), extent(all().map(|(_, y)| y)))
        else {
            return nothing(&self.title, "There is nothing to show: no line has a point.");
        };
        let whole = self.across.1 == Unit::Number && all().all(|(x, _)| x.fract().abs() <= 0.0);
        let spacing = match (whole, low > 0.0 && high / low > WIDE) {
            (true, true) => Spacing::Doubling,
            (true, false) => Spacing::Whole,
            (false, _) => Spacing::Exact,
        };
        let legend = lines.iter().map(|&(place, name, _)| (Mark::Line(place, ""), name.to_owned())).collect();
        let head = Head { title: self.title.clone(), note: String::new(), legend };
        let across = Axis::of(&self.across.0, (low, high), spacing, &self.across.1, 16);
        let upwards = Axis::of(&self.upwards.0, (0.0, top), Spacing::Linear, &self.upwards.1, 6);
        let frame = Frame::new(across, upwards, WIDTH, head.height(WIDTH) + 8.0, HEIGHT);
        let description =
            format!("{} over {}, {}.", self.upwards.0, self.across.0, several(lines.len() as u64, "line"));
        let mut svg = frame.begin(&head, WIDTH, &description, |_| ());
        for (place, name, points) in &lines {
            let drawn: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (frame.x(x), frame.y(y))).collect();
            svg.polyline(&drawn, &format!("{} stroke", series(*place)));
            for (&(x, y), &at) in points.iter().zip(&drawn).filter(|_| points.len() <= MARKED) {
                let words = format!("{name}, {}: {}", self.across.1.write(x), self.upwards.1.write(y));
                svg.titled(&words, |svg| svg.marker(at, Shape::of(*place), *place));
            }
        }
        svg.finish()
    }
}
