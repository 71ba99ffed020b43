//! Plans: the best, the front, the cost of other choices, and the groups of ranks.

use super::thinned;
use crate::format::{
    as_sure, count, duration, grouped, interval_of_durations, money, percent, percent_between,
    percent_with_decimal, rough_duration, rough_money, several, times,
};
use crate::plots::rank_grid::role_name;
use crate::table::Hint;
use crate::table::{Column, Table};
use serde_json::Value;
use stepcast_core::prediction::Verdict;
use stepcast_core::scenario::AssumedPrice;
use stepcast_study::explore::plan::{
    Aim, CONFIRMED, Confirmation, Entry, FamilyReport, PlanReport, RecipeSetting, Training,
};
use stepcast_study::predict::layout::{Layout, Role};

const FRONT: usize = 10;

const VALUES: usize = 6;

/// Extent of the search, and knowledge about the optimum.
pub fn summary(report: &PlanReport) -> String {
    let counts = &report.counts;
    let part = |number: u64, what: &str| match number {
        0 => String::new(),
        _ => format!(" {} {what},", count(number)),
    };
    let aim = match report.objective {
        Aim::Time => "shorter",
        Aim::Cost => "cheaper",
    };
    let end = match report.gap {
        gap if report.interrupted => {
            format!("The search was stopped: another plan could be {} {aim} at most.", percent(gap))
        }
        0.0 => {
            let plans =
                if report.framework.is_some() { "plan that the framework runs" } else { "valid plan" };
            match report.forgone {
                0.0 => format!("No {plans} is {aim}."),
                forgone => format!(
                    "No {plans} is more than {} {aim}; simpler plans were preferred.",
                    percent_with_decimal(forgone)
                ),
            }
        }
        gap => {
            format!(
                "There are more plans than were tried: one of them could be {} {aim} at most.",
                percent(gap)
            )
        }
    };
    format!(
        "{} valid plans:{}{}{}{} {} computed. {end}",
        count(counts.plans),
        part(counts.too_large, "do not fit"),
        part(counts.too_slow, "miss the deadline"),
        part(counts.too_dear, "exceed the budget"),
        part(counts.bounded, "excluded by a lower bound"),
        count(counts.evaluated),
    )
}

pub fn best(report: &PlanReport) -> Table {
    let mut table = Table::of_figures("Best plan");
    let best = &report.best;
    let mut row = |name: &str, value: String, more: String| table.row([name.to_owned(), value, more]);
    let machines = format!("{} on {}", several(best.workers, "worker"), best.machines);
    row("step time", best.step.human(), machines);
    let split = report.prediction.transformer.as_ref();
    let used = split.map_or(String::new(), |split| {
        format!("MFU {}, bubble {}", percent_with_decimal(split.mfu), percent_with_decimal(split.bubble))
    });
    row("tokens", format!("{}/s", count(best.tokens_per_s as u64)), used);
    let verdict = match best.verdict {
        Verdict::Fits => "fits",
        Verdict::MayNotFit | Verdict::DoesNotFit => "may not fit",
    };
    let memory = split.map_or(String::new(), |split| {
        format!("of {} on the fullest device: {verdict}", split.memory.capacity.human())
    });
    row("memory", best.memory.human(), memory);
    if let [one, other] = &report.prediction.groups[..]
        && one.batch != other.batch
    {
        let shares = format!("{} and {}", count(one.batch.into()), count(other.batch.into()));
        row("shares", shares, "sequences of a replica in a step, by kind of machine".to_owned());
    }
    let (value, more) = confirmed(&report.confirmation);
    row("event engine", value, more);
    launched(report, &mut row);
    if let (None, Some(cost)) = (best.training, best.cost) {
        row("cost", format!("{} {}", money(cost), report.currency), "of a step".to_owned());
    }
    table.note = format!("{}.", best.words);
    table
}

/// Frameworks that run the plan, and the best plan that one of them runs.
fn launched(report: &PlanReport, row: &mut impl FnMut(&str, String, String)) {
    let titles = report.launches.iter().map(|own| own.title()).collect::<Vec<_>>().join(", ");
    match (report.framework, &report.launchable) {
        (Some(own), _) => {
            row("framework", own.title().to_owned(), "with its kernels, states and overlap".to_owned())
        }
        (None, Some(entry)) => {
            row("framework", "none runs it".to_owned(), String::new());
            row("launchable", entry.step.human(), entry.words.clone());
        }
        (None, None) if titles.is_empty() => row("framework", "none runs it".to_owned(), String::new()),
        (None, None) => row("framework", titles, "each in its own way".to_owned()),
    }
}

