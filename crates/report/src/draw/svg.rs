//! SVG text: elements, escaping, and text cut to a width.
//!
//! The reader's font is unknown, so widths are of a wide font: text that fits in it fits in most fonts.

use super::*;
use std::fmt::Write;

#[derive(Debug)]
pub(crate) struct Svg {
    text: String,
}

/// A mark for one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Upended,
    Ring,
}

impl Shape {
    pub(crate) fn of(series: usize) -> Self {
        const ALL: [Shape; 7] = [
            Shape::Circle,
            Shape::Square,
            Shape::Triangle,
            Shape::Diamond,
            Shape::Cross,
            Shape::Upended,
            Shape::Ring,
        ];
        ALL[series % ALL.len()]
    }
}

pub(crate) fn series(number: usize) -> String {
    format!("s{}", number % SERIES)
}

impl Svg {
    /// A drawing of this size, with a title and a description for those who cannot see it.
    pub(crate) fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        let (w, h) = (short(width), short(height));
        let mut text = String::new();
        let _ = write!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<style>{}</style>\n<g class=\"plot\">\n\
             <rect class=\"page\" width=\"{w}\" height=\"{h}\"/>\n",
            escaped(title),
            escaped(description),
            embedded()
        );
        Self { text }
    }

    /// Elements without a drawing around them.
    pub(crate) fn fragment() -> Self {
        Self { text: String::new() }
    }

    /// A clipped group of this class: only elements within the area are visible.
    pub(crate) fn clipped(&mut self, [x, y, width, height]: [f64; 4], class: &str, elements: Self) {
        let [x, y, width, height] = [x, y, width, height].map(short);
        self.raw(&format!(
            "<svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{x} {y} {width} {height}\" preserveAspectRatio=\"none\"><g class=\"{class}\">"
        ));
        self.text.push_str(&elements.text);
        self.raw("</g></svg>");
    }

    pub(crate) fn raw(&mut self, element: &str) {
        self.text.push_str(element);
        self.text.push('\n');
    }

    /// The elements that `draw` adds, with a tooltip.
    pub(crate) fn titled(&mut self, words: &str, draw: impl FnOnce(&mut Self)) {
        self.numbered(None, words, draw);
    }

    /// The elements that `draw` adds, with a tooltip and a number that scripts read.
    pub(crate) fn numbered(&mut self, index: Option<u64>, words: &str, draw: impl FnOnce(&mut Self)) {
        let index = index.map_or(String::new(), |index| format!(" data-index=\"{index}\""));
        self.raw(&format!("<g{index}><title>{}</title>", escaped(words)));
        draw(self);
        self.raw("</g>");
    }

    /// A rectangle; `fill` is left to the class where it is empty.
    pub(crate) fn rect(&mut self, [x, y, width, height]: [f64; 4], class: &str, fill: &str) {
        let (x, y, width, height) = (short(x), short(y), short(width), short(height));
        let fill = if fill.is_empty() { String::new() } else { format!(" fill=\"{fill}\"") };
        self.raw(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{}{fill}/>",
            classed(class)
        ));
    }

    /// Rectangles of one colour as one element; nothing if there are none.
    pub(crate) fn rects(&mut self, places: &[[f64; 4]], class: &str, fill: &str) {
        let mut steps = String::new();
        for [x, y, width, height] in places {
            let [x, y, right, down, left] = [*x, *y, *width, *height, -*width].map(short);
            let _ = write!(steps, "M{x} {y}h{right}v{down}h{left}z");
        }
        if !places.is_empty() {
            self.raw(&format!("<path d=\"{steps}\"{} fill=\"{fill}\"/>", classed(class)));
        }
    }

    pub(crate) fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        let (x1, y1, x2, y2) = (short(x1), short(y1), short(x2), short(y2));
        self.raw(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"{}/>", classed(class)));
    }

    /// A line through points; nothing if there are fewer than two.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        if points.len() > 1 {
            self.raw(&format!("<path d=\"{}\"{}/>", steps(points), classed(class)));
        }
    }

    pub(crate) fn polygon(&mut self, points: &[(f64, f64)], class: &str) {
        self.raw(&format!("<path d=\"{}Z\"{}/>", steps(points), classed(class)));
    }

    pub(crate) fn marker(&mut self, (x, y): (f64, f64), shape: Shape, number: usize) {
        let around = |offsets: &[(f64, f64)]| -> Vec<(f64, f64)> {
            offsets.iter().map(|(right, down)| (x + right, y + down)).collect()
        };
        let class = series(number);
        let filled = format!("{class} fill");
        match shape {
            Shape::Circle | Shape::Ring => {
                let class = if shape == Shape::Ring { format!("{class} stroke") } else { filled };
                self.raw(&format!(
                    "<circle cx=\"{}\" cy=\"{}\" r=\"3.6\"{}/>",
                    short(x),
                    short(y),
                    classed(&class)
                ));
            }
            Shape::Square => self.rect([x - 3.4, y - 3.4, 6.8, 6.8], &filled, ""),
            Shape::Triangle => self.polygon(&around(&[(0.0, -4.6), (4.4, 3.2), (-4.4, 3.2)]), &filled),
            Shape::Upended => self.polygon(&around(&[(0.0, 4.6), (4.4, -3.2), (-4.4, -3.2)]), &filled),
            Shape::Diamond => {
                self.polygon(&around(&[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)]), &filled);
            }
            Shape::Cross => {
                let class = format!("{class} stroke");
                self.line([x - 3.6, y - 3.6, x + 3.6, y + 3.6], &class);
                self.line([x - 3.6, y + 3.6, x + 3.6, y - 3.6], &class);
            }
        }
    }

    pub(crate) fn words(&mut self, x: f64, y: f64, class: &str, words: &str) {
        self.words_within(x, y, class, words, f64::INFINITY);
    }

    /// Text at a position, cut where there is no room for it; a tooltip shows it in full.
    pub(crate) fn words_within(&mut self, x: f64, y: f64, class: &str, words: &str, room: f64) {
        let place = format!("x=\"{}\" y=\"{}\"{}", short(x), short(y), classed(class));
        self.text_element(&place, class, words, room);
    }

    pub(crate) fn upwards(&mut self, x: f64, y: f64, class: &str, words: &str, room: f64) {
        let (x, y) = (short(x), short(y));
        let place = format!("x=\"{x}\" y=\"{y}\"{} transform=\"rotate(-90 {x} {y})\"", classed(class));
        self.text_element(&place, class, words, room);
    }

    fn text_element(&mut self, place: &str, class: &str, words: &str, room: f64) {
        let shown = fitted(words, class, room);
        if shown.is_empty() {
            return;
        }
        let whole = if shown == words { String::new() } else { format!("<title>{}</title>", escaped(words)) };
        self.raw(&format!("<text {place}>{whole}{}</text>", escaped(&shown)));
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</g>\n</svg>\n");
        self.text
    }
}

