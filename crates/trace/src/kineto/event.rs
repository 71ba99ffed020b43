//! One event of a trace, with the fields that are read; all others are skipped.
//!
//! Fields come in any order and of any type: numbers may be strings, threads may be words. Of a repeated field the last
//! value counts. Strings are borrowed from the text where they have no escapes.

use super::lenient::{First, Key, Scalar, Shape};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Category {
    /// An operator on the host.
    Operator,
    /// A range that the program, or PyTorch itself, has named.
    Annotation,
    /// A call of the device's run-time library.
    Runtime,
    /// A kernel on the device.
    Kernel,
    /// A copy by the device.
    Copy,
    /// Memory that the device fills.
    Fill,
    /// A named range on the device.
    DeviceAnnotation,
    /// Anything else.
    #[default]
    Other,
}

impl Category {
    fn from_name(text: &str) -> Self {
        match text {
            "cpu_op" | "Operator" => Self::Operator,
            "user_annotation" => Self::Annotation,
            "kernel" | "Kernel" => Self::Kernel,
            "gpu_memcpy" | "Memcpy" => Self::Copy,
            "gpu_memset" | "Memset" => Self::Fill,
            "gpu_user_annotation" => Self::DeviceAnnotation,
            "Runtime" => Self::Runtime,
            _ if text.ends_with("_runtime") || text.ends_with("_driver") => Self::Runtime,
            _ => Self::Other,
        }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Event<'a> {
    pub(super) complete: bool,
    pub(super) category: Category,
    pub(super) name: Cow<'a, str>,
    /// Process and thread, as one number.
    pub(super) thread: u64,
    /// Microseconds.
    pub(super) start: Option<f64>,
    pub(super) duration: Option<f64>,
    pub(super) details: Details<'a>,
}

/// The arguments of an event.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Details<'a> {
    pub(super) correlation: Option<u64>,
    pub(super) stream: Option<u64>,
    pub(super) device: Option<u64>,
    pub(super) bytes: Option<u64>,
    /// Blocks and threads of a kernel.
    pub(super) grid: Option<u64>,
    pub(super) block: Option<u64>,
    /// The shape of an operator's first input.
    pub(super) shape: Option<Shape>,
    /// The type of its elements.
    pub(super) types: Option<Cow<'a, str>>,
    /// The number that an operator shares with its backward node.
    pub(super) sequence: Option<u64>,
    /// Elements of a collective, their type, and its name.
    pub(super) elements: Option<u64>,
    pub(super) elements_out: Option<u64>,
    pub(super) element_type: Option<Cow<'a, str>>,
    pub(super) collective: Option<Cow<'a, str>>,
    /// The process group of a collective: its name, its description, and its ranks.
    pub(super) group: Option<Cow<'a, str>>,
    pub(super) group_description: Option<Cow<'a, str>>,
    pub(super) group_size: Option<u64>,
}

impl<'de> Deserialize<'de> for Event<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event<'de>, A::Error> {
        let mut event = Event::default();
        let (mut process, mut thread) = (0, 0);
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                b"ph" => event.complete = map.next_value::<Scalar<'_>>()?.is("X"),
                b"cat" => event.category = Category::from_name(map.next_value::<Scalar<'_>>()?.text()),
                b"name" => event.name = map.next_value::<Scalar<'_>>()?.into_text(),
                b"pid" => process = map.next_value::<Scalar<'_>>()?.label(),
                b"tid" => thread = map.next_value::<Scalar<'_>>()?.label(),
                b"ts" => event.start = map.next_value::<Scalar<'_>>()?.number(),
                b"dur" => event.duration = map.next_value::<Scalar<'_>>()?.number(),
                b"args" => map.next_value_seed(&mut event.details)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        event.thread = process.rotate_left(32) ^ thread;
        Ok(event)
    }
}

impl<'de> DeserializeSeed<'de> for &mut Details<'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Details<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let details = self;
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                b"correlation" => details.correlation = map.next_value::<Scalar<'_>>()?.whole(),
                b"stream" => details.stream = Some(map.next_value::<Scalar<'_>>()?.label()),
                b"device" => details.device = map.next_value::<Scalar<'_>>()?.whole(),
                b"bytes" => details.bytes = map.next_value::<Scalar<'_>>()?.whole(),
                b"grid" => details.grid = map.next_value::<First>()?.own.and_then(|sizes| sizes.product()),
                b"block" => details.block = map.next_value::<First>()?.own.and_then(|sizes| sizes.product()),
                b"Input Dims" => details.shape = map.next_value::<First>()?.inner,
                b"Input type" => details.types = map.next_value::<Scalar<'_>>()?.known(),
                b"Sequence number" => details.sequence = map.next_value::<Scalar<'_>>()?.whole(),
                b"In msg nelems" => details.elements = map.next_value::<Scalar<'_>>()?.whole(),
                b"Out msg nelems" => details.elements_out = map.next_value::<Scalar<'_>>()?.whole(),
                b"Process Group Name" => details.group = map.next_value::<Scalar<'_>>()?.known(),
                b"Process Group Description" => {
                    details.group_description = map.next_value::<Scalar<'_>>()?.known();
                }
                b"Group size" => details.group_size = map.next_value::<Scalar<'_>>()?.whole(),
                b"dtype" => details.element_type = map.next_value::<Scalar<'_>>()?.known(),
                b"Collective name" => details.collective = map.next_value::<Scalar<'_>>()?.known(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_any_order_and_type() {
        let text = r#"{"dur":"2.5","args":{"correlation":"7","stream":7,"grid":[2,3,4],"Input Dims":[[32,3],[1]],
            "Input type":["float","int"],"x":{"y":[1]}},"name":"k","tid":"stream 7","cat":"Kernel","ph":"X","ts":10}"#;
        let event: Event<'_> = serde_json::from_str(text).unwrap();
        assert!(event.complete && event.category == Category::Kernel && event.name == "k");
        assert_eq!((event.start, event.duration), (Some(10.0), Some(2.5)));
        assert_eq!((event.details.correlation, event.details.grid), (Some(7), Some(24)));
        assert_eq!(event.details.shape.unwrap().sizes(), [32, 3]);
        assert_eq!(event.details.types.as_deref(), Some("float"));
    }

    #[test]
    fn the_last_of_two_counts_and_nonsense_is_nothing() {
        let text = r#"{"ts":1,"ts":2,"dur":1e400,"args":null,"ph":{},"cat":[],"name":3}"#;
        assert!(serde_json::from_str::<Event<'_>>(text).is_err(), "1e400 is no number of JSON's");
        let text = text.replace("1e400", "true");
        let event: Event<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!((event.start, event.duration, event.complete), (Some(2.0), None, false));
        let nested = r#"{"args":{"Input Dims":[[[1,2],[3]],[4]],"grid":"x","bytes":-5}}"#;
        let event: Event<'_> = serde_json::from_str(nested).unwrap();
        assert_eq!(event.details, Details::default());
    }

    #[test]
    fn threads_are_the_same_as_numbers_and_as_words() {
        let thread = |tid: &str| {
            serde_json::from_str::<Event<'_>>(&format!("{{\"pid\":1,\"tid\":{tid}}}")).unwrap().thread
        };
        assert_eq!(thread("25738"), thread("\"25738\""));
        assert_ne!(thread("\"a\""), thread("\"b\""));
    }
}
