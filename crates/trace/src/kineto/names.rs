//! Names of events, stored once, and the facts that follow from each.

use super::records::Role;
use rustc_hash::FxHashMap;

/// The name that PyTorch's profiler gives to steps.
pub(super) const STEP: &str = "ProfilerStep";

/// Bytes of names that are kept; all further names share one number.
const MOST: usize = 8 << 20;
/// Bytes of a name beside its text.
const ENTRY: usize = 64;

/// A fact that follows from a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    /// A kernel of NCCL or its like.
    CollectiveKernel,
    /// A copy from device to device.
    WithinDevice,
    /// A call that waits for the device.
    Waits,
    /// A call that launches work on the device.
    SetsToWork,
    /// A gradient is added to its parameter.
    Accumulates,
    /// An operator that records the size of a collective.
    RecordsCollective,
}

/// All facts that follow from a name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    flags: u8,
    pub(super) role: Option<Role>,
    /// The name of the collective that it is about.
    pub(super) collective: Option<u32>,
}

impl Facts {
    pub(super) fn has(self, fact: Fact) -> bool {
        self.flags & (1 << fact as u8) != 0
    }
}

/// All names.
#[derive(Debug, Default)]
pub(super) struct Names {
    indices: FxHashMap<Box<str>, u32>,
    listed: Vec<(Box<str>, Facts)>,
    bytes: usize,
}

impl Names {
    /// The number of a name, and its facts.
    pub(super) fn intern(&mut self, name: &str) -> (u32, Facts) {
        if let Some(&index) = self.indices.get(name) {
            return (index, self.listed[index as usize].1);
        }
        let facts = self.facts(name);
        self.add(name, facts)
    }

    /// The number of a name that is not known yet.
    fn add(&mut self, name: &str, facts: Facts) -> (u32, Facts) {
        let kept = if self.bytes < MOST { name } else { "…" };
        self.bytes += kept.len() + ENTRY;
        let index = self.listed.len() as u32;
        if kept.len() < name.len()
            && let Some(&index) = self.indices.get(kept)
        {
            return (index, facts);
        }
        self.indices.insert(kept.into(), index);
        self.listed.push((kept.into(), facts));
        (index, facts)
    }

    pub(super) fn text(&self, index: u32) -> &str {
        self.listed.get(index as usize).map_or("", |(name, _)| name)
    }

    fn facts(&mut self, name: &str) -> Facts {
        let contains = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let flags = [
            (Fact::CollectiveKernel, contains(&["nccl", "rccl", "oneccl", "gloo", "msccl"])),
            (Fact::WithinDevice, contains(&["DtoD"])),
            (Fact::Waits, contains(&["Synchronize"])),
            (Fact::SetsToWork, contains(&["Launch", "Memcpy", "Memset"])),
            (Fact::Accumulates, name.ends_with("AccumulateGrad")),
            (Fact::RecordsCollective, name == "record_param_comms"),
        ];
        let flags = flags.iter().filter(|(_, holds)| *holds).fold(0, |all, (fact, _)| all | 1 << *fact as u8);
        // What a collective is called says nothing more, so that this does not recurse for `nccl:nccl:…`.
        let collective = collective(name).map(|what| match self.indices.get(what) {
            Some(&index) => index,
            None => self.add(what, Facts { role: role(what), ..Facts::default() }).0,
        });
        Facts { flags, role: role(name), collective }
    }
}

fn role(name: &str) -> Option<Role> {
    if name.starts_with(STEP) {
        Some(Role::Step)
    } else if name.starts_with("Optimizer.step") {
        Some(Role::Optimiser)
    } else if name.starts_with("Optimizer.zero_grad") {
        Some(Role::Clearing)
    } else if name.starts_with("enumerate(DataLoader)") || name.contains("data_load") {
        Some(Role::Loading)
    } else if name.starts_with("autograd::engine::evaluate_function") {
        Some(Role::Backward)
    } else {
        None
    }
}

/// The collective that an annotation such as `nccl:all_reduce` is about.
fn collective(name: &str) -> Option<&str> {
    let (library, what) = name.split_once(':')?;
    let known = matches!(library, "nccl" | "rccl" | "gloo" | "mpi" | "ucc" | "xccl" | "hccl");
    (known && !what.starts_with(':')).then_some(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_are() {
        let mut names = Names::default();
        let (first, facts) = names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        assert!(facts.has(Fact::CollectiveKernel) && !facts.has(Fact::Waits));
        assert_eq!(names.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL").0, first);
        let (_, facts) = names.intern("nccl:all_reduce");
        assert_eq!(names.text(facts.collective.unwrap()), "all_reduce");
        assert_eq!(names.intern("ProfilerStep#7").1.role, Some(Role::Step));
        assert_eq!(names.intern("c10d::allreduce_").1.collective, None);
        assert!(names.intern("cudaStreamSynchronize").1.has(Fact::Waits));
    }

    #[test]
    fn collectives_of_collectives_do_not_recurse() {
        let mut names = Names::default();
        let (_, facts) = names.intern(&"nccl:".repeat(500_000));
        assert!(facts.collective.is_some());
    }

    #[test]
    fn too_many_names_are_not_told_apart() {
        let mut names = Names::default();
        let long = "x".repeat(MOST / 4);
        let indices: Vec<u32> = (0..9).map(|number| names.intern(&format!("{long}{number}")).0).collect();
        assert!(indices[..4].windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(indices[7], indices[8]);
        assert_eq!(names.text(indices[8]), "…");
    }
}
