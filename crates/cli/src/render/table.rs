//! Tables as text: a rule under the titles, no other lines, indented by two.

use super::screen::Screen;
use crate::words::WORDING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use comfy_table::{LineStyle, TableStyle};
use stepcast_report::table::{Cells, Column, Row, Table};

const STYLE: TableStyle = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));
const INDENT: &str = "  ";

/// Characters of a word for which a column of words has room; longer words are broken.
const WORD: usize = 12;

/// Characters between columns.
const GAP: usize = 2;

/// What a table gives up where a screen is too narrow for all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Nothing: only words are broken into lines.
    Whole,
    /// Bars, which repeat a number.
    NoBars,
    /// Every cell is broken into lines.
    Broken,
}

/// The rows of a table under the titles of its columns, without its title and note; each line is ended. Where a screen is
/// too narrow, every row is a paragraph.
pub(crate) fn render(table: &Table, screen: &Screen) -> String {
    let width = usize::from(screen.width) - INDENT.len();
    let fit = [Fit::Whole, Fit::NoBars].into_iter().find(|fit| needed(table, *fit) <= width);
    if fit.is_none() && table.has_titles() {
        return table.rows.iter().map(|row| stacked(table, row, screen)).collect();
    }
    let lines = lines(table, screen, fit.unwrap_or(Fit::Broken));
    let titles = lines.iter().position(|line| line.starts_with('─')).unwrap_or(0);
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        text.push_str(INDENT);
        text.push_str(&if place < titles { screen.title(line) } else { line.clone() });
        text.push('\n');
    }
    text
}

/// Characters of the longest line if columns of words are as narrow as their words allow.
fn needed(table: &Table, fit: Fit) -> usize {
    let length = |text: &str| text.chars().count();
    let word = |text: &str| text.split_whitespace().map(length).max().unwrap_or(0).min(WORD);
    let shown = table.columns.iter().enumerate().filter(|(_, column)| shows(fit, column));
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

fn shows(fit: Fit, column: &Column) -> bool {
    fit == Fit::Whole || column.cells != Cells::Bars
}

/// A row as a paragraph: its first cell, and below it the others after the titles of their columns.
fn stacked(table: &Table, row: &Row, screen: &Screen) -> String {
    let mut cells = table
        .columns
        .iter()
        .zip(&row.cells)
        .filter(|(column, cell)| column.cells != Cells::Bars && !cell.is_empty());
    let first = cells.next().map_or(String::new(), |(column, cell)| match column.cells {
        Cells::Numbers => format!("{} {cell}", column.title).trim().to_owned(),
        _ => cell.clone(),
    });
    let mark = row.mark.map_or(String::new(), |mark| format!("  ◂ {mark}"));
    let others: Vec<String> =
        cells.map(|(column, cell)| format!("{} {cell}", column.title).trim().to_owned()).collect();
    let mut text = format!("{INDENT}{}{mark}\n", screen.title(&first));
    if !others.is_empty() {
        text.push_str(&screen.paragraph(2 * INDENT.len(), &others.join(", ")));
    }
    text
}

fn lines(table: &Table, screen: &Screen, fit: Fit) -> Vec<String> {
    let mut inner = comfy_table::Table::new();
    inner.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    inner.set_width(screen.width - INDENT.len() as u16);
    // A row's mark stands to the right of all columns.
    let marks = table.rows.iter().any(|row| row.mark.is_some()).then(|| Column::names(""));
    let columns = table.columns.iter().chain(&marks).filter(|column| shows(fit, column));
    let columns: Vec<&Column> = columns.collect();
    if table.has_titles() {
        inner.set_header(columns.iter().map(|column| column.title.as_str()));
    }
    for row in &table.rows {
        let mark = row.mark.map(|mark| format!("◂ {mark}"));
        let cells = row.cells.iter().zip(&table.columns).filter(|(_, column)| shows(fit, column));
        inner.add_row(cells.map(|(cell, _)| cell).chain(&mark));
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in columns.into_iter().enumerate() {
        let Some(inner) = inner.column_mut(index) else { continue };
        inner.set_padding((0, if index == last { 0 } else { 1 }));
        if column.cells == Cells::Numbers {
            inner.set_cell_alignment(CellAlignment::Right);
        }
        let broken = fit == Fit::Broken || column.cells == Cells::Words;
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
    fn narrow_screens_lose_bars_first_and_then_the_columns() {
        let mut table = Table::new("", [Column::names("name"), Column::numbers("number"), Column::bars()]);
        table.row(["a name of several words".to_owned(), "1,234".to_owned(), "█".repeat(20)]);
        let at = |width: u16| render(&table, &Screen { width, colours: false, terminal: false });
        assert!(at(60).contains('█') && at(60).contains("a name of several words  "));
        assert!(!at(45).contains('█') && at(45).contains("a name of several words  "));
        assert_eq!(at(30), "  a name of several words\n    number 1,234\n");
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
