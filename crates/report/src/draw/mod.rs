//! The parts of plots: SVG text, styles, scales, axes, legends.

mod frame;
mod scale;
pub(crate) mod style;
pub(crate) mod svg;

#[cfg(test)]
pub(crate) mod check;

pub(crate) use frame::*;
pub(crate) use scale::*;
pub use scale::{Figure, Unit};
pub(crate) use style::*;
pub(crate) use svg::*;

/// Width of a drawing, unless its contents need more.
pub(crate) const WIDTH: f64 = 760.0;

/// Height of the area of a drawing of this width that usually has the height `usual`.
pub(crate) fn height(drawing: f64, usual: f64) -> f64 {
    usual.min(0.45 * drawing)
}

/// An empty drawing with a title and the reason.
pub(crate) fn nothing(title: &str, why: &str) -> String {
    let head = Head { title: title.to_owned(), ..Head::default() };
    let top = head.height(WIDTH);
    let mut svg = Svg::new(WIDTH, top + 60.0, title, why);
    head.draw(&mut svg, WIDTH);
    svg.words_within(EDGE, top + 24.0, "muted", why, WIDTH - 2.0 * EDGE);
    svg.finish()
}
