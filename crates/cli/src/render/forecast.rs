//! A forecast as text.

use super::screen::Screen;
use super::{blocks, table};
use crate::words::WORDING;
use stepcast_core::method::Method;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::plain;
use stepcast_report::sentences;
use stepcast_report::tables::{forecast as tables, uncertainty};
use stepcast_study::Forecast;
use stepcast_study::predict::calibrate::Calibration;

/// The whole forecast, its last line ended.
pub(crate) fn render(
    scenario: &Scenario,
    method: &dyn Method,
    forecast: &Forecast,
    screen: &Screen,
) -> String {
    let headline = blocks::headline(scenario, screen) + &screen.paragraph(0, &sentences::method(method));
    let figures = table::section(&tables::figures(scenario, forecast), screen);
    let mut sections = vec![headline, figures, bottleneck(forecast, screen)];
    sections.extend(tables::all(scenario, forecast).iter().map(|table| table::section(table, screen)));
    sections.extend(blocks::warnings(&forecast.prediction.warnings, screen));
    sections.join("\n")
}

/// What measured runs have corrected, its last line ended.
pub(crate) fn corrections(calibration: &Calibration, screen: &Screen) -> String {
    format!("\n{}", table::section(&uncertainty::corrections(calibration), screen))
}

/// Every assumed figure behind the interval, its last line ended.
pub(crate) fn assumptions(forecast: &Forecast, screen: &Screen) -> String {
    let interval = forecast.interval.as_ref().filter(|interval| !interval.by_assumption.is_empty());
    let text = match interval {
        Some(interval) => table::section(&uncertainty::assumptions(interval, WORDING), screen),
        None => blocks::section(
            "Assumed figures",
            &screen.paragraph(2, "None: every figure that matters here was given or measured."),
            screen,
        ),
    };
    format!("\n{text}")
}

fn bottleneck(forecast: &Forecast, screen: &Screen) -> String {
    let mut text = screen.paragraph(2, &plain(&forecast.advice.sentence));
    if let Some(sentence) = sentences::balance(&forecast.prediction, &forecast.advice) {
        text.push_str(&screen.paragraph(2, &sentence));
    }
    blocks::section("Bottleneck", &text, screen)
}
