//! Liu 2022: cases in exact fractions, scaling factors of networks, Tables 2 and 3. Nothing here was measured.

use super::zoo_model;
use crate::ValidationError;
use crate::checks::ExactCheck;
use crate::records::{Fields, document};
use crate::report::Findings;
use crate::set::Run;
use serde_json::{Value, json};
use stepcast_analytic::collectives::{Fabric, ring_update};
use stepcast_analytic::liu2022::{Flush, Layer, Pass, Plan, csf, osf, plan};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::model::{Counting, Model, ModelFile, Op};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::strategy::{BufferReading, Fusion};
use stepcast_core::workload::Workload;

const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    // Largest deviations from exact values.
    let bounds: Value = run.bounds()?;
    let mut checks = check_fusion(
        document("liu2022/fusion.json")?.as_array().map_or(&[], Vec::as_slice),
        bounds.number("fusion"),
    );
    checks.push(check_models(&run.cases("models.csv")?, bounds.number("models"))?);
    checks.push(check_calibration(&run.cases("calibration.csv")?, bounds.number("calibration"))?);
    let (tables, check) = check_tables(&run.cases("tables2-3.csv")?, bounds.number("tables"))?;
    checks.push(check);
    let figures = json!({
        "checks": checks.iter().map(ExactCheck::to_value).collect::<Vec<_>>(),
        "_as_printed": tables.iter().filter(|row| row.is("as_printed")).count(),
        "_rows": tables.len(),
        "tables": tables,
        "rows_wanted": bounds.field("printed"),
    });
    Ok(Findings::exact(&checks, figures))
}

/// Cases of four layers, from the input (1) to the output (n), in four readings of the equations: one check for each.
fn check_fusion(cases: &[Value], tolerance: f64) -> Vec<ExactCheck> {
    let mut plain = ExactCheck::new("fusion off (eqs. 8-11)", tolerance);
    let mut serial = ExactCheck::new("fusion, corrected (eqs. 12-16, errata 1-4)", tolerance);
    let mut concurrent = ExactCheck::new("fusion, waits concurrent (erratum 5)", tolerance);
    let mut literal = ExactCheck::new("fusion as printed (eqs. 12-16)", tolerance);
    for case in cases {
        let (size, timeout) = (Bytes::new(case.number("Q")), Some(Seconds::new(case.number("timeout"))));
        let fused = |reading| Fusion::Buffer { size, timeout, reading };
        compare(&mut plain, case, &Fusion::None, "plain");
        compare(&mut serial, case, &fused(BufferReading::Serial), "fusion_corrected");
        compare(&mut concurrent, case, &fused(BufferReading::Concurrent), "fusion_concurrent_wait");
        compare_printed(&mut literal, case);
    }
    vec![plain, serial, concurrent, literal]
}

fn pass(case: &Value) -> Pass {
    let layers = case.numbers("t_backward_layer1_to_n").into_iter().zip(case.numbers("D")).rev();
    let layer = |(backward, size)| Layer { backward: Seconds::new(backward), gradients: Bytes::new(size) };
    Pass::new(layers.map(layer).collect())
}

fn compare(check: &mut ExactCheck, case: &Value, schedule: &Fusion, reading: &str) {
    let (pass, expected) = (pass(case), case.field(reading));
    let curve = Curve::AlphaBeta {
        startup: Seconds::new(case.number("delta")),
        bandwidth: BytesPerSec::new(1.0 / case.number("sec_per_byte")),
    };
    let plan = plan(&pass, &curve, schedule);
    check.cases += 1;
    check.figure(plan.outcome.update.get(), expected.number("Tu"));
    check.figure(plan.outcome.computing.get(), expected.number("Tc"));
    check.figure(plan.outcome.overlap.get(), expected.number("To"));
    check.figure(plan.outcome.factor(), expected.number("OSF"));
    let layers = pass.layers.len();
    // τ is the time at which the network is free and the layer is ready, before any wait; it says nothing of layers that
    // flush nothing.
    let free =
        |flush: &Flush| (flush.start - if reading == "plain" { Seconds::ZERO } else { flush.wait }).get();
    let lists = [
        ("F", by_layer(&plan, layers, |flush| flush.size.get())),
        ("t_wait", by_layer(&plan, layers, |flush| flush.wait.get())),
        ("start", by_layer(&plan, layers, |flush| flush.start.get())),
        ("tau", by_layer(&plan, layers, free)),
    ];
    for (key, found) in lists {
        for (expected, found) in expected.numbers(key).into_iter().zip(found) {
            let expected = if expected.is_nan() { 0.0 } else { expected };
            if let Some(found) = found.or((key != "tau").then_some(0.0)) {
                check.figure(found, expected);
            }
        }
    }
}

