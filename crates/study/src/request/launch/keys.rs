//! The keys of a launch file, each taken once: keys left at the end were not understood.
//!
//! From YAML configurations, it reads nested mappings of scalars and of lists of scalars. Content nested in lists does not affect
//! a step and is left out.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;
use std::collections::BTreeMap;
use stepcast_core::fault::Fault;

/// Value for settings that a trainer fills in.
const OPEN: &str = "auto";

/// Whole numbers up to this one, 2⁵³, are exact in 64-bit floating point.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Keys of a framework; names of nested tables are joined by dots.
#[derive(Debug, Default)]
pub(super) struct Keys {
    left: BTreeMap<String, Value>,
}

impl Keys {
    /// All scalars and lists of a tree. Its parser has bounded the depth.
    pub(super) fn of_tree(tree: Value) -> Self {
        let mut keys = Self::default();
        keys.add(String::new(), tree);
        keys
    }

    fn add(&mut self, path: String, value: Value) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                    self.add(path, value);
                }
            }
            value => self.set(path, value),
        }
    }

    /// Sets a key; the last value counts.
    pub(super) fn set(&mut self, key: impl Into<String>, value: Value) {
        self.left.insert(key.into(), value);
    }

    /// All keys with their values.
    pub(super) fn all(self) -> impl Iterator<Item = (String, Value)> {
        self.left.into_iter()
    }

    /// Adds an element to a list that was set.
    pub(super) fn push(&mut self, key: &str, element: Value) {
        if let Some(Value::Array(list)) = self.left.get_mut(key) {
            list.push(element);
        }
    }

    /// Whether a key is given.
    pub(super) fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        let value = self.left.remove(key)?;
        let open = value.is_null() || value.as_str() == Some(OPEN);
        (!open).then_some(value)
    }

    /// A whole number, which may be written as 5e8; negative ones mean "not given" in all formats.
    pub(super) fn number(&mut self, key: &str) -> Result<Option<u64>, Fault> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let whole = |real: f64| (real.fract() == 0.0 && real.abs() <= EXACT).then_some(real as i64);
        let number = match &value {
            Value::String(text) => {
                text.trim().parse::<i64>().ok().or_else(|| whole(text.trim().parse().ok()?))
            }
            value => value.as_i64().or_else(|| whole(value.as_f64()?)),
        };
        match number {
            Some(number) => Ok(u64::try_from(number).ok()),
            None => Err(wrong(key, &value, "a whole number")),
        }
    }

    /// A number.
    pub(super) fn real(&mut self, key: &str) -> Result<Option<f64>, Fault> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = match &value {
            Value::String(text) => text.trim().parse::<f64>().ok(),
            value => value.as_f64(),
        };
        number.map(Some).ok_or_else(|| wrong(key, &value, "a number"))
    }

    /// Whether something is switched on.
    pub(super) fn truth(&mut self, key: &str) -> Result<Option<bool>, Fault> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match &value {
            Value::Bool(on) => Ok(Some(*on)),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            _ => Err(wrong(key, &value, "true or false")),
        }
    }

    /// The words of a list, or of a text that commas separate; `true` is one.
    pub(super) fn words(&mut self, key: &str) -> Vec<String> {
        match self.take(key) {
            Some(Value::Array(entries)) => {
                entries.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(Value::String(text)) => {
                text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
            }
            Some(Value::Bool(true)) => vec!["true".to_owned()],
            _ => Vec::new(),
        }
    }

    /// Whether a switch without a value is given.
    pub(super) fn switch(&mut self, key: &str) -> bool {
        self.left.remove(key).is_some_and(|value| value != Value::Bool(false))
    }

    /// A word.
    pub(super) fn word(&mut self, key: &str) -> Option<String> {
        match self.take(key)? {
            Value::String(text) => Some(text),
            value => Some(value.to_string()),
        }
    }

    /// Forgets keys with one of these beginnings, which spaces separate: they have no effect on the time of a step.
    pub(super) fn forget(&mut self, beginnings: &str) {
        self.left.retain(|key, _| !beginnings.split_whitespace().any(|beginning| key.starts_with(beginning)));
    }

    /// Keys that were not taken, except switches that are off and empty lists.
    pub(super) fn rest(self) -> Vec<String> {
        let says_nothing = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(list) => list.is_empty(),
            Value::String(text) => text.is_empty() || text.eq_ignore_ascii_case("false") || text == OPEN,
            _ => false,
        };
        self.left.into_iter().filter(|(_, value)| !says_nothing(value)).map(|(key, _)| key).collect()
    }
}

fn wrong(key: &str, value: &Value, wanted: &str) -> Fault {
    let shown: String = value.to_string().chars().filter(|c| !c.is_control()).take(60).collect();
    Fault::new(format!("`{key}` is {shown}, not {wanted}"), "write the value into the file")
}

/// All scalars of YAML, with keys of nested mappings joined by dots. The parser yields events, so that depth takes no stack.
pub(super) fn of_yaml(text: &str) -> Result<Keys, Fault> {
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
