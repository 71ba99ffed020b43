//! Assumed rates of machines and software without measurements: priors fitted to published runs.
//!
//! `catalog/priors.toml` has every figure with its unit, its spread between machines, its source and the runs that it
//! was fitted to; docs/priors.md explains the formulas. A scenario carries the priors by which it is predicted
//! (`Scenario::priors`), so that a prediction can be repeated with some of them moved:
//! that gives the part of an interval that an assumed figure causes. A user's own runs correct the priors.

mod constants;
pub mod device;
mod file;
pub mod learned;
pub mod work;

pub use constants::{AllReduce, GigabytesPerSec, OneGpu, Servers, Transformers};
pub use file::{Constant, Range, Residual};

use crate::fault::Remedies;
use crate::fitted::machine::{CONSTANTS, MeasuredConstants};
use crate::keys::is_name;
use crate::machine::{CatalogError, Generation};
use crate::quantity::{FlopsPerSec, Seconds};
use file::{PriorsFile, Replacement, Section};
use learned::Learned;
use std::sync::{Arc, LazyLock};

/// Shift of the logarithm of constants, in either direction, for central differences.
pub const SHIFT: f64 = 0.02;
/// Spread of repeats of one run: standard deviation of the logarithm.
pub const REPEATS: f64 = 0.02;

static SHIPPED: LazyLock<Result<Arc<Priors>, CatalogError>> = LazyLock::new(|| {
    let broken = |reason: String| CatalogError { file: "priors.toml", reason };
    Priors::new(&file()?).map(Arc::new).map_err(broken)
});

/// The constants of a domain in the catalog: their fits, their sources, and the figures before the fit.
pub fn constants(domain: Domain) -> Result<Vec<(String, Constant)>, CatalogError> {
    let file = file()?;
    let section = match domain {
        Domain::AllReduce => file.all_reduce,
        Domain::OneGpu => file.one_gpu,
        Domain::Servers => file.servers,
        Domain::Transformer => file.transformer,
    };
    Ok(section.constants.into_iter().collect())
}

fn file() -> Result<PriorsFile, CatalogError> {
    let text = stepcast_catalog::PRIORS;
    crate::text::parse(text).map_err(|error| CatalogError { file: "priors.toml", reason: error.to_string() })
}

/// The part of the priors that predicts one kind of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Steps of several workers that all-reduce.
    AllReduce,
    OneGpu,
    /// Steps with parameter servers.
    Servers,
    /// Transformers that a plan splits.
    Transformer,
}

/// Constants that vary together between machines: the rates of the network, the rates of tensor units.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Description, such as "rate of the network".
    pub name: String,
    /// The part of the priors to which they belong.
    pub domain: Domain,
    /// Standard deviation of the logarithm of their common factor between machines.
    pub spread: f64,
    pub constants: Vec<Member>,
    /// How a user replaces the assumption by a measurement or a fact.
    pub remedy: Remedies,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub name: String,
    pub unit: String,
    pub source: String,
    /// The exponent with which it follows the factor of the group.
    exponent: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Priors {
    pub all_reduce: AllReduce,
    pub one_gpu: OneGpu,
    pub servers: Servers,
    /// Constants of transformers that a plan splits.
    pub transformer: Transformers,
    /// Constants that vary together, and their spread. Shared, because a prediction is repeated with many of them moved.
    pub groups: Arc<[Group]>,
    /// Results of learning from the user's own runs.
    pub learned: Option<Learned>,
    /// Spreads that no constant explains.
    pub residual: Residuals,
    /// Ranges of the runs behind the constants.
    pub range: Range,
}

/// Spreads that no constant explains, by domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residuals {
    /// Spread of several workers that all-reduce.
    pub all_reduce: Residual,
    pub one_gpu: Residual,
    pub servers: Residual,
    /// Spread of transformers that a plan splits.
    pub transformer: Residual,
}

