//! `--plot`: a result as an SVG file.

use crate::render::screen::Screen;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_report::format::name;
use stepcast_trace::write_text;

/// Whether a path names an SVG file.
pub(super) fn is_drawing(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "svg")
}

/// Refuses a name that is not that of an SVG file, before anything is computed.
pub(super) fn check(path: &Path) -> Result<(), Fault> {
    if is_drawing(path) {
        return Ok(());
    }
    let reason = "a plot is an SVG file, and its name ends in .svg";
    Err(Fault::new(reason, "use a name such as plot.svg").at(format!("--plot {}", path.display())))
}

/// Writes a plot, whole or not at all.
pub(super) fn write(path: &Path, svg: &str) -> Result<(), Fault> {
    write_text(path, svg).map_err(|error| {
        let reason = format!("cannot write the plot: {}", error.reason);
        Fault::new(reason, error.remedy).at(format!("--plot {}", path.display()))
    })
}

/// A note about the file that was written.
pub(super) fn note(path: &Path, screen: &Screen) -> String {
    format!("\n{}", screen.paragraph(0, &format!("Plot written to {}.", name(&path.display().to_string()))))
}
