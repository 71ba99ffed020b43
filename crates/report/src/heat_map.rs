//! A heat map: a value for every pair of two axes, on a logarithmic scale of colours.

use crate::colour;
use crate::svg::{Svg, short};

/// Room to the left of the cells, for the axis.
pub(crate) const LEFT: f64 = 64.0;
/// Room to the right of the cells, for the scale.
pub(crate) const RIGHT: f64 = 96.0;
/// Room above the cells, for the title.
const TOP: f64 = 34.0;
/// Room below the cells, for the axis.
const BOTTOM: f64 = 44.0;
/// Cells smaller than this have no room for their value.
const ROOM_FOR_TEXT: (f64, f64) = (34.0, 16.0);
/// Axis labels are at least this far apart.
const LABEL_GAP: (f64, f64) = (26.0, 14.0);
const SCALE_WIDTH: f64 = 14.0;
const SCALE_STEPS: u32 = 48;

/// One axis.
pub(crate) struct Axis<'a> {
    pub(crate) title: &'a str,
    pub(crate) values: &'a [u32],
}

/// What a heat map shows.
pub(crate) struct HeatMap<'a> {
    pub(crate) title: &'a str,
    pub(crate) across: Axis<'a>,
    pub(crate) upwards: Axis<'a>,
    /// By place across, then upwards; positive.
    pub(crate) values: &'a [f64],
    /// Cells to hatch.
    pub(crate) hatched: &'a [bool],
    /// The cell to frame.
    pub(crate) framed: Option<usize>,
    /// How a value is written.
    pub(crate) written: fn(f64) -> String,
    /// Size of a cell.
    pub(crate) cell: (f64, f64),
}

impl HeatMap<'_> {
    /// Width and height with everything around.
    pub(crate) fn size(&self) -> (f64, f64) {
        let (width, height) = self.inner();
        (LEFT + width + RIGHT, TOP + height + BOTTOM)
    }

    fn inner(&self) -> (f64, f64) {
        let cells = |axis: &Axis<'_>, size: f64| axis.values.len() as f64 * size;
        (cells(&self.across, self.cell.0), cells(&self.upwards, self.cell.1))
    }

    /// The place of a cell, by its place in `values`.
    fn place(&self, index: usize, top: f64) -> [f64; 4] {
        let rows = self.upwards.values.len();
        let (column, row) = (index / rows, index % rows);
        let x = LEFT + column as f64 * self.cell.0;
        let y = top + TOP + (rows - 1 - row) as f64 * self.cell.1;
        [x, y, self.cell.0, self.cell.1]
    }

    /// Draws it, its upper edge at `top`.
    pub(crate) fn draw(&self, svg: &mut Svg, top: f64) {
        svg.words(LEFT, top + 20.0, "title", self.title);
        let scale = Scale::of(self.values);
        let labelled = self.cell.0 >= ROOM_FOR_TEXT.0 && self.cell.1 >= ROOM_FOR_TEXT.1;
        for (index, &value) in self.values.iter().enumerate() {
            svg.rect(self.place(index, top), "tile", &colour::of(scale.share(value)).0);
        }
        for (index, _) in self.hatched.iter().enumerate().filter(|(_, hatched)| **hatched) {
            svg.rect(self.place(index, top), "", "url(#hatch)");
        }
        if labelled {
            for (index, &value) in self.values.iter().enumerate() {
                let (fill, dark) = colour::of(scale.share(value));
                let [x, y, width, height] = self.place(index, top);
                let (x, y) = (x + width / 2.0, y + height / 2.0 + 3.5);
                let words = (self.written)(value);
                if self.hatched[index] {
                    // The hatching stops short of the words.
                    let room = 6.0 * words.chars().count() as f64 + 4.0;
                    svg.rect([x - room / 2.0, y - 9.5, room, 12.0], "", &fill);
                }
                let class = if dark { "cell small middle on-dark" } else { "cell small middle on-light" };
                svg.words(x, y, class, &words);
            }
        }
        if let Some(index) = self.framed {
            svg.rect(self.place(index, top), "halo", "");
            svg.rect(self.place(index, top), "frame", "");
        }
        self.axes(svg, top);
        self.scale(svg, top, &scale);
    }

    fn axes(&self, svg: &mut Svg, top: f64) {
        let (width, height) = self.inner();
        let floor = top + TOP + height;
        svg.rect([LEFT, top + TOP, width, height], "line", "");
        let every = |gap: f64, size: f64| (gap / size).ceil().max(1.0) as usize;
        for (place, value) in self.across.values.iter().enumerate().step_by(every(LABEL_GAP.0, self.cell.0)) {
            let x = LEFT + (place as f64 + 0.5) * self.cell.0;
            svg.words(x, floor + 15.0, "small middle", &value.to_string());
        }
        for (place, value) in self.upwards.values.iter().enumerate().step_by(every(LABEL_GAP.1, self.cell.1))
        {
            let y = floor - (place as f64 + 0.5) * self.cell.1 + 3.5;
            svg.words(LEFT - 6.0, y, "small end", &value.to_string());
        }
        svg.words(LEFT + width / 2.0, floor + 33.0, "middle", self.across.title);
        svg.upwards(LEFT - 34.0, top + TOP + height / 2.0, "middle", self.upwards.title);
    }

    fn scale(&self, svg: &mut Svg, top: f64, scale: &Scale) {
        let (width, height) = self.inner();
        let (x, top) = (LEFT + width + 18.0, top + TOP);
        let step = height / f64::from(SCALE_STEPS);
        for place in 0..SCALE_STEPS {
            let share = (f64::from(place) + 0.5) / f64::from(SCALE_STEPS);
            let y = top + height - f64::from(place + 1) * step;
            svg.rect([x, y, SCALE_WIDTH, step], "tile", &colour::of(share).0);
        }
        svg.rect([x, top, SCALE_WIDTH, height], "line", "");
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let y = top + height * (1.0 - share);
            svg.line([x + SCALE_WIDTH, y, x + SCALE_WIDTH + 4.0, y], "line");
            svg.words(x + SCALE_WIDTH + 8.0, y + 3.5, "small", &(self.written)(scale.value(share)));
        }
    }
}

/// The pattern that hatches, to be defined once in a drawing: light lines with dark edges show on every colour.
pub(crate) fn hatch() -> String {
    let line = |class: &str, shift: f64| {
        let (a, b) = (short(-2.0 + shift), short(8.0 + shift));
        format!("<line x1=\"{a}\" y1=\"8\" x2=\"{b}\" y2=\"-2\" class=\"{class}\"/>")
    };
    let lines: String = [-6.0, 0.0, 6.0]
        .iter()
        .map(|&shift| line("hatch", shift) + &line("hatch-edge", shift + 0.9))
        .collect();
    format!(
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">{lines}</pattern></defs>"
    )
}

/// Logarithmic, from the smallest to the largest value.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(values: &[f64]) -> Self {
        let finite = || values.iter().copied().filter(|value| *value > 0.0 && value.is_finite());
        let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(0.0, f64::max));
        if low <= high { Self { low, high } } else { Self { low: 1.0, high: 1.0 } }
    }

    fn share(&self, value: f64) -> f64 {
        let width = (self.high / self.low).ln();
        if width > 0.0 { (value / self.low).ln() / width } else { 0.5 }
    }

    fn value(&self, share: f64) -> f64 {
        self.low * (self.high / self.low).powf(share)
    }
}
