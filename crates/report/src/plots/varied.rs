//! One key varied: a figure over its values, as a line over numbers and as bars over names.

use crate::draw::frame::{Axis, BELOW, Frame, Spacing};
use crate::draw::head::{Head, Mark};
use crate::draw::pattern::define_hatch;
use crate::draw::scale::{drawable, extent};
use crate::draw::svg::{Shape, Svg};
use crate::draw::unit::Figure;
use crate::draw::{WIDTH, nothing};
use crate::format::several;

const HEIGHT: f64 = 300.0;
/// Numbers that differ by a larger factor have a logarithmic axis.
const WIDE: f64 = 64.0;
/// So have numbers of which each is at least this many times the one before.
const GROWING: f64 = 1.5;
/// Share of its category that a bar takes, and the widest bar.
const BAR: (f64, f64) = (0.72, 56.0);
/// With more points than this, only the line is drawn.
const MARKED: usize = 120;

/// What is said of points that do not fit.
pub(super) const TOO_LARGE: &str = "does not fit into memory";

/// A figure over the values of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Varied<Q> {
    /// The title of the plot.
    pub title: String,
    /// The key.
    pub key: String,
    /// The figure's name: "throughput".
    pub quantity: String,
    /// Values of the key as they are written, each with its figure, where there is one.
    pub points: Vec<(String, Option<Q>)>,
    /// Which of them do not fit into memory; all fit beyond its end.
    pub too_large: Vec<bool>,
    /// The index of the best one.
    pub best: Option<usize>,
}

impl<Q: Figure> Varied<Q> {
    /// The drawing.
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
        let mut svg = Svg::new(WIDTH, frame.floor() + BELOW, &self.title, &description);
        define_hatch(&mut svg);
        head.draw(&mut svg, WIDTH);
        frame.draw(&mut svg);
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
        let room = frame.width / figures.len() as f64;
        let wide = (room * BAR.0).min(BAR.1);
        for (index, figure) in figures.iter().enumerate() {
            let Some(figure) = *figure else { continue };
            let (middle, y) = (frame.left + (index as f64 + 0.5) * room, frame.y(figure));
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
