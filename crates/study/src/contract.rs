//! An acceptance test of a cluster: the terms from a forecast, and a sequential test whether measured steps keep them.
//!
//! Steps are taken ten at a time, because neighbours are alike; logarithms of these means are taken as normal around the cluster's
//! mean. The test weighs "the step is the agreed one" against "it is longer by the tolerance" by the ratio of their
//! likelihoods (Wald 1945), and ends as soon as it is above 2/false-alarm or below miss/2: the probability of a wrong
//! verdict is at most the inverse of these bounds (Ville's inequality), however long the test goes on. The other half of both error rates
//! is left for a test of fixed length: after its number of steps, their mean decides.

use crate::explore::plan::{Energy, energy, goodput};
use crate::predict::Forecast;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DisplayFromStr, serde_as};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::text::{self, TextError};
use stepcast_stats::{deviation, mean, normal_quantile};

/// Steps whose mean is one observation.
const BLOCK: usize = 10;

const ENERGY_STEPS: f64 = 1000.0;

/// Terms of two parties.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Terms {
    /// The longest step that keeps the contract.
    #[serde_as(as = "DisplayFromStr")]
    #[schemars(with = "String")]
    pub agreed_step: Seconds,
    /// Slowdown that the test must detect, as a share.
    pub tolerance: f64,
    /// Highest rate of false alarms.
    pub false_alarm: f64,
    /// Highest rate of missed slowdowns.
    pub miss: f64,
    /// Spread of the mean of ten steps: standard deviation of the logarithm.
    pub spread: f64,
}

/// An expected figure and its 90 % interval.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Expected {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// The interval.
    pub interval: [f64; 2],
    /// Its unit.
    pub unit: &'static str,
}

/// An acceptance test.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Contract {
    /// The scenario's model.
    pub model: String,
    /// The terms.
    pub terms: Terms,
    /// Figures that the forecast expects.
    pub expected: Vec<Expected>,
    /// Steps after which the test is decided at the latest.
    pub most_steps: u64,
    /// Steps that it takes on average if the step is the agreed one, and if it is longer by the tolerance.
    pub usual_steps: [u64; 2],
}

/// Outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The cluster keeps the contract.
    Kept,
    /// It is below specification.
    Broken,
    /// More steps are needed.
    Open,
}

/// Measured steps under a contract.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Acceptance {
    /// The verdict.
    pub outcome: Outcome,
    /// Steps that the verdict took, or that were not enough.
    pub steps: u64,
    /// Steps after which it is decided at the latest.
    pub most_steps: u64,
    /// Geometric mean of these steps.
    #[serde(rename = "mean_s", with = "InBaseUnits")]
    pub mean: Seconds,
    /// The longest step that keeps the contract.
    #[serde(rename = "agreed_s", with = "InBaseUnits")]
    pub agreed: Seconds,
}

impl Contract {
    /// The contract for a forecast. The agreed step is the longest of the interval, unless one is given.
    pub fn new(
        scenario: &Scenario,
        forecast: &Forecast,
        agreed: Option<Seconds>,
        [tolerance, false_alarm, miss, spread]: [f64; 4],
    ) -> Result<Self, Fault> {
        let prediction = &forecast.prediction;
        let Some(interval) = &forecast.interval else {
            let reason = "the forecast has no interval, so that nothing can be promised";
            return Err(Fault::new(reason, "use a method that measured runs validate"));
        };
        let [shortest, longest] = interval.iteration_s;
        let terms = Terms { agreed_step: agreed.unwrap_or(longest), tolerance, false_alarm, miss, spread }
            .checked()?;
        let rates = [prediction.iteration / longest, prediction.iteration / shortest];
        let rate = |name, value: f64, unit| {
            let interval = rates.map(|rate| value * rate);
            Expected { name, value, interval, unit }
        };
        let mut expected = vec![
            Expected {
                name: "step time",
                value: prediction.iteration.get(),
                interval: [shortest.get(), longest.get()],
                unit: "s",
            },
            rate("throughput", prediction.throughput.get(), "samples/s"),
        ];
        if let Some(split) = &prediction.transformer {
            expected.push(rate("tokens", split.tokens_per_s, "tokens/s"));
            expected.push(rate("MFU", 100.0 * split.mfu, "%"));
        }
        let lengths = [shortest, longest].map(|end| end / prediction.iteration);
        let time = ENERGY_STEPS * prediction.iteration.get();
        if let Some(Energy { kwh, kwh_range, .. }) = energy(scenario, time, Some(lengths))? {
            let interval = kwh_range.unwrap_or([kwh; 2]);
            expected.push(Expected { name: "energy", value: kwh, interval, unit: "kWh for 1,000 steps" });
        }
        if let Some((share, range)) = goodput(scenario)? {
            let interval = range.unwrap_or([share; 2]).map(|end| 100.0 * end);
            expected.push(Expected { name: "goodput", value: 100.0 * share, interval, unit: "%" });
        }
        Ok(Self {
            model: forecast.scenario.model.zoo.clone().unwrap_or_default(),
            most_steps: terms.most_blocks(terms.spread) * BLOCK as u64,
            usual_steps: terms.usual_blocks().map(|blocks| (blocks * BLOCK as f64).ceil() as u64),
            terms,
            expected,
        })
    }
}

