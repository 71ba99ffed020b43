//! Every answer as text: tables from `stepcast_report::tables` in sections, with sentences between them. Each text ends
//! its last line.

use super::{Screen, table};
use crate::words::{self, WORDING};
use stepcast_core::method::Method;
use stepcast_core::model::Model;
use stepcast_core::model::zoo::ZooModel;
use stepcast_core::prediction::{Verdict, Warning};
use stepcast_core::scenario::Scenario;
use stepcast_fit::FitReport;
use stepcast_report::format::{name, plain, several};
use stepcast_report::sentences;
use stepcast_report::table::Table;
use stepcast_report::tables::{self, FirstRows, uncertainty};
use stepcast_study::Forecast;
use stepcast_study::advise::MeasurementAdvice;
use stepcast_study::check::Check;
use stepcast_study::contract::Contract;
use stepcast_study::explore::map::Map;
use stepcast_study::explore::plan::PlanReport;
use stepcast_study::explore::search::SearchReport;
use stepcast_study::explore::sweep::{Agreement, Variants};
use stepcast_study::fuse::FusionReport;
use stepcast_study::predict::calibrate::Calibration;
use stepcast_study::predict::compare::Comparison;
use stepcast_study::replace::ReplacementReport;
use stepcast_study::request::Assumed;
use stepcast_trace::{ContentFigures, Overview};

const MOST_NOTES: usize = 12;

/// Sections of an answer, one below the other.
struct Sections<'a> {
    texts: Vec<String>,
    screen: &'a Screen,
}

impl<'a> Sections<'a> {
    fn new(first: String, screen: &'a Screen) -> Self {
        Self { texts: vec![first], screen }
    }

    /// Begins with the scenario in two lines, and a paragraph.
    fn from_scenario(scenario: &Scenario, paragraph: &str, screen: &'a Screen) -> Self {
        Self::with_assumed(scenario, &Assumed::default(), paragraph, screen)
    }

    fn with_assumed(scenario: &Scenario, assumed: &Assumed, paragraph: &str, screen: &'a Screen) -> Self {
        let (title, setting) = (sentences::title(scenario, assumed), sentences::setting(scenario, assumed));
        let title: String =
            screen.paragraph(0, &title).lines().map(|line| screen.strong(line) + "\n").collect();
        let paragraph = if paragraph.is_empty() { String::new() } else { screen.paragraph(0, paragraph) };
        Self::new(title + &screen.paragraph(0, &setting) + &paragraph, screen)
    }

    fn text(mut self, text: impl IntoIterator<Item = String>) -> Self {
        self.texts.extend(text);
        self
    }

    fn tables<'t>(mut self, tables: impl IntoIterator<Item = &'t Table>) -> Self {
        self.texts.extend(tables.into_iter().map(|table| table::section(table, self.screen)));
        self
    }

    fn titled(self, title: &str, body: &str) -> Self {
        let section = titled(title, body, self.screen);
        self.text([section])
    }

    fn warnings(self, warnings: &[Warning]) -> Self {
        let item = |warning: &Warning| item(&format!("{}: {}", warning.code, warning.message), self.screen);
        let items: String = warnings.iter().map(item).collect();
        if items.is_empty() { self } else { self.titled("Warnings", &items) }
    }

    fn end(self) -> String {
        self.texts.join("\n")
    }
}

fn titled(title: &str, body: &str, screen: &Screen) -> String {
    format!("{}\n{body}", screen.title(title))
}

/// One line of a list, with an exclamation mark before it.
fn item(text: &str, screen: &Screen) -> String {
    format!("  {} {}", screen.bad("!"), screen.paragraph(4, &plain(text)).trim_start())
}

