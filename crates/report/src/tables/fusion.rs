//! Fusion rules side by side, and the best plan.

use super::forecast;
use crate::format::{capitalised, count, name, percent, several};
use crate::table::Hint;
use crate::table::{Table, bar};
use stepcast_core::quantity::Bytes;
use stepcast_study::fuse::{Family, FusionReport, Line};

/// Number of messages of the best plan shown by default.
const SHOWN: usize = 8;
/// Characters of the longest bar, beside long names of rules.
const BAR: usize = 20;

/// All tables; `all_messages` shows every message of the best plan.
pub fn all(report: &FusionReport, all_messages: bool) -> Vec<Table> {
    vec![
        rules(report),
        plan(report, all_messages),
        forecast::communication("Communication with the best plan", &report.best().communication),
        settings(report),
    ]
}

/// The rows of [`rules`], which represent their families: the default where there is one, and the fastest.
pub fn rule_rows(report: &FusionReport) -> Vec<&Line> {
    let mut shown: Vec<&Line> = Vec::new();
    for line in &report.lines {
        let first = !shown.iter().any(|other| other.family == line.family);
        let fastest = report.recommended(line.family).is_some_and(|best| best.rule == line.rule);
        let default = matches!(line.family, Family::Pytorch | Family::Horovod) && first;
        let single = !matches!(line.family, Family::Pytorch | Family::Horovod | Family::Buffer);
        if default || fastest || single {
            shown.push(line);
        }
    }
    shown
}

/// The step with every rule, and its gain over the scenario's own.
pub fn rules(report: &FusionReport) -> Table {
    let mut table = Table::new("Rules", ["rule", "#messages", "#step time", "#OSF", "#gain", "|"]);
    let most = report.lines.iter().map(|line| line.gain).fold(0.0, f64::max);
    for line in rule_rows(report) {
        let share = if most > 0.0 { line.gain.max(0.0) / most } else { 0.0 };
        table.row([
            line.rule.clone(),
            count(line.messages as u64),
            line.iteration.human(),
            format!("{:.3}", line.scaling_factor),
            signed(line.gain),
            bar(share, BAR),
        ]);
    }
    table.note =
        "OSF: scaling factor with overlap (Liu 2022, eq. 11). That of all at the end is CSF (eq. 2)."
            .to_owned();
    table
}

fn signed(gain: f64) -> String {
    if gain.abs() < 0.0005 {
        "–".to_owned()
    } else {
        format!("{}{}", if gain > 0.0 { "+" } else { "−" }, percent(gain.abs()))
    }
}

fn plan(report: &FusionReport, all_messages: bool) -> Table {
    let plan = &report.plan;
    let title = format!(
        "Best plan: {} of {}",
        several(plan.len() as u64, "message"),
        several(report.tensors as u64, "gradient")
    );
    let mut table = Table::new(title, ["#message", "#gradients", "#size", "~from … to"]);
    let shown = if all_messages || plan.len() <= SHOWN + 1 { plan.len() } else { SHOWN };
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
    if shown < plan.len() {
        let size: Bytes = plan[shown..].iter().map(|message| message.size).sum();
        table.note = format!("{} more messages have {} together.", plan.len() - shown, size.human());
        table.hints = vec![Hint::Messages];
    }
    table
}

fn settings(report: &FusionReport) -> Table {
    let mut table = Table::new("What to set", ["where", "~setting", "#gain"]);
    let settings = &report.settings;
    for (place, setting) in [("PyTorch", &settings.pytorch), ("Horovod", &settings.horovod)] {
        table.row([place.to_owned(), setting.text.clone(), signed(setting.gain)]);
    }
    let counts: Vec<String> = report.plan.iter().map(|message| message.gradients.len().to_string()).collect();
    let best = format!("buckets = [{}]", counts.join(", "));
    table.row(["[strategy.fusion]".to_owned(), best, signed(report.best().gain)]);
    table
}

/// Gain of the best plan, and how it was found.
pub fn summary(report: &FusionReport) -> String {
    let [low, high] = report.gain_interval.map(percent);
    let best = report.best();
    let gain = if best.gain < 0.0005 {
        "No plan is noticeably faster than the scenario's rule.".to_owned()
    } else {
        let interval = match low == high {
            true => String::new(),
            false => format!(
                " Where computing times vary and the slowest worker decides, it is {low} to {high} faster in nine steps \
                 of ten."
            ),
        };
        format!("The best plan is {} faster than the scenario's rule.{interval}", percent(best.gain))
    };
    format!("{gain} {}.", capitalised(&report.search))
}
