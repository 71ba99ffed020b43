//! Models as text: the list, and one of them in detail.

use super::screen::Screen;
use super::table;
use stepcast_core::model::Model;
use stepcast_core::model::zoo::ZooModel;
use stepcast_report::tables::model as tables;
use stepcast_report::tables::transformer::parts;

/// All models, one row each.
pub(crate) fn list(models: &[(&ZooModel, Model)], screen: &Screen) -> String {
    table::section(&tables::list(models), screen)
}

/// The totals of one model, the parts of a transformer, and its layers where they are wanted.
pub(crate) fn show(entry: &ZooModel, model: &Model, layers: bool, screen: &Screen) -> String {
    let names = match &entry.aliases[..] {
        [] => String::new(),
        aliases => format!(" (also {})", aliases.join(", ")),
    };
    let mut all = tables::all(model, layers);
    // The parts come before the layers, which are many.
    let place = all.len() - usize::from(layers);
    all.splice(place..place, entry.shape().as_ref().map(parts));
    let sections: Vec<String> = all.iter().map(|table| table::section(table, screen)).collect();
    let title = screen.paragraph(0, &format!("{}{names}: {}", entry.name, entry.description));
    format!(
        "{}{}{}",
        title.replacen(&entry.name, &screen.strong(&entry.name), 1),
        screen.paragraph(0, &format!("Source: {}.", entry.source)),
        sections.join("\n")
    )
}