impl Priors {
    pub fn shipped() -> Result<Arc<Self>, CatalogError> {
        SHIPPED.clone()
    }

    fn new(file: &PriorsFile) -> Result<Self, String> {
        let sections = [
            (Domain::AllReduce, &file.all_reduce),
            (Domain::OneGpu, &file.one_gpu),
            (Domain::Servers, &file.servers),
            (Domain::Transformer, &file.transformer),
        ];
        Ok(Self {
            all_reduce: AllReduce::read(&file.all_reduce)?,
            one_gpu: OneGpu::read(&file.one_gpu)?,
            servers: Servers::read(&file.servers)?,
            transformer: Transformers::read(&file.transformer)?,
            groups: sections.iter().flat_map(|(domain, section)| groups(*domain, section)).collect(),
            learned: None,
            residual: Residuals {
                all_reduce: file.all_reduce.residual,
                one_gpu: file.one_gpu.residual,
                servers: file.servers.residual,
                transformer: file.transformer.residual,
            },
            range: file.range,
        })
    }

    /// Variance of a figure whose logarithm changes by `slopes` with the logarithm of each group, if these move
    /// independently.
    pub fn variance(&self, slopes: &[f64]) -> f64 {
        self.groups.iter().zip(slopes).map(|(group, slope)| (group.spread * slope).powi(2)).sum()
    }

    /// The priors after a correction: each group moved by the factor e^shift, with its remaining spread.
    #[must_use]
    pub fn corrected(&self, groups: &[(f64, f64)], learned: Learned) -> Self {
        let mut corrected = self.clone();
        for (index, (shift, spread)) in groups.iter().enumerate() {
            corrected = corrected.moved(index, *shift);
            Arc::make_mut(&mut corrected.groups)[index].spread = *spread;
        }
        corrected.learned = Some(learned);
        corrected
    }

    /// The priors with the constants of the group at `index` moved by the factor e^`shift`.
    #[must_use]
    pub fn moved(&self, index: usize, shift: f64) -> Self {
        let mut moved = self.clone();
        let group = &self.groups[index];
        for constant in &group.constants {
            moved.move_one(group.domain, &constant.name, shift * constant.exponent);
        }
        moved
    }

    /// The priors with one constant moved by the factor e^`shift`.
    #[must_use]
    pub fn with_moved(&self, domain: Domain, name: &str, shift: f64) -> Self {
        let mut moved = self.clone();
        moved.move_one(domain, name, shift);
        moved
    }

    pub fn value(&self, domain: Domain, name: &str) -> Option<f64> {
        match domain {
            Domain::AllReduce => self.all_reduce.get(name),
            Domain::OneGpu => self.one_gpu.get(name),
            Domain::Servers => self.servers.get(name),
            Domain::Transformer => self.transformer.get(name),
        }
    }

    fn move_one(&mut self, domain: Domain, name: &str, shift: f64) {
        let factor = |own: &'static str, _: f64| is_name(own, name).then(|| shift.exp());
        match domain {
            Domain::AllReduce => self.all_reduce.scale(factor),
            Domain::OneGpu => self.one_gpu.scale(factor),
            Domain::Servers => self.servers.scale(factor),
            Domain::Transformer => self.transformer.scale(factor),
        }
    }

    /// The spread of a step of one GPU within the range of published runs, where `step` predicts it by given priors:
    /// standard deviation of the logarithm. `real` is as in [`Residual::of_one_gpu`].
    pub fn one_gpu_spread(&self, step: impl Fn(&Self) -> Seconds, real: bool) -> f64 {
        let groups = self.groups.iter().enumerate();
        let slopes: Vec<f64> = groups
            .map(|(index, group)| match group.domain {
                Domain::OneGpu => {
                    let [up, down] = [SHIFT, -SHIFT].map(|shift| step(&self.moved(index, shift)));
                    (up / down).ln() / (2.0 * SHIFT)
                }
                Domain::AllReduce | Domain::Servers | Domain::Transformer => 0.0,
            })
            .collect();
        self.variance(&slopes).sqrt().hypot(self.residual.one_gpu.of_one_gpu(real)).hypot(REPEATS)
    }

