//! Builds a network from calls of PyTorch's operators.

use super::operators::{Argument, Maker, Operator, Tensor};
use std::collections::HashMap;
use stepcast_core::fault::Fault;
use stepcast_core::model::{Activation, Builder, Conv2d, LayerId, Model, Norm, Op, Padding, Pool};

/// Operators that are layers, or pass a tensor on.
const LAYERS: &[&str] = &[
    "conv2d",
    "linear",
    "batch_norm",
    "layer_norm",
    "relu",
    "gelu",
    "silu",
    "sigmoid",
    "tanh",
    "hardswish",
    "max_pool2d",
    "avg_pool2d",
    "adaptive_avg_pool2d",
    "flatten",
    "dropout",
    "add",
    "mul",
    "cat",
];

const PARAMETERS: &[&str] = &["conv2d", "linear", "batch_norm", "layer_norm"];

pub(super) fn is_layer(name: &str) -> bool {
    LAYERS.contains(&name)
}

/// The layers that the last call with parameters needs, and the samples of a batch. Later calls are the loss.
pub(super) fn build(calls: &[Operator], place: &str) -> Result<(Model, u64), Fault> {
    let needed = needed(calls);
    let mut network = Network {
        builder: Builder::new("network", "a PyTorch execution trace"),
        layers: HashMap::new(),
        input: None,
        place,
    };
    for index in (0..calls.len()).filter(|&index| needed[index]) {
        let id = network.add(index, &calls[index])?;
        network.layers.insert(index, id);
    }
    let batch = network.input.as_ref().map_or(1, |(_, _, batch)| *batch);
    let misfit = |error: stepcast_core::model::ShapeError| {
        Fault::in_file(place, error.reason, "import the network from ONNX, or list its layers")
    };
    Ok((network.builder.finish().map_err(misfit)?, batch))
}

/// Which calls the last one with parameters needs.
fn needed(calls: &[Operator]) -> Vec<bool> {
    let mut needed = vec![false; calls.len()];
    let parameters = |call: &Operator| PARAMETERS.contains(&call.name.as_str());
    if let Some(last) = calls.iter().rposition(parameters) {
        needed[last] = true;
    }
    // The inputs of a call were made before it.
    for index in (0..calls.len()).rev() {
        if needed[index] {
            for (_, _, maker) in tensors(&calls[index]) {
                if let Some(Maker::Layer(before)) = maker
                    && *before < index
                {
                    needed[*before] = true;
                }
            }
        }
    }
    needed
}

type Read<'a> = (&'a Tensor, &'a [u64], &'a Option<Maker>);

/// The tensors that flow through a call, without weights.
fn tensors(call: &Operator) -> Vec<Read<'_>> {
    fn single(argument: &Argument) -> Option<Read<'_>> {
        match argument {
            Argument::Tensor(tensor, shape, maker) => Some((tensor, shape, maker)),
            Argument::Tensors(_) | Argument::Numbers(_) | Argument::Flag(_) | Argument::Other => None,
        }
    }
    let count = if matches!(call.name.as_str(), "add" | "mul") { 2 } else { 1 };
    let list = call.arguments.iter().take(count);
    list.flat_map(|argument| match argument {
        Argument::Tensors(list) => list.iter().filter_map(single).collect::<Vec<_>>(),
        other => single(other).into_iter().collect(),
    })
    .collect()
}

struct Network<'a> {
    builder: Builder,
    layers: HashMap<usize, LayerId>,
    /// The tensor that comes from outside, and the samples in it.
    input: Option<(Tensor, LayerId, u64)>,
    place: &'a str,
}

