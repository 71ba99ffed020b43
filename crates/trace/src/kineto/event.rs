//! One event of a trace, with the fields that are read; all others are skipped.
//!
//! Fields come in any order and of any type: numbers may be strings, threads may be words, lists stand where one value is expected. Of
//! a repeated field the last value counts. Strings are borrowed from the text where they have no escapes.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Category {
    Operator,
    /// A range that the program, or PyTorch itself, has named.
    Annotation,
    /// A call of the device's run-time library.
    Runtime,
    Kernel,
    Copy,
    Fill,
    DeviceAnnotation,
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

/// The value of the key that was read last.
fn value<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Loose<'de>, A::Error> {
    map.next_value()
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
                b"ph" => event.complete = value(&mut map)?.text().as_deref() == Some("X"),
                b"cat" => event.category = Category::from_name(&value(&mut map)?.text().unwrap_or_default()),
                b"name" => event.name = value(&mut map)?.text().unwrap_or_default(),
                b"pid" => process = value(&mut map)?.label(),
                b"tid" => thread = value(&mut map)?.label(),
                b"ts" => event.start = value(&mut map)?.number(),
                b"dur" => event.duration = value(&mut map)?.number(),
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
                b"correlation" => details.correlation = value(&mut map)?.whole(),
                b"stream" => details.stream = Some(value(&mut map)?.label()),
                b"device" => details.device = value(&mut map)?.whole(),
                b"bytes" => details.bytes = value(&mut map)?.whole(),
                b"grid" => details.grid = value(&mut map)?.product(),
                b"block" => details.block = value(&mut map)?.product(),
                b"Input Dims" => details.shape = value(&mut map)?.first_list(),
                b"Input type" => details.types = value(&mut map)?.text(),
                b"Sequence number" => details.sequence = value(&mut map)?.whole(),
                b"In msg nelems" => details.elements = value(&mut map)?.whole(),
                b"Out msg nelems" => details.elements_out = value(&mut map)?.whole(),
                b"Process Group Name" => details.group = value(&mut map)?.text(),
                b"Process Group Description" => details.group_description = value(&mut map)?.text(),
                b"Group size" => details.group_size = value(&mut map)?.whole(),
                b"dtype" => details.element_type = value(&mut map)?.text(),
                b"Collective name" => details.collective = value(&mut map)?.text(),
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

/// The sizes of a tensor's dimensions; none if they are more than six, too large, or no whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    sizes: [u32; 6],
    count: u8,
}

impl Shape {
    pub(super) fn sizes(&self) -> &[u32] {
        self.sizes.get(..usize::from(self.count)).unwrap_or_default()
    }

    fn push(&mut self, size: f64) {
        let is_size = (0.0..=f64::from(u32::MAX)).contains(&size) && size.fract() == 0.0;
        match self.sizes.get_mut(usize::from(self.count)).filter(|_| is_size) {
            Some(place) => {
                *place = size as u32;
                self.count += 1;
            }
            None => self.count = u8::MAX,
        }
    }

    /// The product of all sizes; none if they are not known or it overflows.
    pub(super) fn product(&self) -> Option<u64> {
        let sizes = self.sizes.get(..usize::from(self.count))?;
        sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(u64::from(*size)))
    }
}

/// A key as bytes, to skip the check that it is text.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, [u8]>);

/// A value of any type. Lists of numbers become shapes; other lists, their first entry; anything but numbers, texts and lists,
/// `Nothing`.
enum Loose<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Sizes(Shape),
    /// A list whose first entry is a list of whole numbers.
    Nested(Shape),
    Nothing,
}

impl<'a> Loose<'a> {
    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) | Self::Sizes(_) | Self::Nested(_) | Self::Nothing => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Sizes(sizes) => sizes.sizes().first().copied().map(f64::from),
            Self::Nested(_) | Self::Nothing => None,
        }
        .filter(|number| number.is_finite())
    }

    fn whole(&self) -> Option<u64> {
        self.number().filter(|number| (0.0..1e18).contains(number)).map(|number| number as u64)
    }

    /// Number of a thread: the same for 7 and "7".
    fn label(&self) -> u64 {
        match (self.whole(), self) {
            (Some(number), _) => number,
            (None, Self::Text(text)) => {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                hasher.finish()
            }
            (None, _) => 0,
        }
    }

    fn product(&self) -> Option<u64> {
        match self {
            Self::Sizes(sizes) if !sizes.sizes().is_empty() => sizes.product(),
            _ => None,
        }
    }

    fn first_list(&self) -> Option<Shape> {
        match self {
            Self::Nested(sizes) => Some(*sizes),
            Self::Number(_) | Self::Text(_) | Self::Sizes(_) | Self::Nothing => None,
        }
    }
}

impl<'de> Deserialize<'de> for Loose<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Loose<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_f64<E>(self, number: f64) -> Result<Loose<'de>, E> {
                Ok(Loose::Number(number))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Loose<'de>, E> {
                Ok(Loose::Number(number as f64))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Loose<'de>, E> {
                Ok(Loose::Number(number as f64))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Loose<'de>, E> {
                Ok(Loose::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Loose<'de>, E> {
                Ok(Loose::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Loose<'de>, E> {
                Ok(Loose::Nothing)
            }

            fn visit_unit<E>(self) -> Result<Loose<'de>, E> {
                Ok(Loose::Nothing)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose<'de>, A::Error> {
                let found = match list.next_element()? {
                    None => Loose::Sizes(Shape::default()),
                    Some(Loose::Number(first)) => {
                        let mut sizes = Shape::default();
                        sizes.push(first);
                        while let Some(next) = list.next_element::<Loose<'_>>()? {
                            sizes.push(if let Loose::Number(size) = next { size } else { f64::NAN });
                        }
                        Loose::Sizes(sizes)
                    }
                    Some(Loose::Sizes(sizes)) => Loose::Nested(sizes),
                    Some(text @ Loose::Text(_)) => text,
                    Some(Loose::Nested(_) | Loose::Nothing) => Loose::Nothing,
                };
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(found)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose::Nothing)
            }
        }
        deserializer.deserialize_any(Values)
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
