//! Checks of every drawing: well-formed XML, finite numbers, all within the bounds, no overlapping text.

use super::{heights, width};
use roxmltree::{Document, Node};

/// Left, top, right, bottom.
type Extent = [f64; 4];

/// Compares with the drawing kept under `name`; `UPDATE_GOLDEN=1 cargo test -p stepcast-report` keeps a new one.
pub(crate) fn golden(name: &str, drawn: &str) {
    sound(drawn);
    let path = format!("{}/tests/golden/{name}.svg", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, drawn).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), drawn, "{name}");
}

/// Panics where a drawing violates one of the checks.
pub(crate) fn sound(drawn: &str) {
    let document = Document::parse(drawn).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    for name in ["title", "desc"] {
        assert!(root.children().any(|child| child.has_tag_name(name)), "no {name}");
    }
    let [_, _, right, bottom] = numbers(root.attribute("viewBox").unwrap())[..] else { panic!("viewBox") };
    let defined = |node: &Node<'_, '_>| node.ancestors().any(|node| node.tag_name().name() == "defs");
    let mut words: Vec<(Extent, String)> = Vec::new();
    for node in root.descendants().filter(|node| node.is_element() && !defined(node)) {
        finite(&node);
        let Some(extent) = extent(&node) else { continue };
        let [x0, y0, x1, y1] = extent;
        let inside =
            x0 >= -0.5 && y0 >= -0.5 && x1 <= right + 0.5 && y1 <= bottom + 0.5 && x0 <= x1 && y0 <= y1;
        assert!(inside, "{extent:?} is outside of {right} by {bottom}: {}", &drawn[node.range()]);
        if node.has_tag_name("text") {
            let text = spoken(&node);
            for (other, before) in &words {
                let apart = other[2] <= x0 || x1 <= other[0] || other[3] <= y0 || y1 <= other[1];
                assert!(apart, "{text:?} {extent:?} lies upon {before:?} {other:?}");
            }
            words.push((extent, text));
        }
    }
    for word in ["NaN", "inf", "-0.00"] {
        let outside_words = drawn.split('<').filter_map(|part| part.split('>').next());
        assert!(outside_words.into_iter().all(|tag| !tag.contains(word)), "{word}");
    }
}

/// The text of an element without that of its `title` child.
fn spoken(node: &Node<'_, '_>) -> String {
    node.children().filter(|child| child.is_text()).filter_map(|child| child.text()).collect()
}

fn numbers(text: &str) -> Vec<f64> {
    let parts = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    parts.filter(|part| !part.is_empty()).map(|part| part.parse().unwrap()).collect()
}

fn finite(node: &Node<'_, '_>) {
    for name in ["x", "y", "width", "height", "x1", "y1", "x2", "y2", "cx", "cy", "r"] {
        if let Some(value) = node.attribute(name) {
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{name}={value}");
        }
    }
}

fn extent(node: &Node<'_, '_>) -> Option<Extent> {
    let number = |name: &str| node.attribute(name).map_or(0.0, |value| value.parse().unwrap());
    let class = node.attribute("class").unwrap_or("");
    Some(match node.tag_name().name() {
        "rect" => {
            let (x, y, wide, high) = (number("x"), number("y"), number("width"), number("height"));
            assert!(wide >= 0.0 && high >= 0.0, "a rectangle turned over");
            [x, y, x + wide, y + high]
        }
        "line" => {
            let (x1, y1, x2, y2) = (number("x1"), number("y1"), number("x2"), number("y2"));
            [x1.min(x2), y1.min(y2), x1.max(x2), y1.max(y2)]
        }
        "circle" => {
            let (x, y, r) = (number("cx"), number("cy"), number("r"));
            [x - r, y - r, x + r, y + r]
        }
        "path" => {
            let all = numbers(node.attribute("d").unwrap());
            let ends = |values: Vec<f64>| {
                (
                    values.iter().copied().fold(f64::INFINITY, f64::min),
                    values.iter().copied().fold(0.0, f64::max),
                )
            };
            let (x, y) = (all.iter().copied().step_by(2), all.iter().copied().skip(1).step_by(2));
            let ((x0, x1), (y0, y1)) = (ends(x.collect()), ends(y.collect()));
            [x0, y0, x1, y1]
        }
        "text" => {
            let has = |name: &str| class.split(' ').any(|class| class == name);
            let wide = width(&spoken(node), class);
            let before = if has("end") {
                wide
            } else if has("middle") {
                wide / 2.0
            } else {
                0.0
            };
            let (up, down) = heights(class);
            let (x, y) = (number("x"), number("y"));
            match node.attribute("transform") {
                Some(_) => [x - up, y - (wide - before), x + down, y + before],
                None => [x - before, y - up, x - before + wide, y + down],
            }
        }
        _ => return None,
    })
}
