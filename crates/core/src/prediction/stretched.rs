//! A prediction whose times are all longer or shorter by one factor.

use super::{Communication, Part, Prediction, Simulation, SplitReport, Spread, Updating};

impl Prediction {
    /// The same step with all its times multiplied by `factor`; shares of it stay as they are. No device computes more
    /// than its peak rate: a transformer's step is not shortened below that.
    #[must_use]
    pub fn stretched(mut self, factor: f64) -> Self {
        let factor = self.transformer.as_ref().map_or(factor, |split| factor.max(split.mfu).max(split.hfu));
        self.iteration = self.iteration * factor;
        self.throughput = self.throughput / factor;
        stretch_parts(&mut self.breakdown, factor);
        for group in &mut self.groups {
            group.compute = group.compute * factor;
            group.ready = group.ready * factor;
        }
        if let Some(Communication { negotiate, wait, allreduce, misc, exposed }) = &mut self.communication {
            for time in [negotiate, wait, allreduce, misc, exposed] {
                *time = *time * factor;
            }
        }
        if let Some(updating) = self.updating.as_deref_mut() {
            let Updating { iteration, breakdown, kernels, .. } = updating;
            *iteration = *iteration * factor;
            stretch_parts(breakdown, factor);
            kernels.iter_mut().for_each(|kernel| kernel.time = kernel.time * factor);
        }
        if let Some(Simulation { throughput_interval, step_s, .. }) = self.simulation.as_deref_mut() {
            *throughput_interval = throughput_interval.map(|rate| rate / factor);
            let Spread { low, median, high } = *step_s;
            *step_s = Spread { low: low * factor, median: median * factor, high: high * factor };
        }
        if let Some(split) = self.transformer.as_deref_mut() {
            stretch_split(split, factor);
        }
        self
    }
}

fn stretch_parts(parts: &mut [Part], factor: f64) {
    for part in parts {
        part.time = part.time * factor;
    }
}

fn stretch_split(split: &mut SplitReport, factor: f64) {
    for rate in [&mut split.tokens_per_s, &mut split.tokens_per_s_per_device, &mut split.mfu, &mut split.hfu]
    {
        *rate /= factor;
    }
    stretch_parts(&mut split.exposed, factor);
    for stage in &mut split.stages {
        for time in [&mut stage.forward, &mut stage.backward, &mut stage.end] {
            *time = *time * factor;
        }
    }
}
