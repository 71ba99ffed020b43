//! A Gantt chart: operations as bars along time, in lanes one below the other.
//!
//! Bars too narrow to be seen are drawn as one with their neighbours, so that a drawing of some thousand operations stays
//! small and shows where they are dense.

use crate::draw::{
    Axis, BELOW, Frame, Head, Mark, Spacing, Svg, Unit, drawable, extent, nothing, series, series_of, width,
};
use stepcast_core::quantity::Seconds;
use stepcast_study::simulate::{KINDS, Recording};
use stepcast_trace::timeline::Timeline;

const WIDTH: f64 = 960.0;
/// Height of a lane, and of a bar in it.
const LANE: (f64, f64) = (17.0, 13.0);
/// Gap between the lanes of two groups.
const GROUP_GAP: f64 = 7.0;
/// Narrower bars are merged.
const NARROWEST: f64 = 0.5;
const MOST_LANES: usize = 400;
const RIGHT: f64 = 28.0;
/// Widest names of groups and lanes.
const NAMES: (f64, f64) = (110.0, 150.0);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gantt {
    pub title: String,
    /// Lanes from top to bottom, group by group.
    pub lanes: Vec<Lane>,
    /// Begin and end of the visible window; by default everything.
    pub window: Option<[Seconds; 2]>,
    /// Colours and names of the kinds of bars that do not have the colours of their lanes, for a legend.
    pub kinds: Vec<(usize, String)>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lane {
    /// The process that it belongs to: "worker 0".
    pub group: String,
    /// The resource: "computing".
    pub name: String,
    /// Lanes of one kind have one colour.
    pub kind: usize,
    pub bars: Vec<Bar>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bar {
    pub name: String,
    /// Its label, if not its name.
    pub label: Option<String>,
    /// Its colour, if that is not the colour of its lane.
    pub kind: Option<usize>,
    pub since: Seconds,
    pub until: Seconds,
}

struct Merged<'a> {
    since: f64,
    until: f64,
    /// The end of the last of them, which may lie outside the window.
    ended: f64,
    first: &'a Bar,
    count: usize,
}

/// Lanes of a simulated pipeline that show when stages compute.
const PASSES: &str = "passes";

impl Gantt {
    /// The operations of every worker over time, one lane for each resource; for a pipeline, the operations of every stage, with the
    /// number of their micro-batch.
    pub fn from_recording(recording: &Recording, title: &str) -> Self {
        Self::from_timeline(&recording.timeline(), title)
    }

    /// The events of a timeline, one lane for each of its lanes.
    pub fn from_timeline(timeline: &Timeline<'_>, title: &str) -> Self {
        let mut lanes: Vec<Lane> = Vec::new();
        let mut kinds: Vec<String> = Vec::new();
        // The index of the first lane of every process.
        let mut first = Vec::new();
        for process in &timeline.processes {
            first.push(lanes.len());
            for name in &process.lanes {
                // A lane for operations that overlap in another one has its name and a number.
                let base = name.split_once(" (").map_or(name.as_str(), |(base, _)| base).to_owned();
                let kind = kinds.iter().position(|known| *known == base).unwrap_or_else(|| {
                    kinds.push(base);
                    kinds.len() - 1
                });
                lanes.push(Lane { group: process.name.clone(), name: name.clone(), kind, bars: Vec::new() });
            }
        }
        let mut used = [false; KINDS.len()];
        let colours = series_of(&kinds.iter().map(String::as_str).collect::<Vec<_>>());
        for lane in &mut lanes {
            lane.kind = colours[lane.kind];
        }
        for event in &timeline.events {
            let lane = first
                .get(event.process as usize)
                .and_then(|first| lanes.get_mut(first + event.lane as usize));
            if let Some(lane) = lane {
                let kind = event.kind.and_then(|kind| KINDS.iter().position(|known| *known == kind));
                if let Some(kind) = kind {
                    used[kind] = true;
                }
                let number = event.figure.filter(|_| kind.is_some()).map(|(_, number)| number.to_string());
                lane.bars.push(Bar {
                    name: event.name.clone().into_owned(),
                    label: number,
                    kind,
                    since: event.since,
                    until: event.until,
                });
            }
        }
        let kinds = KINDS.iter().enumerate().filter(|(kind, _)| used[*kind]);
        let kinds = kinds.map(|(kind, name)| (kind, (*name).to_owned())).collect();
        Self { title: title.to_owned(), lanes, kinds, ..Self::default() }
    }

    /// When the stages of a simulated step compute or wait for what they send, a lane for each.
    pub fn from_pipeline(recording: &Recording, name: &str) -> Self {
        let all = Self::from_recording(recording, &format!("A step of {name}, simulated"));
        let lanes: Vec<Lane> = all.lanes.into_iter().filter(|lane| lane.name == PASSES).collect();
        let used = |kind: usize| lanes.iter().flat_map(|lane| &lane.bars).any(|bar| bar.kind == Some(kind));
        let kinds = all.kinds.into_iter().filter(|(kind, _)| used(*kind)).collect();
        Self { title: all.title, lanes, kinds, ..Self::default() }
    }

    pub fn svg(&self) -> String {
        let lanes = &self.lanes[..self.lanes.len().min(MOST_LANES)];
        let times = lanes.iter().flat_map(|lane| &lane.bars).filter(|bar| good(bar));
        let window = self.window.map(|ends| ends.map(Seconds::get)).filter(|[low, high]| low < high);
        let all = || extent(times.flat_map(|bar| [bar.since.get(), bar.until.get()]));
        let Some((low, high)) = window.map(Into::into).or_else(all) else {
            return nothing(&self.title, "There is nothing to show: nothing happened.");
        };
        let head = Head { title: self.title.clone(), note: self.note(), legend: self.legend() };
        let top = head.height(WIDTH);
        let changes = lanes.windows(2).filter(|pair| pair[0].group != pair[1].group).count();
        let height = lanes.len() as f64 * LANE.0 + changes as f64 * GROUP_GAP;
        let (groups, own, left) = self.names();
        let spacing = if window.is_some() { Spacing::Exact } else { Spacing::Linear };
        let frame = Frame {
            left,
            top,
            width: WIDTH - left - RIGHT,
            height,
            across: Axis::of("time", (low, high), spacing, &Unit::Time, 10),
            upwards: Axis::places("", std::iter::empty()),
        };
        let mut svg = Svg::new(WIDTH, frame.floor() + BELOW, &self.title, &self.description());
        head.draw(&mut svg, WIDTH);
        frame.draw(&mut svg);
        let mut bars = Svg::fragment();
        let mut y = top;
        for (place, lane) in lanes.iter().enumerate() {
            let begins = place == 0 || lanes[place - 1].group != lane.group;
            if begins && place > 0 {
                svg.line([16.0, y + GROUP_GAP / 2.0, WIDTH - RIGHT, y + GROUP_GAP / 2.0], "grid");
                y += GROUP_GAP;
            }
            if begins {
                svg.words_within(16.0, y + 12.0, "small strong", &lane.group, groups);
            }
            svg.words_within(left - 8.0, y + 12.0, "small end muted", &lane.name, own);
            for merged in lane.merged(&frame) {
                merged.draw(&mut bars, &frame, lane, y + (LANE.0 - LANE.1) / 2.0);
            }
            y += LANE.0;
        }
        svg.clipped([frame.left, top, frame.width, height], "bars", bars);
        svg.finish()
    }

    /// Widths of the names of groups and of lanes.
    fn names(&self) -> (f64, f64, f64) {
        let lanes = &self.lanes[..self.lanes.len().min(MOST_LANES)];
        let widest = |widths: &mut dyn Iterator<Item = f64>, most: f64| widths.fold(0.0, f64::max).min(most);
        let groups = widest(&mut lanes.iter().map(|lane| width(&lane.group, "small strong")), NAMES.0);
        let own = widest(&mut lanes.iter().map(|lane| width(&lane.name, "small")), NAMES.1);
        (groups, own, 16.0 + groups + 12.0 + own + 8.0)
    }

    fn legend(&self) -> Vec<(Mark, String)> {
        self.kinds.iter().map(|(colour, name)| (Mark::Plain(*colour), name.clone())).collect()
    }

    fn note(&self) -> String {
        match self.lanes.len().saturating_sub(MOST_LANES) {
            0 => String::new(),
            more => format!("The first {MOST_LANES} lanes; {more} more are not shown"),
        }
    }

    fn description(&self) -> String {
        let bars: usize = self.lanes.iter().map(|lane| lane.bars.len()).sum();
        format!("A timeline of {bars} operations in {} lanes.", self.lanes.len())
    }
}

fn good(bar: &Bar) -> bool {
    drawable(bar.since.get()) && drawable(bar.until.get()) && bar.until >= bar.since
}

impl Lane {
    fn merged(&self, frame: &Frame) -> Vec<Merged<'_>> {
        let pixels = |since: f64, until: f64| frame.x(until) - frame.x(since);
        let mut all: Vec<Merged<'_>> = Vec::new();
        let (low, high) = frame.across.ends();
        let shown = |bar: &&Bar| good(bar) && bar.until.get() >= low && bar.since.get() <= high;
        for bar in self.bars.iter().filter(shown) {
            let (since, until) = (bar.since.get().max(low), bar.until.get().min(high));
            let joins = |last: &&mut Merged<'_>| {
                bar.kind == last.first.kind
                    && pixels(since, until) < NARROWEST
                    && pixels(last.until, since) < NARROWEST
                    && (last.count > 1 || pixels(last.since, last.until) < NARROWEST)
            };
            match all.last_mut().filter(joins) {
                Some(last) => {
                    last.until = last.until.max(until);
                    last.ended = last.ended.max(bar.until.get());
                    last.count += 1;
                }
                None => all.push(Merged { since, until, ended: bar.until.get(), first: bar, count: 1 }),
            }
        }
        all
    }
}

