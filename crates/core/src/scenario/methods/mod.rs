//! `[methods]`: inputs of single methods, one file each.

mod oyama2016;
mod simulate;
mod zeng2023;

pub use oyama2016::{
    ASSUMED_HOST_MEMORY_RATE, CudaKernel, KernelTime, KernelTimes, KernelsSection, Line, LineSection,
    Oyama2016, Oyama2016Section, PerParameter, PerParameterSection, Products, SgemmSection, SgemmTable,
};
pub use simulate::{SharingRule, Simulate, SimulateSection, TransferOrder};
pub use zeng2023::{Zeng2023, Zeng2023Section};

use super::resolve::below;
use crate::fault::Fault;
use crate::files::Files;
use crate::keys::document_keys;
use crate::precision::Precision;

document_keys! {
    /// `[methods]`: inputs of single methods.
    MethodsSection {
        /// Zeng 2023.
        zeng2023: Zeng2023Section, "table", "defaults";
        /// Oyama 2016.
        oyama2016: Oyama2016Section, "table", "estimates";
        /// The event engine.
        simulate: SimulateSection, "table", "defaults";
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Methods {
    /// Zeng 2023.
    pub zeng2023: Zeng2023,
    /// Oyama 2016.
    pub oyama2016: Oyama2016,
    pub simulate: Simulate,
}

impl Methods {
    pub(super) fn section(&self) -> MethodsSection {
        MethodsSection {
            zeng2023: Some(self.zeng2023.section()),
            oyama2016: Some(self.oyama2016.to_section()),
            simulate: Some(self.simulate.section()),
        }
    }
}

impl MethodsSection {
    /// Checks every value; products are those of the scenario's `precision`.
    pub(super) fn resolve(self, precision: Precision, files: &dyn Files) -> Result<Methods, Fault> {
        let oyama2016 = oyama2016::resolve(self.oyama2016.unwrap_or_default(), precision, files);
        let oyama2016 = oyama2016.map_err(below("oyama2016"))?;
        let zeng2023 = zeng2023::resolve(self.zeng2023.unwrap_or_default(), files);
        Ok(Methods {
            zeng2023: zeng2023.map_err(below("zeng2023"))?,
            oyama2016,
            simulate: simulate::resolve(self.simulate.unwrap_or_default(), files)
                .map_err(below("simulate"))?,
        })
    }
}
