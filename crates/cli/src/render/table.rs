//! Tables as text: a rule under the titles, no other lines, indented by two.

use super::Screen;
use crate::words::WORDING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use comfy_table::{LineStyle, TableStyle};
use stepcast_report::table::{Cells, Column, Table};

const STYLE: TableStyle = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));
const INDENT: &str = "  ";

/// Characters of a word for which a column of words has room; longer words are broken.
const WORD: usize = 12;

/// Characters between columns.
const GAP: usize = 2;

/// The parts of a table shown on a screen: bars, which repeat a number, are dropped first, then columns from the right.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fit {
    bars: bool,
    columns: usize,
    /// Whether every cell is broken into lines, not only words.
    broken: bool,
}

impl Fit {
    fn shows(self, index: usize, column: &Column) -> bool {
        index < self.columns && (self.bars || column.cells != Cells::Bars)
    }

    /// The first fit that needs no more than `width`; at least two columns.
    fn choose(table: &Table, width: usize) -> Self {
        let all = table.columns.len();
        let fewer = (2..=all).rev().map(|columns| Self { bars: false, columns, broken: false });
        let whole = Self { bars: true, columns: all, broken: false };
        let mut tried = std::iter::once(whole).chain(fewer);
        let least = Self { bars: false, columns: 2.min(all), broken: true };
        tried.find(|fit| needed(table, *fit) <= width).unwrap_or(least)
    }
}

/// The rows of a table under the titles of its columns, without its title and note; each line is ended. Where a screen is
/// too narrow, columns are left out.
pub(crate) fn render(table: &Table, screen: &Screen) -> String {
    let width = usize::from(screen.width) - INDENT.len();
    // Figures have no titles, and all of their columns matter.
    let fit = match table.has_titles() {
        true => Fit::choose(table, width),
        false => Fit { bars: true, columns: table.columns.len(), broken: true },
    };
    let lines = lines(table, screen, fit);
    let titles = lines.iter().position(|line| line.starts_with('─')).unwrap_or(0);
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        text.push_str(INDENT);
        text.push_str(&if place < titles { screen.title(line) } else { line.clone() });
        text.push('\n');
    }
    let left_out = table.columns.iter().skip(fit.columns).map(|column| column.title.as_str());
    let left_out: Vec<&str> = left_out.filter(|title| !title.is_empty()).collect();
    if !left_out.is_empty() {
        text += &screen.paragraph(INDENT.len(), &format!("Too narrow for: {}.", left_out.join(", ")));
    }
    text
}

/// Characters of the longest line if columns of words are as narrow as their words allow.
fn needed(table: &Table, fit: Fit) -> usize {
    let length = |text: &str| text.chars().count();
    let word = |text: &str| text.split_whitespace().map(length).max().unwrap_or(0).min(WORD);
    let shown = table.columns.iter().enumerate().filter(|(index, column)| fit.shows(*index, column));
    let widths = shown.map(|(index, column)| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(index));
        let texts = cells.chain([&column.title]);
        match column.cells {
            Cells::Words => texts.map(|text| word(text)).max(),
            _ => texts.map(|text| length(text)).max(),
        }
    });
    let mark = table.rows.iter().filter_map(|row| row.mark).map(|mark| length(mark) + GAP).max();
    let widths: Vec<usize> = widths.chain([mark]).flatten().collect();
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn lines(table: &Table, screen: &Screen, fit: Fit) -> Vec<String> {
    let mut inner = comfy_table::Table::new();
    inner.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    inner.set_width(screen.width - INDENT.len() as u16);
    // A row's mark stands to the right of all columns.
    let marks = table.rows.iter().any(|row| row.mark.is_some()).then(|| Column::names(""));
    let shown = table.columns.iter().enumerate().filter(|(index, column)| fit.shows(*index, column));
    let columns: Vec<&Column> = shown.map(|(_, column)| column).chain(&marks).collect();
    if table.has_titles() {
        inner.set_header(columns.iter().map(|column| column.title.as_str()));
    }
    for row in &table.rows {
        let mark = row.mark.map(|mark| format!("◂ {mark}"));
        let cells = row.cells.iter().zip(&table.columns).enumerate();
        let cells = cells.filter(|(index, (_, column))| fit.shows(*index, column));
        inner.add_row(cells.map(|(_, (cell, _))| cell).chain(&mark));
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in columns.into_iter().enumerate() {
        let Some(inner) = inner.column_mut(index) else { continue };
        inner.set_padding((0, if index == last { 0 } else { 1 }));
        if column.cells == Cells::Numbers {
            inner.set_cell_alignment(CellAlignment::Right);
        }
        let broken = fit.broken || column.cells == Cells::Words;
        if !broken {
            inner.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    inner.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The table under its title, and its note below.
pub(crate) fn section(table: &Table, screen: &Screen) -> String {
    let mut text = String::new();
    if !table.title.is_empty() {
        text = screen.title(&table.title) + "\n";
    }
    if !table.rows.is_empty() {
        text.push_str(&render(table, screen));
    }
    let note = table.worded_note(WORDING);
    if !note.is_empty() {
        text.push_str(&screen.paragraph(INDENT.len(), &note));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_beside_their_rows() {
        let mut table = Table::new("Title", [Column::names("name")]);
        table.row(["a".to_owned()]);
        table.marked_row(["b".to_owned()], Some("best"));
        table.note = "Note.".to_owned();
        let text = section(&table, &Screen { width: 60, colours: false, terminal: false });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Title");
        assert_eq!(lines[3..], ["  a", "  b     ◂ best", "  Note."]);
    }

    #[test]
    fn narrow_screens_lose_bars_first() {
        let mut table = Table::new("", [Column::names("name"), Column::numbers("number"), Column::bars()]);
        table.row(["a name of several words".to_owned(), "1,234".to_owned(), "█".repeat(20)]);
        let at = |width: u16| render(&table, &Screen { width, colours: false, terminal: false });
        assert!(at(60).contains('█') && at(60).contains("a name of several words  "));
        assert!(!at(45).contains('█') && at(45).contains("a name of several words  "));
        assert!(at(30).contains("1,234") && !at(30).contains("a name of several words"), "{}", at(30));
        for width in [60, 45, 30] {
            assert!(at(width).lines().all(|line| line.chars().count() <= width.into()), "{}", at(width));
        }
    }

    #[test]
    fn tables_align_and_fit() {
        let mut table =
            Table::new("", [Column::names("name"), Column::numbers("number"), Column::words("words")]);
        table.row(["a".to_owned(), "1".to_owned(), "some words that do not fit on a line".to_owned()]);
        table.row(["bcd".to_owned(), "1,234".to_owned(), "few".to_owned()]);
        let text = render(&table, &Screen { width: 40, colours: false, terminal: false });
        let expected = "  \
  name  number  words
  ──────────────────────────────────────
  a          1  some words that do not
                fit on a line
  bcd    1,234  few
";
        assert_eq!(text, expected);
    }
}
