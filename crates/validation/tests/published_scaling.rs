//! Published runs of several workers, predicted from names and the throughput of one.

#![allow(clippy::unwrap_used)]

use stepcast_validation::{Options, Section, find};

#[test]
fn every_bound_is_kept() {
    let report = find("published-scaling").unwrap().run(&Options::default(), &|_, _| {}).unwrap();
    let mut tables = String::new();
    for section in &report.sections {
        if let Section::Table(table) = section {
            tables += &format!("{}\n", table.title);
            for row in &table.rows {
                tables += &format!("{}\n", row.cells.join(" | "));
            }
        }
    }
    println!("{tables}");
    assert!(report.holds, "{tables}");
    assert!(report.cases().len() > 2800, "{}", report.cases().len());
}