pub(crate) fn check(scenario: &Scenario, check: &Check, screen: &Screen) -> String {
    let suspects = tables::check::suspects(check, WORDING);
    let alone = "alone: the factor on the assumed figures that would explain the whole difference.";
    let suspects =
        (!suspects.rows.is_empty()).then(|| table::section(&suspects, screen) + &screen.paragraph(2, alone));
    Sections::from_scenario(scenario, "", screen)
        .text([screen.paragraph(0, &tables::check::verdict(check))])
        .text(check.acceptance.as_ref().map(|found| screen.paragraph(0, &tables::check::acceptance(found))))
        .tables([&tables::check::steps(check)])
        .tables(&check.running.as_ref().map(|running| tables::check::running(running, scenario.currency())))
        .text(check.slowness.as_ref().map(|slow| screen.paragraph(0, &tables::check::slow_verdict(slow))))
        .tables(&check.slowness.as_ref().map(tables::check::slowness).filter(|table| !table.rows.is_empty()))
        .text(suspects)
        .end()
}

/// Advice on what to measure before taking an offer.
pub(crate) fn advice(advice: &MeasurementAdvice, screen: &Screen) -> String {
    use tables::advise as tables;
    let best = advice.best().map(|best| {
        let command = format!("{}\n  {}", screen.title("How"), best.command);
        let then = screen.paragraph(2, &format!("Then {}.", words::after_experiment(best.kind)));
        let choices = tables::choices(advice, best);
        let choices: String = choices.iter().map(|choice| screen.paragraph(2, choice)).collect();
        [format!("{command}\n{then}"), titled("What it decides", &choices, screen)]
    });
    Sections::new(screen.paragraph(0, &tables::verdict(advice)), screen)
        .tables([&tables::candidates(advice), &tables::experiments(advice)])
        .text(best.into_iter().flatten())
        .end()
}

/// An acceptance test, and where it was written.
pub(crate) fn contract(
    scenario: &Scenario,
    contract: &Contract,
    written: &[String],
    screen: &Screen,
) -> String {
    let rules: String = tables::check::rules(contract).iter().map(|rule| screen.paragraph(2, rule)).collect();
    let written = format!("Written to {}.", written.join(" and "));
    Sections::from_scenario(scenario, "", screen)
        .tables([&tables::check::expected(contract)])
        .text([titled("The test", &rules, screen), screen.paragraph(0, &written)])
        .end()
}

pub(crate) fn comparison(scenario: &Scenario, comparison: &Comparison, screen: &Screen) -> String {
    let differences = comparison.differences.iter().map(|sentence| screen.paragraph(2, sentence));
    let tables = [
        (tables::comparison::predictions(comparison), String::new()),
        (tables::comparison::effects(comparison), differences.collect()),
        (tables::comparison::refusals(comparison, WORDING), String::new()),
    ];
    let shown = tables.iter().filter(|(table, _)| !table.rows.is_empty());
    Sections::from_scenario(scenario, "", screen)
        .text(shown.map(|(table, sentences)| table::section(table, screen) + sentences))
        .end()
}

/// The errors and notes of a fit; `written` is the path of the artefact.
pub(crate) fn fit(fitted: &FitReport, written: &str, screen: &Screen) -> String {
    let mut text = table::section(&tables::fit::errors(fitted), screen) + "\n";
    if !fitted.left_out.is_empty() {
        let left_out = tables::fit::left_out(&fitted.left_out);
        text += &titled(&left_out.title, &table::render(&left_out, screen), screen);
        text.push('\n');
    }
    for note in &fitted.notes {
        text += &screen.paragraph(2, note);
    }
    text + &screen.paragraph(2, &format!("Written to {written}."))
}

/// The forecast in a screenful: the answer, whether it fits, the figures, the breakdown, and the most helpful changes.
/// With `scaling`, also the table of other numbers of workers.
/// `method` describes the method, if requested.
pub(crate) fn brief(
    scenario: &Scenario,
    forecast: &Forecast,
    method: &str,
    scaling: bool,
    screen: &Screen,
) -> String {
    let prediction = &forecast.prediction;
    let memory = sentences::memory(forecast).map(|sentence| {
        let text = screen.paragraph(0, &sentence);
        let fits =
            prediction.transformer.as_ref().is_none_or(|report| report.memory.verdict == Verdict::Fits);
        if fits { text } else { text.lines().map(|line| screen.bad(line) + "\n").collect() }
    });
    let answer = memory.unwrap_or_default() + &screen.paragraph(0, &sentences::answer(forecast));
    let mut sections = Sections::with_assumed(scenario, &forecast.assumed, method, screen)
        .text([answer])
        .tables([&tables::forecast::brief_figures(scenario, forecast)])
        .text([screen.paragraph(0, &sentences::parts(forecast))]);
    if scaling {
        sections = sections.tables([&tables::forecast::scaling(forecast)]);
    }
    let help = tables::forecast::most_helpful(forecast);
    if !help.rows.is_empty() {
        sections = sections.tables([&help]);
    }
    let mut end = String::new();
    for sentence in sentences::next(forecast, WORDING) {
        end += &screen.paragraph(0, &sentence);
    }
    sections.text([end]).end()
}

