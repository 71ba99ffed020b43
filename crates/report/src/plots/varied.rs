//! A sweep: a figure over the values of one key, as a line or bars, or of two keys, as colours.

use super::heat_map::{HeatMap, Values};
use super::lines::Lines;
use crate::draw::{
    Axis, Figure, Frame, Head, Mark, Shape, Spacing, Svg, Unit, WIDTH, define_hatch, drawable, extent,
    nothing,
};
use crate::format::{capitalised, several};
use stepcast_core::prediction::GradientKernel;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_study::explore::sweep::{self, Grid, PointFigures, SweepRow};

const HEIGHT: f64 = 300.0;
/// Numbers that differ by a larger factor have a logarithmic axis.
const WIDE: f64 = 64.0;
/// Numbers that each grow by at least this factor also have a logarithmic axis.
const GROWING: f64 = 1.5;
/// Share of its category that a bar takes, and the widest bar.
const BAR: (f64, f64) = (0.72, 56.0);
/// With more points than this, only the line is drawn.
const MARKED: usize = 120;

/// Words for points that do not fit.
pub(super) const TOO_LARGE: &str = "does not fit into memory";

/// A figure over the values of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Varied<Q> {
    pub title: String,
    pub key: String,
    /// The figure's name: "throughput".
    pub quantity: String,
    /// Values of the key as they are written, each with its figure, where there is one.
    pub points: Vec<(String, Option<Q>)>,
    /// Which of them do not fit into memory; all fit beyond its end.
    pub too_large: Vec<bool>,
    pub best: Option<usize>,
}

impl<Q: Figure> Varied<Q> {
    pub fn svg(&self) -> String {
        let figures: Vec<Option<f64>> = self.points.iter().map(|(_, figure)| shown(*figure)).collect();
        let Some((_, high)) = extent(figures.iter().flatten().copied()) else {
            return nothing(&self.title, "There is nothing to show: no value of the key has a prediction.");
        };
        let missing = figures.iter().filter(|figure| figure.is_none()).count();
        let note = match missing {
            0 => String::new(),
            missing => format!("No prediction for {missing} of {} values", figures.len()),
        };
        let best = self.best.filter(|&best| figures.get(best).is_some_and(Option::is_some));
        let numbers = self.numbers();
        let mut legend = Vec::new();
        if let Some(best) = best {
            legend.push((Mark::Point(Shape::Diamond, 1), format!("best: {}", self.points[best].0)));
        }
        if (0..figures.len()).any(|place| figures[place].is_some() && self.is_too_large(place)) {
            let mark = if numbers.is_some() { Mark::Point(Shape::Cross, 0) } else { Mark::Hatched };
            legend.push((mark, TOO_LARGE.to_owned()));
        }
        let head = Head { title: self.title.clone(), note, legend };
        let across = match &numbers {
            Some(numbers) => {
                let (low, high) = extent(numbers.iter().copied()).unwrap_or((0.0, 1.0));
                let whole = numbers.iter().all(|number| number.fract().abs() <= 0.0);
                let grows = numbers.len() > 2 && numbers.windows(2).all(|pair| pair[1] >= GROWING * pair[0]);
                let spacing = match (low > 0.0 && (grows || high / low > WIDE), whole) {
                    (true, true) => Spacing::Doubling,
                    (true, false) => Spacing::Logarithmic,
                    (false, true) => Spacing::Whole,
                    (false, false) => Spacing::Linear,
                };
                Axis::of(&self.key, (low, high), spacing, &crate::Unit::Number, 16)
            }
            None => Axis::places(&self.key, self.points.iter().map(|(value, _)| value.clone())),
        };
        let upwards = Axis::of(&self.quantity, (0.0, high), Spacing::Linear, &Q::UNIT, 6);
        let frame = Frame::new(across, upwards, WIDTH, head.height(WIDTH) + 8.0, HEIGHT);
        let description =
            format!("{} over {} of {}.", self.quantity, several(self.points.len() as u64, "value"), self.key);
        let mut svg = frame.begin(&head, WIDTH, &description, define_hatch);
        match numbers {
            Some(numbers) => self.line(&mut svg, &frame, &numbers, &figures, best),
            None => self.bars(&mut svg, &frame, &figures, best),
        }
        svg.finish()
    }

    /// The values, if all of them are numbers that ascend.
    fn numbers(&self) -> Option<Vec<f64>> {
        let parsed = self.points.iter().map(|(value, _)| value.parse().ok().filter(|value| drawable(*value)));
        let numbers: Vec<f64> = parsed.collect::<Option<_>>()?;
        numbers.windows(2).all(|pair| pair[0] < pair[1]).then_some(numbers)
    }

