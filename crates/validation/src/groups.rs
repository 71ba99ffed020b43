//! Figures in groups: errors and other sums of the rows that agree in a field, as `[[group]]` of `set.toml` asks for them.

use crate::records::{Fields, number};
use crate::template::{fill, find, list};
use crate::{Errors, ValidationError};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::hash::Hash;
use stepcast_stats::quantile;

/// A list of groups that is made of a list of figures.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct GroupSpec {
    /// The figure that it becomes; a list that is there already grows longer.
    pub(crate) into: String,
    /// The list of figures that is grouped.
    rows: String,
    /// What rows of a group have in common: a field, or a text with fields. Without it there is one group of all rows: a list of one if
    /// it has a name, else no list.
    by: Option<String>,
    /// A field that must be there and not be false; with an exclamation mark, the opposite.
    only: Option<String>,
    /// The groups and their names, where they are listed whether they have rows or not; the others are left out.
    #[serde(default)]
    names: IndexMap<String, String>,
    /// Whether groups stand in the order of what they have in common, and not in that of their first rows.
    #[serde(default)]
    sorted: bool,
    /// Beginnings of what they have in common, in their order, where that is not the order of letters.
    #[serde(default)]
    order: Vec<String>,
    /// Groups of fewer rows are left out.
    #[serde(default)]
    fewest: usize,
    /// Name of a last group of all rows.
    all: Option<String>,
    #[serde(default = "measured")]
    measured: String,
    /// What a group has, by key: see [`GroupSpec::figure`].
    figures: IndexMap<String, Figure>,
}

fn measured() -> String {
    "measured".to_owned()
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Figure {
    One(String),
    Several(Vec<String>),
}

/// Rows by a key, in the order in which keys appear first.
pub(crate) fn grouped<'a, R, K: Hash + Eq>(
    rows: impl IntoIterator<Item = &'a R>,
    key: impl Fn(&'a R) -> K,
) -> IndexMap<K, Vec<&'a R>> {
    let mut groups: IndexMap<K, Vec<&R>> = IndexMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().push(row);
    }
    groups
}

impl GroupSpec {
    /// Adds the groups to the figures.
    pub(crate) fn add(&self, figures: &mut Value) -> Result<(), ValidationError> {
        let made = self.groups(figures)?;
        match (figures.get_mut(&self.into), made) {
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (_, made) => figures[&self.into] = made,
        }
        Ok(())
    }

    fn groups(&self, figures: &Value) -> Result<Value, ValidationError> {
        let holds = |row: &Value, field| !matches!(row.field(field), Value::Null | Value::Bool(false));
        let is_kept = |row: &&Value| match self.only.as_deref() {
            None => true,
            Some(field) => match field.strip_prefix('!') {
                Some(field) => !holds(row, field),
                None => holds(row, field),
            },
        };
        let rows: Vec<&Value> = list(figures, &self.rows)?.iter().filter(is_kept).collect();
        let all = self.all.as_ref().map(|name| self.row(name, &rows)).transpose()?;
        let Some(by) = &self.by else {
            return all.map_or_else(|| self.row("", &rows), |all| Ok(json!([all])));
        };
        let template = if by.contains("${") { by.clone() } else { format!("${{{by}}}") };
        let mut keys = Vec::new();
        for row in &rows {
            keys.push(fill(&template, row)?.unwrap_or_default());
        }
        let mut groups: IndexMap<&str, Vec<&Value>> =
            self.names.keys().map(|key| (key.as_str(), Vec::new())).collect();
        for (key, row) in keys.iter().zip(&rows) {
            match groups.get_mut(key.as_str()) {
                Some(own) => own.push(row),
                None if self.names.is_empty() => drop(groups.insert(key, vec![row])),
                None => {}
            }
        }
        if self.sorted {
            let rank = |key: &str| self.order.iter().position(|beginning| key.starts_with(beginning));
            groups.sort_unstable_by(|a, _, b, _| (rank(a), a).cmp(&(rank(b), b)));
        }
        let mut made = Vec::new();
        for (key, own) in groups.into_iter().filter(|(_, own)| own.len() >= self.fewest) {
            made.push(self.row(self.names.get(key).map_or(key, String::as_str), &own)?);
        }
        made.extend(all);
        Ok(Value::Array(made))
    }

    fn row(&self, name: &str, rows: &[&Value]) -> Result<Value, ValidationError> {
        let mut fields = Map::new();
        for (key, of) in &self.figures {
            let value = match of {
                Figure::One(of) => self.figure(of, name, rows)?,
                Figure::Several(list) => {
                    Value::Array(list.iter().map(|of| self.figure(of, name, rows)).collect::<Result<_, _>>()?)
                }
            };
            fields.insert(key.clone(), value);
        }
        Ok(Value::Object(fields))
    }

