//! A table of an answer: built once, then printed as text, HTML or CSV by whoever shows it.

/// How the cells of a column are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// To the left, never broken.
    Names,
    /// To the right, never broken.
    Numbers,
    /// To the left, broken into lines where they have to be.
    Words,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What stands above it; may be empty.
    pub title: String,
    /// How its cells are set.
    pub cells: Cells,
}

impl Column {
    /// A column of names.
    pub fn names(title: impl Into<String>) -> Self {
        Self { title: title.into(), cells: Cells::Names }
    }

    /// A column of numbers.
    pub fn numbers(title: impl Into<String>) -> Self {
        Self { title: title.into(), cells: Cells::Numbers }
    }

    /// A column of words.
    pub fn words(title: impl Into<String>) -> Self {
        Self { title: title.into(), cells: Cells::Words }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// One cell for each column.
    pub cells: Vec<String>,
    /// Whether it is the row that the question was about.
    pub highlighted: bool,
}

/// Rows below the titles of their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What the table is about; may be empty.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// A sentence below the table; may be empty.
    pub note: String,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: impl Into<Vec<Column>>) -> Self {
        Self { title: title.into(), columns: columns.into(), rows: Vec::new(), note: String::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(Row { cells: cells.into_iter().collect(), highlighted: false });
    }

    /// Adds the row that the question was about.
    pub fn highlighted_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(Row { cells: cells.into_iter().collect(), highlighted: true });
    }
}
