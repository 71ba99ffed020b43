//! Text for people: answers, tables, paragraphs, errors, and where they go: a screen of some width, with or without colours.
//!
//! Tables are built in `stepcast_report::tables`; here they are put into sections and printed.

pub(crate) mod answers;
pub(crate) mod error;
pub(crate) mod table;

use clap::builder::styling::{AnsiColor, Style};
use std::io::{self, IsTerminal};

/// Width where the output is no terminal.
const USUAL_WIDTH: u16 = 100;
/// Least and greatest width of lines: narrower terminals wrap them, wider ones leave the rest empty.
const WIDTHS: (u16, u16) = (60, 120);

/// The terminal or file that text is printed to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Columns.
    pub(crate) width: u16,
    /// Whether escape sequences are understood and wanted.
    pub(crate) colours: bool,
    /// Whether a person reads the output, not a program.
    pub(crate) terminal: bool,
}

impl Screen {
    pub(crate) const FILE: Self = Self { width: USUAL_WIDTH, colours: false, terminal: false };

    pub(crate) fn stdout() -> Self {
        let stdout = io::stdout();
        Self::new(stdout.is_terminal(), terminal_size::terminal_size_of(&stdout))
    }

    pub(crate) fn stderr() -> Self {
        let stderr = io::stderr();
        Self::new(stderr.is_terminal(), terminal_size::terminal_size_of(&stderr))
    }

    fn new(terminal: bool, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Self {
        // Shells export it for programs whose output goes through a pager.
        let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let shown = size.filter(|_| terminal).map(|(width, _)| width.0);
        let width = asked.or(shown).unwrap_or(USUAL_WIDTH);
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { width: width.clamp(WIDTHS.0, WIDTHS.1), colours: terminal && !refused, terminal }
    }

    /// The title of a section or of a table's columns.
    pub(crate) fn title(&self, text: &str) -> String {
        self.paint(text, Style::new().bold())
    }

    /// The figure that matters most.
    pub(crate) fn strong(&self, text: &str) -> String {
        self.paint(text, AnsiColor::Cyan.on_default().bold())
    }

    pub(crate) fn good(&self, text: &str) -> String {
        self.paint(text, AnsiColor::Green.on_default())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_fit() {
        let screen = Screen { width: 30, colours: false, terminal: true };
        let text = screen.paragraph(2, "one two three four five six seven eight nine ten");
        assert!(text.lines().all(|line| line.starts_with("  ") && line.len() <= 30), "{text}");
        assert_eq!(text.split_whitespace().count(), 10);
    }
}
