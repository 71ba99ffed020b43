//! YAML as configurations use it: nested mappings of scalars and of lists of scalars. What is nested in lists says nothing about a
//! step and is left out.

use super::keys::Keys;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;
use stepcast_core::fault::Fault;

/// All scalars of a file, those of nested mappings joined by dots. The parser yields events, so that depth takes no stack.
pub(super) fn keys(text: &str) -> Result<Keys, Fault> {
    let mut keys = Keys::default();
    // The path of each open mapping or list, with the key that waits for its value; lists have none.
    let mut open: Vec<Collection> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| {
            Fault::new(format!("it is not YAML: {error}"), "write it with `accelerate config`")
        })?;
        match event {
            Event::MappingStart(..) => {
                let path = open.last_mut().map_or(Some(String::new()), Collection::next_path);
                open.push(Collection { path, is_list: false, key: None });
            }
            Event::SequenceStart(..) => {
                let path = open.last_mut().and_then(Collection::next_path);
                if let Some(path) = &path {
                    keys.set(path.clone(), Value::Array(Vec::new()));
                }
                open.push(Collection { path, is_list: true, key: None });
            }
            Event::MappingEnd | Event::SequenceEnd => drop(open.pop()),
            Event::Scalar(text, style, ..) => match open.last_mut() {
                Some(mapping) if !mapping.is_list && mapping.key.is_none() => {
                    mapping.key = Some(text.into_owned())
                }
                Some(Collection { path: Some(path), is_list: true, .. }) => {
                    keys.push(path, scalar(&text, style))
                }
                Some(mapping) => {
                    if let Some(path) = mapping.next_path() {
                        keys.set(path, scalar(&text, style));
                    }
                }
                None => {}
            },
            Event::Alias(_) => drop(open.last_mut().and_then(Collection::next_path)),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
        }
    }
    Ok(keys)
}

/// A mapping or a list whose end has not been read.
struct Collection {
    /// Its own path; none within lists.
    path: Option<String>,
    is_list: bool,
    key: Option<String>,
}

impl Collection {
    /// The path of the value that comes next.
    fn next_path(&mut self) -> Option<String> {
        let key = self.key.take()?;
        let path = self.path.as_ref()?;
        Some(if path.is_empty() { key } else { format!("{path}.{key}") })
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "true" | "True" | "yes" | "on" => Value::Bool(true),
        "false" | "False" | "no" | "off" => Value::Bool(false),
        "" | "null" | "~" => Value::Null,
        text => match text.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}
