//! Published throughputs as measured cases, all but the one that the rate within a node was fitted on.

use super::data::Scheme;
use super::predict::PER_NODE;
use super::predictions::{SchemePredictions, ThroughputPrediction};
use stepcast_core::machine::catalog;
use stepcast_core::quantity::{BitsPerSec, SamplesPerSec};
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{Case, Limit, Machines, Pace, Regime};

impl SchemePredictions {
    /// Every throughput that nothing was fitted on.
    pub(super) fn cases(&self) -> Vec<Case> {
        let ethernet = catalog::network("10gbe").ok().map(|network| network.bandwidth);
        self.rows.iter().filter(|row| !row.fitted).map(|row| case(row, ethernet)).collect()
    }
}

fn case(row: &ThroughputPrediction, ethernet: Option<BitsPerSec>) -> Case {
    let several = row.gpus > PER_NODE;
    Case {
        set: super::NAME,
        group: row.model.clone(),
        method: "liu2022".to_owned(),
        regime: Regime {
            architecture: match row.scheme {
                Scheme::BspAllReduce | Scheme::WfbpAllReduce | Scheme::MgWfbp => Architecture::AllReduce,
                Scheme::BspServers | Scheme::WfbpServers => Architecture::ParameterServer,
            },
            pace: Pace::Synchronous,
            limit: Limit::of(row.computing_share),
            machines: if several { Machines::Several } else { Machines::One },
        },
        workers: row.gpus,
        bandwidth: ethernet.filter(|_| several),
        parameters: Some(row.parameters),
        predicted: SamplesPerSec::new(row.predicted),
        measured: SamplesPerSec::new(row.measured),
        run_spread: 0.0,
    }
}
