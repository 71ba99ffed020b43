//! A step that is forecast, as far as others share its causes: the joint distribution of several of them.

use crate::predict::calibrate::character;
use crate::predict::interval::assumed::{Causes, closed_form};
use crate::predict::interval::spreads;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prior::learned::{Character, Unexplained};
use stepcast_core::scenario::Scenario;

/// The logarithm of a step, or of an assumed constant of a machine, as far as it is uncertain.
#[derive(Debug, Clone, PartialEq)]
pub struct UncertainFigure {
    /// Its change with each group of priors, in standard deviations of the group.
    loadings: Vec<f64>,
    /// What no prior explains.
    unexplained: Unexplained,
    character: Character,
}

impl UncertainFigure {
    /// The step of a scenario by `method`.
    pub fn step(scenario: &Scenario, method: &dyn Method) -> Result<Self, Fault> {
        let character = character(scenario);
        let known = Unexplained { common: 0.0, own: 0.0 };
        let nothing =
            Self { loadings: vec![0.0; scenario.priors.groups.len()], unexplained: known, character };
        let Some(twin) = closed_form(scenario, method) else { return Ok(nothing) };
        let Some(causes) = Causes::new(scenario, twin, &twin.predict(scenario)?)? else { return Ok(nothing) };
        // Runs of a user's own have told a part of it.
        let left =
            scenario.priors.learned.as_ref().map_or(1.0, |own| own.unexplained_left(&nothing.character));
        let Unexplained { common, own } = causes.unexplained();
        Ok(Self {
            loadings: spreads(scenario)
                .iter()
                .zip(&causes.slopes)
                .map(|(spread, slope)| spread * slope)
                .collect(),
            unexplained: Unexplained { common: common * left, own: own * left },
            ..nothing
        })
    }

    /// The common factor on the constants of a group of priors, on the machines of a scenario whose step this is.
    #[must_use]
    pub fn of_group(&self, scenario: &Scenario, group: usize) -> Self {
        let mut loadings = vec![0.0; self.loadings.len()];
        loadings[group] = spreads(scenario)[group];
        Self {
            loadings,
            unexplained: Unexplained { common: 0.0, own: 0.0 },
            character: self.character.clone(),
        }
    }

    /// Whether the step depends on a group of priors.
    pub fn depends_on(&self, group: usize) -> bool {
        self.loadings[group].abs() > 1e-6
    }

    /// The covariance with another figure: factors of other machines are as correlated as their deviations.
    pub fn covariance(&self, other: &Self) -> f64 {
        let shared: f64 = self.loadings.iter().zip(&other.loadings).map(|(a, b)| a * b).sum();
        let unexplained = Unexplained {
            common: (self.unexplained.common * other.unexplained.common).sqrt(),
            own: (self.unexplained.own * other.unexplained.own).sqrt(),
        };
        let sameness = self.character.sameness(&other.character);
        sameness * shared + unexplained.covariance(&self.character, &other.character)
    }
}

/// The covariance of figures, each with the standard deviation of what is its alone, row by row.
pub fn joint(figures: &[(&UncertainFigure, f64)]) -> Vec<f64> {
    let row = |(place, (figure, alone)): (usize, &(&UncertainFigure, f64))| -> Vec<f64> {
        let mut row: Vec<f64> = figures.iter().map(|(other, _)| figure.covariance(other)).collect();
        row[place] += alone.powi(2);
        row
    };
    figures.iter().enumerate().flat_map(row).collect()
}
