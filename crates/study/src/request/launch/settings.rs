//! Reads and writes settings that a framework and a plan have in common, by the table of plan dimensions.

use super::keys::Keys;
use serde_json::{Map, Value};
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::strategy::{DIMENSIONS, Dimension, Framework, Plan, PlanSection, Setting, SettingForm};

/// All settings of a framework.
fn settings(framework: Framework) -> impl Iterator<Item = (&'static Dimension, &'static Setting)> {
    let own = move |dimension: &'static Dimension| {
        let settings = dimension.settings.iter().filter(move |setting| setting.is_of(framework));
        settings.map(move |setting| (dimension, setting))
    };
    DIMENSIONS.iter().flat_map(own)
}

/// Our value by its name.
fn named(name: &str) -> Value {
    if name == "true" { Value::Bool(true) } else { Value::from(name) }
}

fn written(error: serde_json::Error) -> Fault {
    Fault::new(error.to_string(), "report this: a plan cannot be written")
}

/// Takes the settings of a framework that belong to a plan. Unknown values go to `unknown`.
pub(super) fn read(
    keys: &mut Keys,
    framework: Framework,
    unknown: &mut Vec<String>,
) -> Result<PlanSection, Fault> {
    let mut section = Map::new();
    for (dimension, Setting { name, form, .. }) in settings(framework) {
        let mut find = |names: &[(&str, &str)], word: String, shown: String| {
            let ours = names.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| named(ours));
            if ours.is_none() {
                unknown.push(shown);
            }
            ours
        };
        let value = match form {
            SettingForm::Number => keys.number(name)?.map(Value::from),
            SettingForm::Real => keys.real(name)?.map(Value::from),
            SettingForm::Switch([with, _]) => keys.switch(name).then(|| named(with)),
            SettingForm::Names(names) => {
                keys.word(name).and_then(|word| find(names, word.clone(), format!("{name} {word}")))
            }
            SettingForm::Item(names) => {
                let words = keys.words(name).into_iter();
                words.filter_map(|word| find(names, word.clone(), format!("{name} = [\"{word}\"]"))).last()
            }
            SettingForm::Absent => None,
        };
        section.extend(value.filter(|value| *value != "").map(|value| (dimension.key(), value)));
    }
    serde_json::from_value(Value::Object(section)).map_err(written)
}

/// A setting that waits to be written.
struct Waiting {
    key: String,
    name: &'static str,
    /// `true` for a switch.
    value: Value,
    /// Whether a file needs it.
    needed: bool,
}

/// The settings of a plan in a framework's notation.
pub(super) struct Settings {
    waiting: Vec<Waiting>,
}

impl Settings {
    /// Refuses a plan for which the framework has no settings.
    pub(super) fn new(plan: &Plan, framework: Framework) -> Result<Self, Fault> {
        let [own, usual] = [plan, &PlanSection::default().resolve(&NoFiles)?]
            .map(|plan| serde_json::to_value(plan.section()).map_err(written));
        let (own, usual) = (own?, usual?);
        let mut waiting = Vec::new();
        for (dimension, setting) in settings(framework) {
            let key = dimension.key();
            let (own, usual) = (own.get(&key), usual.get(&key));
            let differs = own != usual;
            let refuse = |what: &str| {
                let reason = format!("{} has no setting here for {what}", framework.title());
                Err(match (setting.without, usual) {
                    (Some(change), _) => Fault::new(reason, excluding(change)),
                    (None, Some(usual)) if dimension.each => {
                        Fault::new(reason, Remedy::set(format!("plan.{key}"), format!("[{usual}]")))
                    }
                    (None, Some(usual)) => {
                        Fault::new(reason, Remedy::set(format!("strategy.plan.{key}"), usual.to_string()))
                    }
                    (None, None) => Fault::new(reason, format!("remove `{key}`, also from `[plan]`")),
                })
            };
            if let (true, Some(what)) = (differs, setting.refused) {
                return refuse(what);
            }
            let Some(own) = own else { continue };
            let text = own.as_str().map_or_else(|| own.to_string(), str::to_owned);
            let theirs = |names: &[(&'static str, &str)]| {
                names.iter().find(|(_, ours)| *ours == text).map(|(theirs, _)| Value::from(*theirs))
            };
            let value = match setting.form {
                SettingForm::Number | SettingForm::Real => Some(own.clone()),
                SettingForm::Switch([with, _]) if text == with => Some(Value::Bool(true)),
                SettingForm::Switch([_, without]) => (text == without).then(|| Value::from("")),
                SettingForm::Names(names) | SettingForm::Item(names) => theirs(names),
                SettingForm::Absent => continue,
            };
            match value {
                // Expressed by omission.
                Some(value) if value == "" => {}
                Some(value) => {
                    let listed = matches!(setting.form, SettingForm::Item(_));
                    let value = if listed { Value::from(vec![value]) } else { value };
                    let needed = setting.always || differs;
                    waiting.push(Waiting { key, name: setting.name, value, needed });
                }
                None if differs => return refuse(&format!("`{key} = {own}`")),
                None => {}
            }
        }
        Ok(Self { waiting })
    }

    /// Takes the settings of some keys, in this order, if a file needs them.
    pub(super) fn take(&mut self, keys: &[&str]) -> Vec<(&'static str, Value)> {
        keys.iter().filter_map(|key| self.take_if(key, false)).collect()
    }

    /// Takes the setting of a key, even if a file would do without if `always`.
    pub(super) fn take_if(&mut self, key: &str, always: bool) -> Option<(&'static str, Value)> {
        let place = self.waiting.iter().position(|waiting| waiting.key == key)?;
        let Waiting { name, value, needed, .. } = self.waiting.remove(place);
        (needed || always).then_some((name, value))
    }

    /// All remaining settings that a file needs.
    pub(super) fn rest(self) -> impl Iterator<Item = (&'static str, Value)> {
        self.waiting.into_iter().filter(|waiting| waiting.needed).map(|waiting| (waiting.name, waiting.value))
    }
}

/// Sets a key of a file, whose tables are joined by dots.
pub(super) fn insert(file: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            file.insert(path.to_owned(), value);
        }
        Some((table, rest)) => {
            let below = file.entry(table).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                insert(below, rest, value);
            }
        }
    }
}

/// The remedy that excludes such plans from a search.
fn excluding(change: &str) -> Remedy {
    let (key, value) = change.split_once('=').unwrap_or((change, "false"));
    Remedy::set(key, value)
}

/// A plan that a framework cannot run; `change` of a scenario excludes such plans.
pub(super) fn cannot(framework: Framework, what: &str, change: &str) -> Fault {
    Fault::new(format!("{} does not run {what}", framework.title()), excluding(change))
}