    /// Additional spread for a batch and a device beyond the range of the runs, by the number of doublings.
    pub fn one_gpu_extrapolation(&self, batch: u32, fp32: FlopsPerSec) -> f64 {
        let range = &self.range.one_gpu;
        let batch = doublings_outside(f64::from(batch), range.batch);
        range.per_doubling * batch.hypot(doublings_outside(fp32.get() / 1e12, range.fp32_tflops))
    }
}

impl Residual {
    /// Unexplained spread of a step of one GPU: standard deviation of the logarithm. `real` tells whether an input
    /// pipeline feeds it with real data.
    pub fn of_one_gpu(&self, real: bool) -> f64 {
        let input = if real { self.input } else { 0.0 };
        self.row.hypot(self.software).hypot(input)
    }
}

/// How many doublings `value` lies outside a range.
pub fn doublings_outside(value: f64, [least, most]: [f64; 2]) -> f64 {
    (value / most).max(least / value).max(1.0).log2()
}

/// Endings of constants that differ between generations.
const GENERATIONS: [(&str, Option<Generation>); 10] = [
    ("_ampere", Some(Generation::Ampere)),
    ("_hopper", Some(Generation::Hopper)),
    ("_blackwell", Some(Generation::Blackwell)),
    ("_volta", Some(Generation::Volta)),
    ("_cdna", Some(Generation::Cdna)),
    ("_gb20x", Some(Generation::Gb20x)),
    ("_systolic", Some(Generation::Tpu)),
    ("_trainium", Some(Generation::Trainium)),
    ("_systolic", Some(Generation::Gaudi)),
    ("_other", None),
];

impl Transformers {
    /// These constants with the shipped ones of all generations replaced by measured ones. A constant that was moved
    /// relative to the shipped one stays moved by the same factor.
    #[must_use]
    pub fn with_measured(&self, measured: &MeasuredConstants) -> Self {
        let Ok(shipped) = Priors::shipped() else { return *self };
        let mut now = *self;
        now.scale(|name, _| {
            let ending = GENERATIONS.iter().find_map(|(ending, _)| name.strip_suffix(ending));
            Some(measured.get(ending.unwrap_or(name))? / shipped.transformer.get(name)?)
        });
        now
    }

    /// These constants with all times of the host multiplied.
    #[must_use]
    pub fn with_slower_host(&self, factor: f64) -> Self {
        let [host, checkpoint, modules] =
            [self.host, self.checkpoint, self.modules].map(|time| time * factor);
        Self { host, checkpoint, modules, ..*self }
    }

    pub fn of_generation(&self, generation: Option<Generation>) -> MeasuredConstants {
        let own = GENERATIONS.iter().find(|(_, own)| own.is_some() && *own == generation);
        let endings = [own.map_or("", |(ending, _)| ending), "", "_other"];
        MeasuredConstants::from_array(CONSTANTS.map(|row| {
            let found = endings.iter().find_map(|ending| self.get(&format!("{}{ending}", row.name)));
            found.unwrap_or(f64::NAN)
        }))
    }
}

fn groups(domain: Domain, section: &Section) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (name, constant) in &section.constants {
        let Some(group) = &constant.group else { continue };
        let member = Member {
            name: name.clone(),
            unit: constant.unit.clone(),
            source: constant.prior_source.clone(),
            exponent: if constant.reversed { -1.0 } else { 1.0 },
        };
        match groups.iter_mut().find(|known| known.name == *group) {
            Some(known) => known.constants.push(member),
            None => groups.push(Group {
                name: group.clone(),
                domain,
                spread: constant.group_spread,
                constants: vec![member],
                remedy: section.remedies.get(group).map(Replacement::to_remedies).unwrap_or_default(),
            }),
        }
    }
    groups
}
