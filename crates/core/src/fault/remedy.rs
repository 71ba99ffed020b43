//! What to do about bad input, as data: each front end words it with its own flags, fields or keywords.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// One thing to do. Its `Display` is neutral: it names keys of the scenario, but neither flags nor keywords.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remedy {
    /// Advice that every front end gives in the same words.
    Advice {
        /// An imperative, without a full stop.
        text: String,
    },
    /// Write a known name instead of a similar one.
    DidYouMean {
        /// The known name.
        name: String,
    },
    /// Choose a name from a list.
    ListNames {
        /// The list.
        list: NameList,
    },
    /// Describe a device that is not in the catalog, starting from one that is.
    DescribeDevice {
        /// Its name.
        name: String,
    },
    /// List the layers of a model.
    ListLayers {
        /// The model of the zoo; none if any is meant.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Give a key of the scenario this value.
    SetKey {
        /// The key, from the root of the scenario.
        key: String,
        /// The value as TOML; strings may stand without quotes.
        value: String,
    },
    /// Use another method.
    UseMethod {
        /// Its name.
        method: String,
    },
    /// Give an option of the request.
    GiveOption {
        /// The option.
        option: RequestOption,
        /// An example of its value; none for a switch, or where any will do.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<String>,
        /// What it achieves, such as "to overwrite it"; may be empty.
        #[serde(skip_serializing_if = "String::is_empty")]
        #[schemars(default)]
        purpose: String,
    },
    /// Name a fitted artefact.
    NameArtefact {
        /// The kinds of fits that are of use; empty if all are.
        fits: Vec<String>,
    },
    /// Measure something, and let the forecast use it.
    Measure {
        /// What to measure.
        what: Measurement,
    },
    /// Make a profile of a recording.
    ImportRecording,
    /// Predict the built-in example.
    RunQuickStart,
}

/// Declares an enumeration of names, which are the same in JSON and in texts.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
        pub enum $type { $(#[doc = concat!("\"", $name, "\".")] $(#[$vdoc])* #[serde(rename = $name)] $variant,)* }

        $crate::variant_names!($type { $($variant = $name,)* });
    };
}

pub(crate) use names;

names! {
    /// A list of names to choose from.
    NameList {
        Models = "models",
        Devices = "devices",
        Machines = "machines",
        Networks = "networks",
        Gradients = "gradients",
    }
}

names! {
    /// An option of a request that is not a key of the scenario.
    RequestOption {
        Batch = "batch",
        Batches = "batches",
        Budget = "budget",
        Data = "data",
        Device = "device",
        Devices = "devices",
        Force = "force",
        From = "from",
        How = "how",
        IgnoreUnknown = "ignore-unknown",
        Machine = "machine",
        MaxMemory = "max-memory",
        Model = "model",
        Network = "network",
        Nodes = "nodes",
        Price = "price",
        Resume = "resume",
        Timeline = "timeline",
        Vary = "vary",
        With = "with",
        Workers = "workers",
    }
}

names! {
    /// What can be measured to replace an assumption.
    Measurement {
        /// One run on the cluster of the forecast.
        RunOnCluster = "run-on-cluster",
        /// One run of several workers.
        RunOfSeveralWorkers = "run-of-several-workers",
        /// The GPU, by the measuring kit.
        Gpu = "gpu",
    }
}

impl Remedy {
    pub fn advice(text: impl Into<String>) -> Self {
        Self::Advice { text: text.into() }
    }

    pub fn set(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self::SetKey { key: key.into(), value: value.into() }
    }

    pub fn method(name: impl Into<String>) -> Self {
        Self::UseMethod { method: name.into() }
    }

    pub fn option(option: RequestOption, value: impl Into<String>) -> Self {
        Self::GiveOption { option, value: Some(value.into()), purpose: String::new() }
    }

    pub fn option_to(option: RequestOption, purpose: &str) -> Self {
        Self::GiveOption { option, value: None, purpose: purpose.to_owned() }
    }

    /// "a, b or c", each worded by `word`.
    pub fn alternatives(of: &[String], word: impl Fn(&str) -> String) -> String {
        let words: Vec<String> = of.iter().map(|one| word(one)).collect();
        match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => words.concat(),
        }
    }
}

