//! Layers that the network cannot hide, and others in their place, as text.

use super::forecast::{question, section, warnings};
use super::table;
use super::{Screen, count, name, percent};
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::Scenario;
use stepcast_report::table::{Column, Table};
use stepcast_study::replace::{ExposedLayer, Figures, LayerLine, Replacement, ReplacementReport};

/// Layers in the table of the worst.
const WORST: usize = 6;

/// The report, its last line ended.
pub(crate) fn render(scenario: &Scenario, report: &ReplacementReport, screen: &Screen) -> String {
    let mut sections = vec![question(scenario, screen) + &summary(&report.before, screen)];
    if report.before.exposed.get() > 0.0 {
        let title = "Layers whose gradients make the step longer";
        sections.push(section(title, exposed(&report.layers, screen), screen));
    }
    if let Some(replacement) = &report.replacement {
        sections.push(section("In place of", layers(&replacement.removed, screen), screen));
        sections.push(section("put", layers(&replacement.added, screen), screen));
        sections.push(section("Before and after", comparison(&report.before, replacement, screen), screen));
    }
    if let Some(reason) = &report.reason {
        sections.push(screen.paragraph(0, reason));
    }
    if !report.warnings.is_empty() {
        sections.push(section("Warnings", warnings(&report.warnings, screen), screen));
    }
    sections.join("\n")
}

fn summary(before: &Figures, screen: &Screen) -> String {
    let step = before.iteration.human();
    let text = match before.exposed.get() > 0.0 {
        true => {
            let exposed = before.exposed.human();
            format!("A step takes {step}; computing does not hide {exposed} of the communication.")
        }
        false => format!("A step takes {step}; computing hides all communication."),
    };
    screen.paragraph(0, &text)
}

fn exposed(layers: &[ExposedLayer], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("layer"),
            Column::numbers("gradients"),
            Column::numbers("share"),
            Column::numbers("exposed"),
        ],
    );
    let costly = || layers.iter().filter(|layer| layer.exposed.get() > 0.0);
    for layer in costly().take(WORST) {
        table.row([name(&layer.name), mebibytes(layer.size), percent(layer.share), layer.exposed.human()]);
    }
    let mut note =
        "Exposed: how much shorter the step would be if these gradients needed no exchange.".to_owned();
    if let Some(more) = costly().count().checked_sub(WORST).filter(|more| *more > 0) {
        note.push_str(&format!(" {more} more layers cost less."));
    }
    format!("{}\n{}", table::render(&table, screen), screen.paragraph(2, &note))
}

fn layers(lines: &[LayerLine], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("layer"),
            Column::names("operation"),
            Column::names("output"),
            Column::numbers("weights"),
            Column::numbers("parameters"),
        ],
    );
    for line in lines {
        let size = if line.weights.get() > 0.0 { mebibytes(line.weights) } else { String::new() };
        let parameters = if line.parameters > 0 { count(line.parameters) } else { String::new() };
        table.row([name(&line.name), line.op.clone(), line.output.clone(), size, parameters]);
    }
    table::render(&table, screen)
}

fn comparison(before: &Figures, replacement: &Replacement, screen: &Screen) -> String {
    let after = &replacement.after;
    let mut table = Table::new(
        "",
        [Column::names(""), Column::numbers("before"), Column::numbers("after"), Column::numbers("change")],
    );
    let mut row = |what: &str, values: [String; 2], before: f64, after: f64| {
        let change = match before > 0.0 {
            true => format!("{:+.1} %", 100.0 * (after / before - 1.0)),
            false => String::new(),
        };
        let [was, is] = values;
        table.row([what.to_owned(), was, is, change]);
    };
    let both = |of: fn(&Figures) -> String| [of(before), of(after)];
    let parameters = |figures: &Figures| figures.parameters as f64;
    row("parameters", both(|f| count(f.parameters)), parameters(before), parameters(after));
    row("gradients", both(|f| mebibytes(f.gradients)), before.gradients.get(), after.gradients.get());
    row("forward, one sample", both(|f| f.forward.human()), before.forward.get(), after.forward.get());
    row("step time", both(|f| f.iteration.human()), before.iteration.get(), after.iteration.get());
    row("exposed", both(|f| f.exposed.human()), before.exposed.get(), after.exposed.get());
    let factor = |figures: &Figures| figures.scaling_factor;
    row("scaling factor", both(|f| format!("{:.3}", f.scaling_factor)), factor(before), factor(after));
    let note = "A network with other layers learns otherwise: Stepcast says how long a step takes, not what it is good \
                for.";
    format!("{}\n{}", table::render(&table, screen), screen.paragraph(2, note))
}

/// Sizes of weights are known in binary units: VGG-16's first fully connected layer has 392 MiB.
fn mebibytes(size: Bytes) -> String {
    let mib = size.get() / f64::from(1 << 20);
    match mib {
        large if large >= 100.0 => format!("{large:.0} MiB"),
        middle if middle >= 0.01 => format!("{} MiB", (middle * 1000.0).round() / 1000.0),
        _ => size.human(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_print() {
        let size = |elements: f64| mebibytes(Bytes::new(4.0 * elements));
        assert_eq!(size(25088.0 * 4096.0), "392 MiB");
        assert_eq!(size(4096.0 * 1000.0), "15.625 MiB");
        assert_eq!(size(512.0 * 1000.0), "1.953 MiB");
    }
}
