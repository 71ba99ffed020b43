//! Macros that declare keys, and how sections are written: a section becomes a tree of values in one place, so that no
//! format needs separate code for each section.

use super::kebab;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Error, Map, Value};

/// Declares a struct and the section of a scenario file that defines it, key by key:
///
/// ```text
/// /// Rate at which hosts copy and serialise payload.
/// host_rate: Uncertain<BytesPerSec> => BytesPerSec, optional("no cost"), Check::Positive("…"), Transfer;
/// ```
///
/// The name is followed by the type in the file and the type in the struct; by `required`, `default(as written)` or
/// `optional("value if omitted")`; by the check of a value; and by the [`Effect`](super::Effect) of larger
/// values. A section with a required key gives in `missing` the error without it. The other blocks may be left out: keys
/// in `before` and `after` exist only in the section, and fields in `made` only in the struct; the callers of `fill` and
/// `section` handle these.
macro_rules! keys {
    (
        $(#[$meta:meta])*
        struct $name:ident;
        $(#[doc = $section_doc:literal])*
        section $section:ident $(, missing $missing:expr)?;
        $(before { $($(#[doc = $bdoc:literal])* $before:ident: $btype:ty, $bwritten:literal, $bdefault:literal;)* })?
        keys { $(
            $(#[doc = $doc:literal])* $(#[serde($($serde:tt)*)])?
            $field:ident: $given:ty => $type:ty, $presence:ident $(($default:expr))?, $check:expr, $effect:ident;
        )* }
        $(after { $($(#[doc = $adoc:literal])* $after:ident: $atype:ty, $awritten:literal, $adefault:literal;)* })?
        $(made { $($(#[$mmeta:meta])* $made:ident: $mtype:ty;)* })?
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $doc])* $(#[serde($($serde)*)])? pub $field: $crate::keys::used_as!($presence $type),)*
            $($($(#[$mmeta])* pub $made: $mtype,)*)?
        }

        $(#[doc = $section_doc])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $section {
            $($($(#[doc = $bdoc])* #[serde(default)] #[schemars(skip_serializing_if = "Option::is_none")] pub $before: Option<$btype>,)*)?
            $($(#[doc = $doc])* #[serde(default)] #[schemars(skip_serializing_if = "Option::is_none")] pub $field: Option<$given>,)*
            $($($(#[doc = $adoc])* #[serde(default)] #[schemars(skip_serializing_if = "Option::is_none")] pub $after: Option<$atype>,)*)?
        }

        $crate::keys::write_entries!($section { $($($before)*)? $($field)* $($($after)*)? });

        impl $section {
            /// The values: given ones first, then those of `base`, then the defaults; each is checked separately.
            #[allow(unused_variables)]
            pub fn fill(
                self,
                base: Option<&$name>,
                files: &dyn $crate::files::Files,
                $($($made: $mtype,)*)?
            ) -> Result<$name, $crate::fault::Fault> {
                let missing: [fn(&str) -> $crate::fault::Fault; _] = [$($missing)?];
                let filled = $name {
                    $($field: {
                        let resolve = |given: $given| {
                            <$given as $crate::keys::Given<$type>>::resolve(given, files).map_err(|fault| {
                                fault.below($crate::fault::KeyPath::of(&$crate::keys::kebab(stringify!($field))))
                            })
                        };
                        let given = self.$field.map(resolve).transpose()?;
                        $crate::keys::filled!($presence, given, base, $field, resolve, missing, $given $(, $default)?)
                    },)*
                    $($($made,)*)?
                };
                $(
                    let check: $crate::keys::Check = $check;
                    check.apply(stringify!($field), &$crate::keys::Figure::value(&filled.$field))?;
                )*
                Ok(filled)
            }

            /// Documentation of every key.
            pub fn documentation() -> Vec<$crate::keys::KeyDoc> {
                vec![
                    $($($crate::keys::KeyDoc::new(stringify!($before), $bwritten.to_owned(), $bdefault, concat!($($bdoc),*)),)*)?
                    $($crate::keys::KeyDoc::new(
                        stringify!($field),
                        <$given as $crate::keys::Given<$type>>::written(),
                        $crate::keys::default_text!($presence, $given, $type $(, $default)?),
                        concat!($($doc),*),
                    ).bounded($check).chosen_from::<$given>(),)*
                    $($($crate::keys::KeyDoc::new(stringify!($after), $awritten.to_owned(), $adefault, concat!($($adoc),*)),)*)?
                ]
            }
        }

        impl $name {
            /// All keys of the section.
            pub const KEYS: &'static [$crate::keys::Key<$name, $section>] = &[$($crate::keys::Key {
                field: stringify!($field),
                effect: $crate::keys::Effect::$effect,
                check: $check,
                get: |it| $crate::keys::Figure::value(&it.$field),
                set: |it, value| $crate::keys::Figure::assign(&mut it.$field, value),
                range: |section| section.$field.as_ref().and_then(<$given as $crate::keys::Given<$type>>::range),
                set_range: |section, ends| section.$field = <$given as $crate::keys::Given<$type>>::between(ends),
            },)*];

            /// The section that describes this value, with all defaults filled in.
            pub fn section(&self) -> $section {
                $section {
                    $($($before: None,)*)?
                    $($field: $crate::keys::written!($presence, $given, $type, self.$field),)*
                    $($($after: None,)*)?
                }
            }
        }
    };
}

/// The type of a field, depending on whether its key is required.
macro_rules! used_as {
    (optional $type:ty) => { Option<$type> };
    (required $type:ty) => { $type };
    (default $type:ty) => { $type };
}

/// The value of a field: given, taken from the base, or the default.
macro_rules! filled {
    (optional, $given:ident, $base:ident, $field:ident, $resolve:ident, $missing:ident, $type:ty, $without:expr) => {
        $given.or_else(|| $base.and_then(|base| base.$field.clone()))
    };
    (required, $given:ident, $base:ident, $field:ident, $resolve:ident, $missing:ident, $type:ty) => {
        $given.or_else(|| $base.map(|base| base.$field.clone())).ok_or_else(|| {
            let [missing] = $missing;
            missing(&$crate::keys::kebab(stringify!($field)))
        })?
    };
    (default, $given:ident, $base:ident, $field:ident, $resolve:ident, $missing:ident, $type:ty, $default:expr) => {
        match $given.or_else(|| $base.map(|base| base.$field.clone())) {
            Some(value) => value,
            None => $resolve(<$type>::from($default))?,
        }
    };
}

/// A field converted back to its type in the file.
macro_rules! written {
    (optional, $given:ty, $type:ty, $value:expr) => {
        $value.as_ref().map(<$given as $crate::keys::Given<$type>>::write)
    };
    ($presence:ident, $given:ty, $type:ty, $value:expr) => {
        Some(<$given as $crate::keys::Given<$type>>::write(&$value))
    };
}

/// Documentation of the value that applies if a key is omitted.
macro_rules! default_text {
    (optional, $given:ty, $type:ty, $without:expr) => {
        $without
    };
    (required, $given:ty, $type:ty) => {
        "required"
    };
    (default, $given:ty, $type:ty, $default:expr) => {
        $crate::keys::shown(&<$given>::from($default))
    };
}

/// Implements the traits of an unordered type that files write unchanged.
macro_rules! plain {
    ($type:ty, $written:literal) => {
        impl $crate::keys::Given<$type> for $type {
            fn written() -> String {
                $written.to_owned()
            }

            fn resolve(self, _: &dyn $crate::files::Files) -> Result<$type, $crate::fault::Fault> {
                Ok(self)
            }

            fn write(value: &$type) -> Self {
                value.clone()
            }
        }

        $crate::keys::unordered!($type);
    };
}

/// A section without a base describes the struct itself.
macro_rules! section_of {
    ($type:ident, $section:ident) => {
        impl $crate::keys::Given<$type> for $section {
            fn written() -> String {
                "table".to_owned()
            }

            fn resolve(self, files: &dyn $crate::files::Files) -> Result<$type, $crate::fault::Fault> {
                self.fill(None, files)
            }

            fn write(value: &$type) -> Self {
                value.section()
            }
        }

        $crate::keys::unordered!($type);
    };
}

/// Declares a section of a file whose values are resolved by hand: each key has its type, the documented name of the
/// type, and the value that applies if the key is omitted.
macro_rules! document_keys {
    ($(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $fdoc:literal])* $field:ident: $type:ty, $written:literal, $default:literal;)*
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $fdoc])* #[serde(default)] #[schemars(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }

        $crate::keys::write_entries!($name { $($field)* });

        impl $name {
            /// Documentation of every key.
            pub fn documentation() -> Vec<$crate::keys::KeyDoc> {
                vec![$($crate::keys::KeyDoc::new(stringify!($field), $written.to_owned(), $default, concat!($($fdoc),*)),)*]
            }
        }
    };
}

/// The keys of a section that are given, in the order of their declaration.
#[derive(Default)]
pub(crate) struct Entries {
    written: Map<String, Value>,
    fault: Option<Error>,
}

impl Entries {
    pub(crate) fn add<T: Serialize>(&mut self, field: &str, value: Option<&T>) {
        match value.map(serde_json::to_value) {
            None => {}
            Some(Ok(value)) => {
                self.written.insert(kebab(field), value);
            }
            Some(Err(error)) => self.fault = Some(error),
        }
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.fault {
            None => self.written.serialize(serializer),
            Some(error) => Err(S::Error::custom(error)),
        }
    }
}

macro_rules! write_entries {
    ($section:ident { $($field:ident)* }) => {
        impl $section {
            fn entries(&self) -> $crate::keys::Entries {
                let mut entries = $crate::keys::Entries::default();
                $(entries.add(stringify!($field), self.$field.as_ref());)*
                entries
            }
        }

        impl serde::Serialize for $section {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&self.entries(), serializer)
            }
        }
    };
}

pub(crate) use {
    default_text, document_keys, filled, keys, plain, section_of, used_as, write_entries, written,
};
