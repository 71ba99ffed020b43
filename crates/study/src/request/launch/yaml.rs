//! The part of YAML that configurations of Accelerate use: nested mappings of scalars. Lists say nothing about a step
//! and are left out.

use super::keys::Keys;
use serde_json::Value;

/// All scalars of a file, those of nested mappings joined by dots.
pub(super) fn keys(text: &str) -> Keys {
    let mut keys = Keys::default();
    // Mappings that are open, with the columns of their keys.
    let mut open: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let code = without_comment(line);
        let content = code.trim();
        if content.is_empty() || content == "---" {
            continue;
        }
        let column = code.len() - code.trim_start().len();
        if content.starts_with("- ") {
            continue;
        }
        let Some((key, value)) = content.split_once(':') else { continue };
        while open.last().is_some_and(|(at, _)| *at >= column) {
            open.pop();
        }
        let path = match open.last() {
            Some((_, parent)) => format!("{parent}.{}", key.trim()),
            None => key.trim().to_owned(),
        };
        match value.trim() {
            "" => open.push((column, path)),
            value => keys.set(path, scalar(value)),
        }
    }
    keys
}

fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, char)| *at == 0 || line[..*at].ends_with([' ', '\t']);
    match line.char_indices().filter(|(_, c)| *c == '#').find(begins) {
        Some((at, _)) => &line[..at],
        None => line,
    }
}

fn scalar(text: &str) -> Value {
    let quoted = |mark: char| text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark));
    if let Some(text) = quoted('"').or_else(|| quoted('\'')) {
        return Value::String(text.to_owned());
    }
    match text {
        "true" | "True" | "yes" | "on" => Value::Bool(true),
        "false" | "False" | "no" | "off" => Value::Bool(false),
        "null" | "~" => Value::Null,
        "[]" | "{}" => Value::Array(Vec::new()),
        text => match text.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_joined_by_dots() {
        let mut keys = keys(
            "---\na: 1 # one\nb:\n  c: 'x # y'\n  d:\n    e: true\nf: no\ng: []\nh:\n- p\n- q\ni: {}\nj: 2.5e-1",
        );
        assert_eq!(keys.number("a").unwrap(), Some(1));
        assert_eq!(keys.truth("b.d.e").unwrap(), Some(true));
        assert_eq!(keys.truth("f").unwrap(), Some(false));
        assert_eq!(keys.real("j").unwrap(), Some(0.25));
        assert_eq!(keys.rest(), ["b.c"]);
    }
}