pub(crate) fn forecast(
    scenario: &Scenario,
    method: &dyn Method,
    forecast: &Forecast,
    screen: &Screen,
) -> String {
    let balance = sentences::balance(&forecast.prediction, &forecast.advice);
    let bottleneck: String = [plain(&forecast.advice.sentence)]
        .iter()
        .chain(&balance)
        .map(|sentence| screen.paragraph(2, sentence))
        .collect();
    let method = sentences::method(method, scenario);
    Sections::with_assumed(scenario, &forecast.assumed, &method, screen)
        .text(sentences::memory(forecast).map(|sentence| screen.paragraph(0, &sentence)))
        .tables([&tables::forecast::figures(scenario, forecast)])
        .titled("Bottleneck", &bottleneck)
        .tables(&tables::forecast::all(scenario, forecast))
        .warnings(&forecast.prediction.warnings)
        .end()
}

pub(crate) fn corrections(calibration: &Calibration, screen: &Screen) -> String {
    format!("\n{}", table::section(&uncertainty::corrections(calibration), screen))
}

pub(crate) fn assumptions(forecast: &Forecast, screen: &Screen) -> String {
    let interval = forecast.interval.as_ref().filter(|interval| !interval.by_assumption.is_empty());
    let none = "None: every figure that matters here was given or measured.";
    let text = match interval {
        Some(interval) => table::section(&uncertainty::assumptions(interval, WORDING), screen),
        None => titled("Assumed figures", &screen.paragraph(2, none), screen),
    };
    format!("\n{text}")
}

/// Fusion rules side by side; `all_messages` shows every message of the best plan.
pub(crate) fn fusion(
    scenario: &Scenario,
    report: &FusionReport,
    all_messages: bool,
    screen: &Screen,
) -> String {
    Sections::from_scenario(scenario, &tables::fusion::summary(report), screen)
        .tables(&tables::fusion::all(report, all_messages))
        .warnings(&report.warnings)
        .end()
}

pub(crate) fn import(overview: &Overview, screen: &Screen) -> String {
    let sections = Sections::new(recording(overview, screen), screen).tables(&tables::import::all(overview));
    let notes = notes(&overview.notes, screen);
    let sections = if notes.is_empty() { sections } else { sections.titled("Notes", &notes) };
    let written = match &overview.written {
        Some(path) => format!("Written to {}.", name(path)),
        None => "Nothing was written.".to_owned(),
    };
    sections.text([screen.paragraph(0, &written)]).end()
}

fn recording(overview: &Overview, screen: &Screen) -> String {
    let title = |size: String| screen.strong(&format!("{}: {size}", name(&overview.name))) + "\n";
    match &overview.contents {
        ContentFigures::Profile(steps) => {
            let operations: usize = steps.resources.iter().map(|usage| usage.operations).sum();
            let operations = several(operations as u64, "operation");
            let size = format!("{} of {operations}", several(steps.steps as u64, "step"));
            title(size) + &screen.paragraph(0, &name(&steps.source))
        }
        ContentFigures::Model { layers, parameters } => {
            title(format!("{}, {}", several(*layers as u64, "layer"), several(*parameters, "parameter")))
        }
    }
}

fn notes(notes: &[String], screen: &Screen) -> String {
    let mut text: String = notes.iter().take(MOST_NOTES).map(|note| item(note, screen)).collect();
    let more = notes.len().saturating_sub(MOST_NOTES);
    if more > 0 {
        let more = several(more as u64, "more note");
        text += &screen.paragraph(4, &format!("{more} are not shown; `--json` has them all."));
    }
    text
}

