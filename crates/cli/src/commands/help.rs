//! `stepcast help`, `man` and `completions`: commands, and sections and keys of a scenario.

use super::Cli;
use crate::answer::{Answer, Output, unexpected};
use crate::render::table;
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use stepcast_core::fault::Fault;
use stepcast_core::keys::KeyDoc;
use stepcast_core::scenario::{SectionDoc, documentation, full_key};
use stepcast_core::suggest;
use stepcast_report::table::Table;

pub(super) fn run(topic: Option<&str>, output: &Output) -> Result<Answer, Fault> {
    let sections = documentation();
    let Some(topic) = topic else {
        return output.answer(&sections, |screen| {
            let overview = Cli::command().render_long_help();
            format!("{overview}\n{}", table::section(&list(&sections), screen))
        });
    };
    if let Ok(mut command) = command(topic) {
        return Ok(command.render_long_help().to_string().into());
    }
    let keys = keys(topic, &sections).ok_or_else(|| unknown(topic, &sections))?;
    output.answer(&keys, |screen| table::section(&described(&keys), screen))
}

pub(super) fn completions(shell: Shell) -> Result<Answer, Fault> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "stepcast", &mut script);
    Ok(String::from_utf8(script).map_err(unexpected)?.into())
}

/// The manual page, of the whole program or of one command.
pub(super) fn manual(name: Option<&str>) -> Result<Answer, Fault> {
    let described = match name {
        None => Cli::command(),
        Some(name) => {
            command(name)?.bin_name(format!("stepcast {name}")).display_name(format!("stepcast-{name}"))
        }
    };
    let mut page = Vec::new();
    Man::new(described).render(&mut page).map_err(unexpected)?;
    Ok(String::from_utf8(page).map_err(unexpected)?.into())
}

fn command(name: &str) -> Result<clap::Command, Fault> {
    let mut all = Cli::command();
    all.build();
    let found = all.get_subcommands().find(|command| command.get_name() == name).cloned();
    found.ok_or_else(|| {
        let names: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
        let list = format!("the commands are {}", names.join(", "));
        let remedy = suggest::remedy(name, names, list);
        Fault::new(format!("there is no command \"{name}\""), remedy)
    })
}

/// The keys of the section with this path, or the key with this name.
fn keys(topic: &str, sections: &[SectionDoc]) -> Option<SectionDoc> {
    let full = full_key(topic).unwrap_or_else(|_| topic.to_owned());
    if let Some(section) = sections.iter().find(|section| section.path == full) {
        return Some(section.clone());
    }
    let (path, key) = full.rsplit_once('.').unwrap_or(("", &full));
    // A key without its section is looked for in all of them.
    let own = sections.iter().find(|section| section.path == path);
    own.into_iter().chain(sections).find_map(|section| {
        let known: Vec<KeyDoc> = section.keys.iter().filter(|known| known.name == key).cloned().collect();
        (!known.is_empty()).then_some(SectionDoc { path: section.path, keys: known })
    })
}

fn unknown(topic: &str, sections: &[SectionDoc]) -> Fault {
    let all = Cli::command();
    let commands = all.get_subcommands().map(clap::Command::get_name);
    let keys = sections.iter().flat_map(|section| section.keys.iter().map(|key| key.name.as_str()));
    let known = commands.chain(sections.iter().map(|section| section.path)).chain(keys);
    let remedy = suggest::remedy(topic, known, "run `stepcast help` for the list");
    Fault::new(format!("there is no help on \"{topic}\""), remedy)
}

fn list(sections: &[SectionDoc]) -> Table {
    let mut table = Table::new("Sections of a scenario", ["section", "~keys"]);
    for section in sections {
        let names: Vec<&str> = section.keys.iter().map(|key| key.name.as_str()).collect();
        table.row([section.path.to_owned(), names.join(", ")]);
    }
    table.note = "`stepcast help SECTION` explains the keys of a section.".to_owned();
    table
}

fn described(section: &SectionDoc) -> Table {
    let mut table = Table::new(format!("[{}]", section.path), ["key", "~type", "~default", "~meaning"]);
    for KeyDoc { name, written, default, meaning, .. } in &section.keys {
        let plain = |text: &str| text.replace('`', "");
        table.row([name.clone(), plain(written), plain(default), plain(meaning)]);
    }
    table
}
