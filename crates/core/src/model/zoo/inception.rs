//! Inception v3: factorised convolutions in modules of five kinds.

use super::{Entry, conv_norm};
use crate::model::op::{Activation, Conv2d, Op, Padding, Pool};
use crate::model::{Builder, LayerId, Model, ShapeError};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "inception-v3",
    aliases: &["inception3"],
    description: "Inception v3 without the auxiliary classifier, 299×299",
    source: "Szegedy et al. 2015, arXiv:1512.00567; layout of torchvision",
    layout,
}];

/// A module under construction: its input, and the convolutions that lead to its branches.
struct Module<'a> {
    b: &'a mut Builder,
    name: &'static str,
    from: LayerId,
}

fn layout(mut builder: Builder) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 299, 299])?;
    let x = unit(b, "Conv2d_1a_3x3", Conv2d::new(32, 3).stride(2), x)?;
    let x = unit(b, "Conv2d_2a_3x3", Conv2d::new(32, 3), x)?;
    let x = unit(b, "Conv2d_2b_3x3", Conv2d::new(64, 3).padding(1), x)?;
    let x = b.pool("maxpool1", Pool::Max, (3, 2, 0), x)?;
    let x = unit(b, "Conv2d_3b_1x1", Conv2d::new(80, 1), x)?;
    let x = unit(b, "Conv2d_4a_3x3", Conv2d::new(192, 3), x)?;
    let mut x = b.pool("maxpool2", Pool::Max, (3, 2, 0), x)?;
    for (name, pooled) in [("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)] {
        x = Module { b, name, from: x }.with_5x5(pooled)?;
    }
    x = Module { b, name: "Mixed_6a", from: x }.down_to_17()?;
    for (name, width) in [("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)] {
        x = Module { b, name, from: x }.with_7x7(width)?;
    }
    x = Module { b, name: "Mixed_7a", from: x }.down_to_8()?;
    for name in ["Mixed_7b", "Mixed_7c"] {
        x = Module { b, name, from: x }.expanded()?;
    }
    let x = b.global_average("avgpool", x)?;
    let x = b.add("dropout", Op::Dropout, &[x])?;
    let x = b.add("flatten", Op::Flatten, &[x])?;
    b.linear("fc", 1000, x)?;
    builder.finish()
}

impl Module<'_> {
    /// On 35×35, branches with 1×1; 5×5; two 3×3; pooling.
    fn with_5x5(mut self, pooled: u64) -> Result<LayerId, ShapeError> {
        let from = self.from;
        let one = self.unit("branch1x1", square(64, 1), from)?;
        let x = self.unit("branch5x5_1", square(48, 1), from)?;
        let five = self.unit("branch5x5_2", square(64, 5), x)?;
        let x = self.unit("branch3x3dbl_1", square(64, 1), from)?;
        let x = self.unit("branch3x3dbl_2", square(96, 3), x)?;
        let double = self.unit("branch3x3dbl_3", square(96, 3), x)?;
        let pool = self.pooled(pooled)?;
        self.concat(&[one, five, double, pool])
    }

    /// From 35×35 to 17×17.
    fn down_to_17(mut self) -> Result<LayerId, ShapeError> {
        let from = self.from;
        let three = self.unit("branch3x3", Conv2d::new(384, 3).stride(2), from)?;
        let x = self.unit("branch3x3dbl_1", square(64, 1), from)?;
        let x = self.unit("branch3x3dbl_2", square(96, 3), x)?;
        let double = self.unit("branch3x3dbl_3", Conv2d::new(96, 3).stride(2), x)?;
        let pool = self.b.pool(format!("{}.branch_pool", self.name), Pool::Max, (3, 2, 0), from)?;
        self.concat(&[three, double, pool])
    }

    /// On 17×17, branches with 1×1; 7×7 as two strips; the same twice; pooling.
    fn with_7x7(mut self, width: u64) -> Result<LayerId, ShapeError> {
        let from = self.from;
        let one = self.unit("branch1x1", square(192, 1), from)?;
        let x = self.unit("branch7x7_1", square(width, 1), from)?;
        let x = self.unit("branch7x7_2", strip(width, (1, 7)), x)?;
        let seven = self.unit("branch7x7_3", strip(192, (7, 1)), x)?;
        let x = self.unit("branch7x7dbl_1", square(width, 1), from)?;
        let x = self.unit("branch7x7dbl_2", strip(width, (7, 1)), x)?;
        let x = self.unit("branch7x7dbl_3", strip(width, (1, 7)), x)?;
        let x = self.unit("branch7x7dbl_4", strip(width, (7, 1)), x)?;
        let double = self.unit("branch7x7dbl_5", strip(192, (1, 7)), x)?;
        let pool = self.pooled(192)?;
        self.concat(&[one, seven, double, pool])
    }

    /// From 17×17 to 8×8.
    fn down_to_8(mut self) -> Result<LayerId, ShapeError> {
        let from = self.from;
        let x = self.unit("branch3x3_1", square(192, 1), from)?;
        let three = self.unit("branch3x3_2", Conv2d::new(320, 3).stride(2), x)?;
        let x = self.unit("branch7x7x3_1", square(192, 1), from)?;
        let x = self.unit("branch7x7x3_2", strip(192, (1, 7)), x)?;
        let x = self.unit("branch7x7x3_3", strip(192, (7, 1)), x)?;
        let seven = self.unit("branch7x7x3_4", Conv2d::new(192, 3).stride(2), x)?;
        let pool = self.b.pool(format!("{}.branch_pool", self.name), Pool::Max, (3, 2, 0), from)?;
        self.concat(&[three, seven, pool])
    }

    /// On 8×8, branches with 1×1; 3×3 as two parallel strips; the same after a 3×3; pooling.
    fn expanded(mut self) -> Result<LayerId, ShapeError> {
        let from = self.from;
        let one = self.unit("branch1x1", square(320, 1), from)?;
        let x = self.unit("branch3x3_1", square(384, 1), from)?;
        let three_a = self.unit("branch3x3_2a", strip(384, (1, 3)), x)?;
        let three_b = self.unit("branch3x3_2b", strip(384, (3, 1)), x)?;
        let x = self.unit("branch3x3dbl_1", square(448, 1), from)?;
        let x = self.unit("branch3x3dbl_2", square(384, 3), x)?;
        let double_a = self.unit("branch3x3dbl_3a", strip(384, (1, 3)), x)?;
        let double_b = self.unit("branch3x3dbl_3b", strip(384, (3, 1)), x)?;
        let pool = self.pooled(192)?;
        self.concat(&[one, three_a, three_b, double_a, double_b, pool])
    }

    fn unit(&mut self, name: &str, conv: Conv2d, from: LayerId) -> Result<LayerId, ShapeError> {
        unit(self.b, &format!("{}.{name}", self.name), conv, from)
    }

    fn pooled(&mut self, channels: u64) -> Result<LayerId, ShapeError> {
        let x = self.b.pool(format!("{}.avgpool", self.name), Pool::Average, (3, 1, 1), self.from)?;
        self.unit("branch_pool", square(channels, 1), x)
    }

    fn concat(self, branches: &[LayerId]) -> Result<LayerId, ShapeError> {
        self.b.add(format!("{}.concat", self.name), Op::Concat, branches)
    }
}

/// A square kernel that keeps the size of the image.
const fn square(out: u64, kernel: u64) -> Conv2d {
    Conv2d::new(out, kernel).padding(kernel / 2)
}

/// A kernel of one row or column that keeps the size of the image.
fn strip(out: u64, kernel: (u64, u64)) -> Conv2d {
    let (rows, columns) = (kernel.0 / 2, kernel.1 / 2);
    let padding = Padding::Explicit { top: rows, bottom: rows, left: columns, right: columns };
    Conv2d { kernel, padding, ..Conv2d::new(out, 1) }
}

fn unit(b: &mut Builder, name: &str, conv: Conv2d, from: LayerId) -> Result<LayerId, ShapeError> {
    let names = [format!("{name}.conv"), format!("{name}.bn"), format!("{name}.relu")];
    conv_norm(b, names, conv, Some(Activation::Relu), from)
}
