//! Styles of all plots: one set of rules, coloured for light and for dark pages.
//!
//! A page is light unless the reader prefers dark ones. `data-theme="light"` or `"dark"`, on the drawing or on anything
//! around it, decides whatever the reader prefers. Print is always on white. Plain colours, no CSS variables: not every
//! program that shows SVG knows them.

/// How many series have colours of their own.
pub(crate) const SERIES: usize = 8;

/// Colours of one theme.
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

/// Rules that are the same on every page.
const PLAIN: &str = "\
.plot text { font-family: system-ui, sans-serif; font-size: 12px; }
.plot .title { font-size: 15px; font-weight: 600; }
.plot .strong { font-weight: 600; }
.plot .small { font-size: 10px; }
.plot .end { text-anchor: end; }
.plot .middle { text-anchor: middle; }
.plot .line, .plot .grid { fill: none; }
.plot .grid, .plot .tile { shape-rendering: crispEdges; }
.plot .fill { fill: currentColor; }
.plot .band { fill: currentColor; fill-opacity: 0.2; }
.plot .stroke { stroke: currentColor; stroke-width: 2; fill: none; stroke-linejoin: round; }
.plot .thin { stroke-width: 1; }
.plot .dashed { stroke-dasharray: 7 4; }
.plot .dotted { stroke-dasharray: 2 3; }
.plot .dot-dashed { stroke-dasharray: 8 3 2 3; }
.plot .hatch { stroke: #ffffff; stroke-width: 1.4; }
.plot .hatch-edge { stroke: #000000; stroke-width: 0.6; }
.plot .halo { fill: none; stroke: #ffffff; stroke-width: 5; }
.plot .frame { fill: none; stroke: #000000; stroke-width: 2.5; }
.plot .cell.on-dark { fill: #ffffff; }
.plot .cell.on-light { fill: #000000; }
";

/// All styles, as they stand in a drawing.
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

#[cfg(test)]
mod tests {
    use super::super::colour::contrast;
    use super::*;

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
}
