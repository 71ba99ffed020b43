//! A forecast in HTML: as a self-contained document, or as the answer part of a page.
//!
//! Every text is escaped; only drawings and tables, whose texts are escaped already, are inserted as they are.

use crate::draw::WIDTH;
use crate::draw::svg::escaped;
use crate::plots::scaling_curve::ScalingCurve;
use crate::plots::stacked::StackedBars;
use crate::plots::staleness::Staleness;
use crate::table::Table;
use crate::tables::forecast;
use crate::{format, sentences, table};
use stepcast_core::method::Method;
use stepcast_core::prediction::{Part, Verdict, Warning};
use stepcast_core::scenario::Scenario;
use stepcast_study::Forecast;
use stepcast_study::predict::memory_verdict;

/// A drawing, and the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// "scaling".
    pub name: &'static str,
    pub svg: String,
}

/// Largest cluster in the breakdown by numbers of workers; beyond it, only the prediction's is drawn.
const LARGE: u32 = 10_000;

/// Width of plots that stand side by side, or on a small screen.
const NARROW: f64 = 460.0;

pub fn plots(scenario: &Scenario, method: &dyn Method, forecast: &Forecast) -> Vec<Plot> {
    plots_of(scenario, method, forecast, WIDTH)
}

/// The plots of a forecast, narrow enough to stand side by side.
pub fn narrow_plots(scenario: &Scenario, method: &dyn Method, forecast: &Forecast) -> Vec<Plot> {
    plots_of(scenario, method, forecast, NARROW)
}

fn plots_of(scenario: &Scenario, method: &dyn Method, forecast: &Forecast, wide: f64) -> Vec<Plot> {
    let name = format::name(scenario.name());
    let prediction = &forecast.prediction;
    let scaling =
        (!forecast.scaling.is_empty()).then(|| ScalingCurve::from_forecast(forecast, &name).svg_of(wide));
    let breakdown = StackedBars::from_steps(&steps(method, forecast), prediction.method, &name).svg_of(wide);
    let staleness = Staleness::from_prediction(prediction, &name).map(|staleness| staleness.svg_of(wide));
    let all = [("scaling", scaling), ("breakdown", Some(breakdown)), ("staleness", staleness)];
    all.into_iter().filter_map(|(name, svg)| Some(Plot { name, svg: svg? })).collect()
}

/// Breakdowns of steps by numbers of workers: of quick methods, all of the scaling table.
fn steps<'a>(method: &dyn Method, forecast: &'a Forecast) -> Vec<(u64, &'a [Part])> {
    let Forecast { prediction, scaling, .. } = forecast;
    if !method.is_quick() || scaling.is_empty() || scaling.iter().any(|point| point.workers > LARGE) {
        return vec![(prediction.workers, &prediction.breakdown)];
    }
    scaling.iter().map(|point| (point.workers.into(), point.breakdown.as_slice())).collect()
}

/// The answer: figures, plots, tables and warnings. In a document, all tables are open and below the plots; on an interactive
/// page, open ones come first, the others are closed, and there is room for the risks.
fn answer(
    scenario: &Scenario,
    method: &dyn Method,
    forecast: &Forecast,
    plots: &[Plot],
    interactive: bool,
) -> String {
    let render = if interactive { table::folding_section } else { table::section };
    let (above, below): (Vec<Table>, Vec<Table>) =
        forecast::all(scenario, forecast).into_iter().partition(|table| interactive && !table.folded);
    let sections = |tables: &[Table]| tables.iter().map(|table| render(table) + "\n").collect::<String>();
    let verdict =
        verdict(scenario, forecast).map(|(class, words)| paragraph(&format!("verdict {class}"), &words));
    let balance = sentences::balance(&forecast.prediction, &forecast.advice)
        .map(|words| format!("<p>{}</p>\n", escaped(&words)));
    let warnings = if interactive { String::new() } else { warnings(&forecast.prediction.warnings) };
    let risk = if interactive { "<section class=\"risk\"></section>\n" } else { "" };
    [
        verdict.unwrap_or_default(),
        paragraph("sentence", &sentences::answer(forecast)),
        balance.unwrap_or_default(),
        figures(&forecast::figures(scenario, forecast)),
        warnings,
        sections(&above),
        drawings(plots),
        risk.to_owned(),
        sections(&below),
        paragraph("note", &sentences::method(method, scenario)),
    ]
    .concat()
}

fn paragraph(class: &str, words: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", escaped(words))
}

