//! Predictions against measurements: on the diagonal they agree, within the band they differ by at most a tenth.

use crate::draw::{Axis, Figure, Frame, Head, Mark, Shape, Spacing, Svg, drawable, extent, nothing};

/// Height and width of the area: it is square, so that the diagonal has a slope of one.
const SIDE: f64 = 440.0;
/// Values that differ by a larger factor have logarithmic axes.
const WIDE: f64 = 10.0;
/// Half the width of the band.
const TOLERANCE: f64 = 0.1;

#[derive(Debug, Clone, PartialEq)]
pub struct PredictedMeasured<Q> {
    pub title: String,
    /// The quantity's name: "step time".
    pub quantity: String,
    /// Sets of points, each with its own colour and mark.
    pub sets: Vec<Set<Q>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Set<Q> {
    pub name: String,
    pub pairs: Vec<Pair<Q>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pair<Q> {
    pub name: String,
    pub measured: Q,
    pub predicted: Q,
}

impl<Q: Figure> PredictedMeasured<Q> {
    pub fn svg(&self) -> String {
        let good = |pair: &&Pair<Q>| values(pair).iter().all(|&value| drawable(value) && value > 0.0);
        let pairs = || self.sets.iter().flat_map(|set| &set.pairs).filter(good);
        let Some((low, high)) = extent(pairs().flat_map(values)) else {
            return nothing(
                &self.title,
                "There is nothing to show: nothing was both predicted and measured.",
            );
        };
        let within = pairs().filter(|pair| error(pair).abs() <= TOLERANCE).count();
        let count = pairs().count();
        let mut legend: Vec<(Mark, String)> = self
            .sets
            .iter()
            .enumerate()
            .filter(|(_, set)| set.pairs.iter().any(|pair| good(&pair)))
            .map(|(place, set)| (Mark::Point(Shape::of(place), place), set.name.clone()))
            .collect();
        legend.push((Mark::Rule(""), "as measured".to_owned()));
        legend.push((Mark::Rule("dashed"), "10 % above and below".to_owned()));
        let note = format!("{within} of {count} predictions are within 10 % of what was measured");
        let head = Head { title: self.title.clone(), note: note.clone(), legend };
        let axis = |title: &str| match high / low > WIDE {
            true => Axis::of(title, (low, high), Spacing::Logarithmic, &Q::UNIT, 6),
            false => Axis::of(title, (0.0, high), Spacing::Linear, &Q::UNIT, 6),
        };
        let across = axis(&format!("{}, measured", self.quantity));
        let upwards = axis(&format!("{}, predicted", self.quantity));
        let left = Frame::beside(&upwards);
        let width = left + SIDE + 48.0;
        let top = head.height(width) + 8.0;
        let frame = Frame { left, top, width: SIDE, height: SIDE, across, upwards };
        let mut svg = frame.begin(&head, width, &format!("{note}."), |_| ());
        band(&mut svg, &frame, high / low > WIDE);
        for (place, set) in self.sets.iter().enumerate() {
            for pair in set.pairs.iter().filter(good) {
                let [measured, predicted] = values(pair);
                let words = format!(
                    "{}: measured {}, predicted {} ({:+.1} %)",
                    pair.name,
                    Q::UNIT.write(measured),
                    Q::UNIT.write(predicted),
                    100.0 * error(pair)
                );
                let at = (frame.x(measured), frame.y(predicted));
                svg.titled(&words, |svg| svg.marker(at, Shape::of(place), place));
            }
        }
        svg.finish()
    }
}

fn values<Q: Figure>(pair: &Pair<Q>) -> [f64; 2] {
    [pair.measured.into(), pair.predicted.into()]
}

fn error<Q: Figure>(pair: &Pair<Q>) -> f64 {
    let [measured, predicted] = values(pair);
    predicted / measured - 1.0
}

/// The diagonal, and the band of predictions up to a tenth above or below it: parallel on logarithmic axes, fanning out
/// on linear ones.
fn band(svg: &mut Svg, frame: &Frame, by_ratios: bool) {
    let (low, high) = frame.across.ends();
    let right = frame.left + frame.width;
    svg.line([frame.left, frame.floor(), right, frame.top], "line");
    let factors = [1.0 - TOLERANCE, 1.0 + TOLERANCE];
    for factor in factors {
        let (from, to) = match by_ratios {
            true => ((low / factor).max(low), (high / factor).min(high)),
            false => (low, (high / factor).min(high)),
        };
        svg.line([frame.x(from), frame.y(from * factor), frame.x(to), frame.y(to * factor)], "line dashed");
    }
}
