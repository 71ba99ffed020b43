//! Runs the orders of all stages: when every operation starts, and how long stages idle in between.
//!
//! Stages run in turn, each as far as its next operations can start, so that the cost is proportional to the number of
//! operations. Operations that run as one are a group.

use super::{Operation, Order, PassKind, Sends, Sizes, is_split, place_of, stage_of};
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::ScheduleKind;

/// Durations of operations.
#[derive(Debug, Clone, Copy)]
pub struct Times<'a> {
    pub forward: &'a [Seconds],
    /// Backward of every virtual stage; with a split backward, the gradients of inputs.
    pub backward: &'a [Seconds],
    /// Gradients of weights of every virtual stage, with a split backward.
    pub weight: &'a [Seconds],
    /// Work of a virtual stage before each backward that does not wait for its gradient: recomputation, if it begins
    /// early; empty otherwise.
    pub ahead: &'a [Seconds],
    /// Durations of all operations, stage by stage, in the stage's order, in place of those above; empty if they are the
    /// same for all micro-batches.
    pub each: &'a [Vec<Seconds>],
    /// Host time after every operation to issue its messages.
    pub issue: Seconds,
    pub send: Seconds,
    pub sends: Sends,
    /// How long forward, backward and gradients of weights of every virtual stage keep the link busy over which stages send;
    /// empty if that link is for sends alone.
    pub busy: [&'a [Seconds]; 3],
    /// Earliest end of the first forward of every virtual stage while its weights are under way; empty if they have
    /// arrived.
    pub weights: &'a [Seconds],
}

