//! Neural collaborative filtering: products of embeddings beside an MLP.

use super::Entry;
use crate::model::op::{Activation, Op};
use crate::model::{Builder, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "ncf",
    aliases: &["neumf"],
    description: "Neural collaborative filtering of MovieLens 20M, as in MLPerf Training 0.5; a sample is a pair, and the \
                  gradients of its tables are sparse",
    source: "He et al. 2017, arXiv:1708.05031, figure 3; sizes of MLPerf Training 0.5",
    layout,
}];

const USERS: u64 = 138_493;
const ITEMS: u64 = 26_744;
const FACTORS: u64 = 64;
const MLP: [u64; 4] = [256, 256, 128, 64];

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let user = b.input("input", &[1])?;
    let item = b.input("item", &[1])?;
    let mf_user = row(b, "mf_user_embed", USERS, FACTORS, user)?;
    let mf_item = row(b, "mf_item_embed", ITEMS, FACTORS, item)?;
    let product = b.add("mf", Op::Multiply, &[mf_user, mf_item])?;
    let mlp_user = row(b, "mlp_user_embed", USERS, MLP[0] / 2, user)?;
    let mlp_item = row(b, "mlp_item_embed", ITEMS, MLP[0] / 2, item)?;
    let mut x = b.add("mlp_input", Op::Concat, &[mlp_user, mlp_item])?;
    for (place, width) in MLP[1..].iter().enumerate() {
        x = b.linear(format!("mlp.{place}"), *width, x)?;
        x = b.activate(format!("mlp.{place}.relu"), Activation::Relu, x)?;
    }
    let x = b.add("final_input", Op::Concat, &[product, x])?;
    b.linear("final", 1, x)?;
    builder.finish()
}

fn row(b: &mut Builder, name: &str, count: u64, width: u64, from: LayerId) -> Result<LayerId, ShapeError> {
    let x = b.add(name, Op::Embedding { count, width, sparse: true }, &[from])?;
    b.add(format!("{name}.flat"), Op::Flatten, &[x])
}
