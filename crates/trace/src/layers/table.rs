//! CSV with a header: `layer,forward_ms,backward_ms,bytes`.
//!
//! Columns may stand in any order; others are ignored. Cells may carry units ("1.2 ms"); a bare number has the unit that
//! the header gives: `forward_ms`, `forward (ms)`, `MB`. Bare sizes without a unit are bytes; bare times without one are
//! refused.

use super::{Layer, Lines, MOST_BYTES, MOST_SECONDS};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, Seconds};

const REMEDY: &str = "write a header such as layer,forward_ms,backward_ms,bytes";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Layer,
    Forward,
    Backward,
    Bytes,
}

/// A column that is read, and the unit of its bare numbers.
#[derive(Debug, Clone, PartialEq)]
struct Column {
    role: Role,
    unit: Option<String>,
}

impl Column {
    /// The column of a header in any letter case, with "_", " " or brackets before the unit.
    fn from_header(header: &str) -> Option<Self> {
        let header = header.trim().trim_matches('"');
        let end = header.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(header.len());
        let (word, rest) = header.split_at(end);
        let role = match word.to_ascii_lowercase().as_str() {
            "layer" | "name" => Role::Layer,
            "forward" | "fwd" => Role::Forward,
            "backward" | "bwd" => Role::Backward,
            "bytes" | "size" | "gradient" | "gradients" => Role::Bytes,
            _ if rest.is_empty() && format!("1 {word}").parse::<Bytes>().is_ok() => {
                return Some(Self { role: Role::Bytes, unit: Some(word.to_owned()) });
            }
            _ => return None,
        };
        let unit = rest.trim_matches(|c: char| !c.is_alphabetic());
        let unit = unit.strip_prefix("time_").unwrap_or(unit);
        let known = unit.is_empty()
            || match role {
                Role::Layer => true,
                Role::Forward | Role::Backward => format!("1 {unit}").parse::<Seconds>().is_ok(),
                Role::Bytes => format!("1 {unit}").parse::<Bytes>().is_ok(),
            };
        known.then(|| Self { role, unit: Some(unit.to_owned()).filter(|unit| !unit.is_empty()) })
    }
}

fn separator(header: &str) -> char {
    [';', '\t'].into_iter().find(|separator| header.contains(*separator)).unwrap_or(',')
}

fn columns(header: &str) -> Vec<Option<Column>> {
    header.split(separator(header)).map(Column::from_header).collect()
}

fn is_comment(line: &str) -> bool {
    line.starts_with('#')
}

/// The first line with content has a column of backward times and one of sizes.
pub(super) fn recognises(head: &str) -> bool {
    let Some(header) = head.lines().find(|line| !line.trim().is_empty() && !is_comment(line)) else {
        return false;
    };
    let columns = columns(header);
    let has = |role| columns.iter().flatten().any(|column| column.role == role);
    has(Role::Backward) && has(Role::Bytes)
}

pub(super) fn read(mut lines: Lines<'_, '_>) -> Result<Vec<Layer>, Fault> {
    let mut header = None;
    let mut layers = Vec::new();
    while let Some(line) = lines.next()? {
        if is_comment(&line) {
            continue;
        }
        match &header {
            None => header = Some((separator(&line), check(columns(&line), &lines)?)),
            Some((separator, columns)) => {
                let cells = cells(&line, *separator);
                if cells.len() != columns.len() {
                    let reason = format!("this line has {} cells, the header {}", cells.len(), columns.len());
                    return Err(lines.fault(reason, "give every layer all cells; the file may be cut short"));
                }
                let layer = layer(columns, &cells, layers.len(), &lines)?;
                lines.push(&mut layers, layer)?;
            }
        }
    }
    Ok(layers)
}

