//! The frame of a plot: axes with grid lines and ticks, the title, a note, and a legend.

use super::*;

/// Height of the labels and title of the horizontal axis.
pub(crate) const BELOW: f64 = 44.0;
/// Least distance between two labels of one axis.
const GAP: f64 = 8.0;
/// Longer times are given in larger units than seconds.
const LONGEST_IN_SECONDS: f64 = 120.0;

/// How values are spaced along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Linear; the ends are ticks.
    Linear,
    /// Linear; the ends are the extreme values.
    Exact,
    /// Linear over whole numbers; the ends are the extreme values.
    Whole,
    /// Logarithmic; the ends are ticks.
    Logarithmic,
    /// Logarithmic over whole numbers, with ticks at powers of two.
    Doubling,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    title: String,
    /// The scale and the size of its unit; none for an axis of categories.
    scale: Option<(Scale, f64)>,
    /// Positions of the labels, from 0 to 1, with their texts.
    labels: Vec<(f64, String)>,
    /// Whether there are grid lines at the labels.
    grid: bool,
}

impl Axis {
    /// An axis for values of this extent. The title has their unit; times over several powers of ten have units in their
    /// labels instead.
    pub(crate) fn of(
        title: &str,
        (low, high): (f64, f64),
        spacing: Spacing,
        unit: &Unit,
        most: usize,
    ) -> Self {
        let logarithmic = matches!(spacing, Spacing::Logarithmic | Spacing::Doubling);
        let each = logarithmic && *unit == Unit::Time && high < LONGEST_IN_SECONDS;
        let typical = if logarithmic { (low * high).sqrt() } else { low.abs().max(high.abs()) };
        let (size, name) = if each { (1.0, "") } else { unit.on(typical) };
        let extent = (low / size, high / size);
        let scale = match spacing {
            Spacing::Linear => Scale::linear(extent, most),
            Spacing::Exact => Scale::exact(extent, most),
            Spacing::Whole => Scale::whole(extent, most),
            Spacing::Logarithmic => Scale::logarithmic(extent, most),
            Spacing::Doubling => Scale::doubling(extent, most),
        };
        let step = scale.ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let write = |tick: f64| match () {
            () if each => unit.write(tick),
            () if logarithmic || !step.is_finite() => significant(tick, 3),
            () => stepped(tick, step),
        };
        let labels = scale.ticks.iter().map(|&tick| (scale.share(tick), write(tick))).collect();
        let title = if name.is_empty() { title.to_owned() } else { format!("{title} ({name})") };
        Self { title, scale: Some((scale, size)), labels, grid: true }
    }

    /// Categories at equal distances.
    pub(crate) fn places(title: &str, names: impl ExactSizeIterator<Item = String>) -> Self {
        let count = names.len().max(1) as f64;
        let labels = names.enumerate().map(|(place, name)| ((place as f64 + 0.5) / count, name)).collect();
        Self { title: title.to_owned(), scale: None, labels, grid: false }
    }

    /// The position of a value, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        self.scale.as_ref().map_or(0.5, |(scale, size)| scale.share(value / size))
    }

    pub(crate) fn ends(&self) -> (f64, f64) {
        self.scale.as_ref().map_or((0.0, 1.0), |(scale, size)| (scale.ends().0 * size, scale.ends().1 * size))
    }

    fn widest(&self, most: f64) -> f64 {
        self.labels.iter().map(|(_, label)| width(label, "small")).fold(0.0, f64::max).min(most)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) across: Axis,
    pub(crate) upwards: Axis,
}

impl Frame {
    /// Largest overhang of labels of the horizontal axis beyond the area; every drawing has this much room there.
    const BESIDE: f64 = 28.0;
    /// Wider labels of the vertical axis are cut.
    const WIDEST_LABEL: f64 = 130.0;

    /// Room to the left of the area that this vertical axis needs.
    pub(crate) fn beside(upwards: &Axis) -> f64 {
        upwards.widest(Self::WIDEST_LABEL) + 40.0
    }

    /// Axes within a drawing of this width, from `top` down.
    pub(crate) fn new(across: Axis, upwards: Axis, drawing: f64, top: f64, height: f64) -> Self {
        let left = Self::beside(&upwards);
        // The last label may extend beyond the area.
        let right = (across.labels.last().map_or(0.0, |(_, label)| width(label, "small")) / 2.0).max(20.0);
        Self { left, top, width: drawing - left - right.min(60.0), height, across, upwards }
    }

