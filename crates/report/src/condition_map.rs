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
/// The legend and the titles need this much.
const LEAST_WIDTH: f64 = 520.0;

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
    let mut svg = Svg::new(width.max(LEAST_WIDTH), HEAD + 2.0 * height, &title);
    svg.raw(&hatch());
    svg.words(LEFT, 24.0, "title", &title);
    legend(&mut svg, map);
    upper.draw(&mut svg, HEAD);
    lower.draw(&mut svg, HEAD + height);
    svg.finish()
}

fn legend(svg: &mut Svg, map: &Map) {
    let mut x = LEFT;
    if let Some(range) = map.minibatch {
        svg.rect([x, 36.0, 22.0, 14.0], "", "#48a3a9");
        svg.rect([x, 36.0, 22.0, 14.0], "", "url(#hatch)");
        let words = format!("minibatch from {} to {}", short(range.low), short(range.high));
        svg.words(x + 28.0, 47.0, "", &words);
        x += 44.0 + 6.6 * words.chars().count() as f64;
    }
    match map.best() {
        Some(best) => {
            svg.rect([x, 36.0, 22.0, 14.0], "halo", "");
            svg.rect([x, 36.0, 22.0, 14.0], "frame", "");
            let words = format!(
                "shortest epoch: {} at {} nodes, batch {}",
                duration(best.epoch.get()),
                best.nodes,
                best.batch
            );
            svg.words(x + 30.0, 47.0, "", &words);
        }
        None => svg.words(x, 47.0, "", "no condition has such a minibatch"),
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
