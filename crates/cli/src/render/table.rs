//! Tables as text: a rule under the titles, no other lines, indented by two.

use super::screen::Screen;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use comfy_table::{LineStyle, TableStyle};
use stepcast_report::table::{Cells, Column, Table};

const STYLE: TableStyle = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));
const INDENT: &str = "  ";

/// The rows of a table under the titles of its columns, without its title and note; each line is ended.
pub(crate) fn render(table: &Table, screen: &Screen) -> String {
    let mut inner = comfy_table::Table::new();
    inner.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    inner.set_width(screen.width - INDENT.len() as u16);
    // A row's mark stands to the right of all columns.
    let marks = table.rows.iter().any(|row| row.mark.is_some()).then(|| Column::names(""));
    let columns: Vec<&Column> = table.columns.iter().chain(&marks).collect();
    if table.has_titles() {
        inner.set_header(columns.iter().map(|column| column.title.as_str()));
    }
    for row in &table.rows {
        let mark = row.mark.map(|mark| format!("◂ {mark}"));
        inner.add_row(row.cells.iter().chain(&mark));
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in columns.into_iter().enumerate() {
        let Some(inner) = inner.column_mut(index) else { continue };
        inner.set_padding((0, if index == last { 0 } else { 1 }));
        if column.cells == Cells::Numbers {
            inner.set_cell_alignment(CellAlignment::Right);
        }
        if column.cells != Cells::Words {
            inner.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let lines: Vec<String> = inner.lines().map(|line| line.trim_end().to_owned()).collect();
    let titles = lines.iter().position(|line| line.starts_with('─')).unwrap_or(0);
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        text.push_str(INDENT);
        text.push_str(&if place < titles { screen.title(line) } else { line.clone() });
        text.push('\n');
    }
    text
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
