//! The tables of this set.

use super::Reproduction;
use super::simulated::SimulatedThreads;
use super::table10::PrintedCondition;
use crate::errors::signed_error;
use crate::{BoundCheck, ExactCheck, Section};
use stepcast_report::table::{Column, Table};

pub(super) fn sections(reproduction: &Reproduction) -> Vec<Section> {
    vec![
        ExactCheck::table(&reproduction.checks).into(),
        printed(&reproduction.table10).into(),
        simulated(&reproduction.simulated).into(),
        BoundCheck::table(&reproduction.bounds).into(),
    ]
}

fn printed(rows: &[PrintedCondition]) -> Table {
    let mut table = Table::new(
        "Table 10, as printed",
        [
            Column::names("machine"),
            Column::numbers("nodes"),
            Column::numbers("GPUs"),
            Column::numbers("batch"),
            Column::numbers("epoch"),
            Column::numbers("predicted"),
            Column::numbers("error"),
            Column::numbers("minibatch"),
            Column::numbers("predicted"),
            Column::numbers("error"),
        ],
    );
    for row in rows {
        table.row([
            row.machine.clone(),
            row.nodes.to_string(),
            row.gpus.to_string(),
            row.batch.to_string(),
            format!("{} s", row.epoch_measured),
            format!("{} s", row.epoch_predicted),
            signed_error(row.epoch_predicted / row.epoch_measured),
            row.minibatch_measured.to_string(),
            row.minibatch_predicted.to_string(),
            signed_error(row.minibatch_predicted / row.minibatch_measured),
        ]);
    }
    table.note =
        "Measurements and predictions are the paper's own. The batches of KFC are inferred, because print has lost them."
            .to_owned();
    table
}

fn simulated(rows: &[SimulatedThreads]) -> Table {
    let mut table = Table::new(
        "Closed form against simulated threads",
        [
            Column::numbers("nodes"),
            Column::numbers("GPUs"),
            Column::numbers("batch"),
            Column::numbers("T_GPU"),
            Column::numbers("simulated"),
            Column::numbers("deviation"),
            Column::numbers("T_Update"),
            Column::numbers("simulated"),
            Column::numbers("deviation"),
        ],
    );
    for row in rows {
        table.row([
            row.nodes.to_string(),
            row.gpus.to_string(),
            row.batch.to_string(),
            row.gpu.human(),
            row.simulated_gpu.human(),
            signed_error(row.gpu / row.simulated_gpu),
            row.update.human(),
            row.simulated_update.human(),
            signed_error(row.update / row.simulated_update),
        ]);
    }
    table.note = "On a synthetic machine of the size of the paper's, with times that vary by 10 %. Eq. 8 underestimates the \
                  wait at the barrier of several nodes, so that only T_GPU is bounded."
        .to_owned();
    table
}
