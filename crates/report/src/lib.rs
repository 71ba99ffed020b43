//! Answers for people: tables, sentences, plots as SVG, and whole reports as HTML.
//!
//! The tables of an answer are built once, in [`tables`]; the command line prints them as text, [`table::section`] as HTML. A plot
//! is self-contained: it carries its styles for light and dark pages and for print, and needs no script and no font. The
//! same figures give the same bytes. No input or output: the caller writes the text.
//!
//! [`plots`] take plain figures, or make them from the answers of studies. `draw` has the parts that plots are composed
//! of. [`page`] sets a forecast in HTML, as a complete document or as a part of one. [`format`](mod@format) writes
//! single numbers and names, [`sentences`] whole sentences.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod draw;
pub mod format;
pub mod page;
pub mod plots;
pub mod sentences;
pub mod table;
pub mod tables;

pub use draw::style::embedded as style;
pub use draw::{Figure, Unit};
pub use plots::heat_map::condition_map;

/// Answers as JSON text: the same bytes from the command line, the server and Python.
///
/// A value first becomes a tree, so that every type is compiled for one target and not for every format.
pub mod json {
    use serde::Serialize;
    use serde_json::{Result, to_value};

    /// Indented, with a newline at the end.
    pub fn pretty(value: &impl Serialize) -> Result<String> {
        let mut text = serde_json::to_string_pretty(&to_value(value)?)?;
        text.push('\n');
        Ok(text)
    }

    /// On one line, with a newline at the end.
    pub fn line(value: &impl Serialize) -> Result<String> {
        let mut text = to_value(value)?.to_string();
        text.push('\n');
        Ok(text)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[derive(Serialize)]
        struct Row {
            z: f64,
            a: Option<u64>,
        }

        #[test]
        fn text_is_that_of_the_value_itself() {
            let rows = [
                Row { z: 0.1 + 0.2, a: None },
                Row { z: f64::NAN, a: Some(u64::MAX) },
                Row { z: -1e-300, a: Some(0) },
            ];
            assert_eq!(pretty(&rows).unwrap(), serde_json::to_string_pretty(&rows).unwrap() + "\n");
            assert_eq!(line(&rows).unwrap(), serde_json::to_string(&rows).unwrap() + "\n");
        }
    }
}