/// A value as TOML: words get quotes.
fn toml_value(value: &str) -> String {
    let is_word = value.starts_with(|c: char| c.is_alphabetic()) && !matches!(value, "true" | "false");
    if is_word { format!("\"{value}\"") } else { value.to_owned() }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advice { text } => f.write_str(text),
            Self::DidYouMean { name } => write!(f, "did you mean \"{name}\"?"),
            Self::ListNames { list } => write!(f, "see the list of {list}"),
            Self::DescribeDevice { name } => {
                write!(f, "describe it in a `device` table with `base`, from the template of \"{name}\"")
            }
            Self::ListLayers { model: Some(model) } => write!(f, "use the names of the layers of {model}"),
            Self::ListLayers { model: None } => write!(f, "use the name of a layer of the model"),
            Self::SetKey { key, value } => write!(f, "use `{key} = {}`", toml_value(value)),
            Self::UseMethod { method } => write!(f, "use the method `{method}`"),
            Self::GiveOption { option, value, purpose } => {
                write!(f, "give `{option}`")?;
                value.iter().try_for_each(|value| write!(f, ", such as {value}"))?;
                if purpose.is_empty() { Ok(()) } else { write!(f, " {purpose}") }
            }
            Self::NameArtefact { fits } if fits.is_empty() => f.write_str("name the file of a fit"),
            Self::NameArtefact { fits } => {
                write!(f, "name the file of a fit of {}", Self::alternatives(fits, |fit| format!("`{fit}`")))
            }
            Self::Measure { what } => f.write_str(match what {
                Measurement::RunOnCluster => {
                    "measure one run on the cluster and calibrate the forecast with it"
                }
                Measurement::RunOfSeveralWorkers => {
                    "measure one run of several workers and calibrate the forecast with it"
                }
                Measurement::Gpu => "measure the GPU with kit/machine.py and fit a model of the machine",
            }),
            Self::ImportRecording => f.write_str("import a recording, which makes a profile"),
            Self::RunQuickStart => f.write_str("predict without a scenario for the built-in quick start"),
        }
    }
}

/// What can be done: alternatives, the best first. In JSON it stands in two fields of its owner: `remedy`, a neutral
/// text, and `remedies`, the alternatives as data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remedies(Vec<Remedy>);

impl Remedies {
    pub fn all(&self) -> &[Remedy] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, words: &str) -> bool {
        self.to_string().contains(words)
    }

    #[must_use]
    pub fn or(mut self, others: impl Into<Self>) -> Self {
        self.0.extend(others.into().0);
        self
    }

    /// One sentence without a full stop. `word` gives the wording of a front end where it differs; the rest is neutral.
    pub fn worded(&self, word: impl Fn(&Remedy) -> Option<String>) -> String {
        let mut text = String::new();
        let mut is_choice = false;
        for remedy in &self.0 {
            let words = word(remedy).unwrap_or_else(|| remedy.to_string());
            let again = if text.starts_with("use ") { words.strip_prefix("use ") } else { None };
            match text.as_str() {
                "" => text = words,
                _ if !is_choice => text = format!("{text} {words}"),
                _ => text = format!("{text}, or {}", again.unwrap_or(&words)),
            }
            is_choice = !matches!(remedy, Remedy::DidYouMean { .. });
        }
        text
    }

    /// The remedies with each text shortened by `shorten`.
    pub(super) fn shortened(mut self, shorten: impl Fn(String) -> String) -> Self {
        for remedy in &mut self.0 {
            if let Remedy::Advice { text }
            | Remedy::DidYouMean { name: text }
            | Remedy::SetKey { value: text, .. } = remedy
            {
                *text = shorten(std::mem::take(text));
            }
        }
        self
    }
}

impl fmt::Display for Remedies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(|_| None))
    }
}

impl From<&str> for Remedies {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Remedies {
    fn from(text: String) -> Self {
        Self((!text.is_empty()).then(|| Remedy::advice(text)).into_iter().collect())
    }
}

impl From<&String> for Remedies {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<Remedy> for Remedies {
    fn from(remedy: Remedy) -> Self {
        Self(vec![remedy])
    }
}

impl<const N: usize> From<[Remedy; N]> for Remedies {
    fn from(remedies: [Remedy; N]) -> Self {
        Self(remedies.into())
    }
}

impl From<&Self> for Remedies {
    fn from(remedies: &Self) -> Self {
        remedies.clone()
    }
}

impl Serialize for Remedies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Remedies", 2)?;
        fields.serialize_field("remedy", &self.to_string())?;
        fields.serialize_field("remedies", &self.0)?;
        fields.end()
    }
}

/// The fields of [`Remedies`] in JSON.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Fields {
    /// What to do about it.
    remedy: String,
    /// The remedy as data: alternatives, the best first.
    remedies: Vec<Remedy>,
}

impl JsonSchema for Remedies {
    fn schema_name() -> Cow<'static, str> {
        "Remedies".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Fields::json_schema(generator)
    }
}
