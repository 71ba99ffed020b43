//! OverFeat, the fast model.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op, Pool};
use crate::model::{Builder, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "overfeat",
    aliases: &["overfeat-fast"],
    description: "OverFeat, fast model, 231×231",
    source: "Sermanet et al. 2014, arXiv:1312.6229, table 1",
    layout,
}];

pub(super) fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let convolutions = [
        (Conv2d::new(96, 11).stride(4), true),
        (Conv2d::new(256, 5), true),
        (Conv2d::new(512, 3).padding(1), false),
        (Conv2d::new(1024, 3).padding(1), false),
        (Conv2d::new(1024, 3).padding(1), true),
    ];
    let mut x = b.input("input", &[3, 231, 231])?;
    for (place, (conv, pooled)) in (1..).zip(convolutions) {
        x = b.conv(format!("conv{place}"), conv.biased(), x)?;
        x = b.activate(format!("relu{place}"), Activation::Relu, x)?;
        if pooled {
            x = b.pool(format!("pool{place}"), Pool::Max, (2, 2, 0), x)?;
        }
    }
    x = b.add("flatten", Op::Flatten, &[x])?;
    for (place, out) in [(6, 3072), (7, 4096)] {
        x = b.linear(format!("fc{place}"), out, x)?;
        x = b.activate(format!("relu{place}"), Activation::Relu, x)?;
        x = b.add(format!("dropout{place}"), Op::Dropout, &[x])?;
    }
    b.linear("fc8", 1000, x)?;
    builder.finish()
}
