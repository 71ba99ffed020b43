//! Stacked bars: the parts of a step for several numbers of workers, and the memory of a rank of every pipeline stage beside the
//! memory of a device.

use crate::draw::{
    Axis, Frame, Head, Mark, Spacing, Unit, WIDTH, define_patterns, drawable, height, nothing, pattern_fill,
    series_of,
};
use crate::format::several;
use stepcast_core::prediction::{Part, SplitReport, StageReport};
use stepcast_core::quantity::Bytes;

/// Share of its category that a bar takes, and the widest bar.
const BAR: (f64, f64) = (0.72, 56.0);

#[derive(Debug, Clone, PartialEq)]
pub struct StackedBars {
    pub title: String,
    pub note: String,
    pub description: String,
    /// Reason for an empty plot, if any.
    pub nothing: &'static str,
    /// Meaning of a bar, and of its parts.
    pub axes: [&'static str; 2],
    pub unit: Unit,
    pub height: f64,
    /// Names of the parts, each with its colour.
    pub parts: Vec<(String, usize)>,
    pub bars: Vec<StackedBar>,
    /// A line across all bars, and its name.
    pub limit: Option<(f64, &'static str)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StackedBar {
    pub label: String,
    /// "3 workers".
    pub words: String,
    /// Parts by their places, and their sizes, from the bottom up.
    pub sizes: Vec<(usize, f64)>,
}

impl StackedBars {
    /// The parts of a step for several numbers of workers, as a method predicts them.
    pub fn from_steps(steps: &[(u64, &[Part])], method: &str, name: &str) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut bar = |(workers, parts): &(u64, &[Part])| {
            let parts = parts.iter().map(|part| (part.kind.name(), part.time.get()));
            let good = parts.filter(|(_, time)| drawable(*time) && *time >= 0.0);
            let sizes = good.map(|(name, time)| {
                let place = names.iter().position(|known| *known == name).unwrap_or(names.len());
                names.extend((place == names.len()).then_some(name));
                (place, time)
            });
            StackedBar {
                label: workers.to_string(),
                sizes: sizes.collect(),
                words: several(*workers, "worker"),
            }
        };
        let bars: Vec<StackedBar> = steps.iter().map(&mut bar).collect();
        Self {
            title: format!("A step of {name}"),
            note: format!("Time of a step by what it is spent on; by {method}"),
            description: format!(
                "Stacked bars for {} numbers of workers, predicted by {method}. From the bottom up: {}.",
                bars.len(),
                names.join(", ")
            ),
            nothing: "There is nothing to show: no step takes any time.",
            axes: ["workers", "time of a step"],
            unit: Unit::Time,
            height: 300.0,
            parts: names.iter().map(|name| (*name).to_owned()).zip(series_of(&names)).collect(),
            bars,
            limit: None,
        }
    }

    /// Memory of a rank of every stage, beside the memory of the smallest device.
    pub fn from_split(split: &SplitReport, name: &str) -> Self {
        let memory = &split.memory;
        let fullest = split.stages.get(memory.stage).map_or(Bytes::ZERO, |stage| stage.memory.total);
        let reserved = memory.least - fullest;
        let lost = if fullest > Bytes::ZERO { (memory.most - memory.least) / fullest } else { 0.0 };
        let parts = [
            "weights",
            "gradients",
            "optimiser",
            "activations",
            "working sets",
            "reserved",
            "what the allocator may lose",
        ];
        let bar = |(place, stage): (usize, &StageReport)| {
            let held = &stage.memory;
            let sizes = [held.weights, held.gradients, held.optimiser, held.activations, held.working];
            let sizes = sizes.into_iter().chain([reserved, held.total * lost]).map(Bytes::get).enumerate();
            StackedBar {
                label: place.to_string(),
                words: format!("stage {place}"),
                sizes: sizes.filter(|(_, size)| drawable(*size) && *size > 0.0).collect(),
            }
        };
        let bars: Vec<StackedBar> = split.stages.iter().enumerate().map(bar).collect();
        let most = bars.iter().map(StackedBar::total).fold(0.0, f64::max);
        let limit = Some(memory.capacity.get()).filter(|size| drawable(*size) && *size > 0.0);
        let of = limit.map_or(String::new(), |limit| format!(" of {}", Unit::Bytes.write(limit)));
        Self {
            title: format!("Memory of {name}"),
            note: "What a rank of every stage holds".to_owned(),
            description: format!(
                "Stacked bars for {}; a rank of the fullest holds {}{of}.",
                several(bars.len() as u64, "stage"),
                Unit::Bytes.write(most)
            ),
            nothing: "There is nothing to show: no stage holds anything.",
            axes: ["stage", "memory"],
            unit: Unit::Bytes,
            height: 280.0,
            parts: parts.map(str::to_owned).into_iter().zip(0..).collect(),
            bars,
            limit: limit.map(|limit| (limit, "memory of a device")),
        }
    }

    pub fn svg(&self) -> String {
        self.svg_of(WIDTH)
    }

    pub fn svg_of(&self, drawing: f64) -> String {
        let most = self.bars.iter().map(StackedBar::total).fold(0.0, f64::max);
        if !drawable(most) || most <= 0.0 {
            return nothing(&self.title, self.nothing);
        }
        let is_used = |part: usize| self.bars.iter().flat_map(StackedBar::good).any(|(own, _)| own == part);
        let used = self.parts.iter().enumerate().filter(|(part, _)| is_used(*part));
        let mut legend: Vec<(Mark, String)> =
            used.map(|(_, (name, series))| (Mark::Bar(*series), name.clone())).collect();
        if let Some((limit, name)) = self.limit {
            legend.push((Mark::Rule("dashed"), format!("{name}: {}", self.unit.write(limit))));
        }
        let head = Head { title: self.title.clone(), note: self.note.clone(), legend };
        let across = Axis::places(self.axes[0], self.bars.iter().map(|bar| bar.label.clone()));
        let highest = most.max(self.limit.map_or(0.0, |(limit, _)| limit));
        let upwards = Axis::of(self.axes[1], (0.0, highest), Spacing::Linear, &self.unit, 6);
        let top = head.height(drawing) + 8.0;
        let frame = Frame::new(across, upwards, drawing, top, height(drawing, self.height));
        let patterns = 1 + self.parts.iter().map(|(_, series)| *series).max().unwrap_or(0);
        let mut svg = frame.begin(&head, drawing, &self.description, |svg| define_patterns(svg, patterns));
        for (place, bar) in self.bars.iter().enumerate() {
            let (middle, wide) = frame.bar(place, self.bars.len(), BAR);
            let mut below = 0.0;
            for (part, size) in bar.good() {
                let Some((name, series)) = self.parts.get(part) else { continue };
                let (lower, upper) = (frame.y(below), frame.y(below + size));
                below += size;
                svg.titled(&format!("{}, {name}: {}", bar.words, self.unit.write(size)), |svg| {
                    svg.rect([middle - wide / 2.0, upper, wide, lower - upper], "", &pattern_fill(*series));
                });
            }
        }
        if let Some((limit, _)) = self.limit {
            svg.line([frame.left, frame.y(limit), frame.left + frame.width, frame.y(limit)], "line dashed");
        }
        svg.finish()
    }
}

impl StackedBar {
    fn good(&self) -> impl Iterator<Item = (usize, f64)> {
        self.sizes.iter().copied().filter(|(_, size)| drawable(*size) && *size >= 0.0)
    }

    /// The sum of its parts.
    pub fn total(&self) -> f64 {
        self.good().map(|(_, size)| size).sum()
    }
}