/// Settings of a recipe, with changed ones of the scenario's plan.
pub fn settings(report: &PlanReport) -> Option<Table> {
    let framework = report.framework.filter(|_| !report.settings.is_empty())?;
    let columns = [Column::names("setting"), Column::words("scenario"), Column::words("best plan")];
    let mut table = Table::new(format!("Settings of {}", framework.title()), columns);
    for RecipeSetting { name, scenario, best } in &report.settings {
        let shown = |value: &Option<Value>, none: &str| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(all)) => {
                all.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>().join(", ")
            }
            Some(value) => value.to_string(),
            None => none.to_owned(),
        };
        let mark = (scenario != best).then_some("changes");
        table.marked_row([name.clone(), shown(scenario, "—"), shown(best, "remove it")], mark);
    }
    if report.settings.iter().all(|setting| setting.scenario == setting.best) {
        table.note = "The scenario has them already.".to_owned();
    }
    Some(table)
}

/// The event engine's verdict on a step.
fn confirmed(confirmation: &Confirmation) -> (String, String) {
    let Confirmation { step, difference, refused, .. } = confirmation;
    let (Some(step), Some(difference)) = (step, difference) else {
        let why = refused.as_deref().unwrap_or("it does not run this plan");
        return ("not run".to_owned(), why.to_owned());
    };
    let by = match percent_with_decimal(difference.abs()) {
        same if same == percent_with_decimal(0.0) => "the same".to_owned(),
        by if *difference > 0.0 => format!("{by} longer"),
        by => format!("{by} shorter"),
    };
    let within = 100.0 * CONFIRMED;
    let verdict = match confirmation.confirmed {
        true => format!("confirms the step within {within:.0} %"),
        false => format!(
            "does not confirm the step within {within:.0} %: links are contended, or less communication overlaps"
        ),
    };
    let ranked = match confirmation.ranked {
        Some(plans) if plans > 1 => {
            format!("; the fastest of {plans} simulated plans, as the closed form's was not confirmed")
        }
        _ => String::new(),
    };
    (step.human(), format!("{by}: it {verdict}{ranked}"))
}

/// Stages with different layers and recomputation, if these are better.
pub fn stages(report: &PlanReport) -> Option<Table> {
    let stages = report.stages.as_ref()?;
    let mut table = Table::of_figures("Stage by stage");
    let mut row = |name: &str, value: String, more: String| table.row([name.to_owned(), value, more]);
    let what = match report.objective {
        Aim::Time => "less time",
        Aim::Cost => "lower cost",
    };
    let saved = format!("{} {what} than with equal stages", percent_with_decimal(stages.gain));
    row("step time", stages.entry.step.human(), saved);
    row("memory", stages.entry.memory.human(), "on the fullest device".to_owned());
    let gap = stages.entry.step / stages.least - 1.0;
    let proven = match gap > 0.0005 {
        true => format!("at most {} above the shortest", percent_with_decimal(gap)),
        false => "the shortest".to_owned(),
    };
    let divisions = format!("{proven} of all divisions of the layers over these stages");
    row("bound", stages.least.human(), divisions);
    let (value, more) = confirmed(&stages.confirmation);
    row("event engine", value, more);
    table.note = format!("{}.", stages.entry.words);
    Some(table)
}