/// Checks that no role occurs twice, and that the required ones are present.
fn check(columns: Vec<Option<Column>>, lines: &Lines<'_, '_>) -> Result<Vec<Option<Column>>, Fault> {
    for (role, name) in [
        (Role::Layer, "layer"),
        (Role::Forward, "forward"),
        (Role::Backward, "backward"),
        (Role::Bytes, "bytes"),
    ] {
        let count = columns.iter().flatten().filter(|column| column.role == role).count();
        if count > 1 {
            return Err(lines.fault(format!("{count} columns have the same meaning: {name}"), REMEDY));
        }
        if count == 0 && matches!(role, Role::Backward | Role::Bytes) {
            return Err(lines.fault(format!("no column is called {name}"), REMEDY));
        }
    }
    Ok(columns)
}

/// Cells may be quoted, with the separator inside.
fn cells(line: &str, separator: char) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        if character == '"' {
            quoted = !quoted;
        } else if character == separator && !quoted {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(character);
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn layer(
    columns: &[Option<Column>],
    cells: &[String],
    index: usize,
    lines: &Lines<'_, '_>,
) -> Result<Layer, Fault> {
    let mut layer = Layer {
        name: format!("layer {}", index + 1),
        forward: None,
        backward: Seconds::ZERO,
        gradients: Bytes::ZERO,
    };
    for (column, cell) in columns.iter().zip(cells) {
        let Some(Column { role, unit }) = column else { continue };
        match role {
            Role::Layer if cell.is_empty() => {}
            Role::Layer => layer.name.clone_from(cell),
            Role::Forward => layer.forward = Some(seconds("forward", cell, unit.as_deref(), lines)?),
            Role::Backward => layer.backward = seconds("backward", cell, unit.as_deref(), lines)?,
            Role::Bytes => {
                let bytes: Bytes = quantity("bytes", cell, Some(unit.as_deref().unwrap_or("B")), lines)?;
                layer.gradients = Bytes::new(lines.plausible("bytes", bytes.get(), MOST_BYTES)?);
            }
        }
    }
    Ok(layer)
}

fn seconds(name: &str, cell: &str, unit: Option<&str>, lines: &Lines<'_, '_>) -> Result<Seconds, Fault> {
    let time: Seconds = quantity(name, cell, unit, lines)?;
    Ok(Seconds::new(lines.plausible(name, time.get(), MOST_SECONDS)?))
}

/// The cell with its own unit, or with the header's.
fn quantity<Q: std::str::FromStr>(
    name: &str,
    cell: &str,
    unit: Option<&str>,
    lines: &Lines<'_, '_>,
) -> Result<Q, Fault>
where
    Q::Err: std::fmt::Display,
{
    let bare = cell.parse::<f64>().is_ok();
    if bare && unit.is_none() {
        let remedy = "write the unit into the header, such as forward_ms, or into the cell: 1.2 ms";
        return Err(lines.fault(format!("{name} has no unit: \"{cell}\""), remedy));
    }
    let text = if bare { format!("{cell} {}", unit.unwrap_or_default()) } else { cell.to_owned() };
    text.parse().map_err(|error: Q::Err| {
        let remedy = "write a number, or a number and a unit such as 1.2 ms or 4 MB";
        lines.fault(format!("{name} cannot be read: {error}"), remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_roles_and_units() {
        let column =
            |role, unit: &str| Some(Column { role, unit: Some(unit.to_owned()).filter(|u| !u.is_empty()) });
        assert_eq!(Column::from_header("Layer"), column(Role::Layer, ""));
        assert_eq!(Column::from_header("forward_ms"), column(Role::Forward, "ms"));
        assert_eq!(Column::from_header(" backward (us) "), column(Role::Backward, "us"));
        assert_eq!(Column::from_header("bwd [µs]"), column(Role::Backward, "µs"));
        assert_eq!(Column::from_header("MB"), column(Role::Bytes, "MB"));
        assert_eq!(Column::from_header("bytes_MiB"), column(Role::Bytes, "MiB"));
        for other in ["", "forward_parsecs", "comment", "bytes (s)", "1"] {
            assert_eq!(Column::from_header(other), None, "{other}");
        }
    }

    #[test]
    fn cells_may_be_quoted() {
        assert_eq!(cells("\"a, b\", 1 ,2", ','), ["a, b", "1", "2"]);
        assert_eq!(cells("a;;", ';'), ["a", "", ""]);
    }
}
