//! Throughput over the number of workers with its interval, the ideal, and measurements.

use crate::draw::{
    Axis, Frame, Head, Mark, Shape, Spacing, Svg, Unit, WIDTH, drawable, extent, height, nothing, width,
};
use crate::format::several;
use stepcast_core::quantity::SamplesPerSec;
use stepcast_study::Forecast;

const HEIGHT: f64 = 300.0;
/// The ideal may extend the axis by this factor; beyond, it leaves the area.
const IDEAL_ROOM: f64 = 1.5;
/// At least the beginning of the ideal is shown, unless that compresses everything else too much.
const IDEAL_BEGINS: f64 = 6.0;
/// With more points than this, only the line is drawn.
const MARKED: usize = 120;
/// Throughputs that differ by a larger factor have a logarithmic axis if the axis of workers is logarithmic.
const WIDE_THROUGHPUT: f64 = 10.0;
/// Numbers of workers that differ by a larger factor have a logarithmic axis.
const WIDE: f64 = 64.0;
/// Height of a label within the area, and its distance from its point.
const ROW: f64 = 16.0;
const BESIDE: f64 = 6.0;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScalingCurve {
    pub title: String,
    pub method: String,
    /// Predictions, in the order of workers.
    pub points: Vec<Point>,
    pub measured: Vec<Measured>,
    /// Workers of the scenario's cluster.
    pub here: Option<u32>,
    /// Workers beyond which the throughput hardly grows.
    pub saturates_at: Option<u32>,
}

/// One number of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub workers: u32,
    pub throughput: SamplesPerSec,
    pub low_high: Option<[SamplesPerSec; 2]>,
    /// The sum of the throughputs of all workers alone.
    pub ideal: Option<SamplesPerSec>,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub workers: u32,
    pub throughput: SamplesPerSec,
}

impl ScalingCurve {
    /// Throughput over workers, as a forecast predicts it.
    pub fn from_forecast(forecast: &Forecast, name: &str) -> Self {
        let point = |point: &stepcast_study::ScalingPoint| Point {
            workers: point.workers,
            throughput: point.throughput,
            low_high: point.interval_samples_per_s.map(|ends| ends.map(SamplesPerSec::new)),
            ideal: Some(SamplesPerSec::new(point.throughput.get() / point.scaling_factor)),
        };
        Self {
            title: format!("Throughput of {name}"),
            method: forecast.prediction.method.to_owned(),
            points: forecast.scaling.iter().map(point).collect(),
            measured: Vec::new(),
            here: u32::try_from(forecast.prediction.workers).ok(),
            saturates_at: forecast.saturates_at,
        }
    }

    pub fn svg(&self) -> String {
        self.svg_of(WIDTH)
    }

    pub fn svg_of(&self, drawing: f64) -> String {
        let points: Vec<&Point> =
            self.points.iter().filter(|point| point.workers > 0 && good(point.throughput)).collect();
        let measured: Vec<&Measured> =
            self.measured.iter().filter(|point| point.workers > 0 && good(point.throughput)).collect();
        let workers = points.iter().map(|point| point.workers);
        let Some(across) = extent(workers.chain(measured.iter().map(|point| point.workers)).map(f64::from))
        else {
            return nothing(&self.title, "There is nothing to show: no number of workers has a throughput.");
        };
        let mut frame = frame(across, &points, &measured, drawing);
        let head = self.head(&points, &measured);
        frame.top = head.height(drawing) + 8.0;
        let mut svg = frame.begin(&head, drawing, &self.description(&points), |_| ());
        self.rules(&mut svg, &frame, across);
        curves(&mut svg, &frame, &points);
        for point in measured {
            let words = format!(
                "{}, measured: {}",
                several(point.workers.into(), "worker"),
                Unit::Rate.write(point.throughput.get())
            );
            let place = (frame.x(point.workers.into()), frame.y(point.throughput.get()));
            svg.titled(&words, |svg| svg.marker(place, Shape::Cross, 1));
        }
        svg.finish()
    }

    fn head(&self, points: &[&Point], measured: &[&Measured]) -> Head {
        let mut legend = Vec::new();
        if !points.is_empty() {
            legend.push((Mark::Line(0, ""), format!("predicted by {}", self.method)));
        }
        if points.iter().any(|point| band(point).is_some()) {
            legend.push((Mark::Band(0), "its interval".to_owned()));
        }
        if points.iter().any(|point| ideal(point).is_some()) {
            legend.push((Mark::Line(5, "dashed"), "all as fast as alone".to_owned()));
        }
        if !measured.is_empty() {
            legend.push((Mark::Point(Shape::Cross, 1), "measured".to_owned()));
        }
        Head { title: self.title.clone(), note: String::new(), legend }
    }

