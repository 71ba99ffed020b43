//! The request of a command: flags that choose a scenario and edit it, and questions about that scenario.

use crate::numbers::{Names, Workers};
use crate::render::Screen;
use crate::render::error::in_scenario;
use crate::words;
use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use indicatif::ProgressBar;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{self, Path};
use std::sync::Arc;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::Amount;
use stepcast_core::scenario::{Edit, Scenario, is_onnx};
use stepcast_core::strategy::Recipe;
use stepcast_report::format::count;
use stepcast_study::explore::sweep::{Axis, Variants, VaryError};
use stepcast_study::predict::calibrate::{self, Calibration};
use stepcast_study::request::launch::IGNORE_UNKNOWN;
use stepcast_study::request::{QUICK_START_NAME, is_launch};
use stepcast_study::{Forecast, ForecastOptions, MethodChoice, Observer, Progress, forecast};

/// A scenario, and changes to it.
#[derive(Debug, Args)]
pub(crate) struct ScenarioFlags {
    /// Scenario (TOML), profile (.json, .json.gz), model (.onnx, config.json), launch file of Megatron-LM, torchtitan,
    /// DeepSpeed or Accelerate, or - for standard input [default: the built-in quick start, or the scenario of --model]
    pub(crate) scenario: Option<String>,

    /// Model of the zoo, also by a checkpoint's name (meta-llama/Llama-3.1-8B), ONNX file or config.json; without a scenario, it is
    /// trained by all-reduce
    #[arg(long, value_name = "NAME", help_heading = "Scenario from flags")]
    #[arg(value_parser = Names::Models, hide_possible_values = true)]
    pub(crate) model: Option<String>,

    /// Device of all workers: a name from `stepcast devices`, or short, such as a100
    #[arg(long, value_name = "NAME", help_heading = "Scenario from flags")]
    #[arg(value_parser = Names::Devices, hide_possible_values = true)]
    device: Option<String>,

    /// Machine of all workers, with its devices, links and ports: a name from `stepcast machines`
    #[arg(long, value_name = "NAME", help_heading = "Scenario from flags", conflicts_with = "device")]
    #[arg(value_parser = Names::Machines, hide_possible_values = true)]
    machine: Option<String>,

    /// Number of workers: 32, or 4x8 for four machines of eight; 1..16 or 1,2,4 for a scaling table
    #[arg(long, value_name = "N", help_heading = "Scenario from flags")]
    pub(crate) workers: Option<Workers>,

    /// Network between machines: a name from `stepcast networks`, or a rate such as "100 Gbit/s"
    #[arg(long, value_name = "NAME", help_heading = "Scenario from flags")]
    #[arg(value_parser = Names::Networks, hide_possible_values = true)]
    network: Option<String>,

    /// Samples per worker and step
    #[arg(long, value_name = "N", help_heading = "Scenario from flags")]
    batch: Option<u32>,

    /// Sequences of a transformer's step, of all workers together
    #[arg(long, value_name = "N", help_heading = "Scenario from flags", conflicts_with = "batch")]
    pub(crate) global_batch: Option<u64>,

    /// Sequences of a micro-batch
    #[arg(long, value_name = "N", help_heading = "Scenario from flags")]
    micro_batch: Option<u64>,

    /// Tokens of one sample
    #[arg(long, value_name = "N", help_heading = "Scenario from flags")]
    sequence: Option<u64>,

    /// Train adapters of this rank on all matrices of a transformer's layers, which are frozen (LoRA); on one device, unless
    /// --workers says more
    #[arg(long, value_name = "RANK", help_heading = "Scenario from flags")]
    lora: Option<u64>,

    /// Number format: fp32, tf32, fp16, bf16, amp or amp-bf16; of a transformer's products also fp8, fp8-block, mxfp8 or nvfp4
    #[arg(long, value_name = "FORMAT", help_heading = "Scenario from flags")]
    dtype: Option<String>,

    /// Run each paper's method exactly as printed: nominal rates and counted operations only
    #[arg(long, help_heading = "Scenario from flags")]
    as_published: bool,

    /// Accept a launch file even if it has unknown settings that change the answer
    #[arg(long, help_heading = "Scenario from flags")]
    ignore_unknown: bool,

