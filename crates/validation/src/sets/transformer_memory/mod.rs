//! Memory of transformers: peaks of real steps on one GPU, what shards keep, and published peaks of parallel runs, all
//! from shapes alone.

mod h200;
mod published;

use crate::families::{Families, Figure, Unit};
use crate::{CoverageBound, Options, Progress, Report, Set, ValidationError, bounds};
use stepcast_analytic::transformer::Split;
use stepcast_analytic::transformer::memory::MemoryInputs;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::strategy::{
    Attention, Implementation, Offloaded, Recompute, ScheduleKind, Sharding, States,
};

const NAME: &str = "transformer-memory";

/// Range in which the share of measured figures within their 90 % intervals must lie. Most figures of three families are exact;
/// those of torchtitan widen the intervals of all of them.
const COVERED: CoverageBound = CoverageBound { least: 0.85, most: 0.98 };

const ABOUT: &str = "Peak memory of transformers from their shape: decoders on one H200 under PyTorch, what one of several \
                     tensor-parallel ranks keeps of a block, and published peaks of torchtitan and Megatron-LM. What PyTorch \
                     keeps was counted on the H200's steps, and the 6 bytes that Megatron-LM needs beside each logit were chosen \
                     on its 12 rows; nothing was fitted to torchtitan's.";

/// The set.
pub(super) struct TransformerMemory;

impl Set for TransformerMemory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        let families = predict()?;
        families.report(NAME, ABOUT, "memory", Vec::new(), (families.coverage(), COVERED))
    }
}

fn predict() -> Result<Families, ValidationError> {
    let mut figures: Vec<Figure> = h200::figures()?;
    figures.extend(published::figures()?);
    Ok(Families { figures, unit: Unit::Bytes, bounds: bounds::of(NAME)? })
}

/// A plain run: one micro-batch on one rank.
fn plain(shape: &Transformer, implementation: Implementation) -> MemoryInputs<'_> {
    MemoryInputs {
        shape,
        split: Split::WHOLE,
        micro_batch: 1,
        micro_batches: 1,
        sharding: Sharding::None,
        sharding_group: None,
        states: States::MegatronBf16,
        recompute: Recompute::None.into(),
        attention: Attention::Flash,
        dropout: false,
        schedule: ScheduleKind::OneFOneB,
        implementation,
        logit: implementation.logit(),
        offload: Offloaded::default(),
        prefetch: true,
        stage_layers: &[],
        stage_recompute: &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_kept() {
        let families = predict().unwrap();
        let checks = families.checks();
        assert!(checks.iter().all(|check| check.holds), "{checks:#?}\n{:#?}", families.furthest(5));
    }
}
