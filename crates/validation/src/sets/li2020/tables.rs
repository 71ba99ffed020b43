//! The tables of this set.

use super::Reproduction;
use super::traces::TraceThroughput;
use crate::errors::signed_error;
use crate::{ExactCheck, Section};
use stepcast_report::table::{Column, Table};

pub(super) fn sections(reproduction: &Reproduction) -> Vec<Section> {
    vec![ExactCheck::table(&reproduction.checks).into(), throughput(&reproduction.traces).into()]
}

fn throughput(traces: &[TraceThroughput]) -> Table {
    let mut table = Table::new(
        "Throughput of the traces, and errors of three methods",
        [
            Column::words("trace"),
            Column::numbers("workers"),
            Column::numbers("steps/s"),
            Column::numbers("simulate"),
            Column::numbers("cynthia2019"),
            Column::numbers("lin2018"),
        ],
    );
    for trace in traces {
        let error = |rate: f64| signed_error(rate / trace.exact);
        table.row([
            trace.case.replace('_', " "),
            trace.workers.to_string(),
            format!("{:.4}", trace.exact),
            error(trace.simulate),
            error(trace.cynthia2019),
            error(trace.lin2018),
        ]);
    }
    table.note = "Workers of a trace are identical and stay in lock-step, which is harder on shared links than the random \
                  phases of real workers. The coarser models know nothing of overlap and windows: their errors are shown \
                  for comparison and are not bounded."
        .to_owned();
    table
}
