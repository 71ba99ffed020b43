//! Tables: a rule under the titles, no other lines, indented by two.

use super::Screen;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, presets};
use comfy_table::{LineStyle, TableStyle};

const STYLE: TableStyle = presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));
const INDENT: &str = "  ";

/// How a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column<'a> {
    /// Names: to the left, never broken.
    Name(&'a str),
    /// Numbers: to the right, never broken.
    Number(&'a str),
    /// Words: to the left, broken where they have to be.
    Words(&'a str),
}

impl<'a> Column<'a> {
    fn title(self) -> &'a str {
        match self {
            Self::Name(title) | Self::Number(title) | Self::Words(title) => title,
        }
    }
}

/// Rows under titles.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    inner: comfy_table::Table,
    columns: Vec<Column<'a>>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(columns: impl Into<Vec<Column<'a>>>) -> Self {
        let columns = columns.into();
        let mut inner = comfy_table::Table::new();
        inner.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
        if columns.iter().any(|column| !column.title().is_empty()) {
            inner.set_header(columns.iter().map(|column| column.title()).collect::<Vec<_>>());
        }
        Self { inner, columns }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.inner.add_row(Row::from(cells.into_iter().collect::<Vec<_>>()));
    }

    /// The table's lines, each ended.
    pub(crate) fn render(mut self, screen: &Screen) -> String {
        self.inner.set_width(screen.width - INDENT.len() as u16);
        let last = self.columns.len().saturating_sub(1);
        for (index, column) in self.columns.iter().enumerate() {
            let Some(inner) = self.inner.column_mut(index) else { continue };
            inner.set_padding((0, if index == last { 0 } else { 1 }));
            if let Column::Number(_) = column {
                inner.set_cell_alignment(CellAlignment::Right);
            }
            if !matches!(column, Column::Words(_)) {
                inner.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let lines: Vec<String> = self.inner.lines().map(|line| line.trim_end().to_owned()).collect();
        let titles = lines.iter().position(|line| line.starts_with('─')).unwrap_or(0);
        let mut text = String::new();
        for (place, line) in lines.iter().enumerate() {
            text.push_str(INDENT);
            text.push_str(&if place < titles { screen.title(line) } else { line.clone() });
            text.push('\n');
        }
        text
    }
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

    #[test]
    fn tables_align_and_fit() {
        let mut table = Table::new([Column::Name("name"), Column::Number("number"), Column::Words("words")]);
        table.row(["a".to_owned(), "1".to_owned(), "some words that do not fit on a line".to_owned()]);
        table.row(["bcd".to_owned(), "1,234".to_owned(), "few".to_owned()]);
        let text = table.render(&Screen { width: 40, colours: false });
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