impl Terms {
    /// The terms in a file.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, Fault> {
        let wrong = |error: TextError| {
            Fault::in_file(
                name,
                error.message().to_owned(),
                "give the terms of a contract as they were written",
            )
        };
        text::parse::<Self>(text).map_err(wrong)?.checked().map_err(|fault| fault.at(name))
    }

    /// The terms as a file.
    pub fn to_toml(&self) -> Result<String, Fault> {
        let text =
            toml::to_string(self).map_err(|error| Fault::new(error.to_string(), "give other terms"))?;
        Ok(format!("# The terms of an acceptance test; docs/contract.md explains them.\n{text}"))
    }

    fn checked(self) -> Result<Self, Fault> {
        let wrong = |what: &str, remedy: &str| Err(Fault::new(format!("{what} cannot be tested"), remedy));
        match self {
            Self { agreed_step, .. } if !(agreed_step.get() > 0.0 && agreed_step.get().is_finite()) => {
                wrong("a step of this length", "use a time such as 1.2 s")
            }
            Self { tolerance, .. } if !(0.001..=10.0).contains(&tolerance) => {
                wrong("this tolerance", "use 0.1 to 1000 %, such as 5 %")
            }
            Self { false_alarm, miss, .. }
                if ![false_alarm, miss].iter().all(|rate| (1e-9..=0.5).contains(rate)) =>
            {
                wrong("this rate of false alarms or misses", "use 50 % or less, such as 5 %")
            }
            Self { spread, .. } if !(1e-4..=1.0).contains(&spread) => {
                wrong("this spread of steps", "use 0.01 to 100 %, such as 3 %")
            }
            terms => Ok(terms),
        }
    }

    /// The distance of both hypotheses in standard deviations of an observation.
    fn distance(&self, spread: f64) -> f64 {
        self.tolerance.ln_1p() / spread
    }

    /// Logarithms of the ratio of likelihoods at which the test ends: kept, broken.
    fn ends(&self) -> [f64; 2] {
        [(self.miss / 2.0).ln(), (2.0 / self.false_alarm).ln()]
    }

    /// Observations of a test of a fixed number of them, with half of both rates.
    fn most_blocks(&self, spread: f64) -> u64 {
        let quantiles =
            normal_quantile(1.0 - self.false_alarm / 2.0) + normal_quantile(1.0 - self.miss / 2.0);
        (quantiles / self.distance(spread)).powi(2).ceil().max(1.0) as u64
    }

    /// Mean numbers of observations under both hypotheses (Wald 1945, equation 4.8).
    fn usual_blocks(&self) -> [f64; 2] {
        let [kept, broken] = self.ends();
        let each = 0.5 * self.distance(self.spread).powi(2);
        let most = self.most_blocks(self.spread) as f64;
        let of_kept = -(self.false_alarm * broken + (1.0 - self.false_alarm) * kept) / each;
        let of_broken = ((1.0 - self.miss) * broken + self.miss * kept) / each;
        [of_kept, of_broken].map(|blocks| blocks.clamp(1.0, most))
    }

    /// Tests measured steps, in their order.
    pub fn test(&self, steps: &[Seconds]) -> Acceptance {
        let logarithms: Vec<f64> = steps.iter().map(|step| step.get().ln()).collect();
        let blocks: Vec<f64> = logarithms.chunks_exact(BLOCK).map(mean).collect();
        // Steps that differ more than agreed need more of them.
        let spread = self.spread.max(deviation(&blocks).unwrap_or(0.0));
        let (most, [kept, broken]) = (self.most_blocks(spread), self.ends());
        let (agreed, slower) = (self.agreed_step.get().ln(), self.tolerance.ln_1p());
        let mut evidence = 0.0;
        let mut outcome = Outcome::Open;
        let mut used = 0;
        for block in &blocks {
            evidence += (block - agreed - 0.5 * slower) * slower / spread.powi(2);
            used += 1;
            outcome = match evidence {
                _ if evidence >= broken => Outcome::Broken,
                _ if evidence <= kept => Outcome::Kept,
                _ if used >= most && evidence > 0.0 => Outcome::Broken,
                _ if used >= most => Outcome::Kept,
                _ => continue,
            };
            break;
        }
        let counted = if used == 0 { &logarithms[..] } else { &logarithms[..used as usize * BLOCK] };
        Acceptance {
            outcome,
            steps: counted.len() as u64,
            most_steps: most * BLOCK as u64,
            mean: Seconds::new(mean(counted).exp()),
            agreed: self.agreed_step,
        }
    }
}
