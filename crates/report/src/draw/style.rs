//! Styles of all plots: one set of rules, coloured for light and for dark pages; patterns and colours of series.
//!
//! A page is light unless the reader prefers dark ones. `data-theme="light"` or `"dark"`, on the drawing or on any element
//! around it, overrides the preference. Print is always on white. Plain colours, no CSS variables: not every
//! program that shows SVG knows them.

use super::*;

pub(crate) const SERIES: usize = 8;

struct Theme {
    page: &'static str,
    ink: &'static str,
    muted: &'static str,
    grid: &'static str,
    series: [&'static str; SERIES],
}

const LIGHT: Theme = Theme {
    page: "#ffffff",
    ink: "#1b1b1b",
    muted: "#595959",
    grid: "#dedede",
    series: ["#0072b2", "#b84a00", "#00755a", "#98407c", "#7a5c00", "#51606e", "#5a4fc0", "#a8323e"],
};

const DARK: Theme = Theme {
    page: "#161616",
    ink: "#e8e8e8",
    muted: "#b4b4b4",
    grid: "#3a3a3a",
    series: ["#5bb5f2", "#ff9152", "#3fc79d", "#e596cb", "#dcb43c", "#a9b6c2", "#ada4ff", "#ff8f96"],
};

const PLAIN: &str = include_str!("plain.css");

pub(crate) fn style() -> String {
    let rules = |theme, within: &str| coloured(theme, within);
    format!(
        "{}{PLAIN}@media screen and (prefers-color-scheme: dark) {{\n{}{}}}\n@media screen {{\n{}}}\n",
        rules(&LIGHT, ""),
        rules(&DARK, ""),
        rules(&LIGHT, "[data-theme=\"light\"] "),
        rules(&DARK, "[data-theme=\"dark\"] "),
    )
}

/// The content of a drawing's style element, to the byte: a page whose policy forbids other inline styles hashes it.
pub fn embedded() -> String {
    format!("\n{}", style())
}

fn coloured(theme: &Theme, within: &str) -> String {
    let Theme { page, ink, muted, grid, series } = theme;
    let mut rules = vec![
        format!("text {{ fill: {ink}; }}"),
        format!(".page, {within}.plot .on-series {{ fill: {page}; }}"),
        format!(".gap {{ stroke: {page}; }}"),
        format!(".muted {{ fill: {muted}; }}"),
        format!(".line {{ stroke: {ink}; }}"),
        format!(".grid {{ stroke: {grid}; }}"),
    ];
    rules
        .extend(series.iter().enumerate().map(|(place, colour)| format!(".s{place} {{ color: {colour}; }}")));
    rules.iter().map(|rule| format!("{within}.plot {rule}\n")).collect()
}

/// From light to dark: sand, green, blue, night.
const STOPS: [[f64; 3]; 5] = [
    [253.0, 240.0, 196.0],
    [169.0, 212.0, 160.0],
    [72.0, 163.0, 169.0],
    [38.0, 95.0, 143.0],
    [28.0, 31.0, 84.0],
];

/// The colour of a share between 0 and 1, and whether text on it has to be light.
pub(crate) fn heat_colour(share: f64) -> (String, bool) {
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let low = (place as usize).min(STOPS.len() - 2);
    let part = place - low as f64;
    let mix = |channel: usize| STOPS[low][channel] * (1.0 - part) + STOPS[low + 1][channel] * part;
    let [red, green, blue] = [mix(0), mix(1), mix(2)];
    let hex = |value: f64| value.round() as u8;
    let text = format!("#{:02x}{:02x}{:02x}", hex(red), hex(green), hex(blue));
    (text, luminance([red, green, blue]) < EVEN)
}

/// Luminance with the same contrast to black and white, 4.58.
const EVEN: f64 = 0.179;

/// Relative luminance of red, green and blue up to 255 (WCAG 2.2).
fn luminance(colour: [f64; 3]) -> f64 {
    let [red, green, blue] = colour.map(|value| {
        let value = value / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The contrast of two colours, written as "#rrggbb" (WCAG 2.2).
#[cfg(test)]
pub(crate) fn contrast(a: &str, b: &str) -> f64 {
    let luma = |colour: &str| {
        let channel = |from: usize| u8::from_str_radix(&colour[from..from + 2], 16).unwrap().into();
        luminance([channel(1), channel(3), channel(5)])
    };
    (luma(a).max(luma(b)) + 0.05) / (luma(a).min(luma(b)) + 0.05)
}

/// Lines of the pattern of every series, in a tile of 6 by 6: none, rising, falling, level, upright, crossed, and so on.
const LINES: [&[[f64; 4]]; SERIES] = [
    &[],
    &[[-1.0, 7.0, 7.0, -1.0], [-1.0, 1.0, 1.0, -1.0], [5.0, 7.0, 7.0, 5.0]],
    &[[-1.0, -1.0, 7.0, 7.0], [5.0, -1.0, 7.0, 1.0], [-1.0, 5.0, 1.0, 7.0]],
    &[[0.0, 3.0, 6.0, 3.0]],
    &[[3.0, 0.0, 3.0, 6.0]],
    &[[0.0, 3.0, 6.0, 3.0], [3.0, 0.0, 3.0, 6.0]],
    &[[-1.0, 7.0, 7.0, -1.0], [-1.0, -1.0, 7.0, 7.0]],
    &[[2.0, 3.0, 4.0, 3.0]],
];

pub(crate) fn define_patterns(svg: &mut Svg, count: usize) {
    let mut text = String::from("<defs>");
    for (number, lines) in LINES.iter().enumerate().take(count) {
        text.push_str(&format!(
            "<pattern id=\"series-{number}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
             <rect width=\"6\" height=\"6\" class=\"s{number} fill\"/>"
        ));
        for [x1, y1, x2, y2] in lines.iter().map(|line| line.map(short)) {
            text.push_str(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"gap\"/>"));
        }
        text.push_str("</pattern>");
    }
    svg.raw(&(text + "</defs>"));
}

pub(crate) fn pattern_fill(number: usize) -> String {
    format!("url(#series-{})", number % SERIES)
}

/// Defines the pattern that hatches cells: light lines with dark edges show on every colour.
pub(crate) fn define_hatch(svg: &mut Svg) {
    let line = |class: &str, shift: f64| {
        let (a, b) = (short(-2.0 + shift), short(8.0 + shift));
        format!("<line x1=\"{a}\" y1=\"8\" x2=\"{b}\" y2=\"-2\" class=\"{class}\"/>")
    };
    let lines: String = [-6.0, 0.0, 6.0]
        .iter()
        .map(|&shift| line("hatch", shift) + &line("hatch-edge", shift + 0.9))
        .collect();
    svg.raw(&format!(
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">{lines}</pattern></defs>"
    ));
}

/// Words in the names of parts of a step and of corresponding lanes, with the series that colours them. The first match
/// counts.
const KINDS: [(&[&str], usize); 6] = [
    (&["start-up", "recompute"], 5),
    (&["uplink", "push", "gradients", "all-reduce"], 1),
    (&["downlink", "pull", "sharded weights"], 2),
    (&["queueing", "bubble"], 3),
    (&["host-to-device", "parsing"], 4),
    (&["comput", "thread"], 0),
];

/// The series of each name: its kind's, or the first unused one while there is one.
pub(crate) fn series_of(names: &[&str]) -> Vec<usize> {
    let known = |name: &str| {
        let kind = KINDS.iter().find(|(words, _)| words.iter().any(|word| name.contains(word)));
        kind.map(|(_, series)| *series)
    };
    let mut taken: Vec<usize> = names.iter().filter_map(|name| known(name)).collect();
    let mut own = |place: usize| {
        let free = (0..SERIES).find(|series| !taken.contains(series)).unwrap_or(place);
        taken.push(free);
        free
    };
    names.iter().enumerate().map(|(place, name)| known(name).unwrap_or_else(|| own(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::{contrast, *};

    /// Level AA requires a contrast of 4.5 for text; the colours of series are used for text too.
    #[test]
    fn everything_stands_out_from_the_page() {
        for theme in [LIGHT, DARK] {
            for colour in [theme.ink, theme.muted].iter().chain(&theme.series) {
                let ratio = contrast(colour, theme.page);
                assert!(ratio >= 4.5, "{colour} on {}: {ratio}", theme.page);
            }
        }
    }

    #[test]
    fn both_themes_can_be_forced_and_print_is_never_dark() {
        let style = style();
        let (plain, screens) = style.split_once("@media").unwrap();
        assert!(!plain.contains(DARK.page) && plain.contains(LIGHT.page));
        for theme in ["light", "dark"] {
            assert!(screens.contains(&format!("[data-theme=\"{theme}\"] .plot text")));
        }
        assert!(!style.contains("var("));
    }

    #[test]
    fn the_scale_darkens_steadily() {
        let luma = |stop: &[f64; 3]| 0.299 * stop[0] + 0.587 * stop[1] + 0.114 * stop[2];
        assert!(STOPS.windows(2).all(|pair| luma(&pair[0]) > luma(&pair[1]) + 20.0));
        assert_eq!(heat_colour(0.0), ("#fdf0c4".to_owned(), false));
        assert_eq!(heat_colour(1.0), ("#1c1f54".to_owned(), true));
        assert_eq!(heat_colour(f64::NAN).0.len(), 7);
    }

    /// Level AA requires a contrast of 4.5 for text.
    #[test]
    fn text_stands_out_on_every_colour() {
        for share in (0..=1000).map(|place| f64::from(place) / 1000.0) {
            let (fill, dark) = heat_colour(share);
            let text = if dark { "#ffffff" } else { "#000000" };
            assert!(contrast(&fill, text) >= 4.5, "{share}: {fill}");
        }
        assert!((contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9);
    }

    #[test]
    fn lanes_have_the_colours_of_the_parts_of_a_step() {
        assert_eq!(
            series_of(&["compute", "push", "pull"]),
            series_of(&["worker, thread 0", "server 0, uplink", "downlink"])
        );
        let others = series_of(&["one", "compute", "two"]);
        assert_eq!((others[1], others[0] == others[2]), (0, false), "{others:?}");
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(series_of(&many.iter().map(String::as_str).collect::<Vec<_>>()).len(), 20);
    }
}