impl Merged<'_> {
    fn draw(&self, svg: &mut Svg, frame: &Frame, lane: &Lane, y: f64) {
        let name = match self.count {
            1 => self.first.name.clone(),
            count => format!("{} and {} more", self.first.name, count - 1),
        };
        let x = frame.x(self.since);
        let wide = (frame.x(self.until) - x).max(NARROWEST);
        // A gap separates neighbours where there is room for one.
        let shown = if wide > 3.0 { wide - 0.7 } else { wide };
        let (since, until) = (Unit::Time.write(self.first.since.get()), Unit::Time.write(self.ended));
        svg.titled(&format!("{name}: {since} to {until}"), |svg| {
            let kind = self.first.kind.unwrap_or(lane.kind);
            svg.rect([x, y, shown, LANE.1], &format!("{} fill", series(kind)), "");
            let label = self.first.label.as_ref().filter(|_| self.count == 1).unwrap_or(&name);
            // Labels stand in the middle of what can be seen.
            let (left, right) = (frame.left, frame.left + frame.width);
            let (from, to) = match x < right && x + shown > left {
                true => (x.max(left), (x + shown).min(right)),
                false => (x, x + shown),
            };
            if width(label, "small") + 4.0 <= to - from {
                svg.words((from + to) / 2.0, y + 10.0, "small middle on-series", label);
            }
        });
    }
}