    /// Set a value of the scenario, such as batch=64; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

impl ScenarioFlags {
    /// Source of the scenario: a file, the flag of a model, or the quick start.
    pub(crate) fn place(&self) -> String {
        match (&self.scenario, &self.model) {
            (Some(path), _) => path.clone(),
            (None, Some(model)) => format!("--model {model}"),
            (None, None) => QUICK_START_NAME.to_owned(),
        }
    }

    /// The request of a command that predicts one number of workers.
    pub(crate) fn request(&self) -> Result<Request, Fault> {
        self.request_with(self.single_edits()?)
    }

    pub(crate) fn request_with(&self, edits: Vec<Edit>) -> Result<Request, Fault> {
        let written: Vec<WrittenEdit> = edits.iter().map(|edit| self.written(edit)).collect();
        let inner = match (self.scenario.as_deref(), &self.model) {
            (None, Some(model)) => Ok(stepcast_study::Request::from_model(model, edits)),
            (None, None) => Ok(stepcast_study::Request::quick_start(edits)),
            (Some("-"), _) => stepcast_study::Request::from_reader("<stdin>", io::stdin().lock(), edits),
            (Some(path), _) => stepcast_study::Request::open(path, edits),
        };
        let number = self.workers.as_ref().and_then(|workers| workers.single()).filter(|_| !self.is_model());
        let sized = inner.and_then(|inner| match number {
            Some(number) => inner.resized(number),
            None => Ok(inner),
        });
        match sized {
            Ok(inner) => Ok(Request { inner, edits: written }),
            Err(fault) => Err(in_scenario(fault, |origin| flag_of(&written, origin))),
        }
    }

    fn written(&self, edit: &Edit) -> WrittenEdit {
        let text = edit.text().to_owned();
        let own =
            text.split_once('=').filter(|_| !self.overrides.contains(&text)).and_then(|(key, value)| {
                let (_, flag) = FLAGS.iter().find(|(known, _)| *known == key)?;
                Some(format!("{flag} {}", value.trim_matches(['"', '[', ']'])))
            });
        WrittenEdit { flag: own.unwrap_or_else(|| format!("--set {text}")), text }
    }

    pub(crate) fn edits(&self) -> Result<Vec<Edit>, Fault> {
        let mut edits = Vec::new();
        let mut set = |key: &str, value: Option<&str>| edits.extend(value.map(|value| Edit::set(key, value)));
        match self.model.as_deref().filter(|_| self.scenario.is_some()) {
            // Files of a scenario are relative to it, those of a flag to the working directory.
            Some(file) if file.ends_with(".json") => {
                let absolute = path::absolute(file).ok();
                set("model.config", absolute.as_deref().and_then(Path::to_str).or(Some(file)));
            }
            named => set("model.zoo", named),
        }
        set("cluster.workers.device", self.device.as_deref());
        set("cluster.machine", self.machine.as_deref());
        set("cluster.network", self.network.as_deref());
        let recipe = self.dtype.as_deref().filter(|name| Recipe::from_name(name).is_some());
        set("strategy.plan.recipe", recipe);
        set("strategy.precision", self.dtype.as_deref().filter(|_| recipe.is_none()));
        edits.extend(self.as_published.then(|| Edit::set("as-published", true)));
        edits.extend(self.ignore_unknown.then(|| Edit::set(IGNORE_UNKNOWN, true)));
        let mut count = |key: &str, value: Option<u64>| {
            edits
                .extend(value.and_then(|value| i64::try_from(value).ok()).map(|value| Edit::set(key, value)));
        };
        count("strategy.batch", self.batch.map(u64::from));
        count("strategy.plan.global-batch", self.global_batch);
        count("strategy.plan.micro-batch", self.micro_batch);
        count("model.sequence", self.sequence);
        count("model.adapters.rank", self.lora);
        if let Some(workers) = &self.workers {
            let number = workers.numbers.last().filter(|_| self.is_model());
            count("cluster.workers.count", number.map(|number| u64::from(*number)));
            count("cluster.nodes.workers", workers.per_machine.map(u64::from));
        } else if self.lora.is_some() && self.device.is_some() && self.is_model() {
            // Adapters are trained on one device, unless more are asked for.
            count("cluster.workers.count", Some(1));
        }
        for text in &self.overrides {
            let flag = format!("--set {text}");
            let is_own = |origin: &str| (origin == text).then_some(flag.as_str());
            edits.push(Edit::parse(text).map_err(|fault| in_scenario(fault, is_own))?);
        }
        Ok(edits)
    }

