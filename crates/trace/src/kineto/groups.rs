//! Process groups of collectives that do not record theirs.

use super::recording::Recording;
use std::collections::BTreeMap;

/// Threads that run the collectives of a process group of gloo (PyTorch's default).
const POOL: usize = 2;

impl Recording {
    /// Attributes collectives whose group is not recorded: to the only group of the job; or, with gloo, to the threads that ran
    /// them. Those of one group were started together, though ranks of the same host may have started some between them.
    pub(super) fn attribute_groups(&mut self) {
        let only = match self.head.groups() {
            [only] => Some((self.names.intern(&only.name).0, only.ranks)),
            _ => None,
        };
        let mut pools = BTreeMap::<u16, u32>::new();
        let mut threads: Vec<(u32, u16)> =
            self.pool_threads.iter().map(|(own, label)| (*label, *own)).collect();
        threads.sort_unstable();
        let world = self.head.distributed.as_ref().and_then(|own| own.world_size).unwrap_or(1);
        let mut rest = &threads[..];
        while let [(first, _), ..] = rest {
            let near =
                rest.iter().take(POOL).take_while(|(next, _)| u64::from(next - first) <= world).count();
            let (pool, others) = rest.split_at(near);
            rest = others;
            let name = match pool {
                [(only, _)] => format!("gloo {only}"),
                [(first, _), .., (last, _)] => format!("gloo {first}-{last}"),
                [] => continue,
            };
            let (name, _) = self.names.intern(&name);
            pools.extend(pool.iter().map(|(_, thread)| (*thread, name)));
        }
        for own in &mut self.collectives {
            if own.message.group.is_some() {
                continue;
            }
            own.message.group = only.map(|(name, _)| name).or_else(|| pools.get(&own.thread).copied());
            own.message.ranks = own.message.ranks.max(only.map_or(0, |(_, ranks)| ranks));
        }
    }
}
