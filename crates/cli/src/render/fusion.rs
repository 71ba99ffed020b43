//! Fusion rules side by side, as text.

use super::forecast::{communication, question, section, warnings};
use super::table;
use super::table::bar;
use super::{Screen, count, name, percent};
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::Scenario;
use stepcast_report::table::{Column, Table};
use stepcast_study::fuse::{Family, FusionReport, Line, Message};

/// Messages of the best plan that are shown without `--plan`.
const SHOWN: usize = 8;
/// Cells of the widest bar.
const BAR: usize = 20;

/// The report, its last line ended.
pub(crate) fn render(scenario: &Scenario, report: &FusionReport, all: bool, screen: &Screen) -> String {
    let mut sections = vec![question(scenario, screen) + &headline(report, screen)];
    sections.push(section("Rules", rules(report, screen), screen));
    let title = format!("Best plan: {} of {}", messages(report.plan.len()), gradients(report.tensors));
    sections.push(section(&title, plan(&report.plan, all, screen), screen));
    let parts = communication(&report.best().communication, screen);
    sections.push(section("What communication does then", parts, screen));
    sections.push(section("What to set", settings(report, screen), screen));
    if !report.warnings.is_empty() {
        sections.push(section("Warnings", warnings(&report.warnings, screen), screen));
    }
    sections.join("\n")
}

fn headline(report: &FusionReport, screen: &Screen) -> String {
    let [low, high] = report.gain_interval;
    let best = report.best();
    let text = if best.gain < 0.0005 {
        "No plan is noticeably faster than what is set.".to_owned()
    } else {
        let interval = match percent(low) == percent(high) {
            true => String::new(),
            false => format!(
                "; with computing times that spread, and the slowest worker deciding, {} to {} in nine steps of ten",
                percent(low),
                percent(high)
            ),
        };
        format!("The best plan is {} faster than what is set{interval}.", percent(best.gain))
    };
    screen.paragraph(0, &format!("{text} {}.", sentence(&report.search)))
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// One line for each family: its default where it has one, and its fastest.
fn rules(report: &FusionReport, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("rule"),
            Column::numbers("messages"),
            Column::numbers("step time"),
            Column::numbers("scaling factor"),
            Column::numbers("gain"),
            Column::names(""),
        ],
    );
    let most = report.lines.iter().map(|line| line.gain).fold(0.0, f64::max);
    let mut shown: Vec<&Line> = Vec::new();
    for line in &report.lines {
        let first = !shown.iter().any(|other| other.family == line.family);
        let fastest = report.fastest(line.family).is_some_and(|fastest| fastest.rule == line.rule);
        let default = matches!(line.family, Family::Pytorch | Family::Horovod) && first;
        let single = !matches!(line.family, Family::Pytorch | Family::Horovod | Family::Buffer);
        if default || fastest || single {
            shown.push(line);
        }
    }
    for line in shown {
        let share = if most > 0.0 { line.gain.max(0.0) / most } else { 0.0 };
        table.row([
            line.rule.clone(),
            count(line.messages as u64),
            line.iteration.human(),
            percent(line.scaling_factor),
            signed(line.gain),
            bar(share, BAR),
        ]);
    }
    table::render(&table, screen)
}

fn signed(gain: f64) -> String {
    if gain.abs() < 0.0005 {
        "–".to_owned()
    } else {
        format!("{}{}", if gain > 0.0 { "+" } else { "" }, percent(gain))
    }
}

fn plan(plan: &[Message], all: bool, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::numbers("message"),
            Column::numbers("gradients"),
            Column::numbers("size"),
            Column::words("from … to"),
        ],
    );
    let shown = if all || plan.len() <= SHOWN + 1 { plan.len() } else { SHOWN };
    for (index, message) in plan.iter().take(shown).enumerate() {
        let first = message.gradients.first().map_or("", String::as_str);
        let last = message.gradients.last().map_or("", String::as_str);
        let range = if first == last { name(first) } else { format!("{} … {}", name(first), name(last)) };
        table.row([
            count(index as u64 + 1),
            count(message.gradients.len() as u64),
            message.size.human(),
            range,
        ]);
    }
    let mut text = table::render(&table, screen);
    if shown < plan.len() {
        let size: Bytes = plan[shown..].iter().map(|message| message.size).sum();
        let rest = format!("… and {} more of {} together: `--plan`.", plan.len() - shown, size.human());
        text += &screen.paragraph(2, &rest);
    }
    text
}

fn settings(report: &FusionReport, screen: &Screen) -> String {
    let mut table = Table::new("", [Column::names("where"), Column::words("what"), Column::numbers("gain")]);
    let settings = &report.settings;
    for (place, setting) in [("PyTorch", &settings.pytorch), ("Horovod", &settings.horovod)] {
        table.row([place.to_owned(), setting.text.clone(), signed(setting.gain)]);
    }
    let counts: Vec<String> = report.plan.iter().map(|message| message.gradients.len().to_string()).collect();
    let best = format!("buckets = [{}]", counts.join(", "));
    table.row(["[strategy.fusion]".to_owned(), best, signed(report.best().gain)]);
    table::render(&table, screen)
}

fn messages(number: usize) -> String {
    super::several(number as u64, "message")
}

fn gradients(number: usize) -> String {
    super::several(number as u64, "gradient")
}
