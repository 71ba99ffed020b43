//! Objects as a whole, with all their keys.

use super::{Begin, Receive, repair, split};
use crate::imported::tally;
use crate::source::Source;
use serde_json::{Deserializer, Map, Value};
use stepcast_core::fault::Fault;

/// One entry of the list.
pub(crate) type Object = Map<String, Value>;

/// Passes on the objects of the list that is the value of one of the keys in `lists`; without keys, those of the whole
/// file, in a list or one after the other. Losses are reported in `notes`. Only a file that unpacks to too much
/// or takes too much memory is an error. `take` returns the bytes that it keeps of an object.
pub(crate) fn each(
    source: &mut Source<'_>,
    lists: &[&str],
    notes: &mut Vec<String>,
    take: &mut dyn FnMut(Object) -> usize,
) -> Result<(), Fault> {
    let memory = source.memory();
    let (course, failed) =
        split(source, lists, &mut Objects { take: &mut |object| memory.hold(take(object)) });
    source.check()?;
    if let Some(error) = &failed
        && source.exceeded()
    {
        return Err(source.fault(error));
    }
    let course = course.unwrap_or_default();
    tally(notes, course.spoilt, "entries that could not be read and were left out");
    match failed {
        Some(error) => {
            notes.push(format!("the file cannot be unpacked to its end ({error}); the rest is lost"));
        }
        None if !course.complete => {
            notes.push("the file is truncated: the rest is lost".to_owned());
        }
        None => {}
    }
    Ok(())
}

/// A number, or a text that is one.
pub(crate) fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
    .filter(|number| number.is_finite())
}

/// A whole number that is not negative; true is 1, and a text may hold one.
pub(crate) fn whole(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Bool(value) => Some(u64::from(*value)),
        Value::Number(value) if value.is_u64() => value.as_u64(),
        other => {
            number(Some(other)).filter(|number| (0.0..1e18).contains(number)).map(|number| number as u64)
        }
    }
}

/// A text.
pub(crate) fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str)
}

pub(super) struct Objects<'a> {
    pub(super) take: &'a mut dyn FnMut(Object),
}

impl Receive for Objects<'_> {
    fn begin(&mut self, text: &[u8]) -> Begin {
        let mut objects = Deserializer::from_slice(text).into_iter();
        match objects.next() {
            Some(Ok(object)) => {
                (self.take)(object);
                Begin::Object(objects.byte_offset())
            }
            Some(Err(error)) if !error.is_eof() => Begin::Broken,
            Some(Err(_)) | None => Begin::Unfinished,
        }
    }

    fn broken(&mut self, text: &[u8]) -> bool {
        serde_json::from_str(&repair(text)).map(|object| (self.take)(object)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_texts() {
        let value: Value = serde_json::from_str(r#"[1, " 2.5", "x", null, "inf"]"#).unwrap();
        let numbers: Vec<_> = (0..5).map(|index| number(value.get(index))).collect();
        assert_eq!(numbers, [Some(1.0), Some(2.5), None, None, None]);
    }
}