fn classed(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
}

fn steps(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (place, (x, y)) in points.iter().enumerate() {
        let _ = write!(text, "{}{} {}", if place == 0 { "M" } else { "L" }, short(*x), short(*y));
    }
    text
}

/// Two decimals, without zeros at the end.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The text as a part of markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    // XML has no way to write the last two characters.
    let is_written = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
    for c in text.chars().filter(|c| is_written(c) && !matches!(c, '\u{fffe}' | '\u{ffff}')) {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            _ => safe.push(c),
        }
    }
    safe
}

/// Sizes of text in pixels, by class.
fn size(class: &str) -> f64 {
    let has = |name: &str| class.split(' ').any(|class| class == name);
    if has("title") {
        15.0
    } else if has("small") {
        10.0
    } else {
        12.0
    }
}

/// Width of bold letters relative to regular ones.
fn weight(class: &str) -> f64 {
    if class.split(' ').any(|class| class == "title" || class == "strong") { 1.12 } else { 1.0 }
}

/// Width of a character, in sizes of its font.
fn char_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.31,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.41,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 0.95,
        c if c.is_ascii_uppercase() => 0.72,
        c if c.is_ascii() => 0.6,
        'µ' | '×' | '·' | '–' | '−' => 0.62,
        _ => 1.05,
    }
}

pub(crate) fn width(words: &str, class: &str) -> f64 {
    words.chars().filter(|c| !c.is_control()).map(char_width).sum::<f64>() * size(class) * weight(class)
}

/// Heights above and below the base line.
#[cfg(test)]
pub(crate) fn heights(class: &str) -> (f64, f64) {
    (0.75 * size(class), 0.22 * size(class))
}

/// `words`, ended by "…" where there is no room for all of them; nothing where not even one letter fits.
pub(crate) fn fitted(words: &str, class: &str, room: f64) -> String {
    if width(words, class) <= room {
        return words.to_owned();
    }
    let room = room - width("…", class);
    let mut used = 0.0;
    let kept: String = words
        .chars()
        .filter(|c| !c.is_control())
        .take_while(|&c| {
            used += char_width(c) * size(class) * weight(class);
            used <= room
        })
        .collect();
    let kept = kept.trim_end();
    if kept.is_empty() { String::new() } else { format!("{kept}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_text_is_safe() {
        assert_eq!([short(1.0), short(0.256), short(-0.001), short(100.0)], ["1", "0.26", "0", "100"]);
        assert_eq!(escaped("a<b> & \"c\"\u{1b}[0m"), "a&lt;b&gt; &amp; &quot;c&quot;[0m");
    }

    #[test]
    fn words_without_room_are_shown_in_full_by_a_pointer() {
        let mut svg = Svg::new(10.0, 10.0, "t", "d");
        svg.words_within(0.0, 0.0, "", "a rather long name", 60.0);
        assert!(svg.finish().contains("<title>a rather long name</title>a rather…</text>"));
    }

    #[test]
    fn words_are_cut_to_their_room() {
        assert_eq!(fitted("resnet50", "", 100.0), "resnet50");
        assert_eq!(fitted("resnet50", "", 40.0), "resn…");
        assert_eq!(fitted("resnet50", "", 10.0), "");
        assert_eq!(fitted("", "", 0.0), "");
        for room in 0..200 {
            let room = f64::from(room);
            assert!(width(&fitted("cluster.network.bandwidth", "small", room), "small") <= room);
        }
        assert!(width("words", "title") > width("words", "") && width("words", "") > width("words", "small"));
    }
}