    /// The edits of a command that has no scaling table: `--workers` is one number.
    pub(crate) fn single_edits(&self) -> Result<Vec<Edit>, Fault> {
        match &self.workers {
            Some(workers) if workers.single().is_none() => {
                let reason = "this command predicts one number of workers";
                Err(Fault::new(reason, "give one number; `stepcast predict` takes several").at("--workers"))
            }
            _ => self.edits(),
        }
    }

    /// Whether there is only a model or a launch file, without any number of workers.
    fn is_model(&self) -> bool {
        match &self.scenario {
            Some(path) => is_onnx(path) || is_launch(path),
            None => self.model.is_some(),
        }
    }
}

/// Flags of the data set.
#[derive(Debug, Args)]
pub(crate) struct DataFlags {
    /// Tokens to train on, such as 50M: how long it takes, and what it costs
    #[arg(long, value_name = "N")]
    tokens: Option<Amount>,

    /// Samples to train on, such as 1.28M
    #[arg(long, value_name = "N", conflicts_with = "tokens")]
    samples: Option<Amount>,

    /// How often to train on them
    #[arg(long, value_name = "N")]
    epochs: Option<u64>,
}

impl DataFlags {
    pub(crate) fn edits(&self) -> Result<Vec<Edit>, Fault> {
        let tokens = self.tokens.map(|tokens| Ok(Edit::set("data.tokens", tokens.get())));
        let samples = self.samples.map(|samples| Ok(Edit::set("data.samples", samples.get())));
        let epochs = self.epochs.map(|epochs| Edit::parse(&format!("data.epochs={epochs}")));
        [tokens, samples, epochs].into_iter().flatten().collect()
    }
}

/// The scenario of a forecast, its method, and how long it simulates.
#[derive(Debug, Args)]
pub(crate) struct ForecastFlags {
    #[command(flatten)]
    pub(crate) about: ScenarioFlags,

    /// A flag of `plan`, here a part of `--workers`.
    #[arg(long, hide = true, num_args = 0..=1, value_parser = machines_are_workers())]
    nodes: Option<()>,

    /// Half-width of the 90 % interval at which a simulation ends, as a share: 0.01 is 1 % [default: 0.01]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    precision: Option<String>,

    /// Events after which a simulation ends anyway: ten million take about a second of a core [default: 10000000]
    #[arg(long, value_name = "EVENTS")]
    budget: Option<String>,

    /// Method of prediction; auto takes the first that applies
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) method: String,
}

fn machines_are_workers() -> UnknownArgumentValueParser {
    UnknownArgumentValueParser::suggest_arg("--workers")
        .and_suggest("two machines of eight are `--workers 2x8`")
}

/// A share as it is written; what sounds like a number format is meant for another flag.
fn share(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("a share such as 0.05 ends a simulation; `--dtype` sets the number format".to_owned()),
    }
}

impl ForecastFlags {
    pub(crate) fn request(&self, edits: Vec<Edit>) -> Result<Request, Fault> {
        self.about.request_with(edits)
    }

    pub(crate) fn edits(&self) -> Result<Vec<Edit>, Fault> {
        let mut edits = self.about.edits()?;
        for (key, value) in [("precision", &self.precision), ("budget", &self.budget)] {
            let edit = value.as_ref().map(|value| Edit::parse(&format!("methods.simulate.{key}={value}")));
            edits.extend(edit.transpose()?);
        }
        Ok(edits)
    }
}

pub(crate) struct Request {
    pub(crate) inner: stepcast_study::Request,
    edits: Vec<WrittenEdit>,
}

/// An edit as shown in faults, and the flag that made it.
struct WrittenEdit {
    text: String,
    flag: String,
}

const FLAGS: [(&str, &str); 15] = [
    ("model.zoo", "--model"),
    ("cluster.workers.device", "--device"),
    ("cluster.machine", "--machine"),
    ("cluster.network", "--network"),
    ("strategy.precision", "--dtype"),
    ("strategy.plan.recipe", "--dtype"),
    ("strategy.batch", "--batch"),
    ("strategy.plan.global-batch", "--global-batch"),
    ("strategy.plan.micro-batch", "--micro-batch"),
    ("model.sequence", "--sequence"),
    ("plan.offers", "--offers"),
    ("plan.nodes", "--nodes"),
    ("plan.tokens", "--tokens"),
    ("plan.deadline", "--deadline"),
    ("plan.budget", "--budget"),
];

