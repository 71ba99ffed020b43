//! Measured collectives, by kind and number of ranks.

use super::read::MeasuredCollective;
use std::collections::BTreeMap;
use stepcast_core::fitted::collectives::{Collective, Entry};
use stepcast_core::quantity::{Bytes, Seconds};

/// Times of each kind over each number of ranks, by size; kinds with a single size are left out.
pub(super) fn entries(rows: &[MeasuredCollective]) -> Vec<Entry> {
    let mut found: BTreeMap<(&str, u64), BTreeMap<u64, f64>> = BTreeMap::new();
    for row in rows {
        found.entry((&row.family, row.ranks)).or_default().insert(row.bytes as u64, row.us * 1e-6);
    }
    let entry = |((name, ranks), times): ((&str, u64), BTreeMap<u64, f64>)| {
        let collective = match name {
            "all-reduce" => Collective::AllReduce,
            "all-gather" => Collective::AllGather,
            "reduce-scatter" => Collective::ReduceScatter,
            "all-to-all" => Collective::AllToAll,
            "send" => Collective::Send,
            _ => return None,
        };
        let measured = times.into_iter().map(|(size, time)| (Bytes::new(size as f64), Seconds::new(time)));
        Some(Entry { collective, ranks, measured: measured.collect() })
    };
    found.into_iter().filter(|(_, times)| times.len() > 1).filter_map(entry).collect()
}
