//! Scaling factors of the paper's networks, one update for each layer.

use super::data::{CalibrationCase, ModelCase};
use crate::{ExactCheck, ValidationError};
use stepcast_analytic::collectives::{Fabric, ring_update};
use stepcast_analytic::liu2022::{Pass, Schedule, csf, osf};
use stepcast_core::model::{Counting, Model, ModelFile, zoo};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::workload::Workload;

/// The network behind a name of the files: the original ResNets, with the stride on the first convolution of a block.
pub(super) fn model(name: &str) -> Result<Model, ValidationError> {
    let zoo = match name {
        "ResNet50" => "resnet50-v1",
        "ResNet101" => "resnet101-v1",
        "ResNet152" => "resnet152-v1",
        "VGG19" => "vgg19",
        _ => "vgg16",
    };
    let model = zoo::build(zoo).map_err(|error| ValidationError::Data(error.to_string()))?;
    if name != "VGG16-repl" {
        return Ok(model);
    }
    let head = model.head().map_err(|error| ValidationError::Data(error.to_string()))?;
    Ok(ModelFile::from_model(&model).replaced(head.first, head.convolutions())?.1)
}

pub(super) fn check(cases: &[ModelCase], tolerance: f64) -> Result<ExactCheck, ValidationError> {
    let mut check = ExactCheck::new("OSF, CSF and their terms of six networks", tolerance);
    for case in cases {
        let fabric = Fabric {
            step: Seconds::ZERO,
            bandwidth: BytesPerSec::new(case.bandwidth),
            reduce: FlopsPerSec::new(case.rate),
            element: Bytes::new(case.element),
        };
        let update = ring_update(&fabric, case.workers, Seconds::new(case.overhead));
        let workload = Workload::of(&model(&case.model)?, Counting::default());
        let pass = Pass::of_operations(&workload, case.samples, FlopsPerSec::new(case.rate));
        let outcome = osf(&pass, &update, &Schedule::PerLayer);
        check.cases += 1;
        check.figure(outcome.factor(), case.osf);
        check.figure(csf(&pass, &update), case.csf);
        check.figure(outcome.computing.get(), case.computing);
        check.figure(outcome.update.get(), case.update);
        check.figure(outcome.overlap.get(), case.overlap);
        check.figure(update.time(pass.gradients()).get(), case.communication);
    }
    Ok(check)
}

/// The paper's GPUs and network.
const WORKERS: u32 = 32;
const PEAK: FlopsPerSec = FlopsPerSec::new(13.45e12);
const FABRIC: Fabric = Fabric {
    step: Seconds::ZERO,
    bandwidth: BytesPerSec::new(3.125e9),
    reduce: PEAK,
    element: Bytes::new(4.0),
};

pub(super) fn check_calibration(
    cases: &[CalibrationCase],
    tolerance: f64,
) -> Result<ExactCheck, ValidationError> {
    let mut check = ExactCheck::new("VGG16 and VGG16 replaced, calibrated to 0.25", tolerance);
    let workload = |name| Ok::<_, ValidationError>(Workload::of(&model(name)?, Counting::default()));
    let (original, replaced) = (workload("VGG16")?, workload("VGG16-repl")?);
    for case in cases {
        let update = ring_update(&FABRIC, WORKERS, Seconds::new(case.overhead / 1e3));
        check.cases += 1;
        for (workload, expected_osf, expected_csf) in
            [(&original, case.osf, case.csf), (&replaced, case.osf_replaced, case.csf_replaced)]
        {
            let pass = Pass::of_operations(workload, case.samples, PEAK);
            check.figure(osf(&pass, &update, &Schedule::PerLayer).factor(), expected_osf);
            check.figure(csf(&pass, &update), expected_csf);
        }
    }
    Ok(check)
}
