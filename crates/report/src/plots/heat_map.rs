//! Coloured cells over two axes, and the map of conditions made of them.

use crate::draw::{
    Axis, BELOW, Frame, Head, Mark, Svg, Unit, define_hatch, extent, heat_colour, short, width,
};
use std::collections::BTreeMap;
use stepcast_study::explore::map::Map;

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

#[derive(Clone)]
pub(crate) struct Values<'a> {
    pub(crate) title: &'a str,
    pub(crate) names: Vec<String>,
}

pub(crate) struct HeatMap<'a> {
    pub(crate) title: &'a str,
    pub(crate) across: Values<'a>,
    pub(crate) upwards: Values<'a>,
    /// Positive values, column by column from bottom to top. Cells without a value are hatched.
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) hatched: Vec<bool>,
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

    pub(crate) fn draw(&self, svg: &mut Svg, top: f64) {
        let frame = self.frame(top);
        svg.words(frame.left, top + 20.0, "title", self.title);
        let scale = Scale::of(&self.values);
        let known = || self.values.iter().enumerate().filter_map(|(index, value)| Some((index, (*value)?)));
        match self.values.len() > MANY {
            true => self.merged(svg, &frame, &scale),
            false => {
                for (index, value) in known() {
                    svg.rect(self.place(index, &frame), "tile", &heat_colour(scale.share(value)).0);
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
            svg.rects(&places, "tile", &heat_colour(share).0);
        }
        let mut hatched = Vec::new();
        self.each_run(frame, |index| self.is_hatched(index).then_some(()), |(), place| hatched.push(place));
        svg.rects(&hatched, "", "url(#hatch)");
    }

    /// Calls `visit` with every run of cells of a column with the same value of `of`, and with its place.
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
        let (fill, dark) = heat_colour(scale.share(value));
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
            svg.rect([x, y, SCALE_WIDTH, step], "tile", &heat_colour(share).0);
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

/// Least width of a drawing, so that its title is legible.
const NARROWEST: f64 = 600.0;

pub fn condition_map(map: &Map, name: &str) -> String {
    // Where every condition is admissible, nothing is hatched.
    let hatched: Vec<bool> =
        map.cells.iter().map(|cell| map.minibatch.is_some() && cell.admissible).collect();
    let nodes_title = match map.workers_per_node {
        1 => "nodes".to_owned(),
        workers => format!("nodes of {workers} workers"),
    };
    let names = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect();
    let heat_map = |title, values: Vec<f64>, unit| HeatMap {
        title,
        across: Values { title: &nodes_title, names: names(&map.nodes) },
        upwards: Values { title: "batch of a worker", names: names(&map.batches) },
        values: values.into_iter().map(Some).collect(),
        hatched: hatched.clone(),
        framed: map.ranking.first().copied(),
        unit,
    };
    let epochs = map.cells.iter().map(|cell| cell.epoch.get()).collect();
    let minibatches = map.cells.iter().map(|cell| cell.minibatch).collect();
    let upper = heat_map("Epoch time", epochs, Unit::Time);
    let lower = heat_map("Average minibatch", minibatches, Unit::Number);
    let (width, height) = upper.size();
    let width = width.max(NARROWEST);
    let (marks, description) = legend(map);
    let title = format!("Epoch time and minibatch of {name}, by {}", map.method);
    let head = Head { title: title.clone(), note: description.clone(), legend: marks };
    let top = head.height(width);
    let mut svg = Svg::new(width, top + 2.0 * height, &title, &description);
    define_hatch(&mut svg);
    head.draw(&mut svg, width);
    upper.draw(&mut svg, top);
    lower.draw(&mut svg, top + height);
    svg.finish()
}

/// The legend of hatching and frame, and the best condition in words.
fn legend(map: &Map) -> (Vec<(Mark, String)>, String) {
    let mut marks = Vec::new();
    if let Some(range) = map.minibatch {
        let words = format!("minibatch from {} to {}", short(range.low), short(range.high));
        marks.push((Mark::Hatched, words));
    }
    let Some(best) = map.best() else {
        return (marks, "No condition has such a minibatch".to_owned());
    };
    marks.push((Mark::Framed, "shortest epoch".to_owned()));
    let epoch = Unit::Time.write(best.epoch.get());
    (marks, format!("The shortest epoch takes {epoch}: {} nodes, batch {}", best.nodes, best.batch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::check;
    use stepcast_analytic::oyama2016::Oyama2016;
    use stepcast_core::scenario::Document;
    use stepcast_study::explore::map::{Extent, MinibatchRange};

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

    fn map(nodes: u32, batches: u32, range: Option<(f64, f64)>) -> Map {
        let text = include_str!("../../../../examples/sprint.toml");
        let scenario = Document::new("sprint.toml", text).scenario(&[]).unwrap();
        let extent = Extent {
            nodes: Some((1..=nodes).collect()),
            batches: Some((1..=batches).collect()),
            minibatch: range.map(|(low, high)| MinibatchRange { low, high }),
        };
        Map::new(&scenario, &Oyama2016, extent).unwrap()
    }

    #[test]
    fn every_cell_is_drawn_twice_and_the_best_framed_twice() {
        let map = map(16, 11, Some((103.5, 172.5)));
        let drawn = condition_map(&map, "x");
        let admissible = map.cells.iter().filter(|cell| cell.admissible).count();
        assert_eq!(drawn.matches("url(#hatch)").count(), 2 * admissible + 1);
        assert_eq!(drawn.matches("class=\"halo\"").count(), 3);
        assert_eq!(drawn, condition_map(&map, "x"));
    }

    #[test]
    fn large_maps_have_no_words_in_cells_and_odd_ones_are_drawn() {
        assert!(!condition_map(&map(64, 64, None), "x").contains("class=\"cell"));
        assert!(condition_map(&map(1, 1, None), "<b>").contains("&lt;b&gt;"));
        assert!(condition_map(&map(2, 2, Some((1e9, 1e9))), "x").contains("No condition"));
        for drawn in [condition_map(&map(1, 1, None), "x"), condition_map(&map(3, 200, None), "x")] {
            check::sound(&drawn);
        }
    }
}
