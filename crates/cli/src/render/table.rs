//! Tables as text: a rule under the titles, no other lines, indented by two.

use super::screen::Screen;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use comfy_table::{LineStyle, TableStyle};
use stepcast_report::table::{Cells, Column, Table};

const STYLE: TableStyle = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));
const INDENT: &str = "  ";

/// What a table gives up where a screen is too narrow for all of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Nothing: only words are broken into lines.
    Whole,
    /// Bars, which repeat a number.
    NoBars,
    /// Names are broken into lines too.
    BrokenNames,
    /// Numbers are broken too.
    Broken,
}

/// The rows of a table under the titles of its columns, without its title and note; each line is ended.
pub(crate) fn render(table: &Table, screen: &Screen) -> String {
    let width = usize::from(screen.width) - INDENT.len();
    let narrower = [Fit::Whole, Fit::NoBars, Fit::BrokenNames];
    let fits = |lines: &Vec<String>| lines.iter().all(|line| line.chars().count() <= width);
    let mut set = narrower.into_iter().map(|fit| lines(table, screen, fit));
    let lines = set.find(fits).unwrap_or_else(|| lines(table, screen, Fit::Broken));
    let titles = lines.iter().position(|line| line.starts_with('─')).unwrap_or(0);
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        text.push_str(INDENT);
        text.push_str(&if place < titles { screen.title(line) } else { line.clone() });
        text.push('\n');
    }
    text
}

fn lines(table: &Table, screen: &Screen, fit: Fit) -> Vec<String> {
    let mut inner = comfy_table::Table::new();
    inner.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    inner.set_width(screen.width - INDENT.len() as u16);
    // A row's mark stands to the right of all columns.
    let marks = table.rows.iter().any(|row| row.mark.is_some()).then(|| Column::names(""));
    let shown = |column: &Column| fit < Fit::NoBars || column.cells != Cells::Bars;
    let columns: Vec<&Column> = table.columns.iter().chain(&marks).filter(|column| shown(column)).collect();
    if table.has_titles() {
        inner.set_header(columns.iter().map(|column| column.title.as_str()));
    }
    for row in &table.rows {
        let mark = row.mark.map(|mark| format!("◂ {mark}"));
        let cells = row.cells.iter().zip(&table.columns).filter(|(_, column)| shown(column));
        inner.add_row(cells.map(|(cell, _)| cell).chain(&mark));
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in columns.into_iter().enumerate() {
        let Some(inner) = inner.column_mut(index) else { continue };
        inner.set_padding((0, if index == last { 0 } else { 1 }));
        if column.cells == Cells::Numbers {
            inner.set_cell_alignment(CellAlignment::Right);
        }
        let broken = match column.cells {
            Cells::Words => true,
            Cells::Names => fit >= Fit::BrokenNames,
            Cells::Numbers | Cells::Bars => fit >= Fit::Broken,
        };
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
    if !table.note.is_empty() {
        text.push_str(&screen.paragraph(INDENT.len(), &table.note));
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
        let text = section(&table, &Screen { width: 60, colours: false });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Title");
        assert_eq!(lines[3..], ["  a", "  b     ◂ best", "  Note."]);
    }

    #[test]
    fn narrow_screens_lose_bars_first_and_then_break_names() {
        let mut table = Table::new("", [Column::names("name"), Column::numbers("number"), Column::bars()]);
        table.row(["a name of several words".to_owned(), "1,234".to_owned(), "█".repeat(20)]);
        let at = |width: u16| render(&table, &Screen { width, colours: false });
        assert!(at(60).contains('█') && at(60).contains("a name of several words"));
        assert!(!at(45).contains('█') && at(45).contains("a name of several words"));
        assert!(!at(25).contains("several words") && at(25).contains("1,234"));
        for width in [60, 45, 25] {
            assert!(at(width).lines().all(|line| line.chars().count() <= width.into()), "{}", at(width));
        }
    }

    #[test]
    fn tables_align_and_fit() {
        let mut table =
            Table::new("", [Column::names("name"), Column::numbers("number"), Column::words("words")]);
        table.row(["a".to_owned(), "1".to_owned(), "some words that do not fit on a line".to_owned()]);
        table.row(["bcd".to_owned(), "1,234".to_owned(), "few".to_owned()]);
        let text = render(&table, &Screen { width: 40, colours: false });
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
