//! Tables as HTML. Every text is escaped.

use crate::table::{Cells, Table};
use crate::words::NEUTRAL;
use askama::Template;

/// A table with its title and note.
#[derive(Template)]
#[template(path = "table.html")]
struct TableSection<'a> {
    table: &'a Table,
    /// Whether it opens and closes.
    folds: bool,
}

impl TableSection<'_> {
    fn note(&self) -> String {
        self.table.worded_note(NEUTRAL)
    }

    /// Bars repeat a number for text; HTML leaves them out.
    fn is_shown(&self, column: &usize) -> bool {
        self.table.columns.get(*column).is_some_and(|column| column.cells != Cells::Bars)
    }

    /// The class of a column's cells, after the name of the element.
    fn class(&self, column: &usize) -> &'static str {
        match self.table.columns.get(*column).map(|column| column.cells) {
            Some(Cells::Numbers) => " class=\"number\"",
            Some(Cells::Words) => " class=\"words\"",
            _ => "",
        }
    }
}

/// A section of a page with one table.
pub fn section(table: &Table) -> Result<String, askama::Error> {
    TableSection { table, folds: false }.render()
}

/// The same for an interactive page, closed where the table is [folded](Table::folded).
pub fn folding_section(table: &Table) -> Result<String, askama::Error> {
    TableSection { table, folds: table.folded }.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    #[test]
    fn cells_are_escaped_and_bars_left_out() {
        let mut table =
            Table::new("A & B", [Column::names("name"), Column::numbers("share"), Column::bars()]);
        table.marked_row(["<b>".to_owned(), "40 %".to_owned(), "██".to_owned()], Some("fastest"));
        let html = section(&table).unwrap();
        assert!(html.contains("A &#38; B") && html.contains("<td>&#60;b&#62;</td>"), "{html}");
        assert!(html.contains("<th scope=\"col\" class=\"number\">share</th>"), "{html}");
        assert!(html.contains("<tr class=\"own\" aria-current=\"true\">") && !html.contains('█'), "{html}");
    }
}
