//! A heat map: a value for every pair of two axes, on a logarithmic scale of colours.

use crate::draw::colour;
use crate::draw::frame::{Axis, BELOW, Frame};
use crate::draw::scale::extent;
use crate::draw::svg::Svg;
use crate::draw::text::width;
use crate::draw::unit::Unit;
use std::collections::BTreeMap;

/// Room to the right of the cells, for the scale.
const RIGHT: f64 = 112.0;
/// Room above the cells, for the title.
const TOP: f64 = 34.0;
/// Width and height that the cells take together, about.
const ROOM: (f64, f64) = (640.0, 330.0);
/// The largest and the smallest cell.
const CELL: ((f64, f64), (f64, f64)) = ((64.0, 26.0), (6.0, 5.0));
/// Cells lower than this have no room for their value.
const ROOM_FOR_TEXT: f64 = 16.0;
const SCALE_WIDTH: f64 = 14.0;
const SCALE_STEPS: u32 = 48;

/// More cells than this are not drawn one by one.
const MANY: usize = 4096;

/// One axis.
#[derive(Clone)]
pub(crate) struct Values<'a> {
    pub(crate) title: &'a str,
    pub(crate) names: Vec<String>,
}

/// The contents of a heat map.
pub(crate) struct HeatMap<'a> {
    pub(crate) title: &'a str,
    pub(crate) across: Values<'a>,
    pub(crate) upwards: Values<'a>,
    /// Positive values, column by column from bottom to top. Cells without a value are hatched.
    pub(crate) values: Vec<Option<f64>>,
    /// Cells to hatch.
    pub(crate) hatched: Vec<bool>,
    /// The cell to frame.
    pub(crate) framed: Option<usize>,
    pub(crate) unit: Unit,
}

impl HeatMap<'_> {
    /// Width and height with axes and scale.
    pub(crate) fn size(&self) -> (f64, f64) {
        let frame = self.frame(0.0);
        (frame.left + frame.width + RIGHT, TOP + frame.height + BELOW)
    }

    fn cell(&self) -> (f64, f64) {
        let size =
            |room: f64, count: usize, least: f64, most: f64| (room / count.max(1) as f64).clamp(least, most);
        (
            size(ROOM.0, self.across.names.len(), CELL.1.0, CELL.0.0),
            size(ROOM.1, self.upwards.names.len(), CELL.1.1, CELL.0.1),
        )
    }

    fn frame(&self, top: f64) -> Frame {
        let axis = |values: &Values<'_>| Axis::places(values.title, values.names.iter().cloned());
        let (across, upwards) = (axis(&self.across), axis(&self.upwards));
        let (wide, high) = self.cell();
        Frame {
            left: Frame::beside(&upwards),
            top: top + TOP,
            width: self.across.names.len() as f64 * wide,
            height: self.upwards.names.len() as f64 * high,
            across,
            upwards,
        }
    }

    /// The position of a cell in the drawing, by its index in `values`.
    fn place(&self, index: usize, frame: &Frame) -> [f64; 4] {
        let rows = self.upwards.names.len();
        let (column, row) = (index / rows, index % rows);
        let (wide, high) = self.cell();
        [frame.left + column as f64 * wide, frame.floor() - (row + 1) as f64 * high, wide, high]
    }

    /// Draws it, its upper edge at `top`.
    pub(crate) fn draw(&self, svg: &mut Svg, top: f64) {
        let frame = self.frame(top);
        svg.words(frame.left, top + 20.0, "title", self.title);
        let scale = Scale::of(&self.values);
        let known = || self.values.iter().enumerate().filter_map(|(index, value)| Some((index, (*value)?)));
        match self.values.len() > MANY {
            true => self.merged(svg, &frame, &scale),
            false => {
                for (index, value) in known() {
                    svg.rect(self.place(index, &frame), "tile", &colour::of(scale.share(value)).0);
                }
                for index in (0..self.values.len()).filter(|&index| self.is_hatched(index)) {
                    svg.rect(self.place(index, &frame), "", "url(#hatch)");
                }
            }
        }
        let (wide, high) = self.cell();
        let fits = |(_, value)| width(&self.unit.brief(value), "small") + 6.0 <= wide;
        if high >= ROOM_FOR_TEXT && known().all(fits) {
            for (index, value) in known() {
                self.write(svg, self.place(index, &frame), &scale, index, value);
            }
        }
        if let Some(index) = self.framed {
            svg.rect(self.place(index, &frame), "halo", "");
            svg.rect(self.place(index, &frame), "frame", "");
        }
        svg.rect([frame.left, frame.top, frame.width, frame.height], "line", "");
        frame.labels(svg, TOP);
        self.scale(svg, &frame, &scale);
    }

    /// Draws cells in as many colours as the scale shows, one path for each, neighbours in a column as one.
    fn merged(&self, svg: &mut Svg, frame: &Frame, scale: &Scale) {
        let step = |index: usize| {
            let share = scale.share(self.values[index]?);
            Some(((share * f64::from(SCALE_STEPS)) as u32).min(SCALE_STEPS - 1))
        };
        let mut tiles: BTreeMap<u32, Vec<[f64; 4]>> = BTreeMap::new();
        self.each_run(frame, step, |step, place| tiles.entry(step).or_default().push(place));
        for (step, places) in tiles {
            let share = (f64::from(step) + 0.5) / f64::from(SCALE_STEPS);
            svg.rects(&places, "tile", &colour::of(share).0);
        }
        let mut hatched = Vec::new();
        self.each_run(frame, |index| self.is_hatched(index).then_some(()), |(), place| hatched.push(place));
        svg.rects(&hatched, "", "url(#hatch)");
    }

    /// Calls `visit` with every run of cells of a column that `of` gives the same, and with its place.
    fn each_run<T: PartialEq + Copy>(
        &self,
        frame: &Frame,
        of: impl Fn(usize) -> Option<T>,
        mut visit: impl FnMut(T, [f64; 4]),
    ) {
        let rows = self.upwards.names.len();
        for column in 0..self.across.names.len() {
            let mut row = 0;
            while row < rows {
                let first = column * rows + row;
                let long = (row..rows).take_while(|row| of(column * rows + row) == of(first)).count();
                if let Some(what) = of(first) {
                    let [x, _, wide, high] = self.place(first, frame);
                    let [_, top, ..] = self.place(first + long - 1, frame);
                    visit(what, [x, top, wide, high * long as f64]);
                }
                row += long;
            }
        }
    }

    fn is_hatched(&self, index: usize) -> bool {
        self.values[index].is_none() || self.hatched.get(index).is_some_and(|hatched| *hatched)
    }

    fn write(&self, svg: &mut Svg, [x, y, wide, high]: [f64; 4], scale: &Scale, index: usize, value: f64) {
        let (fill, dark) = colour::of(scale.share(value));
        let (x, y) = (x + wide / 2.0, y + high / 2.0 + 3.5);
        let words = self.unit.brief(value);
        if self.is_hatched(index) {
            // The hatching leaves room for the text.
            let room = width(&words, "small") + 4.0;
            svg.rect([x - room / 2.0, y - 9.5, room, 12.0], "", &fill);
        }
        let class = if dark { "cell small middle on-dark" } else { "cell small middle on-light" };
        svg.words(x, y, class, &words);
    }

    fn scale(&self, svg: &mut Svg, frame: &Frame, scale: &Scale) {
        let (x, top, height) = (frame.left + frame.width + 18.0, frame.top, frame.height);
        let step = height / f64::from(SCALE_STEPS);
        for place in 0..SCALE_STEPS {
            let share = (f64::from(place) + 0.5) / f64::from(SCALE_STEPS);
            let y = top + height - f64::from(place + 1) * step;
            svg.rect([x, y, SCALE_WIDTH, step], "tile", &colour::of(share).0);
        }
        svg.rect([x, top, SCALE_WIDTH, height], "line", "");
        let marks: &[f64] = if height >= 70.0 { &[0.0, 0.25, 0.5, 0.75, 1.0] } else { &[0.0, 1.0] };
        for &share in marks {
            let y = top + height * (1.0 - share);
            svg.line([x + SCALE_WIDTH, y, x + SCALE_WIDTH + 4.0, y], "line");
            let room = RIGHT - SCALE_WIDTH - 28.0;
            svg.words_within(
                x + SCALE_WIDTH + 8.0,
                y + 3.5,
                "small",
                &self.unit.brief(scale.value(share)),
                room,
            );
        }
    }
}