    fn is_too_large(&self, place: usize) -> bool {
        self.too_large.get(place).is_some_and(|too_large| *too_large)
    }

    fn tooltip(&self, place: usize, figure: f64) -> String {
        let memory = if self.is_too_large(place) { format!(", {TOO_LARGE}") } else { String::new() };
        format!("{} = {}: {}{memory}", self.key, self.points[place].0, Q::UNIT.write(figure))
    }

    fn line(
        &self,
        svg: &mut Svg,
        frame: &Frame,
        numbers: &[f64],
        figures: &[Option<f64>],
        best: Option<usize>,
    ) {
        let place = |index: usize, figure: f64| (frame.x(numbers[index]), frame.y(figure));
        // A value without a figure interrupts the line.
        let mut run = Vec::new();
        for (index, figure) in figures.iter().enumerate() {
            match figure {
                Some(figure) => run.push(place(index, *figure)),
                None => svg.polyline(&std::mem::take(&mut run), "s0 stroke"),
            }
        }
        svg.polyline(&run, "s0 stroke");
        for (index, figure) in figures.iter().enumerate() {
            let is_best = best == Some(index);
            let alone = index.checked_sub(1).is_none_or(|before| figures[before].is_none())
                && figures.get(index + 1).is_none_or(Option::is_none);
            let Some(figure) = figure.filter(|_| is_best || alone || figures.len() <= MARKED) else {
                continue;
            };
            let (shape, series) = match (is_best, self.is_too_large(index)) {
                (true, _) => (Shape::Diamond, 1),
                (false, true) => (Shape::Cross, 0),
                (false, false) => (Shape::Circle, 0),
            };
            svg.titled(&self.tooltip(index, figure), |svg| svg.marker(place(index, figure), shape, series));
        }
    }

    fn bars(&self, svg: &mut Svg, frame: &Frame, figures: &[Option<f64>], best: Option<usize>) {
        for (index, figure) in figures.iter().enumerate() {
            let Some(figure) = *figure else { continue };
            let ((middle, wide), y) = (frame.bar(index, figures.len(), BAR), frame.y(figure));
            svg.titled(&self.tooltip(index, figure), |svg| {
                let bar = [middle - wide / 2.0, y, wide, frame.floor() - y];
                svg.rect(bar, "s0 fill", "");
                if self.is_too_large(index) {
                    svg.rect(bar, "", "url(#hatch)");
                }
            });
            if best == Some(index) {
                svg.marker((middle, y), Shape::Diamond, 1);
            }
        }
    }
}

fn shown<Q: Figure>(figure: Option<Q>) -> Option<f64> {
    figure.map(Into::into).filter(|&figure| drawable(figure) && figure >= 0.0)
}

/// Least width of a drawing, so that its title is legible.
const NARROWEST: f64 = 600.0;

/// A figure over the values of two keys.
#[derive(Debug, Clone, PartialEq)]
pub struct VariedPair<Q> {
    pub title: String,
    /// The figure's name: "throughput".
    pub quantity: String,
    /// The key whose values go from left to right, and its values as they are written.
    pub across: (String, Vec<String>),
    /// The key whose values go upwards, and its values as they are written.
    pub upwards: (String, Vec<String>),
    /// Column by column, from bottom to top.
    pub figures: Vec<Option<Q>>,
    /// Which of them do not fit into memory; all fit beyond its end.
    pub too_large: Vec<bool>,
    pub best: Option<usize>,
}

impl<Q: Figure> VariedPair<Q> {
    pub fn svg(&self) -> String {
        let cells = self.across.1.len() * self.upwards.1.len();
        let shown = |figure: &Option<Q>| figure.map(Into::into).filter(|&f: &f64| drawable(f) && f > 0.0);
        let mut values: Vec<Option<f64>> = self.figures.iter().map(shown).collect();
        values.resize(cells, None);
        let missing = values.iter().filter(|value| value.is_none()).count();
        if missing == cells {
            return nothing(&self.title, "There is nothing to show: no pair of values has a prediction.");
        }
        let best = self.best.filter(|&best| values.get(best).is_some_and(Option::is_some));
        let mut legend = Vec::new();
        if let Some(best) = best {
            let rows = self.upwards.1.len();
            let names = (&self.across.1[best / rows], &self.upwards.1[best % rows]);
            legend.push((Mark::Framed, format!("best: {} and {}", names.0, names.1)));
        }
        let too_large =
            values.iter().zip(&self.too_large).any(|(value, too_large)| value.is_some() && *too_large);
        if too_large {
            legend.push((Mark::Hatched, TOO_LARGE.to_owned()));
        }
        if missing > 0 {
            legend.push((Mark::Missing, "no prediction".to_owned()));
        }
        let unit = Q::UNIT;
        // Times have their unit in every cell.
        let subject = match &unit {
            Unit::Time => self.quantity.clone(),
            other => format!("{} ({})", self.quantity, other.on(1.0).1),
        };
        let map = HeatMap {
            title: &subject,
            across: Values { title: &self.across.0, names: self.across.1.clone() },
            upwards: Values { title: &self.upwards.0, names: self.upwards.1.clone() },
            values,
            hatched: self.too_large.clone(),
            framed: best,
            unit: Q::UNIT,
        };
        let (width, height) = map.size();
        let width = width.max(NARROWEST);
        let head = Head { title: self.title.clone(), note: String::new(), legend };
        let top = head.height(width);
        let description =
            format!("{} over {} and {}, {cells} cells.", self.quantity, self.across.0, self.upwards.0);
        let mut svg = Svg::new(width, top + height, &self.title, &description);
        define_hatch(&mut svg);
        head.draw(&mut svg, width);
        map.draw(&mut svg, top);
        svg.finish()
    }
}

