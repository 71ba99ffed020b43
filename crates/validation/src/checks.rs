//! Errors of predictions, deviations from exact values, and the bounds that both must keep.

use crate::ValidationError;
use crate::template::{fill, find};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// Errors of one way to predict, in percent of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// The method, or how its inputs were fitted.
    pub method: &'static str,
    pub mean: f64,
    pub worst: f64,
    /// Mean of the signed errors.
    pub bias: f64,
}

impl Errors {
    /// From the ratios of predicted to measured values.
    pub fn from_ratios(method: &'static str, ratios: impl Iterator<Item = f64>) -> Self {
        let errors: Vec<f64> = ratios.map(|ratio| 100.0 * (ratio - 1.0)).collect();
        let mean = |sum: f64| sum / errors.len().max(1) as f64;
        Self {
            method,
            mean: mean(errors.iter().map(|error| error.abs()).sum()),
            worst: errors.iter().map(|error| error.abs()).fold(0.0, f64::max),
            bias: mean(errors.iter().sum()),
        }
    }
}

/// Range in which the share of measured values within their 90 % intervals must lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoverageBound {
    pub least: f64,
    pub most: f64,
}

/// Upper bounds of a set's errors, in percent of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ErrorBounds {
    pub mean: f64,
    pub worst: f64,
}

impl ErrorBounds {
    pub fn keeps(self, errors: &Errors) -> bool {
        errors.mean <= self.mean && errors.worst <= self.worst
    }
}

impl fmt::Display for ErrorBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean at most {} %, worst at most {} %", self.mean, self.worst)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BoundCheck {
    pub what: String,
    pub bound: String,
    pub found: String,
    pub holds: bool,
}

impl BoundCheck {
    /// Mean and worst error of a group of figures; a group without figures misses its bounds.
    pub(crate) fn errors(what: &str, bounds: ErrorBounds, errors: Option<&Errors>) -> Self {
        Self {
            what: what.to_owned(),
            bound: bounds.to_string(),
            found: errors.map_or("no figures".to_owned(), |errors| {
                format!("mean {:.1} %, worst {:.1} %", errors.mean, errors.worst)
            }),
            holds: errors.is_some_and(|errors| bounds.keeps(errors)),
        }
    }
}

/// A bound of one figure, as `set.toml` has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct BoundSpec {
    /// The bounded quantity, in words with fields of the figures.
    what: String,
    figure: String,
    at_most: Option<Limit>,
    at_least: Option<Limit>,
    between: Option<[Limit; 2]>,
    count: Option<Limit>,
    /// Another figure that it must equal.
    equals: Option<String>,
    /// Of the figure: "%" for percentages, "share" for shares that are shown as percentages.
    #[serde(default)]
    unit: String,
    #[serde(default)]
    digits: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Limit {
    Number(f64),
    Figure(String),
}

impl Limit {
    fn get(&self, figures: &Value) -> Result<f64, ValidationError> {
        Ok(match self {
            Self::Number(number) => *number,
            Self::Figure(path) => find(figures, path)?.as_f64().unwrap_or(f64::NAN),
        })
    }
}

impl BoundSpec {
    pub(crate) fn check(&self, figures: &Value) -> Result<BoundCheck, ValidationError> {
        let value = find(figures, &self.figure)?;
        let what = fill(&self.what, figures)?.unwrap_or_default();
        if let Some(other) = &self.equals {
            let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let (found, bound) = (words(value), words(find(figures, other)?));
            return Ok(BoundCheck { what, holds: found == bound, bound, found });
        }
        let number = value.as_f64().unwrap_or(f64::NAN);
        let get = |limit: &Option<Limit>| limit.as_ref().map(|limit| limit.get(figures)).transpose();
        if let Some(count) = get(&self.count)? {
            let (bound, found) = (count.to_string(), value.to_string());
            return Ok(BoundCheck { what, bound, found, holds: number >= count });
        }
        let between = self
            .between
            .as_ref()
            .map(|ends| Ok::<_, ValidationError>([ends[0].get(figures)?, ends[1].get(figures)?]));
        let limit = |limit: f64| {
            if self.unit == "share" { format!("{:.0}", 100.0 * limit) } else { limit.to_string() }
        };
        let unit = if self.unit.is_empty() { "" } else { " %" };
        let (bound, [least, most]) = match (get(&self.at_most)?, get(&self.at_least)?, between.transpose()?) {
            (Some(most), ..) => (format!("at most {}", limit(most)), [f64::NEG_INFINITY, most]),
            (_, Some(least), _) => (format!("at least {}", limit(least)), [least, f64::INFINITY]),
            (.., Some([least, most])) => (format!("{} to {}", limit(least), limit(most)), [least, most]),
            _ => return Err(ValidationError::Data(format!("the bound of \"{what}\" has no limit"))),
        };
        let digits = self.digits;
        let shown = if self.unit == "share" { 100.0 * number } else { number };
        let found = if number.is_nan() { "missing".to_owned() } else { format!("{shown:.digits$}{unit}") };
        Ok(BoundCheck { what, bound: bound + unit, found, holds: (least..=most).contains(&number) })
    }
}