pub fn training(training: &Training, report: &PlanReport) -> Table {
    let currency = &report.currency;
    let mut table = Table::of_figures("Training");
    let mut row = |name: &str, value: String, more: String| table.row([name.to_owned(), value, more]);
    let steps = format!(
        "{}; {} without interruptions",
        several(training.steps as u64, "step"),
        rough_duration(training.without_interruptions)
    );
    let (time, ends) = match training.time_range {
        Some(ends) => (rough_duration(training.time), format!("{}; ", interval_of_durations(ends))),
        None => (duration(training.time), String::new()),
    };
    row("time", time, ends + &steps);
    let lost = match training.between_interruptions {
        Some(between) => format!("one interruption in {}, {}", duration(between), interruptions(training)),
        None => "no interruptions".to_owned(),
    };
    let (goodput, ends) = match training.goodput_range {
        Some(range) => percent_between(training.goodput, range),
        None => (percent_with_decimal(training.goodput), None),
    };
    row("goodput", goodput, ends.map_or(String::new(), |ends| format!("{ends}; ")) + &lost);
    if let Some(slow) = training.slow_machines {
        row("slow machines", format!("{:.1} %", 100.0 * (slow - 1.0)), "longer steps on average".to_owned());
    }
    if let Some(checkpoints) = &training.checkpoints {
        let methods = match (checkpoints.young, checkpoints.daly) {
            (Some(young), Some(daly)) => {
                format!(" (Young {}, Daly {})", duration(young), duration(daly))
            }
            _ => String::new(),
        };
        let every = format!("every {}{methods}", duration(checkpoints.interval));
        let more = format!("{every}; training stands still for {}", checkpoints.standstill.human());
        row("checkpoints", checkpoints.size.human(), more);
    }
    if let Some(replaced) = training.slow_replaced {
        let more = "are replaced, which takes less time than to wait for them".to_owned();
        row("slow machines", several(replaced.round() as u64, "machine"), more);
    }
    if let (Some(enough), Some(share)) = (training.recommended_spares, training.spares_suffice) {
        let own = if training.spares == 1 { "suffices" } else { "suffice" };
        let more = format!("{own} for {} of the time; {} for 99 %", percent(share), count(enough.into()));
        row("spares", several(training.spares.into(), "machine"), more);
    }
    if let Some(cost) = training.cost {
        let (cost, ends) = match training.cost_range {
            Some(ends) => (rough_money(cost), format!("{}; ", ends.map(rough_money).join("–"))),
            None => (money(cost), String::new()),
        };
        let more = ends + "all machines, spares included" + &assumed_price(report);
        row("cost", format!("{cost} {currency}"), more);
    }
    if let Some(energy) = &training.energy {
        let carbon = energy
            .carbon_kg
            .map_or(String::new(), |kg| format!(", {} t of CO2", count((kg / 1000.0).round() as u64)));
        let (scale, unit) = if energy.kwh < 10_000.0 { (1.0, "kWh") } else { (1000.0, "MWh") };
        let digits = if energy.kwh < 10.0 { 2 } else { 0 };
        let scaled = |kwh: f64| grouped(format!("{:.digits$}", as_sure(kwh / scale, 1.0)));
        let between = |[low, high]: [f64; 2]| format!("{} to {}; ", scaled(low), scaled(high));
        let between = energy.kwh_range.map_or(String::new(), between);
        let more = format!("{between}machines × {} of the building{carbon}", energy.pue);
        row("energy", format!("{} {unit}", scaled(energy.kwh)), more);
    }
    table
}

/// Why training never ends, and what would end it.
pub fn endless(report: &PlanReport) -> Option<Table> {
    let endless = report.endless?;
    let mut table = Table::of_figures("Training never ends");
    let mut row = |name: &str, value: String, more: &str| {
        table.row([name.to_owned(), value, more.to_owned()]);
    };
    row("interruptions", duration(endless.between_interruptions), "apart on average");
    row("restart", duration(endless.restart), "until work goes on");
    if let Some(spares) = endless.enough_spares {
        let now = format!("would suffice for 99 % of the time; there are {}", endless.spares);
        row("spares", several(spares.into(), "machine"), &now);
    }
    if let Some(machines) = endless.machines {
        row("machines", count(machines), "would have a goodput of at least 50 %");
    }
    table.note = "Fewer machines, more spares, or shorter restarts would end it.".to_owned();
    Some(table)
}

/// Plans that cannot be distinguished from the best, and which of them to take for another reason.
pub fn close(report: &PlanReport) -> Option<Table> {
    let close = report.close.as_ref()?;
    let mut table = Table::new("Plans that cannot be told apart", ["", "#step time", "#memory", "plan"]);
    let all = [("simplest", &close.simplest), ("least memory", &close.smallest), ("robust", &close.robust)];
    for (name, entry) in all {
        if let Some(entry) = entry {
            let cells = [name.to_owned(), entry.step.human(), entry.memory.human(), entry.words.clone()];
            table.row(cells);
        }
    }
    let measured = close
        .separated_by
        .as_ref()
        .map_or(String::new(), |name| format!(" Measure the {name} to tell the best two apart."));
    table.note = format!(
        "{} plans are as likely the fastest as the best one, given how well machines and software are known.{measured}",
        count(close.plans)
    );
    Some(table)
}

/// The assumed price of the machines, if any.
fn assumed_price(report: &PlanReport) -> String {
    let own = |price: &&AssumedPrice| Some(price.offer.as_str()) == report.best.machine.as_deref();
    report.assumed_prices.iter().find(own).map_or(String::new(), |price| {
        let [low, high] = price.range.map(money);
        format!(
            "; a machine at {} an hour is assumed ({low} to {high}, {})",
            money(price.node_hour),
            price.date
        )
    })
}

