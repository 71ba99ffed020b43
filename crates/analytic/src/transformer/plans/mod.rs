//! Many plans of one transformer on the same machines.
//!
//! [`Table`] answers what [`Run::step`] and [`MemoryInputs::rank`](crate::transformer::memory::MemoryInputs::rank) answer, without
//! parts and stages: the time of a step, a lower bound of it, and the memory of the fullest rank. What depends on few
//! properties of a plan is computed once for each of their combinations (`costs`), and stages that are alike are
//! looked at once (`layout`). Nothing is allocated for a plan whose costs are known, except by schedules without a
//! recurrence (`ends`).

mod costs;
mod ends;
mod layout;

use super::ends::Levels;
use super::schedules::is_split;
use super::stages::Run;
use super::stagewise::{Stagewise, stagewise};
use super::tail::{EndPass, tie};
use super::unequal::balanced;
use costs::{LayerCosts, Passes, StateCosts, layer_key, layout_key, send_key, state_key};
use ends::{Pipeline, Scratch};
use layout::{EqualStages, Layout};
use rustc_hash::FxHashMap;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{Division, Overlaps, PlanChoice, Recompute, Sends};

/// Forward, backward and gradients of weights, in seconds.
type TimesOf = [f64; 3];

/// Values that depend on some dimensions of a plan, each computed once. The last one, and the one that followed it before, are
/// found without a look-up. A key has the same value for all plans in every other dimension.
#[derive(Debug)]
struct Memo<V> {
    places: FxHashMap<PlanChoice, usize>,
    values: Vec<V>,
    /// The key of every value, and the place of the value that was asked for after it.
    keys: Vec<(PlanChoice, usize)>,
    last: usize,
}

impl<V> Memo<V> {
    fn new() -> Self {
        Self { places: FxHashMap::default(), values: Vec::new(), keys: Vec::new(), last: 0 }
    }

    fn place(&mut self, key: PlanChoice, make: impl FnOnce() -> V) -> usize {
        if let Some((last, next)) = self.keys.get(self.last) {
            if *last == key {
                return self.last;
            }
            if self.keys[*next].0 == key {
                self.last = *next;
                return *next;
            }
        }
        let place = *self.places.entry(key).or_insert_with(|| {
            self.values.push(make());
            self.keys.push((key, 0));
            self.values.len() - 1
        });
        self.keys[self.last].1 = place;
        self.last = place;
        place
    }
}

/// Where the costs of a plan are.
#[derive(Debug, Clone, Copy)]
struct CostIndices {
    layout: usize,
    layers: usize,
    states: usize,
    send: usize,
}

/// Costs of plans of one transformer on one number of ranks.
#[derive(Debug)]
pub struct Table<'a> {
    run: Run<'a>,
    /// Tables for workers of each kind alone, if there are two.
    kinds: Option<Box<[Table<'a>; 2]>>,
    layouts: Memo<Layout>,
    /// By kind of stage.
    layers: Memo<Vec<LayerCosts>>,
    states: Memo<StateCosts>,
    /// Layout and states of the last plan.
    last_states: Option<(PlanChoice, [usize; 2])>,
    sends: Memo<StageSends>,
    /// Activations of every kind of stage, for the last plan but for its sharding.
    activations: (Option<PlanChoice>, Vec<Bytes>),
    /// A micro-batch on every class of virtual stages.
    classes: Vec<Passes>,
    /// Host time of a step whose device is alone in its pipeline.
    host: f64,
    /// Times of every virtual stage, by pass.
    places: [Vec<f64>; 3],
    /// How long the passes keep the link of sends busy, if they use it.
    busy: [Vec<f64>; 3],
    /// When the weights of every virtual stage have arrived, if they travel beside the step.
    weights: Vec<f64>,
    /// Last passes of a stage, and when the gradients of every stage are summed.
    last: Vec<EndPass>,
    reduced: Vec<f64>,
    scratch: Scratch,
}