impl<'a> Times<'a> {
    /// Durations by virtual stage, with sends that take no time.
    pub const fn new(forward: &'a [Seconds], backward: &'a [Seconds], weight: &'a [Seconds]) -> Self {
        Self {
            forward,
            backward,
            weight,
            ahead: &[],
            each: &[],
            issue: Seconds::ZERO,
            send: Seconds::ZERO,
            sends: Sends::Asynchronous,
            busy: [&[]; 3],
            weights: &[],
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Start of every operation, stage by stage, in the stage's order.
    pub start: Vec<Vec<Seconds>>,
    pub busy: Vec<Seconds>,
    pub last_end: Vec<Seconds>,
    /// Start of the last operation of every virtual stage that computes gradients of weights.
    pub last_start: Vec<Seconds>,
    /// How long every stage waits for the weights of its first forwards.
    pub waited: Vec<Seconds>,
    pub step: Seconds,
}

impl Timeline {
    /// Time of a stage without computing.
    pub fn idle(&self, stage: usize) -> Seconds {
        self.step - self.busy[stage]
    }

    /// Share of the time of all stages without computing: the bubble, and blocking sends.
    pub fn bubble(&self) -> f64 {
        let idle: f64 = (0..self.busy.len()).map(|stage| self.idle(stage).get()).sum();
        idle / (self.busy.len() as f64 * self.step.get())
    }
}

/// Orders whose operations wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlock {
    pub stage: usize,
    pub operation: Operation,
}

/// When the results of operations arrive where they are needed, by virtual stage and micro-batch; NaN until known.
struct Arrivals {
    micro_batches: usize,
    forward: Vec<f64>,
    backward: Vec<f64>,
}

impl Arrivals {
    fn slot(&self, place: usize, operation: &Operation) -> usize {
        place * self.micro_batches + operation.micro_batch as usize
    }
}

/// Runs `orders`, one for each stage.
///
/// The sends of a stage leave it one after the other. Where its passes use the same link, they and what is being sent share
/// it: a pass takes longer by as much of its traffic as does not fit beside.
///
/// An error if operations wait for each other; no order of this module does.
pub fn execute(
    kind: ScheduleKind,
    sizes: &Sizes,
    orders: &[Order],
    times: &Times<'_>,
) -> Result<Timeline, Deadlock> {
    let stages = orders.len();
    let m = sizes.micro_batches as usize;
    let places = stages * sizes.chunks as usize;
    let unknown = vec![f64::NAN; places * m];
    let mut arrivals = Arrivals { micro_batches: m, forward: unknown.clone(), backward: unknown };
    let mut start: Vec<Vec<Seconds>> = orders.iter().map(|order| Vec::with_capacity(order.len())).collect();
    let mut free = vec![vec![0.0]; stages];
    let mut link = vec![0.0_f64; stages];
    let asked = match times.sends {
        Sends::Planned => asked_after(kind, sizes, orders),
        Sends::Asynchronous | Sends::Blocking | Sends::OnDemand => Vec::new(),
    };
    let mut last_end = vec![Seconds::ZERO; stages];
    let mut last_start = vec![Seconds::ZERO; places];
    let mut waited = vec![Seconds::ZERO; stages];
    let mut waiting = stages;
    while waiting > 0 {
        let mut moved = false;
        waiting = 0;
        for stage in 0..stages {
            while let Some(group) = group_at(&orders[stage], start[stage].len()) {
                let first = start[stage].len();
                let place = |operation: &Operation| {
                    place_of(kind, stages as u64, stage as u64, operation.chunk.into()) as usize
                };
                // When the receiver asks for what an operation waits for.
                let ask = |index: usize| match times.sends {
                    Sends::Asynchronous | Sends::Blocking => None,
                    Sends::OnDemand => Some(free[stage][first]),
                    Sends::Planned => Some(free[stage][asked[stage][index].min(first)]),
                };
                let (mut is_ready, mut all_ready) = (true, 0.0_f64);
                for (index, operation) in (first..).zip(group) {
                    // Gradients of weights wait for the backward pass before them in the group.
                    if index > first && operation.kind == PassKind::Weight {
                        continue;
                    }
                    let place = place(operation);
                    let send = times.send.get();
                    let ready = ready(kind, stages, places, place, operation, &arrivals, send, ask(index));
                    is_ready &= !ready.is_nan();
                    all_ready = all_ready.max(ready);
                }
                if !is_ready {
                    waiting += 1;
                    break;
                }
                moved = true;
                let mut issued = 0.0;
                for (index, operation) in (first..).zip(group) {
                    let place = place(operation);
                    let begin = all_ready.max(free[stage][index] + ahead(times, operation.kind, place));
                    let mut end = begin + duration(times, operation.kind, place, (stage, index));
                    if let Some(busy) = times.busy[operation.kind as usize].get(place) {
                        end = beside_sends(&mut link[stage], begin, end, busy.get());
                    }
                    if let (PassKind::Forward, 0, Some(weights)) =
                        (operation.kind, operation.micro_batch, times.weights.get(place))
                    {
                        waited[stage] += Seconds::new((weights.get() - end).max(0.0));
                        end = end.max(weights.get());
                    }
                    issued = end + times.issue.get();
                    free[stage].push(issued);
                    start[stage].push(Seconds::new(begin));
                    last_end[stage] = Seconds::new(end);
                    if operation.kind == (if is_split(kind) { PassKind::Weight } else { PassKind::Backward })
                    {
                        last_start[place] = Seconds::new(begin);
                    }
                }
                let asks = matches!(times.sends, Sends::OnDemand | Sends::Planned);
                for operation in group {
                    let place = place(operation);
                    let slot = arrivals.slot(place, operation);
                    let next = match operation.kind {
                        PassKind::Forward => Some(place + 1).filter(|&next| next < places),
                        PassKind::Backward => place.checked_sub(1),
                        PassKind::Weight => continue,
                    };
                    let mut arrival = issued;
                    if !asks && next.is_some_and(|next| stage_at(kind, stages, next) != stage) {
                        arrival = link[stage].max(issued) + times.send.get();
                        link[stage] = arrival;
                    }
                    match operation.kind {
                        PassKind::Forward => arrivals.forward[slot] = arrival,
                        _ => arrivals.backward[slot] = arrival,
                    }
                    if let (Sends::Blocking, Some(free)) = (times.sends, free[stage].last_mut()) {
                        *free = free.max(arrival);
                    }
                }
            }
        }
        if waiting > 0 && !moved {
            let stuck = (0..stages).find_map(|stage| Some((stage, *orders[stage].get(start[stage].len())?)));
            if let Some((stage, operation)) = stuck {
                return Err(Deadlock { stage, operation });
            }
        }
    }
    let busy = |stage: usize| -> Seconds {
        let place = |operation: &Operation| {
            place_of(kind, stages as u64, stage as u64, operation.chunk.into()) as usize
        };
        let time = |(index, operation): (usize, &Operation)| {
            let (kind, place) = (operation.kind, place(operation));
            ahead(times, kind, place) + duration(times, kind, place, (stage, index))
        };
        Seconds::new(orders[stage].iter().enumerate().map(time).sum())
    };
    let step = last_end.iter().copied().fold(Seconds::ZERO, Seconds::max);
    Ok(Timeline { start, busy: (0..stages).map(busy).collect(), last_end, last_start, waited, step })
}

/// The operations from `first` on that run as one.
fn group_at(order: &[Operation], first: usize) -> Option<&[Operation]> {
    let rest = order.get(first..).filter(|rest| !rest.is_empty())?;
    let last = rest.iter().position(|operation| !operation.with_next).unwrap_or(rest.len() - 1);
    Some(&rest[..=last])
}

fn stage_at(kind: ScheduleKind, stages: usize, place: usize) -> usize {
    stage_of(kind, stages as u64, place as u64) as usize
}

fn duration(times: &Times<'_>, kind: PassKind, place: usize, (stage, index): (usize, usize)) -> f64 {
    if let Some(each) = times.each.get(stage) {
        return each.get(index).map_or(0.0, |time| time.get());
    }
    let list = match kind {
        PassKind::Forward => times.forward,
        PassKind::Backward => times.backward,
        PassKind::Weight => times.weight,
    };
    list.get(place).map_or(0.0, |time| time.get())
}

/// Time of the work right before an operation that does not wait for its inputs.
fn ahead(times: &Times<'_>, kind: PassKind, place: usize) -> f64 {
    match kind {
        PassKind::Backward => times.ahead.get(place).map_or(0.0, |time| time.get()),
        PassKind::Forward | PassKind::Weight => 0.0,
    }
}

/// The end of a pass that would end at `end`, with traffic that keeps a link `busy` on which sends are under way until
/// `link`: both share it, so that the pass is delayed by what does not fit, and by no more than its own traffic.
pub(in crate::transformer) fn beside_sends(link: &mut f64, begin: f64, end: f64, busy: f64) -> f64 {
    if busy <= 0.0 {
        return end;
    }
    *link = link.max(begin) + busy;
    end.max(link.min(end + busy))
}

/// When all inputs of an operation have arrived, given that its stage asks for them at `ask` if it has to; NaN if some are
/// not known yet.
#[expect(
    clippy::too_many_arguments,
    reason = "all of it changes from operation to operation or is fixed in the loop"
)]
fn ready(
    kind: ScheduleKind,
    stages: usize,
    places: usize,
    place: usize,
    operation: &Operation,
    arrivals: &Arrivals,
    send: f64,
    ask: Option<f64>,
) -> f64 {
    let here = stage_at(kind, stages, place);
    let arrival = |arrived: f64, from: usize| match ask {
        Some(ask) if !arrived.is_nan() && stage_at(kind, stages, from) != here => arrived.max(ask) + send,
        _ => arrived,
    };
    // The stage's own earlier results are available as soon as they are computed.
    let own = |arrived: f64| if arrived.is_nan() { arrived } else { 0.0 };
    match operation.kind {
        PassKind::Forward => match place.checked_sub(1) {
            Some(from) => arrival(arrivals.forward[arrivals.slot(from, operation)], from),
            None => 0.0,
        },
        PassKind::Backward => {
            let own = own(arrivals.forward[arrivals.slot(place, operation)]);
            match place + 1 {
                from if from < places => {
                    own + arrival(arrivals.backward[arrivals.slot(from, operation)], from)
                }
                _ => own,
            }
        }
        PassKind::Weight => own(arrivals.backward[arrivals.slot(place, operation)]),
    }
}