/// Figures of several cases, and how far they are from exact values that were worked out independently of the code.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ExactCheck {
    what: &'static str,
    /// Number of cases, each with several figures.
    pub(crate) cases: usize,
    figures: usize,
    /// The largest relative deviation; absolute where the exact value is zero.
    worst: f64,
    tolerance: f64,
}

impl ExactCheck {
    pub(crate) fn new(what: &'static str, tolerance: f64) -> Self {
        Self { what, cases: 0, figures: 0, worst: 0.0, tolerance }
    }

    pub(crate) fn figure(&mut self, found: f64, expected: f64) {
        self.figures += 1;
        let scale = if expected.abs() > 0.0 { expected.abs() } else { 1.0 };
        let deviation = (found - expected).abs() / scale;
        // A figure that is not a number misses every tolerance.
        self.worst = if deviation.is_nan() { f64::INFINITY } else { self.worst.max(deviation) };
    }

    /// Adds figures that must be as many as are expected; each missing or additional one counts as wrong.
    pub(crate) fn figures(&mut self, found: &[f64], expected: &[f64]) {
        for place in 0..found.len().max(expected.len()) {
            let at = |figures: &[f64]| figures.get(place).copied().unwrap_or(f64::NAN);
            self.figure(at(found), at(expected));
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.figures > 0 && self.worst <= self.tolerance
    }

    pub(crate) fn to_value(&self) -> Value {
        let Self { what, cases, figures, worst, tolerance } = self;
        json!({ "what": what, "cases": cases, "figures": figures, "worst": worst, "tolerance": tolerance, "_holds": self.holds() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_are_missing_or_not_numbers_are_missed() {
        let mut check = ExactCheck::new("nothing", 1.0);
        assert!(!check.holds());
        check.figure(f64::NAN, 1.0);
        check.figure(1.0, 1.0);
        assert!(!check.holds());
        let mut check = ExactCheck::new("one of two", 1e-9);
        check.figures(&[1.0], &[1.0, 2.0]);
        assert_eq!((check.figures, check.holds()), (2, false));
    }

    #[test]
    fn bounds_are_checked_and_worded() {
        let figures = json!({ "mean": 5.04, "share": 0.9, "right": 15, "a": "x", "b": "x", "none": null });
        for (spec, bound, found, holds) in [
            ("figure = 'mean'\nat-most = 4.0\nunit = '%'\ndigits = 1", "at most 4 %", "5.0 %", false),
            ("figure = 'mean'\nbetween = [5.0, 5.2]\nunit = '%'\ndigits = 2", "5 to 5.2 %", "5.04 %", true),
            ("figure = 'mean'\nat-most = 5.5\ndigits = 3", "at most 5.5", "5.040", true),
            (
                "figure = 'share'\nat-least = 0.85\nunit = 'share'\ndigits = 1",
                "at least 85 %",
                "90.0 %",
                true,
            ),
            ("figure = 'right'\ncount = 16", "16", "15", false),
            ("figure = 'right'\ncount = 'right'", "15", "15", true),
            ("figure = 'a'\nequals = 'b'", "x", "x", true),
            ("figure = 'none'\nat-most = 1.0", "at most 1", "missing", false),
        ] {
            let spec: BoundSpec = toml::from_str(&format!("what = 'w'\n{spec}")).unwrap();
            let check = spec.check(&figures).unwrap();
            let expected =
                BoundCheck { what: "w".to_owned(), bound: bound.to_owned(), found: found.to_owned(), holds };
            assert_eq!(check, expected);
        }
    }
}
