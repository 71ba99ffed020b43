//! The coarser models that the paper compares with: Cynthia, and a closed queueing network.

use super::data::Baseline;
use crate::ExactCheck;
use stepcast_analytic::cynthia2019;
use stepcast_analytic::lin2018::mean_value_analysis;
use stepcast_core::quantity::Seconds;

/// Samples of a batch in the file's cases of Cynthia.
const BATCH: f64 = 32.0;

/// Phases of a step in the file's cases: a transfer of 4 s each way, 6 s of computing, 1 s at the server.
const TRANSFER: Seconds = Seconds::new(4.0);
const COMPUTE: Seconds = Seconds::new(6.0);
const UPDATE: Seconds = Seconds::new(1.0);

pub(super) fn check(rows: &[Baseline], tolerance: f64) -> ExactCheck {
    let mut check = ExactCheck::new("throughput by cynthia2019 and lin2018", tolerance);
    for row in rows {
        let links = [TRANSFER; 2];
        let links_and_server = [TRANSFER, TRANSFER, UPDATE];
        let cynthia =
            |transfer: Seconds| BATCH * cynthia2019::steps_per_second(COMPUTE, transfer, None, row.workers);
        check.cases += 1;
        check.figure(mean_value_analysis(&links, COMPUTE + UPDATE, row.workers), row.mva_down4_up4_think7);
        check.figure(
            mean_value_analysis(&links_and_server, COMPUTE, row.workers),
            row.mva_down4_up4_ps1_think6,
        );
        check.figure(cynthia(TRANSFER), row.cynthia);
        check.figure(cynthia(TRANSFER * 0.5), row.cynthia_half);
    }
    check
}
