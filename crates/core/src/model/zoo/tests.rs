use super::*;
#[test]
fn every_entry_builds() {
    for entry in entries() {
        let model = entry.build().unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        println!(
            "{} {} {} {}",
            entry.name,
            model.parameters(),
            model.gradients().len(),
            model.forward(Default::default())
        );
    }
}
