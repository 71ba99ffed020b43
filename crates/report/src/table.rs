//! A table of an answer: built once, then printed as text or as HTML.
//!
//! Cells are text that is ready to be read. Titles of columns are in lower case; a style sheet may capitalise them. HTML
//! escapes every text. Hints point readers to more; each front end has its own wording of them.

use crate::draw::svg::escaped;
use stepcast_core::fault::{Remedies, Remedy};

/// How the cells of a column are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// Aligned to the left, never broken.
    Names,
    /// Aligned to the right, never broken.
    Numbers,
    /// Aligned to the left, broken into lines where space is short.
    Words,
    /// Bars of block characters that repeat a number of the row; only text shows them.
    Bars,
}

impl Cells {
    /// The class of such cells, after the name of the element.
    const fn class(self) -> &'static str {
        match self {
            Self::Numbers => " class=\"number\"",
            Self::Words => " class=\"words\"",
            Self::Names | Self::Bars => "",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub title: String,
    pub cells: Cells,
}

impl Column {
    pub fn names(title: impl Into<String>) -> Self {
        Self { title: title.into(), cells: Cells::Names }
    }

    pub fn numbers(title: impl Into<String>) -> Self {
        Self { title: title.into(), cells: Cells::Numbers }
    }

    pub fn words(title: impl Into<String>) -> Self {
        Self { title: title.into(), cells: Cells::Words }
    }

    pub fn bars() -> Self {
        Self { title: String::new(), cells: Cells::Bars }
    }
}

impl From<&str> for Column {
    /// "#title" is a column of numbers, "~title" one of words, "|" one of bars, and "title" one of names.
    fn from(text: &str) -> Self {
        match text.split_at_checked(1) {
            Some(("#", title)) => Self::numbers(title),
            Some(("~", title)) => Self::words(title),
            Some(("|", "")) => Self::bars(),
            _ => Self::names(text),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub cells: Vec<String>,
    /// Why the row stands out, such as "this cluster".
    pub mark: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// A paragraph below the table; may be empty.
    pub note: String,
    /// Pointers to more, printed after the note in the wording of a front end.
    pub hints: Vec<Hint>,
    /// Whether an interactive page shows it only on request: a plot shows the same, or it is a detail.
    pub folded: bool,
}

impl Table {
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = impl Into<Column>>) -> Self {
        Self {
            title: title.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            note: String::new(),
            hints: Vec::new(),
            folded: false,
        }
    }

    /// A table of single figures, each with its name, its value and an explanation.
    pub fn of_figures(title: impl Into<String>) -> Self {
        Self::new(title, [Column::names(""), Column::names(""), Column::words("")])
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(Row { cells: cells.into_iter().collect(), mark: None });
    }

    /// Adds a row that stands out if there is a `mark`.
    pub fn marked_row(&mut self, cells: impl IntoIterator<Item = String>, mark: Option<&'static str>) {
        self.rows.push(Row { cells: cells.into_iter().collect(), mark });
    }

    pub fn figure(&mut self, name: &str, value: impl Into<String>, explanation: impl Into<String>) {
        self.row([name.to_owned(), value.into(), explanation.into()]);
    }

    /// The note, with hints in the words of a front end.
    pub fn worded_note(&self, words: Wording) -> String {
        let hints = self.hints.iter().map(|hint| words.hint(hint));
        let sentences: Vec<String> =
            [self.note.clone()].into_iter().chain(hints).filter(|text| !text.is_empty()).collect();
        sentences.join(" ")
    }

    pub fn has_titles(&self) -> bool {
        self.columns.iter().any(|column| !column.title.is_empty())
    }
}

/// `width` characters, filled to `share`, in eighths of a character.
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let filled = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(filled / 8), EIGHTHS[filled % 8])
}

/// The table as a part of an HTML page.
pub fn section(table: &Table) -> String {
    html(table, false)
}

/// The table for an interactive page, closed if it is [folded](Table::folded).
pub fn folding_section(table: &Table) -> String {
    html(table, table.folded)
}

