//! A made-up training job as PyTorch's profiler would record it, small enough to know every time in advance.
//!
//! All layers are alike. The host asks for a kernel every [`Job::host`] microseconds; the device has one stream for
//! kernels and one for collectives, and the optimiser waits for all collectives.

#![allow(dead_code, reason = "shared by tests and benchmarks, of which none uses all")]

use std::fmt::Write;

/// What to record. Times in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Layers; each has one weight.
    pub(crate) layers: u64,
    /// Elements of each weight.
    pub(crate) elements: u64,
    pub(crate) steps: u64,
    pub(crate) forward: f64,
    pub(crate) backward: f64,
    pub(crate) update: f64,
    /// From one launch to the next.
    pub(crate) host: f64,
    /// Gradients of a bucket and how long its collective takes; none if nothing is exchanged.
    pub(crate) exchange: Option<(u64, f64)>,
    /// How long the tensor-parallel sum of a layer's activations takes; none if there is none. Kernels of collectives
    /// then name their process groups.
    pub(crate) activations: Option<f64>,
    /// Whether shapes are recorded, and so what is the batch.
    pub(crate) batch: Option<u64>,
    pub(crate) marks: bool,
    /// Whether the host waits for the device at the end of a step.
    pub(crate) waits: bool,
    pub(crate) rank: Option<(u64, u64)>,
    /// What this rank's clock is ahead.
    pub(crate) clock: f64,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            layers: 4,
            elements: 1000,
            steps: 3,
            forward: 100.0,
            backward: 200.0,
            update: 50.0,
            host: 10.0,
            exchange: None,
            activations: None,
            batch: Some(16),
            marks: true,
            waits: false,
            rank: None,
            clock: 0.0,
        }
    }
}

const PROCESS: u64 = 100;
const MAIN: u64 = 100;
const AUTOGRAD: u64 = 101;

struct Writer {
    text: String,
    correlation: u64,
    sequence: u64,
    now: f64,
    device: f64,
    network: f64,
    first: bool,
}

impl Writer {
    fn event(&mut self, category: &str, name: &str, thread: u64, start: f64, duration: f64, details: &str) {
        let comma = if std::mem::replace(&mut self.first, false) { "" } else { "," };
        let process = if thread < 100 { 0 } else { PROCESS };
        let _ = write!(
            self.text,
            "{comma}\n  {{\n    \"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {process}, \"tid\": \
             {thread},\n    \"ts\": {start:.3}, \"dur\": {duration:.3},\n    \"args\": {{\n      {details}\n    }}\n  }}"
        );
    }

    /// The host asks for a kernel; where it ends.
    fn launch(
        &mut self,
        name: &str,
        thread: u64,
        stream: u64,
        not_before: f64,
        duration: f64,
        details: &str,
    ) -> f64 {
        self.correlation += 1;
        let correlation = self.correlation;
        let asked = self.now;
        self.event(
            "cuda_runtime",
            "cudaLaunchKernel",
            thread,
            asked,
            2.0,
            &format!("\"External id\": {correlation}, \"cbid\": 211, \"correlation\": {correlation}"),
        );
        let free = if stream == 7 { self.device } else { self.network };
        let start = free.max(asked + 2.0).max(not_before);
        let about = format!(
            "\"External id\": {correlation},\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": {stream}, \"correlation\": {correlation},\n      \"registers per thread\": 32,\n      \"shared memory\": 0,\n      \"blocks per SM\": 1.5,\n      \"warps per SM\": 12.0,\n      \"grid\": [8, 1, 1],\n      \"block\": [128, 1, 1],\n      \"est. achieved occupancy %\": 75{details}"
        );
        self.event("kernel", name, stream, start, duration, &about);
        let _ = write!(
            self.text,
            ",\n  {{\n    \"ph\": \"s\", \"id\": {correlation}, \"pid\": {PROCESS}, \"tid\": {thread}, \"ts\": {asked:.3},\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }}"
        );
        let end = start + duration;
        *(if stream == 7 { &mut self.device } else { &mut self.network }) = end;
        end
    }
}

impl Job {
    pub(crate) fn trace(&self) -> String {
        let mut out = Writer {
            text: String::from("\n{\n  \"schemaVersion\": 1,\n"),
            correlation: 0,
            sequence: 0,
            now: 5e9 + self.clock,
            device: 0.0,
            network: 0.0,
            first: true,
        };
        out.text.push_str("  \"deviceProperties\": [\n    {\"id\": 0, \"name\": \"Made-up GPU\"}\n  ],\n");
        if let Some((rank, ranks)) = self.rank {
            let _ = writeln!(
                out.text,
                "  \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {rank}, \"world_size\": {ranks}}},"
            );
        }
        out.text.push_str("  \"traceEvents\": [");
        for step in 0..self.steps {
            self.step(step, &mut out);
        }
        out.text.push_str("\n  ],\n  \"traceName\": \"made-up.json\"\n}\n");
        out.text
    }