    /// Vertical lines at numbers of workers, each with its label at the foot, in a separate row: curves are above.
    fn rules(&self, svg: &mut Svg, frame: &Frame, across: (f64, f64)) {
        let rules = [
            (self.here, "this cluster", "dot-dashed", 0.0),
            (self.saturates_at, "more bring little from here", "dotted", ROW),
        ];
        for (workers, words, dashes, row) in rules {
            let Some(workers) = workers.filter(|&at| (across.0..=across.1).contains(&f64::from(at))) else {
                continue;
            };
            let x = frame.x(workers.into());
            svg.line([x, frame.top, x, frame.floor()], &format!("line {dashes}"));
            beside(svg, frame, (x, frame.floor() - 6.0 - row), "small", &format!("{words}: {workers}"));
        }
    }

    fn description(&self, points: &[&Point]) -> String {
        let ends = points.first().zip(points.last()).map_or(String::new(), |(first, last)| {
            format!(
                " {} with {}, {} with {}.",
                Unit::Rate.write(first.throughput.get()),
                several(first.workers.into(), "worker"),
                Unit::Rate.write(last.throughput.get()),
                last.workers
            )
        });
        format!("Throughput over the number of workers, predicted by {}.{ends}", self.method)
    }
}

fn good(throughput: SamplesPerSec) -> bool {
    drawable(throughput.get()) && throughput.get() > 0.0
}

fn band(point: &Point) -> Option<[f64; 2]> {
    point.low_high.filter(|ends| ends.iter().all(|end| good(*end))).map(|ends| ends.map(SamplesPerSec::get))
}

fn ideal(point: &Point) -> Option<f64> {
    point.ideal.filter(|ideal| good(*ideal)).map(SamplesPerSec::get)
}

/// The axes; their upper edge is determined later.
fn frame(across: (f64, f64), points: &[&Point], measured: &[&Measured], drawing: f64) -> Frame {
    let predicted = points.iter().map(|point| point.throughput.get());
    let bands = points.iter().filter_map(|point| band(point)).flatten();
    let all = predicted.chain(bands).chain(measured.iter().map(|point| point.throughput.get()));
    let (low, high) = extent(all).unwrap_or((0.0, 1.0));
    let high = extent(points.iter().filter_map(|point| ideal(point))).map_or(high, |(first, last)| {
        let begins = if first < IDEAL_BEGINS * high { 1.2 * first } else { 0.0 };
        high.max(last.min(begins.max(IDEAL_ROOM * high)))
    });
    let wide = across.1 / across.0 > WIDE;
    let x = if wide { Spacing::Doubling } else { Spacing::Whole };
    let (low, y) = match wide && high / low > WIDE_THROUGHPUT {
        true => (low, Spacing::Logarithmic),
        false => (0.0, Spacing::Linear),
    };
    let across = Axis::of("workers", across, x, &Unit::Number, 16);
    let upwards = Axis::of("throughput", (low, high), y, &Unit::Rate, 6);
    Frame::new(across, upwards, drawing, 0.0, height(drawing, HEIGHT))
}

/// Words to the right of a place, or to the left where there is no room.
fn beside(svg: &mut Svg, frame: &Frame, (x, y): (f64, f64), class: &str, words: &str) {
    let fits = x + BESIDE + width(words, class) <= frame.left + frame.width;
    match fits {
        true => svg.words(x + BESIDE, y, class, words),
        false => svg.words(x - BESIDE, y, &format!("{class} end"), words),
    }
}

fn ideals(frame: &Frame, points: &[&Point]) -> Vec<Vec<(f64, f64)>> {
    let place = |point: &&Point| Some((frame.x(point.workers.into()), frame.y(ideal(point)?)));
    frame.visible(&points.iter().filter_map(place).collect::<Vec<_>>())
}

fn curves(svg: &mut Svg, frame: &Frame, points: &[&Point]) {
    let x = |point: &Point| frame.x(point.workers.into());
    let bands: Vec<(f64, [f64; 2])> =
        points.iter().filter_map(|point| Some((x(point), band(point)?))).collect();
    match &bands[..] {
        [] => {}
        [(x, [low, high])] => {
            svg.line([*x, frame.y(*low), *x, frame.y(*high)], "s0 stroke");
        }
        bands => {
            let lower = bands.iter().map(|(x, [low, _])| (*x, frame.y(*low)));
            let upper = bands.iter().rev().map(|(x, [_, high])| (*x, frame.y(*high)));
            svg.polygon(&lower.chain(upper).collect::<Vec<_>>(), "s0 band");
        }
    }
    for run in ideals(frame, points) {
        svg.polyline(&run, "s5 stroke dashed");
    }
    let predicted: Vec<(f64, f64)> =
        points.iter().map(|point| (x(point), frame.y(point.throughput.get()))).collect();
    svg.polyline(&predicted, "s0 stroke");
    for (point, place) in points.iter().zip(predicted).filter(|_| points.len() <= MARKED) {
        let words = format!(
            "{}: {}",
            several(point.workers.into(), "worker"),
            Unit::Rate.write(point.throughput.get())
        );
        svg.titled(&words, |svg| svg.marker(place, Shape::Circle, 0));
    }
}
