//! Fitted steps that come with devices of the catalog: `catalog/fitted`, written by `stepcast fit steps`.

use super::artefact::Artefact;
use super::steps::StepModel;
use crate::machine::{Device, catalog};
use std::sync::LazyLock;

static FITTED: LazyLock<Vec<(Device, StepModel)>> = LazyLock::new(|| {
    let read = |(id, text): (&str, &str)| match Artefact::from_toml(text) {
        Ok(Artefact::Steps(model)) => Some((catalog::device(id).ok()?, *model)),
        _ => None,
    };
    stepcast_catalog::FITTED.into_iter().filter_map(read).collect()
});

/// The fitted steps of a device, if it is one of the catalog and as the catalog has it.
pub fn steps(device: &Device) -> Option<&'static StepModel> {
    let found = FITTED.iter().find(|(known, _)| known.name == device.name && known == device);
    found.map(|(_, model)| model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_fit_is_read_and_belongs_to_the_device_of_the_catalog() {
        for (id, _) in stepcast_catalog::FITTED {
            let device = catalog::device(id).unwrap();
            assert!(steps(&device).is_some(), "{id}");
            let slower = Device { memory_rate: device.memory_rate * 0.5, ..device };
            assert!(steps(&slower).is_none(), "{id}");
        }
        assert!(steps(&catalog::device("tesla-v100-sxm2-16gb").unwrap()).is_none());
    }
}