/// Rows of a name, a value and an explanation.
fn figures(table: &Table) -> String {
    let figure = |row: &table::Row| {
        let [name, value, note] =
            [0, 1, 2].map(|cell| row.cells.get(cell).map_or_else(String::new, |text| escaped(text)));
        format!(
            "<div data-figure=\"{name}\"><dt>{name}</dt><dd>{value}</dd><dd class=\"note\">{note}</dd></div>\n"
        )
    };
    format!("<dl class=\"figures\">\n{}</dl>\n", table.rows.iter().map(figure).collect::<String>())
}

fn warnings(all: &[Warning]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let item = |warning: &Warning| {
        format!("<li><strong>{}</strong> {}</li>\n", escaped(warning.code), escaped(&warning.message))
    };
    let items: String = all.iter().map(item).collect();
    format!(
        "<section class=\"warnings\" aria-label=\"Warnings\">\n<h3>Warnings</h3>\n<ul>\n{items}</ul>\n</section>\n"
    )
}

fn drawings(plots: &[Plot]) -> String {
    let figure = |Plot { name, svg }: &Plot| {
        format!(
            "<figure class=\"drawing\" data-name=\"{name}\" tabindex=\"0\" aria-label=\"plot: {name}\">\n{svg}</figure>\n"
        )
    };
    let figures: String = plots.iter().map(figure).collect();
    format!("<section class=\"why\">\n<div class=\"plots\">\n{figures}</div>\n</section>\n")
}

/// Whether the model fits into the devices: always stated for a plan, otherwise only if it does not fit.
fn verdict(scenario: &Scenario, forecast: &Forecast) -> Option<(&'static str, String)> {
    if let (Some(report), Some(words)) = (&forecast.prediction.transformer, sentences::memory(forecast)) {
        return Some((class_of(report.memory.verdict), words));
    }
    let warning = forecast.prediction.warnings.iter().find(|warning| warning.code == "memory")?;
    let message = &warning.message;
    let mut letters = message.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let words = format!("{first}{}.", letters.as_str());
    Some((class_of(memory_verdict(scenario)), words))
}

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "good",
        Verdict::MayNotFit => "unsure",
        Verdict::DoesNotFit => "bad",
    }
}

pub fn part(scenario: &Scenario, method: &dyn Method, forecast: &Forecast, plots: &[Plot]) -> String {
    answer(scenario, method, forecast, plots, true)
}

/// The question and the answer as a document; `inputs` is the scenario with every default, `command` reproduces the
/// document.
pub fn document(
    scenario: &Scenario,
    method: &dyn Method,
    forecast: &Forecast,
    inputs: &str,
    command: &str,
) -> String {
    let plots = plots(scenario, method, forecast);
    format!(
        include_str!("page.html"),
        style = include_str!("page.css"),
        version = env!("CARGO_PKG_VERSION"),
        title = escaped(&sentences::title(scenario, &forecast.assumed)),
        setting = escaped(&sentences::setting(scenario, &forecast.assumed)),
        answer = answer(scenario, method, forecast, &plots, false),
        inputs = escaped(inputs),
        source = escaped(method.about().source),
        command = escaped(command),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_study::{ForecastOptions, Observer, Request, forecast};

    fn made(text: &str, command: &str) -> String {
        let request = Request::from_reader("test", text.as_bytes(), Vec::new()).unwrap();
        let options = ForecastOptions { workers: Some(vec![1, 2, 4]), ..ForecastOptions::default() };
        let forecast = forecast(&request, &options, &Observer::none()).unwrap();
        let (scenario, method) = (request.scenario().unwrap(), request.method(options.method).unwrap());
        document(&scenario, method, &forecast, text, command)
    }

    #[test]
    fn a_report_says_everything_and_needs_nothing() {
        let text = include_str!("../../../examples/quickstart.toml");
        let html = made(text, "stepcast report examples/quickstart.toml -o report.html");
        for part in [
            "vgg16 on 2 × ",
            "<svg xmlns",
            "<table>",
            "A step takes",
            "Throughput of vgg16",
            "A step of vgg16",
            "What would help",
            "host-rate = ",
            "stepcast report examples/quickstart.toml -o report.html",
        ] {
            assert!(html.contains(part), "{part}");
        }
        // The document fetches nothing and runs nothing.
        for outside in ["<script", "<link", " src=", "@import", "url(http", " onload"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert_eq!(html, made(text, "stepcast report examples/quickstart.toml -o report.html"));
    }

    #[test]
    fn names_cannot_bring_markup_in() {
        let text = "[model.custom]\nname = \"<script>alert(1)</script>\"\ninput = [3, 8, 8]\n\
                    [[model.custom.layers]]\nop = \"flatten\"\n[[model.custom.layers]]\nop = \"linear\"\nout = 10\n";
        let html = made(text, "stepcast report '<img>' -o x.html");
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    }
}
