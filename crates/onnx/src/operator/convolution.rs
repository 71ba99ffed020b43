//! Windows over images of any number of dimensions: convolutions and pooling.

use super::{InferenceError, Inferred, OperatorCall, Rule, overflow, product_of, scaled, wrong};
use crate::tensor::{Origin, Size, spelled};
use stepcast_core::model::{Activation, CostKind};

pub(super) fn rule(op: &str) -> Option<Rule> {
    Some(match op {
        "Conv" | "ConvInteger" => |call| convolve(call, 1, Some(2)),
        "QLinearConv" => |call| convolve(call, 3, Some(8)),
        "DeformConv" => |call| convolve(call, 1, Some(3)),
        "ConvTranspose" => transposed,
        "CausalConvWithState" => causal,
        "MaxPool" | "AveragePool" | "LpPool" => pool,
        "GlobalMaxPool" | "GlobalAveragePool" | "GlobalLpPool" => global,
        "MaxRoiPool" | "RoiAlign" => regions,
        "MaxUnpool" => unpool,
        _ => return None,
    })
}

/// Where windows are laid over an image, one entry for each of its dimensions.
pub(crate) struct Windows {
    pub(crate) kernel: Vec<i64>,
    pub(crate) stride: Vec<i64>,
    pub(crate) dilation: Vec<i64>,
    /// Added before and after.
    pub(crate) pads: Vec<(i64, i64)>,
    pub(crate) ceil: bool,
}

impl Windows {
    /// The windows of a convolution or pooling over an image of these sizes.
    pub(crate) fn new(
        call: &OperatorCall<'_>,
        kernel: Vec<i64>,
        image: &[i64],
    ) -> Result<Self, InferenceError> {
        let rank = image.len();
        let each = |name: &str| match call.ints(name) {
            Some(ints) if ints.len() == rank && ints.iter().all(|value| *value > 0) => Ok(ints.to_vec()),
            Some(_) => wrong(format!("{name} needs a positive number for each of {rank} dimensions")),
            None => Ok(vec![1; rank]),
        };
        let (stride, dilation) = (each("strides")?, each("dilations")?);
        if kernel.len() != rank || kernel.iter().any(|side| *side <= 0) {
            return wrong(format!("its window needs a positive size for each of {rank} dimensions"));
        }
        let ceil = call.int("ceil_mode", 0) != 0;
        let mut windows = Self { kernel, stride, dilation, pads: vec![(0, 0); rank], ceil };
        match call.text("auto_pad").unwrap_or("NOTSET") {
            side @ ("SAME_UPPER" | "SAME_LOWER") => {
                for (at, &length) in image.iter().enumerate() {
                    let reach = windows.reach(at)?;
                    let steps = (length - 1).div_euclid(windows.stride[at]);
                    let total = steps.checked_mul(windows.stride[at]).and_then(|far| far.checked_add(reach));
                    let total = (total.ok_or_else(overflow)? - length).max(0);
                    let (less, more) = (total / 2, total - total / 2);
                    windows.pads[at] = if side == "SAME_UPPER" { (less, more) } else { (more, less) };
                }
            }
            "VALID" => {}
            _ => {
                if let Some(pads) = call.ints("pads") {
                    if pads.len() != 2 * rank {
                        return wrong(format!("{} numbers say how {rank} dimensions are padded", pads.len()));
                    }
                    let (before, after) = pads.split_at(rank);
                    windows.pads = before.iter().copied().zip(after.iter().copied()).collect();
                }
            }
        }
        Ok(windows)
    }

    /// Places that a window spans.
    fn reach(&self, at: usize) -> Result<i64, InferenceError> {
        let gaps = self.kernel[at].checked_sub(1).and_then(|gaps| gaps.checked_mul(self.dilation[at]));
        gaps.and_then(|gaps| gaps.checked_add(1)).ok_or_else(overflow)
    }

