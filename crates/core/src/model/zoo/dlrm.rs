//! DLRM: numbers through an MLP, categories through embeddings, and the products of all pairs of them through another.

use super::Entry;
use crate::model::op::{Activation, Op};
use crate::model::{Builder, Cost, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "dlrm",
    aliases: &["dlrm-kaggle"],
    description: "DLRM of the Criteo Kaggle data set; the gradients of its tables are sparse",
    source: "Naumov et al. 2019, arXiv:1906.00091; sizes of bench/dlrm_s_criteo_kaggle.sh in \
             github.com/facebookresearch/dlrm",
    layout,
}];

/// Values that each category of the data set takes.
const ROWS: [u64; 26] = [
    1_460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5_683, 8_351_593, 3_194, 27, 14_992,
    5_461_306, 10, 5_652, 2_173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
];
const NUMBERS: u64 = 13;
const BOTTOM: [u64; 4] = [512, 256, 64, WIDTH];
const TOP: [u64; 2] = [512, 256];
const WIDTH: u64 = 16;

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let mut numbers = b.input("input", &[NUMBERS])?;
    for (place, width) in BOTTOM.into_iter().enumerate() {
        numbers = layer(b, &format!("bot_l.{place}"), width, numbers)?;
    }
    let mut vectors = vec![numbers];
    for (place, count) in ROWS.into_iter().enumerate() {
        let category = b.input(&format!("category.{place}"), &[1])?;
        let row = b.add(
            format!("emb_l.{place}"),
            Op::Embedding { count, width: WIDTH, sparse: true },
            &[category],
        )?;
        vectors.push(b.add(format!("emb_l.{place}.flat"), Op::Flatten, &[row])?);
    }
    let (pairs, cost) = interaction(vectors.len() as u64);
    let products = b.counted("interaction", &vectors, &[pairs], cost)?;
    let mut x = b.add("top_input", Op::Concat, &[numbers, products])?;
    for (place, width) in TOP.into_iter().enumerate() {
        x = layer(b, &format!("top_l.{place}"), width, x)?;
    }
    let x = b.linear(format!("top_l.{}", TOP.len()), 1, x)?;
    b.activate("top_l.sigmoid", Activation::Sigmoid, x)?;
    builder.finish()
}

fn layer(b: &mut Builder, name: &str, width: u64, from: LayerId) -> Result<LayerId, ShapeError> {
    let x = b.linear(name, width, from)?;
    b.activate(format!("{name}.relu"), Activation::Relu, x)
}

/// The product of the vectors with themselves, of which each pair is kept once.
fn interaction(vectors: u64) -> (u64, Cost) {
    let cost = Cost { multiply_add: 2 * vectors * vectors * WIDTH, ..Cost::default() };
    (vectors * (vectors - 1) / 2, cost)
}