    /// A figure of a group: its `name`, the number of its `rows`, an error in percent (`mean`, `worst`, `bias`, `median`, of the
    /// field `predicted` or another), the share `near` by a factor, a `word` that is given, or what a field has: its `first` value, `any` and `share` of what is
    /// true, the `sum`, the `average`, the `middle`, the `least`; of logarithms the mean in `percent`, as a `factor` and as one over it,
    /// its `inverse`.
    fn figure(&self, of: &str, name: &str, rows: &[&Value]) -> Result<Value, ValidationError> {
        let (what, field) = of.split_once(' ').unwrap_or((of, ""));
        let predicted = if field.is_empty() { "predicted" } else { field };
        let ratios = || rows.iter().map(|row| row.number(predicted) / row.number(&self.measured));
        let errors = || Errors::from_ratios("", ratios());
        let values = || rows.iter().map(|row| find(row, field).map_or(f64::NAN, number));
        let average = || values().sum::<f64>() / rows.len().max(1) as f64;
        let count = || rows.iter().filter(|row| row.is(field)).count();
        Ok(match what {
            "name" => json!(name),
            "word" => json!(field),
            "rows" => json!(rows.len()),
            "mean" => json!(errors().mean),
            "worst" => json!(errors().worst),
            "bias" => json!(errors().bias),
            "median" => {
                let mut off: Vec<f64> = ratios().map(|ratio| 100.0 * (ratio - 1.0).abs()).collect();
                json!(quantile(&mut off, 0.5))
            }
            "near" => {
                let most = field.parse::<f64>().unwrap_or(f64::NAN);
                let ratios = rows.iter().map(|row| row.number("predicted") / row.number(&self.measured));
                json!(
                    ratios.filter(|ratio| ratio.ln().abs() <= most.ln()).count() as f64
                        / rows.len().max(1) as f64
                )
            }
            "first" => rows.first().map_or(Value::Null, |row| row.field(field).clone()),
            "any" => json!(count() > 0),
            "share" => json!(count() as f64 / rows.len().max(1) as f64),
            "sum" => json!(rows.iter().map(|row| row.count(field)).sum::<u64>()),
            "average" => json!(average()),
            "middle" => json!(quantile(&mut values().collect::<Vec<_>>(), 0.5)),
            "least" => json!(values().fold(f64::INFINITY, f64::min)),
            "percent" => json!(100.0 * average()),
            "factor" => json!(average().exp()),
            "inverse" => json!((-average()).exp()),
            _ => return Err(ValidationError::Data(format!("there is no figure \"{of}\" of groups"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(spec: &str) -> Value {
        let mut figures = json!({ "rows": [
            { "of": "b", "predicted": 1.1, "measured": 1.0, "own": 2.0, "is": true, "n": 3, "log": 0.0 },
            { "of": "a", "predicted": 0.8, "measured": 1.0, "own": 1.0, "is": false, "n": 4, "log": 0.0 },
            { "of": "b", "predicted": 0.7, "measured": 1.0, "own": 1.0, "is": false, "n": 5, "log": 0.0 },
        ] });
        let spec: GroupSpec = toml::from_str(&format!("into = 'into'\nrows = 'rows'\n{spec}")).unwrap();
        spec.add(&mut figures).unwrap();
        figures["into"].take()
    }

    #[test]
    fn groups_stand_in_the_order_that_is_asked_for() {
        let named = |spec: &str| grouped(&format!("{spec}\nfigures = {{ name = 'name', rows = 'rows' }}"));
        let group = |name: &str, rows: u64| json!({ "name": name, "rows": rows });
        for (spec, expected) in [
            ("by = 'of'", json!([group("b", 2), group("a", 1)])),
            (
                "by = '${of}!'\nsorted = true\nall = 'all'",
                json!([group("a!", 1), group("b!", 2), group("all", 3)]),
            ),
            ("by = 'of'\nsorted = true\norder = ['b', 'a']", json!([group("b", 2), group("a", 1)])),
            ("by = 'of'\nnames = { c = 'C', a = 'A' }", json!([group("C", 0), group("A", 1)])),
            ("by = 'of'\nfewest = 2", json!([group("b", 2)])),
            ("by = 'of'\nonly = 'is'", json!([group("b", 1)])),
            ("by = 'of'\nonly = '!is'", json!([group("a", 1), group("b", 1)])),
            ("all = 'every one'", json!([group("every one", 3)])),
            ("", group("", 3)),
        ] {
            assert_eq!(named(spec), expected, "{spec}");
        }
    }

    #[test]
    fn every_figure_of_a_group_is_computed() {
        for (figure, expected) in [
            ("mean", 20.0),
            ("worst", 30.0),
            ("median", 20.0),
            ("bias", -40.0 / 3.0),
            ("worst own", 100.0),
            ("near 1.3", 2.0 / 3.0),
            ("share is", 1.0 / 3.0),
            ("sum n", 12.0),
            ("average own", 4.0 / 3.0),
            ("middle own", 1.0),
            ("least own", 1.0),
            ("percent own", 400.0 / 3.0),
            ("factor log", 1.0),
            ("inverse log", 1.0),
            ("first n", 3.0),
        ] {
            let found = grouped(&format!("figures = {{ it = '{figure}' }}"))["it"].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-9, "{figure}: {found}");
        }
        let found = grouped("figures = { any = 'any is', both = ['word x y', 'first none'] }");
        assert_eq!(found, json!({ "any": true, "both": ["x y", null] }));
    }
}