/// How stages send.
#[derive(Debug, Clone, Copy)]
struct StageSends {
    time: f64,
    how: Sends,
    /// The level of the network that they load.
    level: usize,
}

impl<'a> Table<'a> {
    /// An empty table for plans that differ from the run's plan only in [`PlanChoice`], all on the same number of ranks.
    pub fn new(run: Run<'a>) -> Self {
        Self {
            kinds: run.kinds.map(|_| Box::new([0, 1].map(|kind| Self::new(run.on_kind(kind))))),
            run,
            last_states: None,
            layouts: Memo::new(),
            layers: Memo::new(),
            states: Memo::new(),
            sends: Memo::new(),
            activations: (None, Vec::new()),
            classes: Vec::new(),
            host: 0.0,
            places: [const { Vec::new() }; 3],
            busy: [const { Vec::new() }; 3],
            weights: Vec::new(),
            last: Vec::new(),
            reduced: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Where layout and states are.
    fn find_states(&mut self, choice: &PlanChoice) -> [usize; 2] {
        if let Some((last, found)) = &self.last_states
            && last == choice
        {
            return *found;
        }
        // Not a copy: a run is large.
        let run = &self.run;
        let counts = [choice.pipeline, choice.virtual_stages];
        let layout = self.layouts.place(layout_key(choice), || {
            let kind = |stage| run.kind_of_stage(choice.pipeline, stage);
            Layout::new(run.shape, choice.schedule, counts, choice.recompute, kind)
        });
        let states = self.states.place(state_key(choice), || {
            let plan = choice.plan(run.plan);
            let run = Run { plan: &plan, division: choice.division(), ..*run };
            StateCosts::from_run(&run, &self.layouts.values[layout])
        });
        self.last_states = Some((*choice, [layout, states]));
        [layout, states]
    }

    fn find(&mut self, choice: &PlanChoice) -> CostIndices {
        let [layout, states] = self.find_states(choice);
        let run = &self.run;
        let own = || choice.plan(run.plan);
        let layers = self.layers.place(layer_key(choice), || {
            let plan = own();
            let run = Run { plan: &plan, division: choice.division(), ..*run };
            run.by_kind_of_stage().iter().map(LayerCosts::from_run).collect()
        });
        let send = self.sends.place(send_key(choice), || {
            let plan = own();
            let run = Run { plan: &plan, division: choice.division(), ..*run };
            let (time, _) = run.send();
            StageSends { time: time.get(), how: plan.stage_sends(), level: run.levels().sends }
        });
        CostIndices { layout, layers, states, send }
    }

    /// Memory of the tensors of the fullest rank.
    pub fn memory(&mut self, choice: &PlanChoice) -> Bytes {
        let [layout, states] = self.find_states(choice);
        // Of stages that are alike, the first has the most micro-batches in flight.
        let alike = &self.layouts.values[layout].alike;
        let is_eager = self.run.plan.implemented_by().is_eager();
        let key = choice.without_sharding();
        if is_eager || self.activations.0 != Some(key) {
            let plan = choice.plan(self.run.plan);
            // Where replicas differ by kind, those of one kind may run more micro-batches; no stage holds more than these at once.
            let micro_batches = match self.run.shared_replicas(choice) {
                Some(_) => choice.micro_batches.max(2 * choice.pipeline),
                None => choice.micro_batches,
            };
            let division = Division { micro_batches, ..choice.division() };
            let held = Run { plan: &plan, division, ..self.run }.held();
            if is_eager {
                // A peak is the largest of its phases, not a sum.
                let totals = alike.iter().map(|alike| held.rank(alike.first as u64).total());
                return totals.fold(Bytes::ZERO, Bytes::max);
            }
            let beside =
                alike.iter().map(|alike| held.beside_states(alike.first as u64, &alike.chunks).total());
            self.activations = (Some(key), beside.collect());
        }
        let states = &self.states.values[states].states;
        let totals = states.iter().zip(&self.activations.1).map(|(states, rest)| *states + *rest);
        totals.fold(Bytes::ZERO, Bytes::max)
    }

    /// Computes the times of every class of virtual stages.
    fn time_classes(&mut self, found: CostIndices, choice: &PlanChoice) {
        let (layout, layers) = (&self.layouts.values[found.layout], &self.layers.values[found.layers]);
        let states = &self.states.values[found.states];
        self.classes.clear();
        let sent = states.sharded.iter().zip(&states.offloaded);
        let places = layout.classes.iter().zip(sent).map(|(class, (sharded, gradients))| {
            layers[class.kind].place(class, (*sharded, states.level), *gradients)
        });
        self.classes.extend(places);
        self.host = 0.0;
        if let ([alone], 1) = (&mut self.classes[..], choice.pipeline) {
            self.host = alone.take_host() * choice.micro_batches as f64 + self.run.compute.outside().get();
        }
    }

    /// How long a step occupies the busiest link of the stages at `index`, which are alike.
    fn occupied(&self, found: CostIndices, choice: &PlanChoice, index: usize, sum: &Passes) -> f64 {
        let states = &self.states.values[found.states];
        let alike = &self.layouts.values[found.layout].alike[index];
        let StageSends { time, level, .. } = self.sends.values[found.send];
        let levels = Levels { shared: self.run.plan.shares_links(), sends: level, data: states.data };
        let m = choice.micro_batches as f64;
        let busy = [0, 1].map(|level| Seconds::new(sum.busy(level).iter().sum::<f64>() * m));
        let sends = Seconds::new(time * f64::from(alike.sends) * m);
        levels.occupied(busy, sends, &states.once[index]).get()
    }

    /// A micro-batch on all virtual stages of a stage.
    fn sum(&self, alike: &EqualStages) -> Passes {
        let mut sum = Passes::default();
        for &(class, count) in &alike.counted {
            sum.add(&self.classes[class], f64::from(count));
        }
        sum
    }

    /// A lower bound of the plan's step.
    ///
    /// A stage works on all micro-batches, after the first has come through the stages before it. It then has its own
    /// gradients to send, or the last micro-batch goes back through the stages before it. If sends block, it makes all
    /// but the last of them meanwhile.
    pub fn bound(&mut self, choice: &PlanChoice) -> Seconds {
        if let Some(least) = self.shared(choice, |table, choice| Some(table.bound(choice))) {
            return least;
        }
        let found = self.find(choice);
        self.time_classes(found, choice);
        let overlaps = self.run.plan.overlaps_with(choice.virtual_stages);
        let StageSends { time: send, how: sends, .. } = self.sends.values[found.send];
        let once = &self.states.values[found.states].once;
        let m = choice.micro_batches as f64;
        let (mut there, mut back, mut least, mut first_tail) = (0.0, 0.0, self.host, 0.0);
        let layout = &self.layouts.values[found.layout];
        for (index, alike) in layout.alike.iter().enumerate() {
            let sum = self.sum(alike);
            let [forward, backward, weight] = sum.times();
            // With several chunks, their last passes need not follow each other.
            let last = match (alike.classes.len(), is_split(choice.schedule)) {
                (1, true) => Some(weight),
                (1, false) => Some(backward),
                _ => None,
            };
            let tail = once[index].finished_after(&overlaps, alike.layers, 0.0, last);
            if index == 0 {
                first_tail = tail;
            }
            // The last of stages that are alike waits longest for the first micro-batch.
            let before = (alike.count - 1) as f64;
            let [first_forward, first_backward, _] = self.classes[alike.classes[0]].times();
            let share = layout.classes[alike.classes[0]].count as f64 / alike.layers as f64;
            let first = EndPass { start: 0.0, time: first_forward, share, busy: 0.0 };
            let mut weights = once[index].arrivals(&overlaps, alike.layers, std::iter::once(first));
            let there_now = there + (first_forward + send) * before;
            let begun = there_now.max(weights.next().unwrap_or(0.0) - first_forward);
            let back_now = back + (first_backward + send) * before;
            let blocked = match sends {
                Sends::Blocking => (m * f64::from(alike.sends) - 1.0).max(0.0) * send,
                _ => 0.0,
            };
            let busy = m * (forward + backward) + blocked;
            least = least.max(begun + busy + m * weight + tail);
            least = least.max(begun + busy + back_now + first_tail);
            least = least.max(self.occupied(found, choice, index, &sum));
            there = there_now + first_forward + send;
            back = back_now + first_backward + send;
        }
        Seconds::new(least)
    }

    /// A lower bound of the step over all divisions of the layers over these stages, without recomputation.
    ///
    /// With c_i the time of a micro-batch on stage i and A_i that of the stages before it, there and back, a step takes
    /// T ≥ A_i + m·c_i. So A_i+1 ≤ (1 − 1/m)·A_i + T/m, and all stages together have at most T·(1 − (1 − 1/m)^p). Waits for
    /// sharded weights are those of equal stages.
    pub fn divided_bound(&mut self, choice: &PlanChoice) -> Seconds {
        if let Some(kinds) = &mut self.kinds {
            let [one, other] = kinds.each_mut().map(|table| table.divided_bound(choice));
            return one.min(other);
        }
        let choice = PlanChoice { recompute: Recompute::None.into(), ..*choice };
        let found = self.find(&choice);
        self.time_classes(found, &choice);
        let (mut there_and_back, mut all) = (0.0, 0.0);
        for alike in &self.layouts.values[found.layout].alike {
            let [forward, backward, weight] = self.sum(alike).times();
            there_and_back += (forward + backward) * alike.count as f64;
            all += (forward + backward + weight) * alike.count as f64;
        }
        let (m, p) = (choice.micro_batches as f64, choice.pipeline as f64);
        let filled = 1.0 - (1.0 - 1.0 / m).powf(p);
        Seconds::new((there_and_back / filled).max(all * m / p))
    }

    /// Layers and recomputation of every stage of a plan by itself, where these have a step below `limit` and fit.
    pub fn stagewise(
        &self,
        choice: &PlanChoice,
        fits: &dyn Fn(Bytes) -> bool,
        limit: Seconds,
    ) -> Option<Stagewise> {
        let plan = choice.plan(self.run.plan);
        stagewise(&Run { plan: &plan, division: choice.division(), ..self.run }, fits, limit)
    }

    /// The longer time by `of` of both kinds of replicas, with the best division of the micro-batches between them; none
    /// where all replicas have the same number.
    fn shared(
        &mut self,
        choice: &PlanChoice,
        of: impl Fn(&mut Self, &PlanChoice) -> Option<Seconds>,
    ) -> Option<Seconds> {
        let replicas = self.run.shared_replicas(choice)?;
        let kinds = self.kinds.as_mut()?;
        let time = |kind: usize, micro_batches: u64| {
            Some(of(&mut kinds[kind], &PlanChoice { micro_batches, ..*choice })?.get())
        };
        balanced(replicas, choice.micro_batches, time).map(|(_, longer)| Seconds::new(longer))
    }

    /// The time of a step; none if the schedule waits for itself, which none does.
    pub fn step(&mut self, choice: &PlanChoice) -> Option<Seconds> {
        if let Some(step) = self.shared(choice, Self::step) {
            return Some(step);
        }
        let found = self.find(choice);
        self.time_classes(found, choice);
        let overlaps = self.run.plan.overlaps_with(choice.virtual_stages);
        let StageSends { time: send, how: sends, .. } = self.sends.values[found.send];
        self.spread(found, choice, &overlaps);
        let layout = &self.layouts.values[found.layout];
        let [forward, backward, weight] = &self.places;
        let pipeline = Pipeline {
            kind: choice.schedule,
            stages: layout.stages,
            chunks: layout.chunks,
            micro_batches: choice.micro_batches as usize,
            forward,
            backward,
            weight,
            busy: self.busy.each_ref().map(Vec::as_slice),
            weights: &self.weights,
            send,
            sends,
            issue: self.run.plan.issue_time.get(),
        };
        pipeline.ends(&mut self.scratch)?;
        let states = &self.states.values[found.states];
        let shared = self.run.plan.shares_links();
        let gradients = if is_split(choice.schedule) { 2 } else { 1 };
        let mut most = self.host;
        self.reduced.clear();
        for (index, (alike, once)) in layout.alike.iter().zip(&states.once).enumerate() {
            for stage in alike.first..alike.first + alike.count {
                self.last.clear();
                self.last.extend(alike.classes.iter().enumerate().map(|(chunk, &class)| {
                    let passes = &self.classes[class];
                    EndPass {
                        start: self.scratch.last[layout.place(choice.schedule, stage, chunk)],
                        time: passes.times()[gradients],
                        share: layout.classes[class].count as f64 / alike.layers as f64,
                        busy: if shared { passes.busy(states.data)[gradients] } else { 0.0 },
                    }
                }));
                self.last.sort_by(|a, b| a.start.total_cmp(&b.start));
                let end = self.scratch.ends[stage];
                self.reduced.push(once.reduced(&overlaps, alike.layers, end, &self.last));
            }
            most = most.max(self.occupied(found, choice, index, &self.sum(alike)));
        }
        if let (Some(first), Some(last)) = (states.once.first(), states.once.last()) {
            tie(&mut self.reduced, [first, last]);
        }
        for (alike, once) in layout.alike.iter().zip(&states.once) {
            let passes = alike.classes.iter().map(|&class| self.classes[class].times()[gradients]).sum();
            let after = once.after(&overlaps, alike.layers, passes).total().get();
            let reduced = &self.reduced[alike.first..alike.first + alike.count];
            most = reduced.iter().fold(most, |most, reduced| most.max(reduced + after));
        }
        Some(Seconds::new(most))
    }

    /// Writes times, use of the sends' link and arrivals of weights for every virtual stage.
    fn spread(&mut self, found: CostIndices, choice: &PlanChoice, overlaps: &Overlaps) {
        let level = self.sends.values[found.send].level;
        let layout = &self.layouts.values[found.layout];
        let shared = self.run.plan.shares_links();
        let is_busy =
            shared && self.classes.iter().any(|passes| passes.busy(level).iter().any(|busy| *busy > 0.0));
        for pass in 0..3 {
            let (times, busy) = (&mut self.places[pass], &mut self.busy[pass]);
            times.clear();
            times.extend(layout.class_of.iter().map(|&class| self.classes[class].times()[pass]));
            busy.clear();
            if is_busy {
                busy.extend(layout.class_of.iter().map(|&class| self.classes[class].busy(level)[pass]));
            }
        }
        self.weights.clear();
        let StateCosts { once, data, .. } = &self.states.values[found.states];
        let data = *data;
        if !overlaps.weights || once.iter().all(|once| once.weights <= Seconds::ZERO) {
            return;
        }
        self.weights.resize(layout.class_of.len(), 0.0);
        for (alike, once) in layout.alike.iter().zip(once) {
            let first = alike.classes.iter().map(|&class| EndPass {
                start: 0.0,
                time: self.classes[class].times()[0],
                share: layout.classes[class].count as f64 / alike.layers as f64,
                busy: if shared { self.classes[class].busy(data)[0] } else { 0.0 },
            });
            for (chunk, arrived) in once.arrivals(overlaps, alike.layers, first).enumerate() {
                for stage in alike.first..alike.first + alike.count {
                    self.weights[layout.place(choice.schedule, stage, chunk)] = arrived;
                }
            }
        }
    }
}
