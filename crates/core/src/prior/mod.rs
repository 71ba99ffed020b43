//! What machines and software reach where nothing was measured: priors fitted to published runs.
//!
//! `catalog/priors.toml` has every figure with its unit, its spread between machines, its source and the runs that it
//! was fitted to; docs/priors.md explains the formulas. A scenario carries the priors by which it is predicted
//! ([`Scenario::priors`](crate::scenario::Scenario)), so that a prediction can be repeated with some of them moved:
//! that gives the part of an interval that an assumed figure causes, and runs of a user's own correct them.

mod constants;
pub mod device;
mod file;
#[cfg(test)]
mod formula_tests;
mod spread;
pub mod work;

pub use constants::{AllReduce, OneGpu, Servers};
pub use file::{Constant, Range, Residual};
pub use spread::Spread;

use crate::machine::CatalogError;
use file::{PriorsFile, Section};
use std::sync::{Arc, LazyLock};

static SHIPPED: LazyLock<Result<Arc<Priors>, CatalogError>> = LazyLock::new(|| {
    let broken = |reason: String| CatalogError { file: "priors.toml", reason };
    let text = include_str!("../../../../catalog/priors.toml");
    let file: PriorsFile = toml::from_str(text).map_err(|error| broken(error.to_string()))?;
    Priors::new(&file).map(Arc::new).map_err(broken)
});

/// The part of the priors that predicts one kind of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Steps of several workers that all-reduce.
    AllReduce,
    /// Steps of one GPU.
    OneGpu,
    /// Steps with parameter servers.
    Servers,
}

/// Constants that are off together on a machine: the rates of the network, the rates of tensor units.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What they describe, such as "rate of the network".
    pub name: String,
    /// The part of the priors to which they belong.
    pub domain: Domain,
    /// Standard deviation of the logarithm of their common factor between machines.
    pub spread: f64,
    /// The constants, by name, and the exponent with which each follows the common factor.
    members: Vec<(String, f64)>,
}

impl Group {
    /// Names of its constants.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| name.as_str())
    }
}

/// All priors.
#[derive(Debug, Clone, PartialEq)]
pub struct Priors {
    /// Constants of all-reduce.
    pub all_reduce: AllReduce,
    /// Constants of one GPU.
    pub one_gpu: OneGpu,
    /// Constants of parameter servers.
    pub servers: Servers,
    /// Constants that move together, and how far.
    pub groups: Vec<Group>,
    /// What no constant explains.
    pub residual: Residuals,
    /// Ranges of the runs behind the constants.
    pub range: Range,
}

/// Spreads that no constant explains, by domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residuals {
    /// Of several workers that all-reduce.
    pub all_reduce: Residual,
    /// Of one GPU.
    pub one_gpu: Residual,
    /// Of parameter servers.
    pub servers: Residual,
}

impl Priors {
    /// The priors that come with the program.
    pub fn shipped() -> Result<Arc<Self>, CatalogError> {
        SHIPPED.clone()
    }

    fn new(file: &PriorsFile) -> Result<Self, String> {
        let sections = [
            (Domain::AllReduce, &file.all_reduce),
            (Domain::OneGpu, &file.one_gpu),
            (Domain::Servers, &file.servers),
        ];
        Ok(Self {
            all_reduce: AllReduce::read(&file.all_reduce)?,
            one_gpu: OneGpu::read(&file.one_gpu)?,
            servers: Servers::read(&file.servers)?,
            groups: sections.iter().flat_map(|(domain, section)| groups(*domain, section)).collect(),
            residual: Residuals {
                all_reduce: file.all_reduce.residual,
                one_gpu: file.one_gpu.residual,
                servers: file.servers.residual,
            },
            range: file.range,
        })
    }

    /// The same priors with the constants of the group at `index` moved by the factor e^`shift`.
    #[must_use]
    pub fn moved(&self, index: usize, shift: f64) -> Self {
        let mut moved = self.clone();
        let group = &self.groups[index];
        for (name, exponent) in &group.members {
            let constant = match group.domain {
                Domain::AllReduce => moved.all_reduce.get_mut(name),
                Domain::OneGpu => moved.one_gpu.get_mut(name),
                Domain::Servers => moved.servers.get_mut(name),
            };
            if let Some(constant) = constant {
                *constant *= (shift * exponent).exp();
            }
        }
        moved
    }
}

fn groups(domain: Domain, section: &Section) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (name, constant) in &section.constants {
        let Some(group) = &constant.group else { continue };
        let member = (name.clone(), if constant.reversed { -1.0 } else { 1.0 });
        match groups.iter_mut().find(|known| known.name == *group) {
            Some(known) => known.members.push(member),
            None => groups.push(Group {
                name: group.clone(),
                domain,
                spread: constant.group_spread,
                members: vec![member],
            }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_constant_has_a_source_and_moves_with_its_group() {
        let text = include_str!("../../../../catalog/priors.toml");
        let file: PriorsFile = toml::from_str(text).unwrap();
        let priors = Priors::shipped().unwrap();
        for section in [&file.all_reduce, &file.one_gpu, &file.servers] {
            for (name, constant) in &section.constants {
                assert!(constant.value > 0.0 && constant.spread > 0.0, "{name}");
                assert!(!constant.prior_source.trim().is_empty() && !constant.unit.is_empty(), "{name}");
            }
        }
        let network = priors.groups.iter().position(|group| group.name == "rate of the network").unwrap();
        let moved = priors.moved(network, 0.1);
        assert!((moved.all_reduce.rdma / priors.all_reduce.rdma / 0.1_f64.exp() - 1.0).abs() < 1e-12);
        assert_eq!(moved.all_reduce.nv, priors.all_reduce.nv);
        assert_eq!(moved.servers, priors.servers);
    }

    #[test]
    fn overlap_of_servers_gets_better_or_worse_as_a_whole() {
        let priors = Priors::shipped().unwrap();
        let overlap = priors.groups.iter().position(|group| group.name == "overlap").unwrap();
        let moved = priors.moved(overlap, 0.1);
        assert!(moved.servers.shows > priors.servers.shows && moved.servers.hides < priors.servers.hides);
    }
}
