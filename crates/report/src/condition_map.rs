//! Epoch time and minibatch over nodes and batches, one above the other, as in Figures 12 and 13 of Oyama 2016: hatched
//! where the minibatch is admissible, framed where the epoch is shortest.

use crate::heat_map::{Axis, HeatMap, LEFT, hatch};
use crate::svg::{Svg, short};
use stepcast_study::map::Map;

/// Room for the legend above both maps.
const HEAD: f64 = 58.0;
/// The cells of a map take about this much room.
const ROOM: (f64, f64) = (736.0, 330.0);
/// The largest and the smallest cell.
const CELL: ((f64, f64), (f64, f64)) = ((64.0, 26.0), (6.0, 5.0));
/// Widths of a letter, roomy: fonts differ.
const LETTER: f64 = 6.8;
const TITLE_LETTER: f64 = 9.0;
/// In place of the shortest epoch, where there is none.
const NOTHING: &str = "no condition has such a minibatch";

/// The map of `name` as SVG.
pub fn condition_map(map: &Map, name: &str) -> String {
    let size =
        |room: f64, count: usize, least: f64, most: f64| (room / count.max(1) as f64).clamp(least, most);
    let cell = (
        size(ROOM.0, map.nodes.len(), CELL.1.0, CELL.0.0),
        size(ROOM.1, map.batches.len(), CELL.1.1, CELL.0.1),
    );
    let epochs: Vec<f64> = map.cells.iter().map(|cell| cell.epoch.get()).collect();
    let minibatches: Vec<f64> = map.cells.iter().map(|cell| cell.minibatch).collect();
    // Where everything is admissible, hatching would say nothing.
    let hatched: Vec<bool> =
        map.cells.iter().map(|cell| map.minibatch.is_some() && cell.admissible).collect();
    let nodes_title = match map.workers_per_node {
        1 => "nodes".to_owned(),
        workers => format!("nodes of {workers} workers"),
    };
    let heat_map = |title, values, written| HeatMap {
        title,
        across: Axis { title: &nodes_title, values: &map.nodes },
        upwards: Axis { title: "batch of a worker", values: &map.batches },
        values,
        hatched: &hatched,
        framed: map.ranking.first().copied(),
        written,
        cell,
    };
    let upper = heat_map("Epoch time", &epochs, duration);
    let lower = heat_map("Average minibatch", &minibatches, plain);
    let (width, height) = upper.size();
    let title = format!("Epoch time and minibatch of {name}, by {}", map.method);
    let legend = Legend::of(map);
    let words = title.chars().count() as f64 * TITLE_LETTER;
    let mut svg = Svg::new(width.max(LEFT + words.max(legend.width()) + 16.0), HEAD + 2.0 * height, &title);
    svg.raw(&hatch());
    svg.words(LEFT, 24.0, "title", &title);
    legend.draw(&mut svg);
    upper.draw(&mut svg, HEAD);
    lower.draw(&mut svg, HEAD + height);
    svg.finish()
}

/// What hatching and frame mean.
struct Legend {
    hatched: Option<String>,
    framed: Option<String>,
}

impl Legend {
    fn of(map: &Map) -> Self {
        let range = map.minibatch;
        Self {
            hatched: range
                .map(|range| format!("minibatch from {} to {}", short(range.low), short(range.high))),
            framed: map.best().map(|best| {
                let epoch = duration(best.epoch.get());
                format!("shortest epoch: {epoch} at {} nodes, batch {}", best.nodes, best.batch)
            }),
        }
    }

    fn entry(words: &str) -> f64 {
        48.0 + LETTER * words.chars().count() as f64
    }

    fn width(&self) -> f64 {
        let framed = self.framed.as_deref().unwrap_or(NOTHING);
        self.hatched.as_deref().map_or(0.0, Self::entry) + Self::entry(framed)
    }

    fn draw(&self, svg: &mut Svg) {
        let mut x = LEFT;
        let mark = |x: f64| [x, 36.0, 22.0, 14.0];
        if let Some(words) = &self.hatched {
            svg.rect(mark(x), "", "#48a3a9");
            svg.rect(mark(x), "", "url(#hatch)");
            svg.words(x + 30.0, 47.0, "", words);
            x += Self::entry(words);
        }
        match &self.framed {
            Some(words) => {
                svg.rect(mark(x), "halo", "");
                svg.rect(mark(x), "frame", "");
                svg.words(x + 30.0, 47.0, "", words);
            }
            None => svg.words(x, 47.0, "", NOTHING),
        }
    }
}

/// Seconds as "85 s", "26 min", "3.2 h" or "12 d".
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 99.5 => format!("{} s", significant(s)),
        s if s < 99.5 * 60.0 => format!("{} min", significant(s / 60.0)),
        s if s < 48.0 * 3600.0 => format!("{} h", significant(s / 3600.0)),
        s => format!("{} d", significant(s / 86_400.0)),
    }
}

fn plain(value: f64) -> String {
    if value >= 99_950.0 { format!("{value:.1e}") } else { significant(value) }
}

/// Two digits or more.
fn significant(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_analytic::oyama2016::Oyama2016;
    use stepcast_core::scenario::Document;
    use stepcast_study::map::{Extent, MinibatchRange};

    fn map(nodes: u32, batches: u32, range: Option<(f64, f64)>) -> Map {
        let text = include_str!("../../../examples/sprint.toml");
        let scenario = Document::new("sprint.toml", text).scenario(&[]).unwrap();
        let extent = Extent {
            nodes: Some((1..=nodes).collect()),
            batches: Some((1..=batches).collect()),
            minibatch: range.map(|(low, high)| MinibatchRange { low, high }),
        };
        Map::new(&scenario, &Oyama2016, extent).unwrap()
    }

    /// `UPDATE_GOLDEN=1 cargo test -p stepcast-report` writes it anew.
    #[test]
    fn the_drawing_is_as_it_was() {
        let drawn = condition_map(&map(4, 3, Some((40.0, 90.0))), "cnn-a-like");
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/condition_map.svg");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(golden, &drawn).unwrap();
        }
        assert_eq!(std::fs::read_to_string(golden).unwrap(), drawn);
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
        assert!(condition_map(&map(2, 2, Some((1e9, 1e9))), "x").contains("no condition"));
        for drawn in [condition_map(&map(1, 1, None), "x"), condition_map(&map(3, 200, None), "x")] {
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
        }
    }

    #[test]
    fn durations_are_short() {
        let written: Vec<String> = [0.02, 9.0, 85.0, 1600.0, 20_000.0, 200_000.0].map(duration).into();
        assert_eq!(written, ["20 ms", "9.0 s", "85 s", "27 min", "5.6 h", "2.3 d"]);
    }
}