/// A figure of each message at the last of its layers, from the input on; none where none is sent.
fn by_layer(plan: &Plan, layers: usize, figure: impl Fn(&Flush) -> f64) -> Vec<Option<f64>> {
    let mut figures = vec![None; layers];
    for flush in &plan.flushes {
        figures[layers - 1 - flush.last] = Some(figure(flush));
    }
    figures
}

/// Eqs. 12-16 as they are printed, letter by letter; the paper's layer i stands at place i - 1. They lose bytes (errata
/// 4.2): nothing but this check uses them.
fn compare_printed(check: &mut ExactCheck, case: &Value) {
    let (backward, sizes) = (case.numbers("t_backward_layer1_to_n"), case.numbers("D"));
    let (buffer, timeout) = (case.number("Q"), case.number("timeout"));
    let transfer = |bytes: f64| case.number("sec_per_byte") * bytes + case.number("delta");
    let n = sizes.len();
    let overlap: f64 = backward.iter().take(n.saturating_sub(1)).sum();
    let mut buffered = vec![0.0; n];
    for i in (0..n).rev() {
        let before = buffered.get(i + 1).copied().filter(|_| backward[i] < timeout);
        let joined = before.map(|before: f64| before + sizes[i]).filter(|joined| *joined <= buffer);
        buffered[i] = joined.unwrap_or(sizes[i]);
    }
    let overflows = |i: usize| i > 0 && buffered[i] + sizes[i - 1] > buffer;
    let flushes = |i: usize| i == 0 || backward[i] > timeout || overflows(i);
    let flushed: Vec<f64> = (0..n).map(|i| if flushes(i) { buffered[i] } else { 0.0 }).collect();
    let waits = |i: usize| match i.checked_sub(1).map(|next| backward[next]) {
        Some(next) if next > timeout => timeout,
        Some(next) if overflows(i) => next,
        _ => 0.0,
    };
    let wait: Vec<f64> = (0..n).map(waits).collect();
    let mut tau = vec![0.0_f64; n];
    for i in (0..n.saturating_sub(1)).rev() {
        tau[i] = (tau[i + 1] + wait[i + 1] + transfer(flushed[i + 1])).max(overlap);
    }
    let first = |list: &[f64]| list.first().copied().unwrap_or(0.0);
    let update = first(&tau) + transfer(first(&flushed));
    let (pass, expected) = (pass(case), case.field("fusion_printed"));
    let computing = pass.computing().get();
    check.cases += 1;
    check.figure(update, expected.number("Tu"));
    check.figure(computing / (computing + update - pass.overlap().get()), expected.number("OSF"));
    for (key, found) in [("B", buffered), ("F", flushed), ("t_wait", wait), ("tau", tau)] {
        check.figures(&found, &expected.numbers(key));
    }
}

/// The network behind a name of the files: the original ResNets, with the stride on the first convolution of a block.
fn model(name: &str) -> Result<Model, ValidationError> {
    let model = zoo_model(match name {
        "ResNet50" => "resnet50-v1",
        "ResNet101" => "resnet101-v1",
        "ResNet152" => "resnet152-v1",
        "VGG19" => "vgg19",
        _ => "vgg16",
    })?;
    if name != "VGG16-repl" {
        return Ok(model);
    }
    let head = model.head().map_err(|error| ValidationError::Data(error.to_string()))?;
    Ok(ModelFile::from_model(&model).replaced(head.first, head.convolutions())?.1)
}

/// Scaling factors of the paper's networks, one update for each layer.
fn check_models(cases: &[Value], tolerance: f64) -> Result<ExactCheck, ValidationError> {
    let mut check = ExactCheck::new("OSF, CSF and their terms of six networks", tolerance);
    for case in cases {
        let rate = FlopsPerSec::new(case.number("pi"));
        let fabric = Fabric {
            step: Seconds::ZERO,
            bandwidth: BytesPerSec::new(case.number("beta_Bps")),
            reduce: rate,
            element: Bytes::new(case.number("s")),
        };
        let update = ring_update(&fabric, case.small("N"), Seconds::new(case.number("delta_s")));
        let workload = Workload::from_model(&model(case.text("model"))?, Counting::default());
        let pass = Pass::of_operations(&workload, case.number("M_over_c"), rate);
        let outcome = osf(&pass, &update, &Fusion::None);
        check.cases += 1;
        for (found, column) in [
            (outcome.factor(), "OSF"),
            (csf(&pass, &update), "CSF"),
            (outcome.computing.get(), "T_comp"),
            (outcome.update.get(), "T_update"),
            (outcome.overlap.get(), "T_overlap"),
            (update.time(pass.gradients()).get(), "T_comm"),
        ] {
            check.figure(found, case.number(column));
        }
    }
    Ok(check)
}

