//! Traces that are too large to be kept whole.

#[path = "../../tests/made/mod.rs"]
mod made;

use super::{Rank, read_all};
use crate::import::Options;
use made::Job;
use stepcast_core::fault::Fault;

fn ranks(text: &str, most: usize) -> Result<Vec<Rank>, Fault> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.json");
    std::fs::write(&path, text).unwrap();
    let mut ranks = Vec::new();
    read_all(&path, &Options::default().reading(&[]), most, &mut ranks).map(|()| ranks)
}

#[test]
fn steps_that_fit_are_read_in_a_second_pass() {
    let text = Job { steps: 40, ..Job::default() }.trace();
    let whole = ranks(&text, 10_000).unwrap();
    let part = ranks(&text, 1000).unwrap();
    let (whole, part) = (&whole[0], &part[0]);
    assert_eq!(whole.steps.len(), 40);
    assert!((5..40).contains(&part.steps.len()), "{}", part.steps.len());
    assert!(part.notes.iter().any(|note| note.contains("only steps that took")), "{:?}", part.notes);
    let length = |rank: &Rank| rank.mean(|step| step.timeline.length());
    assert!((length(whole) - length(part)).abs() < 1.0, "{} {}", length(whole), length(part));
    assert_eq!(whole.sizes, part.sizes);
}

#[test]
fn what_has_no_marks_and_does_not_fit_is_refused() {
    let text = Job { steps: 40, marks: false, ..Job::default() }.trace();
    let error = ranks(&text, 1000).unwrap_err();
    assert!(error.reason.contains("too many") && error.remedy.contains("schedule"), "{error}");
}