/// Values of a single key that a line can show.
pub const MOST_ACROSS: u64 = 20_000;
/// Values of each of two keys that a heat map can show.
pub const MOST_CELLS: u64 = 512;

/// Figure in the plot of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SweptFigure {
    /// Samples per second of the whole cluster.
    #[default]
    Throughput,
    /// Time of a step, of SPRINT's GPU threads T_GPU.
    StepTime,
    /// The part of it in which gradients are computed.
    GradientTime,
    /// Time from one update to the next beside the steps: T_Update.
    UpdateTime,
    /// Samples that enter one update, on average.
    Minibatch,
    /// Gradient time, a line for each kernel.
    Kernels,
}

impl SweptFigure {
    pub const NAMES: [&str; 6] =
        ["throughput", "step-time", "gradient-time", "update-time", "minibatch", "kernels"];
    const ALL: [Self; 6] = [
        Self::Throughput,
        Self::StepTime,
        Self::GradientTime,
        Self::UpdateTime,
        Self::Minibatch,
        Self::Kernels,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|known| *known == name).map(|place| Self::ALL[place])
    }

    fn words(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::StepTime => "step time",
            Self::GradientTime | Self::Kernels => "gradient time",
            Self::UpdateTime => "update time",
            Self::Minibatch => "minibatch",
        }
    }

    fn value(self, figures: &PointFigures) -> Option<f64> {
        match self {
            Self::Throughput => Some(figures.throughput.get()),
            Self::StepTime => Some(figures.iteration.get()),
            Self::GradientTime | Self::Kernels => Some(figures.compute.get()),
            Self::UpdateTime => figures.update.map(Seconds::get),
            Self::Minibatch => figures.minibatch,
        }
    }
}

/// A figure at the points of a sweep, collected until the plot is drawn.
#[derive(Debug, Clone)]
pub struct Swept {
    figure: SweptFigure,
    /// Keys with their values.
    first: (String, Vec<String>),
    second: Option<(String, Vec<String>)>,
    grid: Grid,
    points: Vec<Option<Point>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    pub value: f64,
    pub fits: bool,
    pub kernels: Vec<GradientKernel>,
}

impl Swept {
    /// A figure over these axes; none if they are not one or two, or have too many values. Kernels have one.
    pub fn new(axes: &[sweep::Axis], figure: SweptFigure) -> Option<Self> {
        let (first, second, most) = match axes {
            [only] => (only, None, MOST_ACROSS),
            [first, second] if figure != SweptFigure::Kernels => (first, Some(second), MOST_CELLS),
            _ => return None,
        };
        if axes.iter().any(|axis| axis.values.len() > most) {
            return None;
        }
        let grid = Grid::new(axes.iter().map(|axis| axis.values.len()).collect());
        let points = usize::try_from(grid.points()).ok()?;
        let key = |axis: &sweep::Axis| {
            (axis.key.clone(), (0..axis.values.len()).map(|place| axis.value(place)).collect())
        };
        Some(Self { figure, first: key(first), second: second.map(key), grid, points: vec![None; points] })
    }

    pub fn see(&mut self, row: &SweepRow) {
        if let Ok(index) = usize::try_from(row.index) {
            let point = |figures: &PointFigures| {
                let value = self.figure.value(figures)?;
                Some(Point { value, fits: figures.fits, kernels: figures.kernels.clone() })
            };
            let point = row.answer.as_ref().ok().and_then(point);
            self.note(index, point);
        }
    }

