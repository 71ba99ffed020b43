//! Conversion of Python values to values of a scenario.

use crate::problem::Problem;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyMapping, PyString};
use stepcast_core::scenario::{Edit, full_key};
use toml::{Table, Value};

/// Deepest nesting; deeper values are a mistake, or contain themselves.
const DEEPEST: usize = 32;

/// A value as in a scenario file; errors name it `key`.
pub(crate) fn value(object: &Bound<'_, PyAny>, key: &str) -> PyResult<Value> {
    deep(object, key, 0)
}

fn deep(object: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Value> {
    let wrong = |reason: String, remedy: &str| -> PyErr { Problem::input(reason, remedy).at_key(key).into() };
    if depth > DEEPEST {
        return Err(wrong("it is nested too deeply".to_owned(), "a scenario has only a few levels"));
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(object.extract()?));
    }
    if object.is_instance_of::<PyString>() {
        return Ok(Value::String(object.extract()?));
    }
    if object.is_instance_of::<PyInt>() {
        return object.extract().map(Value::Integer).map_err(|_| {
            wrong(format!("the number {object} is too large"), "use one below 9223372036854775807")
        });
    }
    if object.is_instance_of::<PyFloat>() {
        let number: f64 = object.extract()?;
        if !number.is_finite() {
            return Err(wrong(format!("{number} is no number to compute with"), "use a finite number"));
        }
        return Ok(Value::Float(number));
    }
    if object.cast::<PyMapping>().is_ok() {
        return table(object, key, depth).map(Value::Table);
    }
    if let Ok(items) = object.try_iter() {
        let items = items.enumerate();
        return items
            .map(|(index, item)| deep(&item?, &format!("{key}[{index}]"), depth + 1))
            .collect::<PyResult<_>>()
            .map(Value::Array);
    }
    // Numbers of NumPy and other libraries convert themselves to Python's.
    if let Ok(whole) = object.call_method0("__index__") {
        return deep(&whole, key, depth + 1);
    }
    if let Ok(number) = object.call_method0("__float__") {
        return deep(&number, key, depth + 1);
    }
    let kind = object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    Err(wrong(format!("a {kind} is no value of a scenario"), "use str, int, float, bool, list or dict"))
}

/// A table; values that are `None` are left out.
fn table(object: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Table> {
    let mut table = Table::new();
    for item in object.cast::<PyMapping>()?.items()?.iter() {
        let (name, item): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let Ok(name) = name.extract::<String>() else {
            let problem = Problem::input(format!("the key {name} is no text"), "use str for keys");
            return Err(problem.at_key(key).into());
        };
        if !item.is_none() {
            let below = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            table.insert(name, deep(&item, &below, depth + 1)?);
        }
    }
    Ok(table)
}

/// The text of the scenario in a mapping.
pub(crate) fn document(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let table = table(object, "", 0)?;
    Ok(toml::to_string(&table)
        .map_err(|error| Problem::input(error.to_string(), "see docs/scenario.md for the format"))?)
}

/// Overrides: a mapping of keys to values or "key=value" texts, then keywords.
pub(crate) fn changes(
    set: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<Edit>> {
    let mut changes = Vec::new();
    if let Some(set) = set {
        if let Ok(set) = set.cast::<PyMapping>() {
            for item in set.items()?.iter() {
                let (key, item): (String, Bound<'_, PyAny>) = item.extract()?;
                changes.push(change(&key, &item)?);
            }
        } else if set.is_instance_of::<PyString>() {
            let problem = Problem::input("`set` is one text", "use a list of texts, or a dict");
            return Err(problem.at_key("set").into());
        } else {
            for text in set.try_iter()? {
                let text: String = text?.extract()?;
                changes.push(Edit::parse(&text).map_err(Problem::from)?);
            }
        }
    }
    for (key, item) in keywords.into_iter().flatten() {
        // Keywords cannot contain dashes.
        changes.push(change(&key.extract::<String>()?.replace('_', "-"), &item)?);
    }
    Ok(changes)
}

fn change(key: &str, item: &Bound<'_, PyAny>) -> PyResult<Edit> {
    let key = full_key(key).map_err(|fault| Problem::from(fault).at_key(key))?;
    Ok(Edit::set(key.clone(), value(item, &key)?))
}
