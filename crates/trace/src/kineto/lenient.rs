//! JSON values of unexpected types: numbers written as strings, lists in place of one value; anything else is ignored.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The sizes of a tensor's dimensions; none if they are more than six, or too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    sizes: [u32; 6],
    count: u8,
}

impl Shape {
    pub(super) fn sizes(&self) -> &[u32] {
        self.sizes.get(..usize::from(self.count)).unwrap_or_default()
    }

    fn push(&mut self, size: u64) {
        match (self.sizes.get_mut(usize::from(self.count)), u32::try_from(size)) {
            (Some(place), Ok(size)) => {
                *place = size;
                self.count += 1;
            }
            _ => self.count = u8::MAX,
        }
    }

    /// The product of all sizes; none if they are not known or it overflows.
    pub(super) fn product(&self) -> Option<u64> {
        let sizes = self.sizes.get(..usize::from(self.count))?;
        sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(u64::from(*size)))
    }
}

/// A key: bytes, because nothing is gained by making sure that they are text.
pub(super) struct Key<'a>(pub(super) Cow<'a, [u8]>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_bytes<E>(self, text: &'de [u8]) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_bytes<E>(self, text: &[u8]) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text.as_bytes())))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.as_bytes().to_owned())))
            }
        }
        deserializer.deserialize_bytes(Keys)
    }
}

/// A number or a text; a list stands for its first entry, anything else for nothing.
pub(super) enum Scalar<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Nothing,
}

impl<'a> Scalar<'a> {
    pub(super) fn is(&self, text: &str) -> bool {
        self.text() == text
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number(_) | Self::Nothing => "",
        }
    }

    pub(super) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Number(_) | Self::Nothing => Cow::Borrowed(""),
        }
    }

    pub(super) fn known(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) | Self::Nothing => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Nothing => None,
        }
        .filter(|number| number.is_finite())
    }

    pub(super) fn whole(&self) -> Option<u64> {
        self.number().filter(|number| (0.0..1e18).contains(number)).map(|number| number as u64)
    }

    /// A number that stands for a thread: the same for 7 and "7".
    pub(super) fn label(&self) -> u64 {
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
}

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalars;
        impl<'de> Visitor<'de> for Scalars {
            type Value = Scalar<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }

            fn visit_f64<E>(self, number: f64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Number(number))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Number(number as f64))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Number(number as f64))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Nothing)
            }

            fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
                Ok(Scalar::Nothing)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar<'de>, A::Error> {
                let first = list.next_element()?.unwrap_or(Scalar::Nothing);
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(first)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nothing)
            }
        }
        deserializer.deserialize_any(Scalars)
    }
}

/// The numbers of a list, and those of the first list in it.
#[derive(Default)]
pub(super) struct First {
    pub(super) own: Option<Shape>,
    pub(super) inner: Option<Shape>,
}

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lists;
        impl<'de> Visitor<'de> for Lists {
            type Value = First;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First, A::Error> {
                let mut first = First::default();
                match list.next_element::<Entry>()? {
                    Some(Entry::Number(number)) => {
                        let own = first.own.insert(Shape::default());
                        own.push(number);
                        while let Some(entry) = list.next_element::<Entry>()? {
                            entry.number().into_iter().for_each(|number| own.push(number));
                        }
                    }
                    Some(Entry::List(inner)) => first.inner = Some(inner),
                    Some(Entry::Other) | None => {}
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(first)
            }

            fn visit_str<E>(self, _: &str) -> Result<First, E> {
                Ok(First::default())
            }

            fn visit_unit<E>(self) -> Result<First, E> {
                Ok(First::default())
            }
        }
        deserializer.deserialize_any(Lists)
    }
}

enum Entry {
    Number(u64),
    List(Shape),
    Other,
}

impl Entry {
    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::List(_) | Self::Other => None,
        }
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a list of numbers")
            }

            fn visit_u64<E>(self, number: u64) -> Result<Entry, E> {
                Ok(Entry::Number(number))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Entry, E> {
                Ok(Entry::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Entry, E> {
                Ok(Entry::Other)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Entry, E> {
                Ok(Entry::Other)
            }

            fn visit_str<E>(self, _: &str) -> Result<Entry, E> {
                Ok(Entry::Other)
            }

            fn visit_unit<E>(self) -> Result<Entry, E> {
                Ok(Entry::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entry, A::Error> {
                let mut numbers = Shape::default();
                let mut plain = true;
                while let Some(entry) = list.next_element::<Entry>()? {
                    match entry.number() {
                        Some(number) => numbers.push(number),
                        None => plain = false,
                    }
                }
                Ok(if plain { Entry::List(numbers) } else { Entry::Other })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Entry::Other)
            }
        }
        deserializer.deserialize_any(Entries)
    }
}