    /// Windows along each dimension.
    pub(crate) fn output(&self, image: &[i64]) -> Result<Vec<Size>, InferenceError> {
        let along = |at: usize| {
            let (before, after) = self.pads[at];
            let padded = image[at].checked_add(before).and_then(|sum| sum.checked_add(after));
            let room =
                padded.and_then(|padded| padded.checked_sub(self.reach(at).ok()?)).ok_or_else(overflow)?;
            if room < 0 {
                return wrong(format!("a window of {} does not fit into {}", self.kernel[at], image[at]));
            }
            let mut count = room / self.stride[at] + 1;
            // A last window counts if it starts within the image or the padding before it.
            if self.ceil && room % self.stride[at] != 0 && count * self.stride[at] < image[at] + before {
                count += 1;
            }
            Ok(Size::fixed(count))
        };
        (0..image.len()).map(along).collect()
    }
}

/// Batch, channels and the sizes of the image; of a weight the two numbers of channels and its window.
pub(crate) fn image(dims: &[Size]) -> Result<(Size, Size, Vec<i64>), InferenceError> {
    let [batch, channels, image @ ..] = dims else {
        return wrong(format!("it reads images with channels, not {}", spelled(dims)));
    };
    let numbers = image.iter().map(|size| size.number()).collect::<Option<Vec<_>>>();
    let numbers = numbers
        .ok_or_else(|| InferenceError::Unknown("the size of its image depends on the batch".to_owned()))?;
    Ok((*batch, *channels, numbers))
}

fn convolve(
    call: &OperatorCall<'_>,
    weight_at: usize,
    bias_at: Option<usize>,
) -> Result<Inferred, InferenceError> {
    let (batch, channels, sizes) = image(call.shape(0)?)?;
    let (out, per_group, kernel) = image(call.shape(weight_at)?)?;
    let group = Size::fixed(call.int("group", 1));
    if per_group.times(group) != Some(channels) {
        return wrong(format!("{channels} channels meet {per_group} of a weight in {group} groups"));
    }
    let windows = Windows::new(call, kernel, &sizes)?;
    let mut shape = vec![batch, out];
    shape.extend(windows.output(&sizes)?);
    let window: Vec<Size> = windows.kernel.iter().map(|&side| Size::fixed(side)).collect();
    let each = product_of(&window)?.times(per_group).ok_or_else(overflow)?;
    let outputs = product_of(&shape)?;
    let made = Inferred::free(shape)?
        .with(CostKind::MultiplyAdd, scaled(outputs.times(each).ok_or_else(overflow)?, 2)?);
    Ok(biased(call, bias_at, made, outputs))
}

/// A bias that is stored, not made of constants, is added to each output.
fn biased(call: &OperatorCall<'_>, at: Option<usize>, made: Inferred, outputs: Size) -> Inferred {
    let bias = at.and_then(|at| call.tensor(at).ok());
    if bias.is_some_and(|bias| bias.origin != Origin::Static) {
        made.with(CostKind::Bias, outputs)
    } else {
        made
    }
}

/// Each pixel of the input is spread by the window.
fn transposed(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (batch, channels, sizes) = image(call.shape(0)?)?;
    let (_, per_group, kernel) = image(call.shape(1)?)?;
    let out = per_group.times(Size::fixed(call.int("group", 1))).ok_or_else(overflow)?;
    let windows = Windows::new(call, kernel, &sizes)?;
    let more = call.ints("output_padding").unwrap_or_default();
    let mut shape = vec![batch, out];
    for (at, &length) in sizes.iter().enumerate() {
        let size = match call.ints("output_shape").and_then(|given| given.get(at)) {
            Some(&given) => Some(given),
            None if call.text("auto_pad").is_some_and(|text| text.starts_with("SAME")) => {
                length.checked_mul(windows.stride[at])
            }
            None => (length - 1).checked_mul(windows.stride[at]).and_then(|far| {
                let (before, after) = windows.pads[at];
                let reach = windows.reach(at).ok()?;
                far.checked_add(reach)?
                    .checked_add(more.get(at).copied().unwrap_or(0))?
                    .checked_sub(before)?
                    .checked_sub(after)
            }),
        };
        shape.push(size.filter(|size| *size > 0).map(Size::fixed).ok_or_else(overflow)?);
    }
    let mut each: Vec<Size> = windows.kernel.iter().map(|&side| Size::fixed(side)).collect();
    each.extend([per_group, batch, channels]);
    each.extend(sizes.iter().map(|&size| Size::fixed(size)));
    let outputs = product_of(&shape)?;
    let made = Inferred::free(shape)?.with(CostKind::MultiplyAdd, scaled(product_of(&each)?, 2)?);
    Ok(biased(call, Some(2), made, outputs))
}