/// The fastest of the admissible conditions of a map.
pub(crate) fn map(scenario: &Scenario, map: &Map, screen: &Screen) -> String {
    Sections::from_scenario(scenario, &tables::map::summary(map), screen)
        .tables([&tables::map::ranking(map)])
        .warnings(&map.warnings)
        .end()
}

/// The totals of one model, the parts of a transformer, and its layers where they are wanted.
pub(crate) fn model(entry: &ZooModel, model: &Model, layers: bool, screen: &Screen) -> String {
    let names = match &entry.aliases[..] {
        [] => String::new(),
        aliases => format!(" (also {})", aliases.join(", ")),
    };
    let mut all = tables::model::all(model, layers);
    // The parts come before the layers, which are many.
    let place = all.len() - usize::from(layers);
    let parts = entry.shape().as_ref().map(tables::transformer::parts);
    all.splice(place..place, parts);
    let title = screen.paragraph(0, &format!("{}{names}: {}", entry.name, entry.description));
    let source = screen.paragraph(0, &format!("Source: {}.", entry.source));
    let sections: Vec<String> = all.iter().map(|table| table::section(table, screen)).collect();
    title.replacen(&entry.name, &screen.strong(&entry.name), 1) + &source + &sections.join("\n")
}

/// The best plan: its figures, its training, alternatives, and the cost of every property.
pub(crate) fn plan(report: &PlanReport, screen: &Screen) -> String {
    use stepcast_report::tables::advise;
    use tables::plan as tables;
    let title = format!("{} split over {}", name(&report.model), several(report.best.workers, "worker"));
    let first = format!("{}\n{}", screen.strong(&title), screen.paragraph(0, &tables::summary(report)));
    let written = |toml: &str| toml.lines().map(|line| format!("  {line}\n")).collect::<String>();
    let stages = report.stages.iter();
    let stages = stages.map(|stages| titled("Plan, stage by stage", &written(&stages.toml), screen));
    Sections::new(first, screen)
        .tables([&tables::best(report)])
        .tables(&tables::settings(report))
        .tables(&tables::stages(report))
        .tables(&report.training.as_ref().map(|training| tables::training(training, report)))
        .tables(&tables::endless(report))
        .tables(&tables::close(report))
        .tables(&(report.front.len() > 1).then(|| tables::front(report)))
        .text(report.advice.as_ref().map(|advice| screen.paragraph(0, &advise::verdict(advice))))
        .tables([&tables::families(report)])
        .titled("Plan", &written(&report.toml))
        .text(stages)
        .warnings(&report.prediction.warnings)
        .end()
}

/// Layers with exposed communication, and their substitutes.
pub(crate) fn replacement(scenario: &Scenario, report: &ReplacementReport, screen: &Screen) -> String {
    Sections::from_scenario(scenario, &tables::replacement::summary(&report.before), screen)
        .tables(&tables::replacement::all(report))
        .text(report.reason.as_ref().map(|reason| screen.paragraph(0, reason)))
        .warnings(&report.warnings)
        .end()
}

/// The best configurations of a search, the front, the constraints, and why the second is not the first.
pub(crate) fn search(report: &SearchReport, screen: &Screen) -> String {
    use tables::search as tables;
    let reasons = report.reasons();
    let reasons: String = reasons.map(|reason| screen.paragraph(2, &plain(reason))).collect();
    Sections::new(screen.paragraph(0, &tables::summary(report)), screen)
        .tables([&tables::best(report)])
        .text((!reasons.is_empty()).then(|| titled("Why not another", &reasons, screen)))
        .tables(&(report.front.len() > 1).then(|| tables::front(report)))
        .tables(&(!report.constraints.is_empty()).then(|| tables::constraints(report)))
        .end()
}

/// The first rows of a sweep, and where the fastest is.
pub(crate) fn sweep(
    shown: &FirstRows,
    variants: &Variants<'_>,
    agreement: &Agreement,
    screen: &Screen,
) -> String {
    let rows = shown.table(variants, Some(screen.width.into()));
    let notes = shown.notes(variants, agreement, WORDING).join(" ");
    format!("{}\n{}", table::section(&rows, screen), screen.paragraph(0, &notes))
}
