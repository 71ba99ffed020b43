//! Epoch time and minibatch over nodes and batches, one above the other, as in Figures 12 and 13 of Oyama 2016: hatched
//! where the minibatch is admissible, framed where the epoch is shortest.

use super::heat_map::{HeatMap, Values};
use crate::draw::head::{Head, Mark};
use crate::draw::pattern::define_hatch;
use crate::draw::svg::{Svg, short};
use crate::draw::unit::Unit;
use stepcast_study::explore::map::Map;

/// Least width of a drawing, so that its title is legible.
const NARROWEST: f64 = 600.0;

/// The map of `name` as SVG.
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
    fn the_drawing_is_as_it_was() {
        check::golden("condition_map", &condition_map(&map(4, 3, Some((40.0, 90.0))), "cnn-a-like"));
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