/// A window over each channel that looks back only, and carries its last places on.
fn causal(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let shape = call.shape(0)?.to_vec();
    let &[channels, _, window] = call.shape(1)? else { return wrong("its weight has three dimensions") };
    let outputs = product_of(&shape)?;
    let state = vec![shape.first().copied().unwrap_or(Size::ONE), channels, window];
    let amount = scaled(outputs.times(window).ok_or_else(overflow)?, 2)?;
    let made =
        Inferred { shapes: vec![shape, state], ..Inferred::default() }.with(CostKind::MultiplyAdd, amount);
    let made = biased(call, Some(2), made, outputs);
    if call.text("activation").is_none_or(|text| text == "none") {
        return Ok(made);
    }
    Ok(made.with(CostKind::Activation, scaled(outputs, Activation::Silu.operations())?))
}

fn pool(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (batch, channels, sizes) = image(call.shape(0)?)?;
    let kernel = call.ints("kernel_shape").unwrap_or_default().to_vec();
    let windows = Windows::new(call, kernel, &sizes)?;
    let mut shape = vec![batch, channels];
    shape.extend(windows.output(&sizes)?);
    let mut amount: Vec<Size> = windows.kernel.iter().map(|&side| Size::fixed(side)).collect();
    amount.extend(&shape);
    let amount = product_of(&amount)?;
    let shapes = vec![shape; call.node.outputs.len().max(1)];
    Ok(Inferred { shapes, ..Inferred::default() }.with(CostKind::Pooling, amount))
}

fn global(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (batch, channels, sizes) = image(call.shape(0)?)?;
    let mut shape = vec![batch, channels];
    shape.extend(sizes.iter().map(|_| Size::ONE));
    Ok(Inferred::free(shape)?.with(CostKind::Pooling, call.elements(0)?))
}

/// Regions of an image, each pooled to one size; aligned ones read four pixels for each sample they take.
fn regions(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    let (_, channels, _) = image(call.shape(0)?)?;
    let Some(&count) = call.shape(1)?.first() else { return wrong("its regions have no dimension") };
    let (height, width) = match call.ints("pooled_shape") {
        Some(&[height, width]) => (height, width),
        _ => (call.int("output_height", 1), call.int("output_width", 1)),
    };
    let shape = vec![count, channels, Size::fixed(height.max(1)), Size::fixed(width.max(1))];
    let taken = call.int("sampling_ratio", 2).clamp(1, 64);
    let each = if call.node.op == "RoiAlign" { 8 * taken * taken } else { 1 };
    let amount = product_of(&shape)?.times(Size::fixed(each)).ok_or_else(overflow)?;
    Ok(Inferred::free(shape)?.with(CostKind::Pooling, amount))
}

fn unpool(call: &OperatorCall<'_>) -> Result<Inferred, InferenceError> {
    if call.has(2) {
        return Inferred::free(call.sizes(2)?);
    }
    let (batch, channels, sizes) = image(call.shape(0)?)?;
    let windows = Windows::new(call, call.ints("kernel_shape").unwrap_or_default().to_vec(), &sizes)?;
    let mut shape = vec![batch, channels];
    for (at, &length) in sizes.iter().enumerate() {
        let (before, after) = windows.pads[at];
        let far =
            (length - 1).checked_mul(windows.stride[at]).and_then(|far| far.checked_add(windows.kernel[at]));
        let size = far.and_then(|far| far.checked_sub(before)?.checked_sub(after)).filter(|size| *size > 0);
        shape.push(size.map(Size::fixed).ok_or_else(overflow)?);
    }
    Inferred::free(shape)
}
