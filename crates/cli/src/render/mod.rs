//! Text for people: where it goes, and how numbers are written.

pub(crate) mod comparison;
pub(crate) mod ddp_gloo;
pub(crate) mod error;
mod errors;
pub(crate) mod fit;
pub(crate) mod forecast;
pub(crate) mod fusion;
pub(crate) mod hkbu;
pub(crate) mod import;
pub(crate) mod liu2022;
pub(crate) mod map;
pub(crate) mod model;
pub(crate) mod replacement;
pub(crate) mod search;
mod simulation;
pub(crate) mod steps;
pub(crate) mod sweep;
pub(crate) mod table;
pub(crate) mod tf_ps;
pub(crate) mod updating;
pub(crate) mod validation;

use clap::builder::styling::{AnsiColor, Style};
use std::io::{self, IsTerminal};
use stepcast_core::quantity::Seconds;

/// Width where there is no terminal to ask.
const USUAL_WIDTH: u16 = 100;
/// Narrower terminals get lines that wrap, wider ones no longer lines.
const WIDTHS: (u16, u16) = (60, 120);

/// Where text is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Columns.
    pub(crate) width: u16,
    /// Whether escape sequences are understood and welcome.
    pub(crate) colours: bool,
}

impl Screen {
    /// What standard output goes to.
    pub(crate) fn of_stdout() -> Self {
        let stdout = io::stdout();
        Self::new(stdout.is_terminal(), terminal_size::terminal_size_of(&stdout))
    }

    /// What standard error goes to.
    pub(crate) fn of_stderr() -> Self {
        let stderr = io::stderr();
        Self::new(stderr.is_terminal(), terminal_size::terminal_size_of(&stderr))
    }

    fn new(terminal: bool, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Self {
        let width = size.filter(|_| terminal).map_or(USUAL_WIDTH, |(width, _)| width.0);
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { width: width.clamp(WIDTHS.0, WIDTHS.1), colours: terminal && !refused }
    }

    /// The title of a section or of a table's columns.
    pub(crate) fn title(&self, text: &str) -> String {
        self.paint(text, Style::new().bold())
    }

    /// The figure that matters most.
    pub(crate) fn strong(&self, text: &str) -> String {
        self.paint(text, AnsiColor::Cyan.on_default().bold())
    }

    /// Good news.
    pub(crate) fn good(&self, text: &str) -> String {
        self.paint(text, AnsiColor::Green.on_default())
    }

    /// Bad news.
    pub(crate) fn bad(&self, text: &str) -> String {
        self.paint(text, AnsiColor::Yellow.on_default())
    }

    fn paint(&self, text: &str, style: Style) -> String {
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
    }

    /// `text` broken into lines that fit, each after `indent` spaces.
    pub(crate) fn paragraph(&self, indent: usize, text: &str) -> String {
        let room = usize::from(self.width).saturating_sub(indent).max(20);
        let mut lines = String::new();
        let mut used = 0;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > room {
                lines.push('\n');
                used = 0;
            }
            if used == 0 {
                lines.extend(std::iter::repeat_n(' ', indent));
            } else {
                lines.push(' ');
                used += 1;
            }
            lines.push_str(word);
            used += length;
        }
        lines.push('\n');
        lines
    }
}

/// 1,281,167.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A name that a user chose: no control characters, which a terminal would obey, and not too long.
pub(crate) fn name(text: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() { shown + "…" } else { shown }
}

/// "42790 samples/s" as "42,790 samples/s"; four digits stay together.
pub(crate) fn grouped(quantity: String) -> String {
    let digits = quantity.chars().take_while(char::is_ascii_digit).count();
    match quantity[..digits].parse() {
        Ok(number) if digits > 4 => count(number) + &quantity[digits..],
        _ => quantity,
    }
}

/// 1,281,167 with its sign.
pub(crate) fn difference(number: i64) -> String {
    let sign = if number < 0 { "−" } else { "+" };
    format!("{sign}{}", count(number.unsigned_abs()))
}

/// A share as "4.2 %": one decimal below ten, none above.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    // What is written with one decimal must not round up to 10.0.
    match percent.abs() {
        size if size > 0.0 && size < 0.05 => "< 0.1 %".to_owned(),
        size if size < 9.95 => format!("{percent:.1} %"),
        size if size < 1e6 => format!("{percent:.0} %"),
        _ => format!("{percent:.1e} %"),
    }
}

/// A number with three significant digits: "1.93", "12.4", "318".
pub(crate) fn ratio(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => value.to_string(),
        size if size >= 1e6 || (size < 1e-3 && size > 0.0) => format!("{value:.2e}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => count_signed(value),
    }
}

fn count_signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", count(value.abs().round() as u64))
}

/// A time as people say it: "1.234 s", "2 h 31 min", "3 d 4 h".
pub(crate) fn duration(time: Seconds) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = time.get();
    if !(120.0..1e15).contains(&seconds) {
        return time.human();
    }
    let whole = |unit: u64| (seconds / unit as f64).round() as u64;
    if whole(1) < 2 * HOUR {
        let seconds = whole(1);
        return pair(seconds / MINUTE, "min", seconds % MINUTE, "s");
    }
    if whole(MINUTE) < 2 * DAY / MINUTE {
        let minutes = whole(MINUTE);
        return pair(minutes / 60, "h", minutes % 60, "min");
    }
    let hours = whole(HOUR);
    match hours / 24 {
        days if days < 100 => pair(days, "d", hours % 24, "h"),
        days => format!("{} d", count(days)),
    }
}

fn pair(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// "1 worker", "3 workers".
pub(crate) fn several(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_281_167), "1,281,167");
        assert_eq!(grouped("42790 samples/s".to_owned()), "42,790 samples/s");
        assert_eq!(grouped("3043.5 samples/s".to_owned()), "3043.5 samples/s");
        assert_eq!(difference(-1_536_000), "−1,536,000");
        assert_eq!(percent(0.042), "4.2 %");
        assert_eq!(percent(0.0999), "10 %");
        assert_eq!(percent(0.4), "40 %");
        assert_eq!(percent(4e-5), "< 0.1 %");
        assert_eq!(ratio(1.934), "1.93");
        assert_eq!(ratio(12.36), "12.4");
        assert_eq!(ratio(1318.2), "1,318");
    }

    #[test]
    fn names_are_harmless() {
        assert_eq!(name("V100, ours"), "V100, ours");
        assert_eq!(name("\u{1b}[31mred\n"), " [31mred ");
        assert_eq!(name(&"x".repeat(1000)), "x".repeat(60) + "…");
    }

    #[test]
    fn durations_are_said_as_people_say_them() {
        let say = |seconds| duration(Seconds::new(seconds));
        assert_eq!(say(0.0123), "12.3 ms");
        assert_eq!(say(119.9), "119.9 s");
        assert_eq!(say(125.0), "2 min 5 s");
        assert_eq!(say(7199.9), "2 h");
        assert_eq!(say(9060.0), "2 h 31 min");
        assert_eq!(say(270_000.0), "3 d 3 h");
        assert_eq!(say(1e9), "11,574 d");
        assert_eq!(say(f64::INFINITY), "inf s");
    }

    #[test]
    fn paragraphs_fit() {
        let screen = Screen { width: 30, colours: false };
        let text = screen.paragraph(2, "one two three four five six seven eight nine ten");
        assert!(text.lines().all(|line| line.starts_with("  ") && line.len() <= 30), "{text}");
        assert_eq!(text.split_whitespace().count(), 10);
    }
}
