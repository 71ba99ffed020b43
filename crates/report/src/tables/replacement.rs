//! Layers with exposed communication, and their substitutes.

use crate::format::{count, name, percent};
use crate::table::Table;
use stepcast_core::quantity::Bytes;
use stepcast_study::replace::{
    ExposedLayer, LayerLine, ReplacedScaling, Replacement, ReplacementReport, ScalingFigures,
};

/// Exposed layers that are listed.
const WORST: usize = 6;

/// Step time and exposed communication.
pub fn summary(before: &ScalingFigures) -> String {
    let step = before.iteration.human();
    match before.exposed.get() > 0.0 {
        true => {
            let exposed = before.exposed.human();
            format!("A step takes {step}; computing does not hide {exposed} of the communication.")
        }
        false => format!("A step takes {step}; computing hides all communication."),
    }
}

pub fn all(report: &ReplacementReport) -> Vec<Table> {
    let mut tables = vec![exposed(&report.layers)];
    if let Some(replacement) = &report.replacement {
        tables.extend([
            layers("Layers that are removed", &replacement.removed),
            layers("Layers in their place", &replacement.added),
            before_and_after(&report.before, replacement),
            scaling(&report.scaling),
        ]);
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn exposed(layers: &[ExposedLayer]) -> Table {
    let mut table = Table::new(
        "Layers whose gradients make the step longer",
        ["layer", "#gradients", "#share", "#exposed"],
    );
    let costly = || layers.iter().filter(|layer| layer.exposed.get() > 0.0);
    for layer in costly().take(WORST) {
        table.row([name(&layer.name), mebibytes(layer.size), percent(layer.share), layer.exposed.human()]);
    }
    table.note =
        "Exposed: how much shorter the step would be if these gradients needed no exchange.".to_owned();
    if let Some(more) = costly().count().checked_sub(WORST).filter(|more| *more > 0) {
        table.note.push_str(&format!(" {more} more layers are less exposed."));
    }
    table
}

fn layers(title: &str, lines: &[LayerLine]) -> Table {
    let mut table = Table::new(title, ["layer", "operation", "output", "#weights", "#parameters"]);
    for line in lines {
        let size = if line.weights.get() > 0.0 { mebibytes(line.weights) } else { String::new() };
        let parameters = if line.parameters > 0 { count(line.parameters) } else { String::new() };
        table.row([name(&line.name), line.op.clone(), line.output.clone(), size, parameters]);
    }
    table
}

fn before_and_after(before: &ScalingFigures, replacement: &Replacement) -> Table {
    let after = &replacement.after;
    let mut table = Table::new("Before and after", ["", "#before", "#after", "#change"]);
    let mut row = |what: &str, values: [String; 2], before: f64, after: f64| {
        let change = match before > 0.0 {
            true => format!("{:+.1} %", 100.0 * (after / before - 1.0)).replace('-', "−"),
            false => String::new(),
        };
        let [was, is] = values;
        table.row([what.to_owned(), was, is, change]);
    };
    let both = |of: fn(&ScalingFigures) -> String| [of(before), of(after)];
    let parameters = |figures: &ScalingFigures| figures.parameters as f64;
    row("parameters", both(|f| count(f.parameters)), parameters(before), parameters(after));
    row("gradients", both(|f| mebibytes(f.gradients)), before.gradients.get(), after.gradients.get());
    row("forward, one sample", both(|f| f.forward.human()), before.forward.get(), after.forward.get());
    row("step time", both(|f| f.iteration.human()), before.iteration.get(), after.iteration.get());
    row("exposed", both(|f| f.exposed.human()), before.exposed.get(), after.exposed.get());
    let factor = |figures: &ScalingFigures| figures.scaling_factor;
    row("scaling factor", both(|f| format!("{:.3}", f.scaling_factor)), factor(before), factor(after));
    table.note =
        "Other layers also change what the network learns: Stepcast predicts the time of a step, not the \
                  accuracy."
            .to_owned();
    table
}

fn scaling(points: &[ReplacedScaling]) -> Table {
    let mut table = Table::new("Scaling factor over workers", ["#workers", "#before", "#after"]);
    for point in points {
        let factors = [point.before, point.after].map(|factor| format!("{factor:.3}"));
        table.row([vec![count(u64::from(point.workers))], factors.to_vec()].concat());
    }
    table
}

/// Sizes of weights in binary units, as papers give them: VGG-16's first fully connected layer has 392 MiB.
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
