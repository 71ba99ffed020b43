//! Fills that can be distinguished without colours.

use super::style::SERIES;
use super::svg::{Svg, short};

/// Lines of the pattern of every series, in a tile of 6 by 6: none, rising, falling, level, upright, crossed, and so on.
const LINES: [&[[f64; 4]]; SERIES] = [
    &[],
    &[[-1.0, 7.0, 7.0, -1.0], [-1.0, 1.0, 1.0, -1.0], [5.0, 7.0, 7.0, 5.0]],
    &[[-1.0, -1.0, 7.0, 7.0], [5.0, -1.0, 7.0, 1.0], [-1.0, 5.0, 1.0, 7.0]],
    &[[0.0, 3.0, 6.0, 3.0]],
    &[[3.0, 0.0, 3.0, 6.0]],
    &[[0.0, 3.0, 6.0, 3.0], [3.0, 0.0, 3.0, 6.0]],
    &[[-1.0, 7.0, 7.0, -1.0], [-1.0, -1.0, 7.0, 7.0]],
    &[[2.0, 3.0, 4.0, 3.0]],
];

/// Defines the patterns of the first `count` series.
pub(crate) fn define(svg: &mut Svg, count: usize) {
    let mut text = String::from("<defs>");
    for (number, lines) in LINES.iter().enumerate().take(count) {
        text.push_str(&format!(
            "<pattern id=\"series-{number}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
             <rect width=\"6\" height=\"6\" class=\"s{number} fill\"/>"
        ));
        for [x1, y1, x2, y2] in lines.iter().map(|line| line.map(short)) {
            text.push_str(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"gap\"/>"));
        }
        text.push_str("</pattern>");
    }
    svg.raw(&(text + "</defs>"));
}

/// The fill of a series.
pub(crate) fn fill(number: usize) -> String {
    format!("url(#series-{})", number % SERIES)
}

/// Defines the pattern that hatches cells: light lines with dark edges show on every colour.
pub(crate) fn define_hatch(svg: &mut Svg) {
    let line = |class: &str, shift: f64| {
        let (a, b) = (short(-2.0 + shift), short(8.0 + shift));
        format!("<line x1=\"{a}\" y1=\"8\" x2=\"{b}\" y2=\"-2\" class=\"{class}\"/>")
    };
    let lines: String = [-6.0, 0.0, 6.0]
        .iter()
        .map(|&shift| line("hatch", shift) + &line("hatch-edge", shift + 0.9))
        .collect();
    svg.raw(&format!(
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">{lines}</pattern></defs>"
    ));
}