impl Network<'_> {
    fn add(&mut self, index: usize, call: &Operator) -> Result<LayerId, Fault> {
        let mut inputs = Vec::new();
        for (tensor, shape, maker) in tensors(call) {
            inputs.push(self.source(call, *tensor, shape, maker.as_ref())?);
        }
        let Some(op) = operation(call) else {
            return Err(self.wrong(call, "its arguments are not those of a known layer"));
        };
        let added = self.builder.add(format!("{}{index}", call.name), op, &inputs);
        added.map_err(|error| self.wrong(call, &error.reason))
    }

    /// The layer that a tensor comes from. The only tensor that no layer has made is the network's input.
    fn source(
        &mut self,
        call: &Operator,
        tensor: Tensor,
        shape: &[u64],
        maker: Option<&Maker>,
    ) -> Result<LayerId, Fault> {
        if let Some(Maker::Layer(before)) = maker
            && let Some(&id) = self.layers.get(before)
        {
            return Ok(id);
        }
        if let Some(Maker::Other(name)) = maker {
            let reason = format!("it reads the output of {name}, which is not a known layer");
            return Err(self.wrong(call, &reason));
        }
        if let Some((known, id, _)) = &self.input {
            if *known == tensor {
                return Ok(*id);
            }
            return Err(self.wrong(call, "it reads a second tensor from outside"));
        }
        let [batch, sample @ ..] = shape else {
            return Err(self.wrong(call, "its input has no shape"));
        };
        let id = self.builder.input("input", sample).map_err(|error| self.wrong(call, &error.reason))?;
        self.input = Some((tensor, id, *batch));
        Ok(id)
    }

    fn wrong(&self, call: &Operator, reason: &str) -> Fault {
        let place = format!("{}, aten::{}", self.place, call.name);
        let remedy = "it has no times, and its network cannot be read; import the network from ONNX, or a trace with times";
        Fault::in_file(place, reason, remedy)
    }
}

fn operation(call: &Operator) -> Option<Op> {
    let argument = |index: usize| call.arguments.get(index);
    let shape = |index: usize| match argument(index)? {
        Argument::Tensor(_, shape, _) => Some(shape.as_slice()),
        _ => None,
    };
    let pair = |index: usize| match argument(index)? {
        Argument::Numbers(list) => match list[..] {
            [both] => Some((both, both)),
            [height, width] => Some((height, width)),
            _ => None,
        },
        _ => None,
    };
    let padding = |index: usize| {
        pair(index).map(|(height, width)| match (height, width) {
            (0, 0) => Padding::Valid,
            _ => Padding::Explicit { top: height, bottom: height, left: width, right: width },
        })
    };
    let flag = |index: usize| matches!(argument(index), Some(Argument::Flag(true)));
    Some(match call.name.as_str() {
        "conv2d" => {
            let &[out, _, height, width] = shape(1)? else { return None };
            Op::Conv2d(Conv2d {
                out,
                kernel: (height, width),
                stride: pair(3)?,
                padding: padding(4)?,
                dilation: pair(5)?,
                groups: pair(6)?.0,
                bias: shape(2).is_some(),
            })
        }
        "linear" => Op::Linear { out: *shape(1)?.first()?, bias: shape(2).is_some(), tied: false },
        "batch_norm" => Op::Normalise(Norm::Batch { affine: shape(1).is_some() }),
        "layer_norm" => Op::Normalise(Norm::Layer { affine: shape(2).is_some() }),
        "relu" => Op::Activate(Activation::Relu),
        "gelu" => Op::Activate(Activation::Gelu),
        "silu" => Op::Activate(Activation::Silu),
        "sigmoid" => Op::Activate(Activation::Sigmoid),
        "tanh" => Op::Activate(Activation::Tanh),
        "hardswish" => Op::Activate(Activation::Hardswish),
        "max_pool2d" | "avg_pool2d" => {
            let kernel = pair(1)?;
            let (kind, ceil) =
                if call.name == "max_pool2d" { (Pool::Max, flag(5)) } else { (Pool::Average, flag(4)) };
            Op::Pool { kind, kernel, stride: pair(2).unwrap_or(kernel), padding: padding(3)?, ceil }
        }
        "adaptive_avg_pool2d" => Op::AdaptivePool { kind: Pool::Average, size: pair(1)? },
        "flatten" => Op::Flatten,
        "dropout" => Op::Dropout,
        "add" => Op::Add,
        "mul" => Op::Multiply,
        "cat" => Op::Concat,
        _ => return None,
    })
}
