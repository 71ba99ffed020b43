//! Remedies and hints in the words of the command line: flags and commands.

use stepcast_core::fault::{Measurement, NameList, Remedy};
use stepcast_report::table::{Hint, Wording};
use stepcast_study::advise::ExperimentKind;

pub(crate) const WORDING: Wording = Wording { remedy, hint };

pub(crate) fn remedy(remedy: &Remedy) -> Option<String> {
    Some(match remedy {
        Remedy::Advice { .. } | Remedy::DidYouMean { .. } => return None,
        Remedy::ListNames { list: NameList::Gradients } => {
            "run `stepcast fuse --json` for all names".to_owned()
        }
        Remedy::ListNames { list } => format!("run `stepcast {list}` for the list"),
        Remedy::DescribeDevice { name } => {
            format!("run `stepcast devices describe {}` for a template", quoted(name))
        }
        Remedy::ListLayers { model } => {
            let model = model.as_deref().unwrap_or("NAME");
            format!("run `stepcast models show {model} --layers` for the names")
        }
        Remedy::SetKey { key, value } => format!("use `--set {}`", quoted(&format!("{key}={value}"))),
        Remedy::UseMethod { method } => format!("use `--method {method}`"),
        Remedy::GiveOption { option, value, purpose } => {
            let value = value.as_ref().map_or(String::new(), |value| format!(" {value}"));
            format!("use `--{option}{value}` {purpose}").trim_end().to_owned()
        }
        Remedy::NameArtefact { fits } if fits.is_empty() => {
            "name a file that `stepcast fit` has written".to_owned()
        }
        Remedy::NameArtefact { fits } => {
            let commands = Remedy::alternatives(fits, |fit| format!("`stepcast fit {fit}`"));
            format!("name a file that {commands} has written")
        }
        Remedy::Measure { what } => match what {
            Measurement::RunOnCluster => "measure one run on the cluster and give it to `--calibrate`",
            Measurement::RunOfSeveralWorkers => {
                "measure one run of several workers and give it to `--calibrate`"
            }
            Measurement::Gpu => "measure the GPU with kit/machine.py and `stepcast fit machine`",
        }
        .to_owned(),
        Remedy::ImportRecording => "make a profile with `stepcast import`".to_owned(),
        Remedy::RunQuickStart => "run `stepcast predict` alone for the built-in quick start".to_owned(),
    })
}

/// What to do with the result of an experiment.
pub(crate) fn after_experiment(kind: ExperimentKind) -> &'static str {
    match kind {
        ExperimentKind::Gpu => {
            "`stepcast fit machine machine.jsonl -o machine.toml`, and name it as `fitted` of the device"
        }
        ExperimentKind::Collectives => {
            "`stepcast fit machine collectives.jsonl -o machine.toml`, and name it as `collectives` of the plan"
        }
        ExperimentKind::TwoMachines | ExperimentKind::Eighth => {
            "`stepcast check small.toml --measured train.log --keep runs.csv`, and ask again with `--calibrate runs.csv`"
        }
    }
}

fn hint(hint: &Hint) -> Option<&'static str> {
    Some(match hint {
        Hint::RowsInJson => "`--json` has them all.",
        Hint::ValuesInJson => "`--json` has all values.",
        Hint::RowsInFile => "`-o sweep.csv` has them all.",
        Hint::Messages => "`--plan` lists them.",
        Hint::Warnings => "`stepcast predict` explains warnings.",
        Hint::Assumptions => "`--explain` lists every assumed figure.",
        Hint::Cases => "`stepcast validate SET` shows every case.",
        Hint::WholeForecast => {
            "`--full` has the rest: stages, memory, workers, uncertainty, scaling, all changes, warnings."
        }
        Hint::NarrowInterval(_) => return None,
    })
}

/// An argument, quoted for a shell where that is needed.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use stepcast_core::fault::RequestOption;

    #[test]
    fn options_are_flags_of_some_command() {
        let root = crate::commands::Cli::command();
        let known = |name: &str| {
            let commands = || {
                let below = |command| [command].into_iter().chain(clap::Command::get_subcommands(command));
                [&root].into_iter().chain(root.get_subcommands().flat_map(below))
            };
            let flag =
                |command: &clap::Command| command.get_arguments().any(|flag| flag.get_long() == Some(name));
            commands().any(flag)
        };
        for option in RequestOption::ALL {
            assert!(known(option.name()), "--{option}");
        }
        for flag in ["set", "method", "json", "plan", "explain", "calibrate", "layers"] {
            assert!(known(flag), "--{flag}");
        }
    }

    #[test]
    fn values_are_quoted_for_a_shell() {
        let set = |value: &str| remedy(&Remedy::set("strategy.synchronisation", value)).unwrap();
        assert_eq!(set("bsp"), "use `--set strategy.synchronisation=bsp`");
        assert_eq!(set("local-sgd(8)"), "use `--set 'strategy.synchronisation=local-sgd(8)'`");
    }

    #[test]
    fn arguments_stay_arguments() {
        assert_eq!(quoted("job.toml"), "job.toml");
        assert_eq!(
            quoted("cluster.network.bandwidth=\"1 Gbit/s\""),
            "'cluster.network.bandwidth=\"1 Gbit/s\"'"
        );
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
