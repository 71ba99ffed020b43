//! `stepcast import`: imports recordings as a profile or a model, or prints an overview of their contents.

mod progress;

use super::json;
use crate::Answer;
use crate::args::{Import, Memory, Size};
use crate::render::answers;
use crate::render::screen::Screen;
use progress::Bar;
use std::ops::ControlFlow;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_trace::{Options, Overview, is_profile, is_scenario, usual_name};

pub(super) fn run(flags: &Import, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    if let Some(output) = &flags.output {
        check_name(output)?;
    }
    let bar = Bar::new(&flags.traces);
    let options = Options {
        batch: flags.batch,
        graphs: flags.graphs.as_deref(),
        sizes: &flags.sizes.iter().map(|Size(name, length)| (name.clone(), *length)).collect(),
        watch: &|progress| {
            bar.show(progress);
            ControlFlow::Continue(())
        },
        max_memory: flags.max_memory.map(|Memory(bytes)| bytes),
    };
    let mut imported = stepcast_trace::import(&flags.traces, &options)?;
    bar.finish();
    let name = flags.name.clone().or_else(|| flags.traces.first().and_then(|trace| usual_name(trace)));
    if let Some(name) = name {
        imported.content.rename(name);
    }
    if let Some(output) = &flags.output {
        let wrong =
            |error: Fault| Fault::new(error.reason, error.remedy).at(format!("-o {}", output.display()));
        imported.content.write(output).map_err(wrong)?;
    }
    let written = flags.output.as_ref().map(|path| path.display().to_string());
    let overview = Overview::new(&imported, written);
    if as_json { json(&overview) } else { Ok(answers::import(&overview, screen).into()) }
}

/// Refuses a name that nothing can be written under, before a large file is read.
fn check_name(output: &Path) -> Result<(), Fault> {
    if is_profile(output) || is_scenario(output) {
        return Ok(());
    }
    let reason = "the name of a profile ends in .json or .json.gz, that of a scenario with a model in .toml";
    Err(Fault::new(reason, "use a name such as profile.json").at(format!("-o {}", output.display())))
}
