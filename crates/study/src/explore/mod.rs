//! Many scenarios: every combination of some keys (`sweep`), the best of them (`search`), nodes × batches (`map`), ways
//! to split a transformer (`plan`), machines to choose from (`decide`).

pub mod decide;
pub mod map;
pub mod plan;
pub mod search;
pub mod sweep;

use std::ops::RangeInclusive;
use stepcast_core::fault::Fault;
use stepcast_core::scenario::MAX_WORKERS;

const MAX_POINTS: usize = 4096;

/// Lists and ranges, as "1,2,4..8", ascending and without repetition; `of` names what is counted.
pub fn numbers(text: &str, of: &str) -> Result<Vec<u32>, Fault> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let range = range(part.trim(), of)?;
        let points = (range.end() - range.start()) as usize + 1;
        if numbers.len() + points > MAX_POINTS {
            return Err(Fault::new(format!("more than {MAX_POINTS} numbers"), "give fewer, such as 1,2,4,8"));
        }
        numbers.extend(range);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// "8" or "1..16", both ends included.
fn range(text: &str, of: &str) -> Result<RangeInclusive<u32>, Fault> {
    let number = |digits: &str| {
        let wrong = |reason: String| Fault::new(reason, "write 8, 1..16 or 1,2,4");
        let number: u64 =
            digits.trim().parse().map_err(|_| wrong(format!("\"{digits}\" is no number{of}")))?;
        let fits = u32::try_from(number).ok().filter(|_| (1..=MAX_WORKERS).contains(&number));
        fits.ok_or_else(|| wrong(format!("a number{of} is from 1 to {MAX_WORKERS}, not {number}")))
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.strip_prefix('=').unwrap_or(last))?),
        None => (number(text)?, number(text)?),
    };
    if first > last {
        return Err(Fault::new(format!("the range {text} is empty"), format!("write {last}..{first}")));
    }
    Ok(first..=last)
}
