//! Tables as text: a rule under the titles, no other lines, indented by two.

use super::Screen;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use comfy_table::{LineStyle, TableStyle};
use stepcast_report::table::{Cells, Table};

const STYLE: TableStyle = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));
const INDENT: &str = "  ";

/// The rows of a table under the titles of its columns, each line ended. Title and note are up to the caller.
pub(crate) fn render(table: &Table, screen: &Screen) -> String {
    let mut inner = comfy_table::Table::new();
    inner.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    inner.set_width(screen.width - INDENT.len() as u16);
    if table.columns.iter().any(|column| !column.title.is_empty()) {
        inner.set_header(table.columns.iter().map(|column| column.title.as_str()));
    }
    for row in &table.rows {
        inner.add_row(&row.cells);
    }
    let last = table.columns.len().saturating_sub(1);
    for (index, column) in table.columns.iter().enumerate() {
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

/// `width` cells, filled to `share`, in eighths of a cell.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let filled = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(filled / 8), EIGHTHS[filled % 8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_report::table::Column;

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

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(0.0, 10), "");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53125, 4), "██▏");
        assert_eq!(bar(f64::NAN, 4), "");
        assert_eq!(bar(7.0, 2), "██");
    }
}
