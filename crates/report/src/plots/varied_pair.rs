//! Two keys varied against each other: a figure for every pair of values, as colours.

use super::heat_map::{HeatMap, Values};
use super::varied::TOO_LARGE;
use crate::draw::head::{Head, Mark};
use crate::draw::nothing;
use crate::draw::pattern::define_hatch;
use crate::draw::scale::drawable;
use crate::draw::svg::Svg;
use crate::draw::unit::{Figure, Unit};

/// Least width of a drawing, so that its title is legible.
const NARROWEST: f64 = 600.0;

/// A figure over the values of two keys.
#[derive(Debug, Clone, PartialEq)]
pub struct VariedPair<Q> {
    /// The title of the plot.
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
    /// The index of the best one.
    pub best: Option<usize>,
}

impl<Q: Figure> VariedPair<Q> {
    /// The drawing.
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
