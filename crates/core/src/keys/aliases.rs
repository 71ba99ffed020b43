//! Names that a parser accepts beside the ones that are written, for the JSON schema.
//!
//! A derived schema knows only the names that are written; the parser knows all of them, and is asked.

use schemars::Schema;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::{Value, json};

/// Marks another name in a schema, and says of what.
pub(super) const ALIAS_OF: &str = "x-alias-of";

/// Adds the other names of `T` to its schema. For `#[schemars(transform = with_aliases::<T>)]`.
pub(crate) fn with_aliases<T: Serialize + DeserializeOwned>(schema: &mut Schema) {
    let aliases = accepted::<T>().into_iter().filter_map(|name| {
        let written = serde_json::to_value(parsed::<T>(name)?).ok()?;
        let written = written.as_str()?;
        let about = format!("Another name of `{written}`.");
        (written != name)
            .then(|| json!({ "type": "string", "const": name, "description": about, ALIAS_OF: written }))
    });
    if let Some(Value::Array(names)) = schema.get_mut("oneOf") {
        names.extend(aliases);
    }
}

fn parsed<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<Error>::new(name)).ok()
}

fn accepted<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut names = Vec::new();
    // The names are known before the parser finds out that there is nothing to parse.
    let _ = <T as Deserialize<'_>>::deserialize(Names(&mut names));
    names
}

/// Holds no value, and keeps the names that a parser would accept.
struct Names<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.extend_from_slice(variants);
        Err(Error::custom("there is no value"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no value"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