/// Batch and overhead for which VGG16 has the paper's scaling factor on its 32 GPUs and network.
fn check_calibration(cases: &[Value], tolerance: f64) -> Result<ExactCheck, ValidationError> {
    let peak = FlopsPerSec::new(13.45e12);
    let (bandwidth, element) = (BytesPerSec::new(3.125e9), Bytes::new(4.0));
    let fabric = Fabric { step: Seconds::ZERO, bandwidth, reduce: peak, element };
    let mut check = ExactCheck::new("VGG16 and VGG16 replaced, calibrated to 0.25", tolerance);
    let workload = |name| Ok::<_, ValidationError>(Workload::from_model(&model(name)?, Counting::default()));
    let (original, replaced) = (workload("VGG16")?, workload("VGG16-repl")?);
    for case in cases {
        let update = ring_update(&fabric, 32, Seconds::new(case.number("delta_ms") / 1e3));
        check.cases += 1;
        for (workload, [osf_column, csf_column]) in
            [(&original, ["OSF_VGG16", "CSF_VGG16"]), (&replaced, ["OSF_VGG16_replaced", "CSF_replaced"])]
        {
            let pass = Pass::of_operations(workload, case.number("M_over_c_2flopMAC"), peak);
            check.figure(osf(&pass, &update, &Fusion::None).factor(), case.number(osf_column));
            check.figure(csf(&pass, &update), case.number(csf_column));
        }
    }
    Ok(check)
}

/// Tables 2 and 3: operations, layers and parameters of the networks.
fn check_tables(cases: &[Value], tolerance: f64) -> Result<(Vec<Value>, ExactCheck), ValidationError> {
    let mut check = ExactCheck::new("Tables 2 and 3, recomputed", tolerance);
    let mut rows = Vec::new();
    for case in cases {
        let (row, published) = (case.text("row"), case.number("published"));
        let same = |found: f64| (found - published).abs() < 1e-9;
        let (found, as_printed) = match (case.text("table"), case.text("field")) {
            ("T3", _) => {
                let found = weights(row)?;
                (found, (found - published).abs() < 0.05)
            }
            // Giga-MACs, rounded up in all five rows (errata 4.4).
            (_, "GFLOPs") => {
                let found = model(row)?.cost().multiply_add as f64 / 2.0 / 1e9;
                (found, same(found.ceil()))
            }
            (_, "# Tensors") => {
                let found = keras_layers(&model(row)?) as f64;
                (found, same(found))
            }
            _ => {
                let found = keras_parameters(&model(row)?) as f64 * 4.0 / MIB;
                (found, same(found.round()))
            }
        };
        check.cases += 1;
        check.figure(found, case.number("recomputed"));
        rows.push(json!({
            "table": case.field("table"), "row": row, "field": case.field("field"),
            "published": published, "found": found, "as_printed": as_printed,
            "_table": case.text("table").trim_start_matches('T'),
        }));
    }
    Ok((rows, check))
}

/// MiB of weights, without biases, of a layer of Table 3.
fn weights(row: &str) -> Result<f64, ValidationError> {
    let (network, layer) = match row {
        "fc1" => ("VGG16", "classifier.0"),
        "fc2" => ("VGG16", "classifier.3"),
        "fc3" => ("VGG16", "classifier.6"),
        "conv1x1x512" => ("VGG16-repl", "head.conv1"),
        _ => ("VGG16-repl", "head.conv2"),
    };
    let model = model(network)?;
    let layer = model.layers().iter().find(|found| found.name == layer);
    let layer = layer.ok_or_else(|| ValidationError::Data(format!("there is no layer {row}")))?;
    Ok(layer.cost.weights as f64 * 4.0 / MIB)
}

/// Parameters of the Keras layouts, whose ResNets have biases in convolutions: one for each channel, as many as shifts.
fn keras_parameters(model: &Model) -> u64 {
    let norms = model.layers().iter().filter(|layer| matches!(layer.op, Op::Normalise(_)));
    model.parameters() + norms.map(|layer| layer.cost.biases).sum::<u64>()
}

/// Keras layers without the input: padding is one, twice in a ResNet, which has no flattening; in VGG, non-linearities
/// belong to their layer, and there is no dropout.
fn keras_layers(model: &Model) -> usize {
    let count = |keep: fn(&Op) -> bool| model.layers().iter().filter(|layer| keep(&layer.op)).count();
    let inputs = count(|op| matches!(op, Op::Input));
    if model.name.starts_with("resnet") {
        model.layers().len() - inputs - count(|op| matches!(op, Op::Flatten)) + 2
    } else {
        model.layers().len() - inputs - count(|op| matches!(op, Op::Activate(_) | Op::Dropout))
    }
}
