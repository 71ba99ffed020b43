//! The schedule of a pipeline and how its stages send.

use super::PlanSection;
use super::choices::choice;
use super::coded::{Coded, Decoded};
use crate::fault::Fault;
use crate::keys::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

choice! {
    /// The order of operations of every pipeline stage.
    ScheduleKind, "string" {
        /// All forwards, then all backwards (Huang 2019).
        Gpipe = "gpipe",
        /// One forward, one backward (Narayanan 2019).
        OneFOneB = "1f1b",
        /// One forward, one backward over several chunks of layers on each stage (Narayanan 2021).
        Interleaved = "interleaved",
        /// 1F1B with the backward split in two (Qi 2023).
        ZbH1 = "zb-h1",
        /// All forwards of all chunks, then all backwards (Lamy-Poirier 2022).
        LoopedBfs = "looped-bfs",
        /// Interleaved with the backward split in two (PyTorch).
        InterleavedZeroBubble = "interleaved-zero-bubble",
        /// Two chunks on each stage, the second in reverse order of stages, with the backward split in two (Qi 2024).
        Zbv = "zbv",
        /// Stages as in `zbv`; a forward and the backward of another micro-batch run as one operation (PyTorch).
        DualPipeV = "dualpipev",
        /// Two copies of the model, with micro-batches from both ends (DeepSeek-AI 2024).
        DualPipe = "dualpipe",
    }
}

choice! {
    /// How a stage sends a tensor to the next.
    Sends, "string" {
        /// The tensor arrives later; the sender goes on.
        Asynchronous = "asynchronous",
        /// The sender is busy until the tensor has arrived.
        Blocking = "blocking",
        /// The tensor moves when the receiver asks for it, which is when it needs it (GPipe and 1F1B of PyTorch over gloo).
        OnDemand = "on-demand",
        /// The tensor moves when the receiver has asked for it. It asks when its turn comes in a joint plan of all stages, in which
        /// the sender's operation comes before (other schedules of PyTorch over gloo).
        Planned = "planned",
    }
}

impl ScheduleKind {
    /// Whether the second of two chunks goes back through the stages.
    pub const fn is_folded(self) -> bool {
        matches!(self, Self::Zbv | Self::DualPipeV | Self::DualPipe)
    }

    /// Whether the schedule runs with this number of micro-batches: interleaved ones need a multiple of the stages (Megatron-LM),
    /// DualPipe at least two for each stage (DeepSeek, PyTorch).
    pub const fn takes(self, stages: u64, micro_batches: u64) -> bool {
        match self {
            Self::Interleaved | Self::InterleavedZeroBubble => micro_batches.is_multiple_of(stages),
            Self::DualPipeV | Self::DualPipe => micro_batches >= stages.saturating_mul(2),
            Self::Gpipe | Self::OneFOneB | Self::ZbH1 | Self::LoopedBfs | Self::Zbv => true,
        }
    }
}

impl PlanSection {
    /// Replaces DualPipe by its equivalent. Its stages r and p−1−r hold the same two stages of the model, one of each copy: together
    /// they do the work of stage r of two DualPipeV pipelines of p/2 stages, each with half of the micro-batches. The sole
    /// difference is that the two stages in the middle send to each other where DualPipeV keeps its activations.
    pub(crate) fn halve_dual_pipe(&mut self) -> Result<(), Fault> {
        if self.schedule != Some(ScheduleKind::DualPipe) {
            return Ok(());
        }
        let stages = self.pipeline.unwrap_or(1);
        if stages < 4 || !stages.is_multiple_of(2) {
            let reason = format!("`dualpipe` has an even number of stages, at least 4, not {stages}");
            return Err(Fault::in_key("pipeline", reason, "use an even number such as 8"));
        }
        if let Some(chunks) = self.virtual_stages.filter(|chunks| *chunks != 1) {
            let reason =
                format!("`dualpipe` divides the model by its stages alone, not into {chunks} chunks of each");
            return Err(Fault::in_key("virtual-stages", reason, "leave it out"));
        }
        self.schedule = Some(ScheduleKind::DualPipeV);
        self.pipeline = Some(stages / 2);
        self.virtual_stages = Some(2);
        self.data = self.data.map(|data| data.saturating_mul(2));
        Ok(())
    }
}