fn flag_of<'a>(edits: &'a [WrittenEdit], origin: &str) -> Option<&'a str> {
    edits.iter().find(|edit| edit.text == origin).map(|edit| edit.flag.as_str())
}

impl Request {
    pub(crate) fn scenario(&self) -> Result<Arc<Scenario>, Fault> {
        let scenario = self.inner.scenario();
        self.print_notes();
        scenario.map_err(|fault| self.placed(fault))
    }

    pub(crate) fn prepare(&self, method: &str) -> Result<(Arc<Scenario>, &'static dyn Method), Fault> {
        // A fault of the scenario precedes the flag's.
        let scenario = self.scenario()?;
        let method = self.inner.method(method_choice(method)?).map_err(|fault| self.placed(fault))?;
        Ok((scenario, method))
    }

    /// Corrects assumptions by the measured runs in the file at `path`, and reports the corrections.
    pub(crate) fn calibrate(&mut self, path: &Path, method: &str) -> Result<Calibration, Fault> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Fault::in_file(&name, format!("cannot read the runs: {error}"), "check the path")
        })?;
        let runs = calibrate::read_runs(&name, &text)?;
        let calibration = calibrate::calibrate(&self.inner, method_choice(method)?, &runs)?;
        self.inner.correct(Arc::clone(&calibration.priors))?;
        Ok(calibration)
    }

    /// The forecast. On a terminal, estimates show until they have settled.
    pub(crate) fn forecast(&self, options: &ForecastOptions) -> Result<Forecast, Fault> {
        let line = ProgressBar::new_spinner();
        let progress = |progress: Progress<'_>| {
            match progress {
                Progress::Working => line.tick(),
                Progress::Estimate(prediction) => line.set_message(settling(prediction)),
                Progress::Predicted(prediction) => {
                    let (figures, workers) = (figures(prediction), count(prediction.workers));
                    line.set_message(format!("workers: {workers}, {figures}"));
                }
            }
            ControlFlow::Continue(())
        };
        let forecast = forecast(&self.inner, options, &Observer::watching(&progress));
        line.finish_and_clear();
        forecast.map_err(|stopped| self.placed(stopped.into()))
    }

    /// The scenario at every combination of the axes' values; `flag` is what names an axis.
    pub(crate) fn variants(&self, axes: Vec<Axis>, flag: &str) -> Result<Variants<'_>, Fault> {
        let variants = self.inner.variants(axes);
        self.print_notes();
        variants.map_err(|error| match error {
            VaryError::Axis { axis, fault } => fault.at(format!("{flag} {axis}")),
            VaryError::Document(fault) => self.placed(fault),
        })
    }

    /// A method's refusal, with the place of what it refuses.
    pub(crate) fn refused(&self, refusal: Fault) -> Fault {
        self.placed(self.inner.refused(refusal))
    }

    /// A fault of the scenario, blamed on the flag that caused it.
    pub(crate) fn placed(&self, fault: Fault) -> Fault {
        in_scenario(fault, |origin| flag_of(&self.edits, origin))
    }

    fn print_notes(&self) {
        for note in self.inner.take_notes() {
            // If standard error is closed, the note cannot be reported.
            let _ = write!(io::stderr(), "{}", Screen::stderr().paragraph(0, &note.worded(words::remedy)));
        }
    }
}

pub(crate) fn method_choice(name: &str) -> Result<MethodChoice, Fault> {
    MethodChoice::named(name).map_err(|fault| fault.at(format!("--method {name}")))
}

fn figures(prediction: &Prediction) -> String {
    format!("{}, {} a step", prediction.throughput.human(), prediction.iteration.human())
}

/// An estimate that is being refined, with its interval.
fn settling(prediction: &Prediction) -> String {
    let width = prediction.simulation.as_deref().map(|simulation| {
        let [low, high] = simulation.throughput_interval;
        format!(" ±{:.1} %", 50.0 * (high - low) / prediction.throughput.get())
    });
    format!("{}{}: refining", figures(prediction), width.unwrap_or_default())
}
