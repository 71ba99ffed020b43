//! The best plan if the objective is not a closed form: local search over cuts, starting from the plans of the rules.
//!
//! A plan is a set of cuts between gradients. From the best few plans known, every single cut is added, removed or
//! moved by one place as long as that helps; the number of evaluations is bounded. On up to twelve gradients all plans
//! are tried.

use super::Line;
use super::evaluate::Evaluator;
use crate::simulate::BUDGET as BUDGET_KEY;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;

/// Gradients up to which all plans are tried.
const FEW: usize = 12;

/// Evaluations after which the search ends.
const BUDGET: usize = 1_500;

const STARTS: usize = 3;

/// The best plan that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BestFusion {
    /// Gradients of each message.
    pub counts: Vec<u32>,
    /// How it was found.
    pub how: String,
}

/// The best plan, at least as good as any of `lines`.
pub(super) fn best(evaluator: &Evaluator<'_>, lines: &[Line]) -> Result<BestFusion, Fault> {
    let exact = evaluator.optimum()?;
    match exact {
        Some(exact) if evaluator.is_exact() => {
            Ok(BestFusion { counts: exact, how: "exact: no plan is faster".to_owned() })
        }
        _ if evaluator.pass().tensors() <= FEW => exhaustive(evaluator),
        exact => improved(evaluator, exact, lines),
    }
}

/// Improves the best of the plans of the rules and the plan `exact` of the closed form, where there was time to find it.
pub fn improved(
    evaluator: &Evaluator<'_>,
    exact: Option<Vec<u32>>,
    lines: &[Line],
) -> Result<BestFusion, Fault> {
    let beyond = match exact {
        Some(_) => String::new(),
        None => format!("; the exact plan needs `{BUDGET_KEY}` from {} on", evaluator.budget_of_optimum()),
    };
    let exact = exact.unwrap_or_else(|| vec![evaluator.pass().tensors() as u32]);
    let mut starts: Vec<(Seconds, Vec<bool>)> = vec![(evaluator.time(&exact)?, cuts(&exact))];
    for line in lines {
        let plan = cuts(&line.buckets);
        if !starts.iter().any(|(_, known)| *known == plan) {
            starts.push((evaluator.time(&line.buckets)?, plan));
        }
    }
    starts.sort_by(|a, b| a.0.get().total_cmp(&b.0.get()));
    let budget = evaluator.affordable().min(BUDGET);
    let mut search = Search { evaluator, left: budget };
    let mut best = starts[0].clone();
    for start in starts.into_iter().take(STARTS) {
        let found = search.improve(start)?;
        if found.0 < best.0 {
            best = found;
        }
    }
    let tried = budget - search.left;
    let why = if search.left > 0 { "no single cut made it faster" } else { "the budget was spent" };
    Ok(BestFusion {
        counts: counts(&best.1),
        how: format!("searched: {tried} plans were tried until {why}{beyond}"),
    })
}

struct Search<'a, 'b> {
    evaluator: &'a Evaluator<'b>,
    left: usize,
}

impl Search<'_, '_> {
    /// Takes the first change that helps, position by position, until a whole round brings no improvement.
    fn improve(&mut self, mut best: (Seconds, Vec<bool>)) -> Result<(Seconds, Vec<bool>), Fault> {
        let places = best.1.len();
        let mut unchanged = 0;
        let mut place = 0;
        while unchanged < places && self.left > 0 {
            let changes = [vec![place], vec![place, (place + 1) % places.max(1)]];
            let mut improved = false;
            for change in changes {
                let mut plan = best.1.clone();
                let moves = change.len() > 1;
                if moves && plan[change[0]] == plan[change[1]] {
                    continue;
                }
                for &cut in &change {
                    plan[cut] = !plan[cut];
                }
                if self.left == 0 {
                    break;
                }
                self.left -= 1;
                let time = self.evaluator.time(&counts(&plan))?;
                if time < best.0 {
                    best = (time, plan);
                    improved = true;
                }
            }
            unchanged = if improved { 0 } else { unchanged + 1 };
            place = (place + 1) % places;
        }
        Ok(best)
    }
}

/// The best of all plans, each of them tried.
pub fn exhaustive(evaluator: &Evaluator<'_>) -> Result<BestFusion, Fault> {
    let places = evaluator.pass().tensors().saturating_sub(1);
    let mut best: Option<(Seconds, Vec<u32>)> = None;
    for mask in 0..1_u32 << places {
        let plan: Vec<bool> = (0..places).map(|place| mask & (1 << place) != 0).collect();
        let counts = counts(&plan);
        let time = evaluator.time(&counts)?;
        if best.as_ref().is_none_or(|(fastest, _)| time < *fastest) {
            best = Some((time, counts));
        }
    }
    let counts = best.map_or_else(Vec::new, |(_, counts)| counts);
    Ok(BestFusion { counts, how: "exact: all plans were tried".to_owned() })
}

/// Whether there is a cut after each gradient but the last.
fn cuts(counts: &[u32]) -> Vec<bool> {
    let mut cuts = Vec::new();
    for &count in counts {
        cuts.extend(std::iter::repeat_n(false, count.saturating_sub(1) as usize));
        cuts.push(true);
    }
    cuts.pop();
    cuts
}

fn counts(cuts: &[bool]) -> Vec<u32> {
    let mut counts = vec![1];
    for &cut in cuts {
        match counts.last_mut() {
            Some(last) if !cut => *last += 1,
            _ => counts.push(1),
        }
    }
    counts
}
