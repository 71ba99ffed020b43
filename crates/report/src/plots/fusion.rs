//! Rules of fusion side by side: step time, and the exposed communication in it.

use crate::draw::{
    Axis, EDGE, Frame, Head, Mark, Spacing, Svg, Unit, WIDTH, define_patterns, drawable, nothing,
    pattern_fill, width,
};
use stepcast_core::quantity::Seconds;
use stepcast_study::fuse::{Family, FusionReport, Line};

/// Height of a row, and of a bar in it.
const ROW: (f64, f64) = (24.0, 15.0);
/// Room to the right of the bars for their figures.
const FIGURES: f64 = 232.0;
/// Widest name of a rule.
const NAME: f64 = 230.0;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FusionComparison {
    pub title: String,
    pub plans: Vec<Plan>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub rule: String,
    pub step: Seconds,
    pub exposed: Seconds,
    pub messages: usize,
    pub standing: Standing,
}

/// How a rule relates to the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    #[default]
    Other,
    Own,
    Best,
}

/// Rules that differ in their sizes only, from top to bottom.
const FAMILIES: [Family; 9] = [
    Family::Own,
    Family::None,
    Family::All,
    Family::Buffer,
    Family::Pytorch,
    Family::Horovod,
    Family::MgWfbp,
    Family::Adaptive,
    Family::Optimum,
];

impl FusionComparison {
    /// The fastest rule of every family.
    pub fn from_report(report: &FusionReport, name: &str) -> Self {
        let plan = |line: &Line| Plan {
            rule: line.rule.clone(),
            step: line.iteration,
            exposed: line.communication.exposed,
            messages: line.messages,
            standing: match line.family {
                Family::Own => Standing::Own,
                Family::Optimum => Standing::Best,
                _ => Standing::Other,
            },
        };
        Self {
            title: format!("Fusion of the gradients of {name}"),
            plans: FAMILIES.iter().filter_map(|family| report.recommended(*family)).map(plan).collect(),
        }
    }

    pub fn svg(&self) -> String {
        let good = |plan: &&Plan| drawable(plan.step.get()) && plan.step.get() > 0.0;
        let plans: Vec<&Plan> = self.plans.iter().filter(good).collect();
        let slowest = plans.iter().map(|plan| plan.step.get()).fold(0.0, f64::max);
        if plans.is_empty() {
            return nothing(&self.title, "There is nothing to show: there are no rules to compare.");
        }
        let legend = vec![
            (Mark::Bar(0), "computing, and what it hides".to_owned()),
            (Mark::Bar(1), "communication that nothing hides".to_owned()),
        ];
        let head = Head { title: self.title.clone(), note: String::new(), legend };
        let names = plans.iter().map(|plan| width(&name(plan), "strong")).fold(0.0, f64::max).min(NAME);
        let left = EDGE + names + 10.0;
        let frame = Frame {
            left,
            top: head.height(WIDTH),
            width: WIDTH - left - FIGURES,
            height: plans.len() as f64 * ROW.0 + 6.0,
            across: Axis::of("time of a step", (0.0, slowest), Spacing::Linear, &Unit::Time, 6),
            upwards: Axis::places("", std::iter::empty()),
        };
        let mut svg = frame.begin(&head, WIDTH, &description(&plans), |svg| define_patterns(svg, 2));
        for (place, plan) in plans.iter().enumerate() {
            row(&mut svg, &frame, plan, frame.top + 3.0 + place as f64 * ROW.0, names);
        }
        svg.finish()
    }
}

/// The text beside a bar, with a mark for the scenario's rule and the fastest plan.
fn name(plan: &Plan) -> String {
    match plan.standing {
        Standing::Own | Standing::Other => plan.rule.clone(),
        Standing::Best => format!("▸ {}", plan.rule),
    }
}

fn row(svg: &mut Svg, frame: &Frame, plan: &Plan, y: f64, names: f64) {
    let step = plan.step.get();
    let exposed = if drawable(plan.exposed.get()) { plan.exposed.get().clamp(0.0, step) } else { 0.0 };
    let class = if plan.standing == Standing::Other { "end" } else { "end strong" };
    svg.words_within(frame.left - 8.0, y + 15.0, class, &name(plan), names);
    let (from, hidden, end) = (frame.left, frame.x(step - exposed), frame.x(step));
    let top = y + (ROW.0 - ROW.1) / 2.0;
    svg.rect([from, top, hidden - from, ROW.1], "", &pattern_fill(0));
    svg.rect([hidden, top, end - hidden, ROW.1], "", &pattern_fill(1));
    if plan.standing == Standing::Best {
        svg.rect([from, top - 2.0, end - from, ROW.1 + 4.0], "line", "");
    }
    let messages = match plan.messages {
        1 => "1 message".to_owned(),
        many => format!("{many} messages"),
    };
    let words = format!("{}, {:.0} % exposed, {messages}", Unit::Time.write(step), 100.0 * exposed / step);
    let class = if plan.standing == Standing::Best { "small strong" } else { "small" };
    svg.words_within(frame.left + frame.width + 6.0, y + 15.0, class, &words, FIGURES - 12.0);
}

fn description(plans: &[&Plan]) -> String {
    let best = plans.iter().find(|plan| plan.standing == Standing::Best);
    let best = best.map_or(String::new(), |plan| {
        format!(" The best, {}, takes {}.", plan.rule, Unit::Time.write(plan.step.get()))
    });
    format!("Bars of the time of a step for {} rules of fusion.{best}", plans.len())
}