    pub(crate) fn x(&self, value: f64) -> f64 {
        self.left + self.across.share(value) * self.width
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.upwards.share(value)) * self.height
    }

    /// The lower edge of the area.
    pub(crate) fn floor(&self) -> f64 {
        self.top + self.height
    }

    /// The parts of a line that do not leave the area upwards or downwards.
    pub(crate) fn visible(&self, line: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
        let mut runs: Vec<Vec<(f64, f64)>> = Vec::new();
        for pair in line.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let height = |y: f64| y.clamp(self.top, self.floor());
            let (from, to) = (height(y0), height(y1));
            let outside = (y0 < self.top && y1 < self.top) || (y0 > self.floor() && y1 > self.floor());
            if outside {
                continue;
            }
            let at = |y: f64| if (y1 - y0).abs() > 0.0 { x0 + (x1 - x0) * (y - y0) / (y1 - y0) } else { x0 };
            let begin = if (self.top..=self.floor()).contains(&y0) { (x0, y0) } else { (at(from), from) };
            let end = if (self.top..=self.floor()).contains(&y1) { (x1, y1) } else { (at(to), to) };
            match runs.last_mut().filter(|run| run.last() == Some(&begin)) {
                Some(run) => run.push(end),
                None => runs.push(vec![begin, end]),
            }
        }
        runs
    }

    /// A drawing of this width with a head above these axes; `define` adds what it refers to.
    pub(crate) fn begin(
        &self,
        head: &Head,
        drawing: f64,
        description: &str,
        define: impl FnOnce(&mut Svg),
    ) -> Svg {
        let mut svg = Svg::new(drawing, self.floor() + BELOW, &head.title, description);
        define(&mut svg);
        head.draw(&mut svg, drawing);
        self.draw(&mut svg);
        svg
    }

    /// The middle and the width of the bar of one of `count` categories, which takes a share of it up to the widest.
    pub(crate) fn bar(&self, place: usize, count: usize, (share, widest): (f64, f64)) -> (f64, f64) {
        let room = self.width / count as f64;
        (self.left + (place as f64 + 0.5) * room, (room * share).min(widest))
    }

    /// Draws the grid, which lies below lines and bars.
    pub(crate) fn draw(&self, svg: &mut Svg) {
        self.grid(svg);
        svg.line([self.left, self.floor(), self.left + self.width, self.floor()], "line");
        svg.line([self.left, self.top, self.left, self.floor()], "line");
        self.labels(svg, 0.0);
    }

    fn grid(&self, svg: &mut Svg) {
        for (share, _) in self.across.labels.iter().filter(|_| self.across.grid) {
            let x = self.left + share * self.width;
            svg.line([x, self.top, x, self.floor()], "grid");
        }
        for (share, _) in self.upwards.labels.iter().filter(|_| self.upwards.grid) {
            let y = self.floor() - share * self.height;
            svg.line([self.left, y, self.left + self.width, y], "grid");
        }
    }

    /// Labels and titles; labels for which there is no room are left out. The vertical title may reach `beyond` the area.
    pub(crate) fn labels(&self, svg: &mut Svg, beyond: f64) {
        let room = self.width / self.across.labels.len().max(1) as f64;
        let mut free = f64::NEG_INFINITY;
        for (share, label) in &self.across.labels {
            let wide = width(label, "small").min(room.max(46.0));
            let x = (self.left + share * self.width).min(self.left + self.width + Self::BESIDE - wide / 2.0);
            if x - wide / 2.0 >= free {
                svg.words_within(x, self.floor() + 15.0, "small middle", label, wide);
                free = x + wide / 2.0 + GAP;
            }
        }
        let mut free = f64::INFINITY;
        for (share, label) in &self.upwards.labels {
            let y = self.floor() - share * self.height;
            if y + 6.0 <= free {
                svg.words_within(self.left - 6.0, y + 3.5, "small end", label, Self::WIDEST_LABEL);
                free = y - 6.0;
            }
        }
        let middle = self.left + self.width / 2.0;
        svg.words_within(middle, self.floor() + 34.0, "middle", &self.across.title, self.width);
        let (x, y) =
            (self.left - self.upwards.widest(Self::WIDEST_LABEL) - 18.0, self.top + self.height / 2.0);
        svg.upwards(x, y, "middle", &self.upwards.title, self.height + 2.0 * beyond);
    }
}

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
    Point(Shape, usize),
    Bar(usize),
    /// Bars of a series without its pattern, which would make their text hard to read.
    Plain(usize),
    /// A line in the colour of text, with a class for its dashes.
    Rule(&'static str),
    Hatched,
    /// Cells that have no value.
    Missing,
    Framed,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub(crate) title: String,
    /// Below the title; may be empty.
    pub(crate) note: String,
    pub(crate) legend: Vec<(Mark, String)>,
}

impl Head {
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
            Self::Bar(number) => svg.rect(area, "", &pattern_fill(number)),
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