    /// Keeps the point `index`; none where it was refused.
    pub fn note(&mut self, index: usize, point: Option<Point>) {
        if let Some(place) = self.points.get_mut(index) {
            *place = point;
        }
    }

    /// The point with the largest throughput or the shortest time that fits; of equal ones, the first.
    fn best(&self) -> Option<usize> {
        let fitting = self.points.iter().enumerate().filter_map(|(place, point)| {
            let point = point.as_ref()?;
            point.fits.then_some((place, point.value))
        });
        let better = |next: f64, best: f64| match self.figure {
            SweptFigure::Throughput => next > best,
            SweptFigure::Minibatch => false,
            _ => next < best,
        };
        let best = fitting.reduce(|best, next| if better(next.1, best.1) { next } else { best });
        best.map(|(place, _)| place).filter(|_| self.figure != SweptFigure::Minibatch)
    }

    /// The drawing: a line or bars over one key, a heat map over two, a line for each kernel.
    pub fn svg(&self, name: &str) -> String {
        match self.figure {
            SweptFigure::Throughput => self.drawn(name, SamplesPerSec::new),
            SweptFigure::Minibatch => self.drawn(name, |value| value),
            SweptFigure::Kernels => self.kernels(name),
            _ => self.drawn(name, Seconds::new),
        }
    }

    /// A line for every kernel of a gradient over the values of the key, or their places if these are not numbers.
    fn kernels(&self, name: &str) -> String {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for (place, (value, point)) in self.first.1.iter().zip(&self.points).enumerate() {
            let across = value.parse().unwrap_or(place as f64);
            for GradientKernel { kernel, time } in point.iter().flat_map(|point| &point.kernels) {
                match lines.iter_mut().find(|(known, _)| known == kernel) {
                    Some((_, points)) => points.push((across, time.get())),
                    None => lines.push(((*kernel).to_owned(), vec![(across, time.get())])),
                }
            }
        }
        Lines {
            title: format!("Gradient time of {name} by kernel"),
            across: (self.first.0.clone(), Unit::Number),
            upwards: ("time of a gradient".to_owned(), Unit::Time),
            lines,
        }
        .svg()
    }

    fn drawn<Q: Figure>(&self, name: &str, quantity_of: fn(f64) -> Q) -> String {
        let quantity = self.figure.words().to_owned();
        let title = format!("{} of {name}", capitalised(&quantity));
        let best = self.best();
        let throughput = |place: usize| self.points[place].as_ref().map(|point| quantity_of(point.value));
        let too_large = |place: usize| self.points[place].as_ref().is_some_and(|point| !point.fits);
        let first = &self.first;
        match &self.second {
            None => {
                let (key, values) = first;
                let points = values.iter().cloned().zip((0..).map(throughput)).collect();
                let too_large = (0..values.len()).map(too_large).collect();
                Varied { title, key: key.clone(), quantity, points, too_large, best }.svg()
            }
            Some(second) => {
                // The longer axis goes across, where there is more room.
                let turned = second.1.len() > first.1.len();
                let (across, upwards) = if turned { (second, first) } else { (first, second) };
                let place = |column: usize, row: usize| {
                    let (first, second) = if turned { (row, column) } else { (column, row) };
                    self.grid.index(&[first as u64, second as u64]) as usize
                };
                let cells =
                    (0..across.1.len()).flat_map(|column| (0..upwards.1.len()).map(move |row| (column, row)));
                let order: Vec<usize> = cells.map(|(column, row)| place(column, row)).collect();
                VariedPair {
                    title,
                    quantity,
                    across: across.clone(),
                    upwards: upwards.clone(),
                    figures: order.iter().map(|&place| throughput(place)).collect(),
                    too_large: order.iter().map(|&place| too_large(place)).collect(),
                    best: best.and_then(|best| order.iter().position(|&place| place == best)),
                }
                .svg()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_point_is_the_fastest_that_fits() {
        let mut swept =
            Swept::new(&[sweep::Axis::parse("batch=16,32,64,128").unwrap()], SweptFigure::Throughput)
                .unwrap();
        let point = |value, fits| Some(Point { value, fits, ..Point::default() });
        for (index, rate) in [10.0, 20.0, 20.0, 40.0].into_iter().enumerate() {
            swept.note(index, point(rate, rate < 30.0));
        }
        assert_eq!(swept.best(), Some(1));
        assert!(swept.svg("x").contains("best: 32") && swept.svg("x").contains("does not fit into memory"));
        swept.note(1, None);
        assert_eq!(swept.best(), Some(2));
        for index in 0..4 {
            swept.note(index, point(10.0, false));
        }
        assert_eq!(swept.best(), None);
    }
}
