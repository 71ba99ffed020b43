//! Every configuration, on all cores: nothing better is left out.

use super::found::{Aim, Found};
use super::{Ended, Seen, Watch};
use crate::explore::sweep::{Refused, Variants, Walker, blocks, is_quick};
use crate::predict::MethodChoice;
use std::ops::{ControlFlow, Range};

pub(super) fn search(
    variants: &Variants<'_>,
    asked: MethodChoice,
    aim: &Aim,
    points: u64,
    watch: &mut Watch<'_>,
) -> (Found, Ended) {
    let grid = variants.grid();
    let block = |walker: &mut Walker<'_>, range: Range<u64>| {
        let mut found = Found::new(aim);
        let mut digits = Vec::new();
        for index in range {
            grid.digits(index, &mut digits);
            let answer = walker.look(&digits, |scenario| asked.figures(scenario));
            found.see(aim, index, answer.map_err(Refused::from).and_then(|answer| answer));
        }
        found
    };
    let mut all = Found::new(aim);
    let ended = blocks(variants, is_quick(variants, asked), 0..points, block, |range, found| {
        all.merge(aim, found);
        watch(Seen { done: range.end, variants, found: &all })
    });
    match ended {
        ControlFlow::Continue(()) => {
            (all, Ended { why: "every configuration was tried".to_owned(), complete: true, least: None })
        }
        ControlFlow::Break(()) => {
            (all, Ended { why: "it was interrupted".to_owned(), complete: false, least: None })
        }
    }
}