/// The mean number of interruptions, or the range that the source of their rate leaves open.
fn interruptions(training: &Training) -> String {
    match training.interruptions_range.map(|ends| ends.map(times)) {
        Some([low, high]) if low != high => format!("{low} to {high} in all"),
        _ => format!("{} in all", times(training.interruptions)),
    }
}

/// The rows of [`front`], thinned out evenly where there are many.
pub fn front_rows(report: &PlanReport) -> Vec<&Entry> {
    thinned(&report.front, FRONT)
}

/// Plans of which none is better in everything.
pub fn front(report: &PlanReport) -> Table {
    let all = &report.front;
    let shown = front_rows(report);
    let trains = all.iter().any(|entry| entry.training.is_some());
    let costs = all.iter().any(|entry| entry.cost.is_some());
    let mut columns = vec!["#step time"];
    columns.extend(trains.then_some("#training"));
    columns.extend(costs.then_some("#cost"));
    columns.extend(["#memory", "#machines", "~plan"]);
    let mut table = Table::new("Time, cost and memory", columns);
    for entry in &shown {
        let mut cells = vec![entry.step.human()];
        if trains {
            cells.push(entry.training.map_or(String::new(), duration));
        }
        if costs {
            cells.push(entry.cost.map_or(String::new(), money));
        }
        cells.extend([entry.memory.human(), machines(entry), entry.words.clone()]);
        table.row(cells);
    }
    table.note = "Each trades time, cost and memory.".to_owned();
    if all.len() > shown.len() {
        table.note += &format!(" {} of {} are shown.", shown.len(), count(all.len() as u64));
        table.hints = vec![Hint::RowsInJson];
    }
    table
}

fn machines(entry: &Entry) -> String {
    if entry.machine.is_some() { entry.machines.clone() } else { count(entry.nodes) }
}

/// Additional cost of the best plan with every value of every property.
pub fn families(report: &PlanReport) -> Table {
    let mut table = Table::new("Why not another", ["only plans", "#", "~the best of them"]);
    let mut from = 0;
    let rows = &report.families;
    while from < rows.len() {
        let same = rows[from..].iter().take_while(|row| row.property == rows[from].property).count();
        let values = &rows[from..from + same];
        from += same;
        if same < 2 {
            continue;
        }
        for row in nearest(values) {
            let (more, plan) = match row.more {
                _ if row.chosen => ("best".to_owned(), String::new()),
                Some(more) => (format!("+{}", percent_with_decimal(more)), row.plan.clone()),
                None if row.fitting == 0 => (
                    "does not fit".to_owned(),
                    format!("needs {} at least: {}", row.memory.human(), row.plan),
                ),
                None => ("not admitted".to_owned(), String::new()),
            };
            table.row([row.words.clone(), more, plan]);
        }
    }
    table.hints = vec![Hint::ValuesInJson];
    table
}

/// The values of a property around the chosen one, so that a long list stays readable.
fn nearest(values: &[FamilyReport]) -> &[FamilyReport] {
    let chosen = values.iter().position(|row| row.chosen).unwrap_or(0);
    let from = chosen.saturating_sub(VALUES / 2).min(values.len().saturating_sub(VALUES));
    &values[from..values.len().min(from + VALUES)]
}

pub fn layout_summary(layout: &Layout) -> String {
    let kinds = [
        (layout.tensor, "tensor ranks"),
        (layout.context, "context ranks"),
        (layout.pipeline, "stages"),
        (layout.data, "replicas"),
    ];
    let factors = kinds.iter().filter(|(number, _)| *number > 1);
    let factors: Vec<String> = factors.map(|(number, name)| format!("{} {name}", count(*number))).collect();
    let machines = several(layout.count(Role::Node), "machine");
    let split = if factors.is_empty() { String::new() } else { format!(": {}", factors.join(" × ")) };
    format!("{} on {machines}{split}.", several(layout.ranks, "rank"))
}

pub fn groups(layout: &Layout) -> Table {
    let mut table = Table::new("Groups", ["of", "#ranks", "#groups", "#on a machine", "#machines"]);
    for group in &layout.groups {
        table.row([
            role_name(group.role).to_owned(),
            count(group.size),
            count(group.groups),
            count(group.per_node),
            count(group.nodes),
        ]);
    }
    table.note = "Ranks of a group that are on one machine, and machines that a group is on, at most. Ranks are numbered \
                  tensor fastest, then context, replica and stage."
        .to_owned();
    table
}