// When stages ask for what they need, if a plan of all stages says so.
//
// PyTorch goes through the orders of all stages in turn, one operation of each, and notes a receive on its stage when it
// comes to the operation that sends (`_add_send_recv` of `torch.distributed.pipelining`).

/// For every operation of every stage, the number of the stage's operations before which it asks for this operation's
/// input; none where the input comes from the stage itself.
pub(super) fn asked_after(kind: ScheduleKind, sizes: &Sizes, orders: &[Order]) -> Vec<Vec<usize>> {
    let (stages, m) = (orders.len(), sizes.micro_batches as usize);
    let places = stages * sizes.chunks as usize;
    let place = |stage: usize, operation: &Operation| {
        place_of(kind, stages as u64, stage as u64, operation.chunk.into()) as usize
    };
    let slot = |place: usize, operation: &Operation| place * m + operation.micro_batch as usize;
    // Operations of a stage that precede the receive, by the virtual stage and micro-batch that sends.
    let mut forward = vec![None; places * m];
    let mut backward = vec![None; places * m];
    let mut next = vec![0; stages];
    let mut asked: Vec<Vec<usize>> = orders.iter().map(|order| vec![0; order.len()]).collect();
    loop {
        let mut moved = false;
        for stage in 0..stages {
            let Some(operation) = orders[stage].get(next[stage]) else { continue };
            let here = place(stage, operation);
            // What it waits for, by the virtual stage that gives it.
            let source = match operation.kind {
                PassKind::Forward => here.checked_sub(1).map(|from| forward[slot(from, operation)]),
                PassKind::Backward if here + 1 < places => Some(backward[slot(here + 1, operation)]),
                PassKind::Backward | PassKind::Weight => None,
            };
            match source {
                Some(None) => continue,
                Some(Some(after)) => asked[stage][next[stage]] = after,
                None => {}
            }
            next[stage] += 1;
            moved = true;
            let (sent, to) = match operation.kind {
                PassKind::Forward => (&mut forward, Some(here + 1).filter(|&to| to < places)),
                PassKind::Backward => (&mut backward, here.checked_sub(1)),
                PassKind::Weight => continue,
            };
            if let Some(to) = to {
                let receiver = stage_of(kind, stages as u64, to as u64) as usize;
                sent[slot(here, operation)] = Some(next[receiver]);
            }
        }
        if !moved {
            return asked;
        }
    }
}
