//! Several ranks of one job, put on one clock by their collectives.
//!
//! A collective ends on all ranks at about the same time, and begins when the last of them has arrived. So the clocks
//! of two ranks differ by the median difference of the ends of their collectives; the rank that begins last keeps the
//! others waiting.

use super::rank::Rank;
use super::records::{Span, Time};

/// One rank beside the others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    /// Its clock minus that of the first rank.
    pub(super) offset: Time,
    /// Mean time from the first rank's arrival at a collective to its own.
    pub(super) lateness: f64,
    /// Share of the collectives at which it arrived last.
    pub(super) last: f64,
    /// Mean time that it waited in a collective for the last rank to arrive, by step.
    pub(super) waited: f64,
}

/// The standing of every rank; none if they have no collectives in common.
pub(super) fn align(ranks: &[Rank]) -> Option<Vec<Standing>> {
    let exchanges: Vec<Vec<Span>> = ranks
        .iter()
        .map(|rank| rank.steps.iter().flat_map(|step| step.exchanges.iter().map(|it| it.ran)).collect())
        .collect();
    let count = exchanges.iter().map(Vec::len).min().filter(|count| *count > 0)?;
    if ranks.len() < 2 || exchanges.iter().any(|own| own.len() != count) {
        return None;
    }
    let offset = |own: &Vec<Span>| {
        let mut differences: Vec<Time> =
            own.iter().zip(&exchanges[0]).map(|(own, first)| own.end - first.end).collect();
        differences.sort_unstable();
        differences[differences.len() / 2]
    };
    let offsets: Vec<Time> = exchanges.iter().map(offset).collect();
    let arrival = |rank: usize, index: usize| exchanges[rank][index].start - offsets[rank];
    let all = 0..ranks.len();
    let first = |index: usize| all.clone().map(|rank| arrival(rank, index)).min().unwrap_or(0);
    let last = |index: usize| all.clone().map(|rank| arrival(rank, index)).max().unwrap_or(0);
    let standing = |rank: usize| {
        let sum = |of: &dyn Fn(usize) -> Time| (0..count).map(|index| of(index) as f64).sum::<f64>();
        Standing {
            offset: offsets[rank],
            lateness: sum(&|index| arrival(rank, index) - first(index)) / count as f64,
            last: sum(&|index| Time::from(arrival(rank, index) == last(index))) / count as f64,
            waited: sum(&|index| last(index) - arrival(rank, index)) / ranks[rank].steps.len() as f64,
        }
    };
    Some(all.clone().map(standing).collect())
}

/// The rank whose own computing takes the median time.
pub(super) fn median(ranks: &[Rank]) -> usize {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    let time = |rank: usize| ranks[rank].mean(|step| step.timeline.length());
    order.sort_by(|&a, &b| time(a).total_cmp(&time(b)));
    order[(order.len() - 1) / 2]
}
