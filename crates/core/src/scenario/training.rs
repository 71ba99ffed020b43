//! Data set of a training run, how it gets to the workers, and prices of machines.

use crate::fault::Fault;
use crate::keys::{Check, keys, plain, section_of};
use crate::model::transformer::{DocumentLengths, Documents, Lengths, Packing};
use crate::quantity::{Amount, SamplesPerSec};
use crate::uncertain::Uncertain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const USUAL_CURRENCY: &str = "USD";

keys! {
    /// The data set: gives the epoch time.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct DataSet;
    /// `[data]`: gives the epoch time.
    section DataSection;
    keys {
        /// Samples in one epoch.
        samples: Amount => u64, optional("as many as `tokens` make"), Check::Between(1, u64::MAX, "a positive number"), Resolved;
        /// Tokens in one epoch, for models whose samples are sequences.
        tokens: Amount => f64, optional("those of `samples`"), Check::Positive("a number such as 50e6"), Resolved;
        /// Epochs to train.
        epochs: u64 => u64, default(1_u64), Check::Between(1, u64::MAX, "a positive number"), Resolved;
        /// Lengths of documents in tokens: one number, a list, a file of lines `length,count`, or `{ mean = 600, spread = 1.0 }` for a
        /// log-normal distribution whose logarithm has this standard deviation. Which tokens count in the loss changes no time.
        lengths: Lengths => DocumentLengths, optional("a document fills a sample"), Check::Any, Resolved;
        /// How documents share a sequence: `"padded"` if each has its own, packed with attention `"across"` them or `"within"` each, or
        /// `"bucketed"` if documents of similar length come together, each padded to the longest of its bucket.
        packing: Packing => Packing, default(Packing::Within), Check::Any, Resolved;
        /// Samples of one evaluation, a forward pass without a backward pass; it counts in the time of training.
        evaluation_samples: Amount => u64, optional("no evaluation"), Check::Between(1, u64::MAX, "a positive number"), Resolved;
        /// Samples that are trained between two evaluations.
        evaluation_every: Amount => u64, optional("one epoch"), Check::Between(1, u64::MAX, "a positive number"), Resolved;
    }
}

section_of!(DataSet, DataSection);

impl DataSet {
    /// Refuses a data set without a size.
    pub(super) fn checked(self) -> Result<Self, Fault> {
        if self.samples.is_none() && self.tokens.is_none() && self.lengths.is_none() {
            return Err(Fault::new("the data set has no `samples`", "add `samples = 1281167`, or `tokens`"));
        }
        Ok(self)
    }

    /// Documents that are shorter than samples.
    pub fn documents(&self) -> Option<Documents> {
        self.lengths.map(|lengths| Documents { packing: self.packing, lengths })
    }
}

/// Input data of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// Samples generated on the device, or an input pipeline that always keeps up.
    #[default]
    Synthetic,
    /// Samples that the host reads and prepares, at some cost to training.
    Real,
}

plain!(InputKind, "`\"synthetic\"` or `\"real\"`");

keys! {
    /// How samples get to the workers.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    struct Input;
    /// `[input]`: how samples get to the workers.
    section InputSection;
    keys {
        /// Input data: synthetic samples, which cost nothing, or real ones, whose preparation takes some of the host's time.
        data: InputKind => InputKind, default(InputKind::default()), Check::Any, Exchange;
        /// Samples that one machine can read and prepare in a second, for all of its workers together.
        rate: Uncertain<SamplesPerSec> => SamplesPerSec, optional("enough"), Check::Positive("a rate such as \"3000 samples/s\""), Resolved;
    }
}

section_of!(Input, InputSection);

keys! {
    /// Prices of machines, which give the cost of training.
    #[derive(Debug, Clone, PartialEq)]
    struct Price;
    /// `[price]`: gives the cost.
    section PriceSection;
    keys {
        /// One worker for one hour.
        worker_hour: f64 => f64, default(0.0), Check::NotNegative("a price such as 0.9"), Resolved;
        /// One machine with all its workers for one hour, beyond the price of its workers.
        node_hour: f64 => f64, optional("no cost"), Check::NotNegative("a price such as 32.0"), Resolved;
        /// One parameter server for one hour.
        server_hour: f64 => f64, default(0.0), Check::NotNegative("a price such as 0.2"), Resolved;
        /// The network for one hour.
        network_hour: f64 => f64, optional("no cost"), Check::NotNegative("a price such as 0.5"), Resolved;
        /// The storage of data and checkpoints for one hour.
        storage_hour: f64 => f64, optional("no cost"), Check::NotNegative("a price such as 1.5"), Resolved;
        /// The currency, as it is printed.
        currency: String => String, default(USUAL_CURRENCY), Check::Any, Resolved;
    }
}

section_of!(Price, PriceSection);
