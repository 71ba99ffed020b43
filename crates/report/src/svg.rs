//! SVG text: elements, escaping, styles.

use std::fmt::Write;

/// Styles of all plots. Print is on white whatever the page is.
const STYLE: &str = "\
text { font-family: system-ui, sans-serif; font-size: 12px; fill: #1b1b1b; }
.page { fill: #ffffff; }
.title { font-size: 15px; font-weight: 600; }
.small { font-size: 10px; }
.line { stroke: #1b1b1b; fill: none; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.on-dark { fill: #ffffff; }
.on-light { fill: #1b1b1b; }
.tile { shape-rendering: crispEdges; }
.hatch { stroke: #ffffff; stroke-width: 1.4; }
.hatch-edge { stroke: #000000; stroke-width: 0.6; }
.halo { fill: none; stroke: #ffffff; stroke-width: 5; }
.frame { fill: none; stroke: #000000; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e8e8e8; }
  .page { fill: #161616; }
  .line { stroke: #e8e8e8; }
}
@media print {
  text { fill: #000000; }
  .page { fill: #ffffff; }
  .line { stroke: #000000; }
}
.cell.on-dark { fill: #ffffff; }
.cell.on-light { fill: #1b1b1b; }
";

/// A drawing, growing element by element.
#[derive(Debug)]
pub(crate) struct Svg {
    text: String,
}

impl Svg {
    /// A drawing of this size, with a title for those who cannot see it.
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Self {
        let (w, h) = (short(width), short(height));
        let mut text = String::new();
        let _ = write!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n\
             <rect class=\"page\" width=\"{w}\" height=\"{h}\"/>\n",
            escaped(title)
        );
        Self { text }
    }

    /// An element as it is written.
    pub(crate) fn raw(&mut self, element: &str) {
        self.text.push_str(element);
        self.text.push('\n');
    }

    /// A rectangle; `fill` is left to the class where it is empty.
    pub(crate) fn rect(&mut self, [x, y, width, height]: [f64; 4], class: &str, fill: &str) {
        let (x, y, width, height) = (short(x), short(y), short(width), short(height));
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let fill = if fill.is_empty() { String::new() } else { format!(" fill=\"{fill}\"") };
        self.raw(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{class}{fill}/>"));
    }

    /// A line.
    pub(crate) fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        let (x1, y1, x2, y2) = (short(x1), short(y1), short(x2), short(y2));
        self.raw(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>"));
    }

    /// Words at a place.
    pub(crate) fn words(&mut self, x: f64, y: f64, class: &str, words: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.raw(&format!("<text x=\"{}\" y=\"{}\"{class}>{}</text>", short(x), short(y), escaped(words)));
    }

    /// Words that run upwards.
    pub(crate) fn upwards(&mut self, x: f64, y: f64, class: &str, words: &str) {
        let (x, y) = (short(x), short(y));
        let words = escaped(words);
        self.raw(&format!(
            "<text x=\"{x}\" y=\"{y}\" class=\"{class}\" transform=\"rotate(-90 {x} {y})\">{words}</text>"
        ));
    }

    /// The whole text.
    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// Two decimals, without zeros at the end.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text that means itself, control characters left out.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_text_is_safe() {
        assert_eq!([short(1.0), short(0.256), short(-0.001), short(100.0)], ["1", "0.26", "0", "100"]);
        assert_eq!(escaped("a<b> & \"c\"\u{1b}[0m"), "a&lt;b&gt; &amp; &quot;c&quot;[0m");
    }
}
