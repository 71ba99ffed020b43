//! A validation set: its folder's `set.toml`, and how it is run.

use crate::checks::BoundSpec;
use crate::groups::GroupSpec;
use crate::recipe::Recipe;
use crate::report::SectionSpec;
use crate::{Report, ValidationError, sets};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use stepcast_core::suggest;
use stepcast_validation_data::FILES;

/// How far a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Heartbeat, at least every 50 ms.
    Working,
    Points {
        done: usize,
        of: usize,
    },
}

/// Follows a set and may cancel it.
pub type Observer<'a> = dyn Fn(Progress) -> ControlFlow<()> + Sync + 'a;

/// Says how far a set is; an error if it is cancelled.
pub(crate) fn report_progress(observer: &Observer<'_>, progress: Progress) -> Result<(), ValidationError> {
    match observer(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ValidationError::Cancelled),
    }
}

pub(crate) fn check_cancelled(observer: &Observer<'_>) -> Result<(), ValidationError> {
    report_progress(observer, Progress::Working)
}

/// How to run a set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    pub data: Option<&'a Path>,
    /// For `tf-ps`: also predict each configuration with parameters that were chosen on the others.
    pub held_out: bool,
    /// For `steps`: an artefact of fitted matrix products.
    pub gemm: Option<&'a Path>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Definition {
    /// Where the figures come from and what they are compared with.
    pub(crate) about: String,
    /// Measurements that are not in the binary: a file below `validation`, or a folder, whose name ends with a slash.
    data: Option<String>,
    pub(crate) unit: Option<String>,
    /// Other figures of the source, and why they are not used.
    pub(crate) left_out: Option<String>,
    /// How cases become scenarios.
    #[serde(default)]
    pub(crate) recipe: Vec<Recipe>,
    /// Bounds of errors, in the form that the set's kind of case has.
    bounds: Option<toml::Value>,
    /// The bounds in words, with fields of the figures, where intervals are the set's own.
    pub(crate) bounded: Option<String>,
    /// Bounds of single figures.
    #[serde(default)]
    pub(crate) bound: Vec<BoundSpec>,
    /// Lists of groups that are made of lists of figures, in this order.
    #[serde(default)]
    pub(crate) group: Vec<GroupSpec>,
    #[serde(default)]
    pub(crate) section: Vec<SectionSpec>,
}

/// One source of figures that methods are held against.
#[derive(Debug)]
pub struct Set {
    name: &'static str,
    definition: Result<Definition, String>,
}

pub(crate) struct Run<'a> {
    pub(crate) set: &'static str,
    pub(crate) definition: &'a Definition,
    pub(crate) options: &'a Options<'a>,
    pub(crate) observer: &'a Observer<'a>,
}

impl Run<'_> {
    pub(crate) fn rows<T: DeserializeOwned>(&self, file: &str) -> Result<Vec<T>, ValidationError> {
        crate::records::rows(&format!("{}/{file}", self.set))
    }

    /// The rows of a file in the set's folder, as objects.
    pub(crate) fn cases(&self, file: &str) -> Result<Vec<Value>, ValidationError> {
        crate::records::cases(&format!("{}/{file}", self.set))
    }

    pub(crate) fn bounds<T: DeserializeOwned>(&self) -> Result<T, ValidationError> {
        let damaged = |error: String| ValidationError::Data(format!("{}/set.toml: {error}", self.set));
        let bounds =
            self.definition.bounds.clone().ok_or_else(|| damaged("[bounds] is missing".to_owned()))?;
        bounds.try_into().map_err(|error: toml::de::Error| damaged(format!("[bounds]: {error}")))
    }

    pub(crate) fn recipe(&self) -> Result<&Recipe, ValidationError> {
        let missing = || ValidationError::Data(format!("{}/set.toml: [[recipe]] is missing", self.set));
        self.definition.recipe.first().ok_or_else(missing)
    }

    /// The path of the measurements, which are not in the binary.
    pub(crate) fn data(&self) -> Result<&Path, Fault> {
        self.options.data.ok_or_else(|| {
            let is_folder = self.definition.data.as_ref().is_some_and(|path| path.ends_with('/'));
            let what = if is_folder { "FOLDER" } else { "FILE" };
            let remedy = Remedy::GiveOption {
                option: RequestOption::Data,
                value: Some(what.to_owned()),
                purpose: "(docs/validation.md says what is in it)".to_owned(),
            };
            Fault::new(format!("the measurements of {} are not in the binary", self.set), remedy)
        })
    }
}

impl Set {
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn definition(&self) -> Result<&Definition, ValidationError> {
        let damaged = |error: &String| ValidationError::Data(format!("{}/set.toml: {error}", self.name));
        self.definition.as_ref().map_err(damaged)
    }

    /// Where its measurements are, given the folder of all sets; none if they are in the binary.
    pub(crate) fn data_path(&self, folder: &Path) -> Option<PathBuf> {
        let path = self.definition.as_ref().ok()?.data.as_ref()?;
        Some(folder.join(path.trim_end_matches('/')))
    }

    pub fn run(&self, options: &Options<'_>, observer: &Observer<'_>) -> Result<Report, ValidationError> {
        let definition = self.definition()?;
        let run = Run { set: self.name, definition, options, observer };
        Report::new(self.name, definition, sets::run(&run)?)
    }
}

pub fn all() -> &'static [Set] {
    static SETS: LazyLock<Vec<Set>> = LazyLock::new(|| {
        let set = |(path, bytes): &(&'static str, &[u8])| {
            let text = String::from_utf8_lossy(bytes);
            let definition = stepcast_core::text::parse(&text).map_err(|error| error.to_string());
            Some(Set { name: path.strip_suffix("/set.toml")?, definition })
        };
        FILES.iter().filter_map(set).collect()
    });
    &SETS
}

pub fn find(name: &str) -> Result<&'static Set, Fault> {
    all().iter().find(|set| set.name == name).ok_or_else(|| {
        let names: Vec<&str> = all().iter().map(Set::name).collect();
        let list = format!("the sets are {}", names.join(", "));
        let remedy = suggest::remedy(name, names, list);
        Fault::new(format!("there is no validation set \"{name}\""), remedy)
    })
}

#[cfg(test)]
pub(crate) mod test_reports {
    //! Reports of sets on the committed data: each set runs once, however many tests look at its report.

    use super::*;
    use std::sync::OnceLock;

    /// Follows a set to its end.
    pub(crate) fn unwatched(_: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    pub(crate) fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation")
    }

    pub(crate) fn report(name: &str) -> &'static Report {
        static REPORTS: LazyLock<Vec<OnceLock<Report>>> =
            LazyLock::new(|| all().iter().map(|_| OnceLock::new()).collect());
        let index = all().iter().position(|set| set.name == name).unwrap();
        REPORTS[index].get_or_init(|| {
            let data = all()[index].data_path(&folder());
            all()[index].run(&Options { data: data.as_deref(), ..Options::default() }, &unwatched).unwrap()
        })
    }

    /// What programs get of the set called `name`.
    pub(crate) fn figures(name: &str) -> Value {
        serde_json::to_value(report(name)).unwrap()[name].take()
    }

    #[test]
    fn every_definition_is_sound() {
        for set in all() {
            assert!(set.definition().is_ok(), "{}: {:?}", set.name, set.definition().err());
        }
        assert_eq!(all().len(), 19);
    }
}