    fn step(&self, step: u64, out: &mut Writer) {
        let begin = out.now;
        let mut bucket = 0;
        let mut collectives = 0.0;
        let first = out.sequence;
        for layer in 0..self.layers {
            out.sequence += 1;
            let shape = self.batch.map_or(String::new(), |batch| {
                format!(
                    ", \"Input Dims\": [[{batch}, 3, 8, 8], [{}]], \"Input type\": [\"float\", \"float\"]",
                    self.elements
                )
            });
            let about = format!("\"External id\": {layer}, \"Sequence number\": {}{shape}", out.sequence);
            out.event("cpu_op", "aten::conv2d", MAIN, out.now - 1.0, self.host - 2.0, &about);
            let end = out.launch("made_up_convolution", MAIN, 7, 0.0, self.forward, "");
            out.now += self.host;
            if let Some(duration) = self.activations {
                let about = "\"In msg nelems\": 64, \"Out msg nelems\": 64, \"dtype\": \"Float\", \"Group size\": 2, \
                             \"Collective name\": \"allreduce\", \"Process Group Name\": \"7\", \
                             \"Process Group Description\": \"tp\"";
                out.event("cpu_op", "record_param_comms", MAIN, out.now - 1.0, self.host - 2.0, about);
                let about = format!(", {about}");
                let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
                out.device = out.launch(name, MAIN, 20, end, duration, &about);
                out.now += self.host;
            }
        }
        for layer in 0..self.layers {
            let about =
                format!("\"External id\": {layer}, \"Sequence number\": {}", first + self.layers - layer);
            out.event(
                "cpu_op",
                "autograd::engine::evaluate_function: ConvolutionBackward0",
                AUTOGRAD,
                out.now - 1.0,
                5.0,
                &about,
            );
            let ready = out.launch("made_up_convolution_backward", AUTOGRAD, 7, 0.0, self.backward, "");
            let shape = self.batch.map_or(String::new(), |_| {
                format!(", \"Input Dims\": [[{}]], \"Input type\": [\"float\"]", self.elements)
            });
            let about = format!("\"External id\": {layer}{shape}");
            out.event(
                "cpu_op",
                "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
                AUTOGRAD,
                out.now + 5.0,
                2.0,
                &about,
            );
            out.event("cpu_op", "torch::autograd::AccumulateGrad", AUTOGRAD, out.now + 5.5, 0.5, &about);
            bucket += 1;
            if let Some((size, duration)) = self.exchange
                && (bucket == size || layer + 1 == self.layers)
            {
                let elements = bucket * self.elements;
                let group = self.activations.map_or("", |_| {
                    ", \"Process Group Name\": \"0\", \"Process Group Description\": \"dp\", \"Group size\": 4"
                });
                let about = format!(
                    "\"In msg nelems\": {elements}, \"dtype\": \"Float\", \"Collective name\": \"allreduce\"{group}"
                );
                let host = out.now;
                out.now += 7.5;
                out.event("cpu_op", "record_param_comms", AUTOGRAD, out.now, 2.0, &about);
                out.event(
                    "user_annotation",
                    "nccl:all_reduce",
                    AUTOGRAD,
                    out.now + 0.1,
                    1.5,
                    "\"External id\": 0",
                );
                out.now += 0.5;
                collectives =
                    out.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", AUTOGRAD, 20, ready, duration, "");
                out.now = host;
                bucket = 0;
            }
            out.now += self.host;
        }
        out.event(
            "user_annotation",
            "Optimizer.step#SGD.step",
            MAIN,
            out.now - 1.0,
            self.host - 2.0,
            "\"External id\": 0",
        );
        out.launch("made_up_update", MAIN, 7, collectives, self.update, "");
        out.now += self.host;
        if self.waits {
            let done = out.device.max(out.now) + 1.0;
            out.event(
                "cuda_runtime",
                "cudaDeviceSynchronize",
                MAIN,
                out.now,
                done - out.now,
                "\"cbid\": 165",
            );
            out.now = done;
        }
        if self.marks {
            let name = format!("ProfilerStep#{}", step + 2);
            out.event("user_annotation", &name, MAIN, begin - 1.5, out.now - begin, "\"External id\": 0");
        }
    }
}