fn html(table: &Table, folds: bool) -> String {
    let title = escaped(&table.title);
    let named = |markup: String| if title.is_empty() { String::new() } else { markup };
    let heading = match folds {
        true => format!("<details><summary>{title}</summary>\n"),
        false => named(format!("<h3>{title}</h3>\n")),
    };
    let region = named(format!(" role=\"region\" aria-label=\"{title}\""));
    let head = match table.has_titles() {
        true => format!("<thead><tr>{}</tr></thead>\n", cells(table, table.columns.iter().map(head_cell))),
        false => String::new(),
    };
    let row = |row: &Row| {
        let own = if row.mark.is_some() { " class=\"own\" aria-current=\"true\"" } else { "" };
        let cell = |(column, text): (&Column, &String)| {
            format!("<td{}>{}</td>", column.cells.class(), escaped(text))
        };
        format!("<tr{own}>{}</tr>\n", cells(table, table.columns.iter().zip(&row.cells).map(cell)))
    };
    let body: String = table.rows.iter().map(row).collect();
    let note = match escaped(&table.worded_note(NEUTRAL)) {
        note if note.is_empty() => note,
        note => format!("<p class=\"note\">{note}</p>\n"),
    };
    let end = if folds { "</details>\n" } else { "" };
    format!(
        "<section>\n{heading}<div class=\"wide\" tabindex=\"0\"{region}>\n<table>\n{head}<tbody>\n{body}</tbody>\n\
         </table>\n</div>\n{note}{end}</section>"
    )
}

/// The cells of a row; HTML leaves bars out, which repeat a number for text.
fn cells(table: &Table, row: impl Iterator<Item = String>) -> String {
    let shown = table.columns.iter().zip(row).filter(|(column, _)| column.cells != Cells::Bars);
    shown.map(|(_, cell)| cell).collect()
}

fn head_cell(column: &Column) -> String {
    match column.title.is_empty() {
        true => "<td></td>".to_owned(),
        false => format!("<th scope=\"col\"{}>{}</th>", column.cells.class(), escaped(&column.title)),
    }
}

/// Pointer to more than a table shows, or to a better answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    RowsInJson,
    ValuesInJson,
    RowsInFile,
    /// The messages of a plan can be listed.
    Messages,
    /// The forecast of one point explains its warnings.
    Warnings,
    /// Every assumed figure can be listed.
    Assumptions,
    /// One validation set shows all its cases.
    Cases,
    WholeForecast,
    NarrowInterval(Remedies),
}

/// The wording of a front end; `None` to use the common wording.
#[derive(Clone, Copy)]
pub struct Wording {
    /// An imperative without a full stop.
    pub remedy: fn(&Remedy) -> Option<String>,
    pub hint: fn(&Hint) -> Option<&'static str>,
}

/// Words without flags: for the page, and for HTML in general.
pub const NEUTRAL: Wording = Wording { remedy: |_| None, hint: |_| None };

impl Wording {
    /// The sentence of a hint; empty if this front end has nothing to point to.
    pub fn hint(&self, hint: &Hint) -> String {
        if let Hint::NarrowInterval(remedies) = hint {
            return format!("To narrow the interval most: {}.", remedies.worded(self.remedy));
        }
        let neutral = match hint {
            Hint::RowsInJson => "JSON has them all.",
            Hint::ValuesInJson => "JSON has all values.",
            Hint::RowsInFile => "A download has them all.",
            Hint::Messages => "JSON lists them.",
            Hint::Warnings => "The forecast of a point explains its warnings.",
            Hint::Assumptions | Hint::Cases | Hint::WholeForecast | Hint::NarrowInterval(_) => "",
        };
        (self.hint)(hint).unwrap_or(neutral).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(0.0, 10), "");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53125, 4), "██▏");
        assert_eq!(bar(f64::NAN, 4), "");
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn cells_are_escaped_and_bars_left_out() {
        let mut table =
            Table::new("A & B", [Column::names("name"), Column::numbers("share"), Column::bars()]);
        table.marked_row(["<b>".to_owned(), "40 %".to_owned(), "██".to_owned()], Some("fastest"));
        let html = section(&table);
        assert!(html.contains("A &amp; B") && html.contains("<td>&lt;b&gt;</td>"), "{html}");
        assert!(html.contains("<th scope=\"col\" class=\"number\">share</th>"), "{html}");
        assert!(html.contains("<tr class=\"own\" aria-current=\"true\">") && !html.contains('█'), "{html}");
    }
}
