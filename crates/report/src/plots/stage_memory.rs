//! What a rank of every pipeline stage holds, as stacked bars against the memory of a device.

use crate::draw::{
    Axis, BELOW, Frame, Head, Mark, Spacing, Svg, Unit, WIDTH, define_patterns, drawable, height, nothing,
    pattern_fill,
};
use crate::format::several;
use stepcast_core::prediction::SplitReport;
use stepcast_core::quantity::Bytes;

const HEIGHT: f64 = 280.0;
/// Share of its category that a bar takes, and the widest bar.
const BAR: (f64, f64) = (0.72, 56.0);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageMemory {
    pub title: String,
    pub capacity: Bytes,
    pub parts: Vec<String>,
    /// What a rank of every stage holds of each part.
    pub stages: Vec<Vec<Bytes>>,
}

impl StageMemory {
    /// What a rank of every stage holds, against the memory of the smallest device.
    pub fn from_report(split: &SplitReport, name: &str) -> Self {
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
        Self {
            title: format!("Memory of {name}"),
            capacity: memory.capacity,
            parts: parts.map(str::to_owned).into(),
            stages: split
                .stages
                .iter()
                .map(|stage| {
                    let held = &stage.memory;
                    vec![
                        held.weights,
                        held.gradients,
                        held.optimiser,
                        held.activations,
                        held.working,
                        reserved,
                        held.total * lost,
                    ]
                })
                .collect(),
        }
    }

    pub fn svg(&self) -> String {
        self.svg_of(WIDTH)
    }

    pub fn svg_of(&self, drawing: f64) -> String {
        let good = |size: &Bytes| drawable(size.get()) && size.get() > 0.0;
        let total =
            |stage: &Vec<Bytes>| stage.iter().filter(|size| good(size)).map(|size| size.get()).sum::<f64>();
        let fullest = self.stages.iter().map(total).fold(0.0, f64::max);
        if !drawable(fullest) || fullest <= 0.0 {
            return nothing(&self.title, "There is nothing to show: no stage holds anything.");
        }
        let limit = Some(self.capacity).filter(good).map(Bytes::get);
        let is_used = |part: usize| self.stages.iter().any(|stage| stage.get(part).is_some_and(good));
        let mut legend: Vec<(Mark, String)> = self
            .parts
            .iter()
            .enumerate()
            .filter(|(part, _)| is_used(*part))
            .map(|(part, name)| (Mark::Bar(part), name.clone()))
            .collect();
        if let Some(limit) = limit {
            legend.push((Mark::Rule("dashed"), format!("memory of a device: {}", Unit::Bytes.write(limit))));
        }
        let note = "What a rank of every stage holds".to_owned();
        let head = Head { title: self.title.clone(), note, legend };
        let across = Axis::places("stage", (0..self.stages.len()).map(|stage| stage.to_string()));
        let highest = fullest.max(limit.unwrap_or(0.0));
        let upwards = Axis::of("memory", (0.0, highest), Spacing::Linear, &Unit::Bytes, 6);
        let frame = Frame::new(across, upwards, drawing, head.height(drawing) + 8.0, height(drawing, HEIGHT));
        let mut svg =
            Svg::new(drawing, frame.floor() + BELOW, &self.title, &self.description(fullest, limit));
        define_patterns(&mut svg, self.parts.len());
        head.draw(&mut svg, drawing);
        frame.draw(&mut svg);
        let place = frame.width / self.stages.len() as f64;
        let wide = (place * BAR.0).min(BAR.1);
        for (index, stage) in self.stages.iter().enumerate() {
            let x = frame.left + (index as f64 + 0.5) * place - wide / 2.0;
            let mut below = 0.0;
            for ((part, size), name) in
                stage.iter().enumerate().zip(&self.parts).filter(|((_, size), _)| good(size))
            {
                let (lower, upper) = (frame.y(below), frame.y(below + size.get()));
                below += size.get();
                let words = format!("stage {index}, {name}: {}", Unit::Bytes.write(size.get()));
                svg.titled(&words, |svg| {
                    svg.rect([x, upper, wide, lower - upper], "", &pattern_fill(part));
                });
            }
        }
        if let Some(limit) = limit {
            svg.line([frame.left, frame.y(limit), frame.left + frame.width, frame.y(limit)], "line dashed");
        }
        svg.finish()
    }

    fn description(&self, fullest: f64, limit: Option<f64>) -> String {
        let limit = limit.map_or(String::new(), |limit| format!(" of {}", Unit::Bytes.write(limit)));
        let fullest = Unit::Bytes.write(fullest);
        format!(
            "Stacked bars for {}; a rank of the fullest holds {fullest}{limit}.",
            several(self.stages.len() as u64, "stage")
        )
    }
}
