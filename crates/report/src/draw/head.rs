//! The head of a plot: its title, a note, and a legend that takes as many rows as it needs.

use super::pattern;
use super::svg::{Shape, Svg, series};
use super::text::width;

/// Room at the edges of a drawing.
pub(crate) const EDGE: f64 = 16.0;
/// From one row of the legend to the next.
const ROW: f64 = 20.0;
const MARK: f64 = 22.0;
/// Gaps between a mark and its text, and between the text and the next mark.
const GAPS: (f64, f64) = (7.0, 18.0);

/// How an entry of a legend looks in the plot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    /// A line of a series, with a class for its dashes.
    Line(usize, &'static str),
    /// A line of a series with an area around it.
    Band(usize),
    /// Points of a series.
    Point(Shape, usize),
    /// Bars of a series.
    Bar(usize),
    /// Bars of a series without its pattern, which would make their text hard to read.
    Plain(usize),
    /// A line in the colour of text, with a class for its dashes.
    Rule(&'static str),
    /// Cells that are hatched.
    Hatched,
    /// Cells that have no value.
    Missing,
    /// A cell with a frame.
    Framed,
}

/// The head of a plot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) title: String,
    /// Below the title; may be empty.
    pub(crate) note: String,
    pub(crate) legend: Vec<(Mark, String)>,
}

impl Head {
    /// Height in a drawing of this width.
    pub(crate) fn height(&self, across: f64) -> f64 {
        let rows = self.places(across).last().map_or(0.0, |(_, y)| y + ROW);
        self.top() + rows + 6.0
    }

    fn top(&self) -> f64 {
        if self.note.is_empty() { 34.0 } else { 52.0 }
    }

    /// The positions of the entries, relative to the upper left corner of the legend.
    fn places(&self, across: f64) -> Vec<(f64, f64)> {
        let (mut x, mut y) = (0.0, 0.0);
        let room = across - 2.0 * EDGE;
        let place = |(_, words): &(Mark, String)| {
            let wide = MARK + GAPS.0 + width(words, "");
            if x > 0.0 && x + wide > room {
                (x, y) = (0.0, y + ROW);
            }
            let here = (x, y);
            x += wide + GAPS.1;
            here
        };
        self.legend.iter().map(place).collect()
    }

    /// Draws it at the top of a drawing of this width.
    pub(crate) fn draw(&self, svg: &mut Svg, across: f64) {
        let room = across - 2.0 * EDGE;
        svg.words_within(EDGE, 24.0, "title", &self.title, room);
        svg.words_within(EDGE, 43.0, "muted", &self.note, room);
        for ((mark, words), (x, y)) in self.legend.iter().zip(self.places(across)) {
            let (x, y) = (EDGE + x, self.top() + y);
            mark.draw(svg, x, y);
            let left = across - EDGE - x - MARK - GAPS.0;
            svg.words_within(x + MARK + GAPS.0, y + 11.0, "", words, left);
        }
    }
}

impl Mark {
    fn draw(self, svg: &mut Svg, x: f64, y: f64) {
        let area = [x, y, MARK, 14.0];
        let level = [x, y + 7.0, x + MARK, y + 7.0];
        match self {
            Self::Line(number, dashes) => svg.line(level, &format!("{} stroke {dashes}", series(number))),
            Self::Band(number) => {
                svg.rect(area, &format!("{} band", series(number)), "");
                svg.line(level, &format!("{} stroke", series(number)));
            }
            Self::Point(shape, number) => svg.marker((x + MARK / 2.0, y + 7.0), shape, number),
            Self::Bar(number) => svg.rect(area, "", &pattern::fill(number)),
            Self::Plain(number) => svg.rect(area, &format!("{} fill", series(number)), ""),
            Self::Rule(dashes) => svg.line(level, &format!("line {dashes}")),
            Self::Hatched => {
                svg.rect(area, "", "#48a3a9");
                svg.rect(area, "", "url(#hatch)");
            }
            Self::Missing => {
                svg.rect(area, "line", "");
                svg.rect(area, "", "url(#hatch)");
            }
            Self::Framed => {
                svg.rect(area, "halo", "");
                svg.rect(area, "frame", "");
            }
        }
    }
}