/// Logarithmic, from the smallest to the largest value.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(values: &[Option<f64>]) -> Self {
        let positive = values.iter().flatten().copied().filter(|value| *value > 0.0);
        let (low, high) = extent(positive).unwrap_or((1.0, 1.0));
        Self { low, high }
    }

    fn share(&self, value: f64) -> f64 {
        let width = (self.high / self.low).ln();
        if width > 0.0 { (value / self.low).ln() / width } else { 0.5 }
    }

    fn value(&self, share: f64) -> f64 {
        self.low * (self.high / self.low).powf(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cell of a large map lies in exactly one tile or in the hatching, and there are as many elements as colours.
    #[test]
    fn many_cells_are_few_elements() {
        let names = |count: usize| (0..count).map(|name| name.to_string()).collect();
        let values = |count| Values { title: "x", names: names(count) };
        let (columns, rows) = (300, 200);
        let value = |cell: usize| (!cell.is_multiple_of(7)).then_some(1.0 + (cell % rows) as f64);
        let map = HeatMap {
            title: "x",
            across: values(columns),
            upwards: values(rows),
            values: (0..columns * rows).map(value).collect(),
            hatched: Vec::new(),
            framed: None,
            unit: Unit::Number,
        };
        let mut area = 0.0;
        let frame = map.frame(0.0);
        map.each_run(&frame, |index| map.values[index], |_, [_, _, wide, high]| area += wide * high);
        map.each_run(
            &frame,
            |index| map.is_hatched(index).then_some(()),
            |(), [_, _, wide, high]| {
                area += wide * high;
            },
        );
        assert!((area / (frame.width * frame.height) - 1.0).abs() < 1e-9, "{area}");
        let mut svg = Svg::fragment();
        map.merged(&mut svg, &frame, &Scale::of(&map.values));
        let mut drawn = Svg::new(1.0, 1.0, "", "");
        drawn.clipped([0.0; 4], "", svg);
        assert!(drawn.finish().matches("<path").count() <= SCALE_STEPS as usize + 1);
    }
}
