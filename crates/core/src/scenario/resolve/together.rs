//! Whether values that are sound by themselves go together.

use super::machines;
use crate::machine::Device;
use crate::invalid::{Invalid, KeyPath};
use crate::scenario::{MAX_WORKERS, Scenario};
use crate::strategy::{Architecture, Strategy};

impl Scenario {
    /// Checks what no key can tell by itself; [`resolve`](crate::scenario::ScenarioFile::resolve) does it, and so must
    /// whoever changes a scenario.
    pub fn check_together(&self) -> Result<(), Invalid> {
        let Self { cluster, strategy, .. } = self;
        if cluster.groups.is_empty() {
            let reason = "there are no workers";
            return Err(Invalid::new(KeyPath::of("cluster.workers"), reason, "use at least one"));
        }
        let mut total = 0;
        for (index, group) in cluster.groups.iter().enumerate() {
            total += u64::from(group.count);
            if total > MAX_WORKERS {
                return Err(too_many(index, total));
            }
            if group.device.peak(strategy.precision).is_none() {
                return Err(no_such_precision(index, &group.device, strategy));
            }
            machines::fits(&group.device, strategy.precision)
                .map_err(|invalid| invalid.below(workers(index).key("device").key("fitted")))?;
        }
        if strategy.architecture == Architecture::StandAlone && total != 1 {
            let reason = format!("stand-alone training has one worker, and the cluster has {total}");
            let remedy = "use \"parameter-server\" or \"all-reduce\", or one worker";
            return Err(Invalid::new(KeyPath::of("strategy.architecture"), reason, remedy));
        }
        Ok(())
    }
}

fn workers(index: usize) -> KeyPath {
    KeyPath::of("cluster.workers").index(index)
}

fn too_many(index: usize, total: u64) -> Invalid {
    let reason =
        format!("the cluster has {total} workers or more, and {MAX_WORKERS} is the most that is supported");
    Invalid::new(workers(index).key("count"), reason, "use fewer workers")
}

fn no_such_precision(index: usize, device: &Device, strategy: &Strategy) -> Invalid {
    let precision = strategy.precision;
    Invalid::new(
        workers(index),
        format!("the {} has no {precision} rate", device.name),
        format!("use `precision = \"fp32\"`, or give the device a `{precision}` rate"),
    )
}
