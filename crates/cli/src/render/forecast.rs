//! A forecast as text.

use super::screen::Screen;
use super::{blocks, table};
use stepcast_core::method::Method;
use stepcast_core::scenario::Scenario;
use stepcast_report::format::plain;
use stepcast_report::sentences;
use stepcast_report::tables::forecast as tables;
use stepcast_study::Forecast;

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

fn bottleneck(forecast: &Forecast, screen: &Screen) -> String {
    let mut text = screen.paragraph(2, &plain(&forecast.advice.sentence));
    if let Some(sentence) = sentences::balance(&forecast.prediction, &forecast.advice) {
        text.push_str(&screen.paragraph(2, &sentence));
    }
    blocks::section("Bottleneck", &text, screen)
}
