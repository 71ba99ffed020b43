//! When gradients are ready, when their parameters are needed, and their sizes: from recorded shapes, from copies for the exchange,
//! or from kernels of the optimiser.

use super::join::Joined;
use super::messages::GradientSums;
use super::recording::Recording;
use super::records::{
    Accumulation, Collective, Latest, Numbered, Phase, Placed, Role, Span, Time, WorkKind, inside,
};
use std::collections::{BTreeMap, HashMap};

/// One gradient of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gradient {
    /// When the last work that makes it has ended.
    pub(super) ready: Time,
    /// When the first work that reads its parameter starts, if the trace has it.
    pub(super) needed: Option<Time>,
    /// When the host had finished with it.
    pub(super) host: Time,
    /// Number of elements, from recorded shapes.
    pub(super) elements: Option<u64>,
    /// Bytes of one element; 0 if unknown.
    pub(super) element: u8,
}

/// The gradients of the step that the host worked on in `window`, in the order in which they were ready.
///
/// Autograd adds a gradient to its parameter when it has launched all the work that computes it; that work has ended when
/// everything that its thread had launched by then has ended. Of several micro-batches, the last one completes gradients.
/// Where every gradient is sent separately, before it is added (by hooks) or after the backward pass, it is ready when it is sent;
/// where gradients are sent together after the backward pass, no earlier than the first of these messages.
pub(super) fn find_gradients(
    recording: &Recording,
    joined: &Joined,
    works: &[&Placed],
    sent: &[Collective],
    window: Span,
) -> Vec<Gradient> {
    let forward = Forward::new(recording, window);
    let added = forward.last_pass(added(recording, window));
    let first = sent.first().map(|sent| sent.span.start);
    let by_hooks = first.zip(added.first()).is_some_and(|(sent, added)| sent < added.span.start);
    // Hooks of the last gradient send within the backward pass, except that threads of the host may begin a little later.
    let by_hook = |it: &Collective| match joined.on_host {
        true => sent.len() < added.len().max(2),
        false => added.iter().any(|added| added.thread == it.thread),
    };
    let after = first.zip(backward_end(recording, window)).is_some_and(|(sent, end)| sent >= end);
    let afterwards = after && !sent.first().is_some_and(by_hook);
    let mut asked: Vec<&Placed> = works.iter().copied().filter(|it| it.stays()).collect();
    asked.sort_by_key(|placed| placed.launch);
    let ends = latest_ends(&asked);
    let inputs = Inputs::new(works, joined.on_host);
    let ready = |thread: u16, host: Time| ends.get(&thread).and_then(|own| own.until(host)).unwrap_or(host);
    let mut gradients: Vec<Gradient> = if sent.len() >= added.len() && (by_hooks || afterwards) {
        let gradient = |it: &Collective| Gradient {
            ready: if afterwards { inputs.ready(it.span.start) } else { ready(it.thread, it.span.start) },
            needed: None,
            host: it.span.start,
            elements: it.elements,
            element: it.element,
        };
        sent.iter().map(gradient).collect()
    } else {
        let earliest = first.filter(|_| afterwards).map_or(Time::MIN, |first| inputs.ready(first));
        let gradient = |it: &Accumulation| Gradient {
            ready: if joined.on_host { it.span.end } else { ready(it.thread, it.span.end) }.max(earliest),
            needed: forward.first_use(it, &asked),
            host: it.span.end,
            elements: (it.elements > 0).then_some(it.elements),
            element: it.element,
        };
        added.iter().map(gradient).collect()
    };
    let mut latest = Time::MIN;
    for gradient in &mut gradients {
        latest = latest.max(gradient.ready);
        gradient.ready = latest;
    }
    gradients
}

/// When the host has gone through autograd's graph.
fn backward_end(recording: &Recording, window: Span) -> Option<Time> {
    let own =
        recording.ranges.iter().filter(|it| it.role == Role::Backward && window.contains(it.span.start));
    own.map(|it| it.span.end).max()
}

/// Inputs of a collective: all work that the host has launched before it.
pub(super) struct Inputs {
    /// By launch, when all works have ended. Empty where the host computes: there a collective is recorded when it starts.
    ends: Latest,
}

impl Inputs {
    pub(super) fn new(works: &[&Placed], on_host: bool) -> Self {
        let stays = works.iter().filter(|it| it.stays() && !on_host);
        let mut launched: Vec<_> = stays.map(|placed| (placed.launch, placed.work.span.end)).collect();
        launched.sort_unstable();
        let mut ends = Latest::default();
        launched.into_iter().for_each(|(launch, end)| ends.add(launch, end));
        Self { ends }
    }

    pub(super) fn ready(&self, launch: Time) -> Time {
        self.ends.until(launch).unwrap_or(launch)
    }
}

/// For every thread: when each of its works was launched, and when all works up to it have ended.
fn latest_ends(asked: &[&Placed]) -> HashMap<u16, Latest> {
    let mut ends = HashMap::<u16, Latest>::new();
    for placed in asked {
        ends.entry(placed.thread).or_default().add(placed.launch, placed.work.span.end);
    }
    ends
}

/// Accumulations of a step in order. An accumulation and autograd's own range around it count once.
fn added(recording: &Recording, window: Span) -> Vec<Accumulation> {
    let mut all: Vec<Accumulation> = inside(&recording.accumulations, window, |it| it.span.start).to_vec();
    all.sort_by_key(|it| (it.span.start, -it.span.end));
    let mut distinct: Vec<Accumulation> = Vec::new();
    for next in all {
        match distinct.last_mut() {
            Some(last) if last.thread == next.thread && next.span.start < last.span.end => *last = next,
            _ => distinct.push(next),
        }
    }
    distinct
}

/// Operators of the forward pass that autograd has numbered.
struct Forward {
    /// Backward nodes by thread and time, and forward operators by number: the first of each.
    nodes: Vec<Numbered>,
    operators: Vec<Numbered>,
}

impl Forward {
    fn new(recording: &Recording, window: Span) -> Self {
        let mut threads: Vec<u16> =
            inside(&recording.accumulations, window, |it| it.span.start).iter().map(|it| it.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let inside = inside(&recording.numbered, window, |it| it.start).iter().copied();
        let (mut nodes, mut operators): (Vec<_>, Vec<_>) =
            inside.partition(|it| threads.binary_search(&it.thread).is_ok());
        nodes.sort_by_key(|it| (it.thread, it.start));
        operators.sort_by_key(|it| (it.number, it.start));
        operators.dedup_by_key(|it| it.number);
        Self { nodes, operators }
    }

    /// The accumulations of the last pass over the graph. A pass goes through nodes from the last to the first; a new pass begins where
    /// the nodes jump back to a later one, and adds gradients of the same sizes.
    fn last_pass(&self, added: Vec<Accumulation>) -> Vec<Accumulation> {
        let sizes: Vec<u64> = added.iter().map(|it| it.elements).collect();
        let begins = |place: usize| {
            let before = place.checked_sub(1).and_then(|before| self.node(&added[before]));
            before.zip(self.node(&added[place])).is_some_and(|(before, own)| own.number > before.number)
        };
        let period = (1..=sizes.len() / 2).find(|&period| {
            sizes.len().is_multiple_of(period)
                && sizes[period..] == sizes[..sizes.len() - period]
                && (period..sizes.len()).step_by(period).all(begins)
        });
        match period {
            Some(period) => added[added.len() - period..].to_vec(),
            None => added,
        }
    }

    fn node(&self, gradient: &Accumulation) -> Option<&Numbered> {
        let before = (gradient.thread, gradient.span.start);
        let node = self.nodes.partition_point(|it| (it.thread, it.start) <= before).checked_sub(1)?;
        self.nodes.get(node).filter(|it| it.thread == gradient.thread)
    }

    /// The start of the first work that was launched by the operator whose backward pass computed this gradient.
    fn first_use(&self, gradient: &Accumulation, asked: &[&Placed]) -> Option<Time> {
        let node = self.node(gradient)?;
        let operator = self.operators.binary_search_by_key(&node.number, |it| it.number).ok()?;
        let operator = self.operators.get(operator)?;
        let first = asked.partition_point(|placed| placed.launch < operator.start);
        asked[first..]
            .iter()
            .find(|placed| placed.thread == operator.thread)
            .map(|placed| placed.work.span.start)
    }
}

/// Where sizes come from, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SizeSource {
    Shapes,
    /// Shapes of whole tensors, of which each rank exchanges its part.
    Divided,
    /// Copies of single gradients that add up to the buckets.
    Copies,
    /// The copy before each collective, which carries one gradient.
    Sent,
    /// Buckets, shared equally by their gradients.
    Buckets,
    /// One kernel of the optimiser for each parameter: exact to a block of threads.
    Kernels,
    /// Kernels of the optimiser for many parameters: all parameters together, shared equally.
    Chunks,
}

/// The sizes of all gradients of a step, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sizes {
    pub(super) elements: Vec<u64>,
    /// Bytes of one element.
    pub(super) element: u64,
    pub(super) source: SizeSource,
    /// Bounds of their sum, where it is uncertain.
    pub(super) between: Option<(u64, u64)>,
}

/// Bytes of an element where the trace does not have it: single precision.
const USUAL_ELEMENT: u64 = 4;
/// Elements that a thread of an element-wise kernel works on (PyTorch, `thread_work_size`).
const PER_THREAD: u64 = 4;
/// Threads of a block of such a kernel (PyTorch, `num_threads`).
const BLOCK: u64 = 128;
/// Elements of a chunk of a kernel that works on many tensors (PyTorch, `kChunkSize`), done by one block.
const CHUNK: u64 = 65_536;
/// Threads of such a block (PyTorch, `kBlockSize`).
const CHUNK_THREADS: u64 = 512;

/// The sizes of the gradients of one step, from the best source available.
pub(super) fn gradient_sizes(
    recording: &Recording,
    gradients: &[Gradient],
    exchanged: &GradientSums,
    works: &[&Placed],
) -> Option<Sizes> {
    if gradients.is_empty() {
        return None;
    }
    let sent = &exchanged.sums;
    let mut asked: Vec<&Placed> = works.to_vec();
    asked.sort_by_key(|placed| placed.launch);
    by_shapes(gradients)
        .map(|sizes| sizes.divided(exchanged.bytes))
        .or_else(|| by_copies(gradients, sent, &asked))
        .or_else(|| by_copy_before(gradients, sent, &asked))
        .or_else(|| by_buckets(gradients, sent))
        .or_else(|| by_kernels(recording, gradients, &asked))
        .or_else(|| by_chunks(recording, gradients, &asked))
}

impl Sizes {
    /// Recorded shapes of tensors that are divided over ranks are whole: if the exchanged bytes are fewer, they are shared in proportion.
    fn divided(mut self, exchanged: Option<u64>) -> Self {
        let whole: u128 = self.elements.iter().copied().map(u128::from).sum();
        let own = exchanged.map(|bytes| u128::from(bytes / self.element));
        let Some(own) = own.filter(|own| (1..whole).contains(own)) else { return self };
        let mut left = (own, whole);
        for elements in &mut self.elements {
            let share = u128::from(*elements) * left.0 / left.1.max(1);
            left = (left.0 - share, left.1 - u128::from(*elements));
            *elements = share as u64;
        }
        Self { source: SizeSource::Divided, ..self }
    }
}

fn by_shapes(gradients: &[Gradient]) -> Option<Sizes> {
    let elements: Vec<u64> = gradients.iter().map(|gradient| gradient.elements).collect::<Option<_>>()?;
    let element = gradients.iter().map(|gradient| u64::from(gradient.element)).max()?;
    Some(Sizes { elements, element: known(element), source: SizeSource::Shapes, between: None })
}

fn known(element: u64) -> u64 {
    if element == 0 { USUAL_ELEMENT } else { element }
}

fn element_of(sent: &[Collective]) -> u64 {
    known(sent.iter().map(|it| u64::from(it.element)).max().unwrap_or(0))
}

/// DDP copies every gradient back out of its bucket, in the order in which they were ready when buckets were made.
fn by_copies(gradients: &[Gradient], sent: &[Collective], asked: &[&Placed]) -> Option<Sizes> {
    let element = element_of(sent);
    let buckets: Vec<u64> = sent.iter().map(|it| it.elements).collect::<Option<_>>()?;
    let last = gradients.last()?.host;
    let copies = asked.iter().filter(|it| it.work.kind == WorkKind::Copy && it.phase == Phase::Backward);
    let elements: Vec<u64> =
        copies.filter(|it| it.launch > last).map(|it| it.work.amount / element).collect();
    let mut left = elements.iter();
    for bucket in &buckets {
        let mut sum = 0;
        while sum < *bucket {
            sum += left.next()?;
        }
        if sum != *bucket {
            return None;
        }
    }
    let whole = left.next().is_none() && elements.len() == gradients.len() && !buckets.is_empty();
    whole.then_some(Sizes { elements, element, source: SizeSource::Copies, between: None })
}

/// Sizes from the copy just before each gradient that is sent separately.
fn by_copy_before(gradients: &[Gradient], sent: &[Collective], asked: &[&Placed]) -> Option<Sizes> {
    if sent.len() != gradients.len() || sent.iter().any(|it| it.elements.is_some()) {
        return None;
    }
    let element = element_of(sent);
    let mut previous = Time::MIN;
    let mut elements = Vec::with_capacity(sent.len());
    let (mut least, mut most) = (0, 0);
    for it in sent {
        let copy = asked.iter().rfind(|placed| {
            let between = previous < placed.launch && placed.launch < it.span.start;
            placed.thread == it.thread && between && !placed.is_collective()
        })?;
        let (low, high) = match copy.work.kind {
            WorkKind::Copy => (copy.work.amount / element, copy.work.amount / element),
            _ => (copy.work.amount.saturating_sub(BLOCK) * PER_THREAD, copy.work.amount * PER_THREAD),
        };
        least += low;
        most += high;
        elements.push(high);
        previous = it.span.start;
    }
    Some(Sizes {
        elements,
        element,
        source: SizeSource::Sent,
        between: (least < most).then_some((least, most)),
    })
}

/// A bucket is sent when the last of its gradients is ready.
fn by_buckets(gradients: &[Gradient], sent: &[Collective]) -> Option<Sizes> {
    let buckets: Vec<u64> = sent.iter().map(|it| it.elements).collect::<Option<_>>()?;
    let mut elements = vec![0; gradients.len()];
    let mut first = 0;
    for (index, (it, &bucket)) in sent.iter().zip(&buckets).enumerate() {
        let is_last = index + 1 == sent.len();
        let by_then = gradients.partition_point(|gradient| gradient.host <= it.span.start);
        let last = if is_last { gradients.len() } else { by_then };
        if last <= first {
            *elements.get_mut(first.min(gradients.len() - 1))? += bucket;
            continue;
        }
        let count = (last - first) as u64;
        for (place, share) in elements[first..last].iter_mut().enumerate() {
            *share += bucket / count + u64::from((place as u64) < bucket % count);
        }
        first = last;
    }
    let known = !buckets.is_empty();
    known.then(|| Sizes { elements, element: element_of(sent), source: SizeSource::Buckets, between: None })
}

fn optimiser_kernels<'a>(
    recording: &'a Recording,
    asked: &'a [&Placed],
    part: &'static str,
) -> impl Iterator<Item = &'a Placed> {
    asked.iter().copied().filter(move |placed| {
        placed.phase == Phase::Optimiser && recording.name(placed.work.name).contains(part)
    })
}

/// Sizes from kernels that zero gradients one by one, in the order of parameters, which is the reverse of the order of gradients.
fn by_kernels(recording: &Recording, gradients: &[Gradient], asked: &[&Placed]) -> Option<Sizes> {
    let kernels: Vec<&Placed> = optimiser_kernels(recording, asked, "elementwise_kernel").collect();
    if kernels.len() != gradients.len() {
        return None;
    }
    let most: Vec<u64> = kernels.iter().rev().map(|placed| placed.work.amount * PER_THREAD).collect();
    let sum: u64 = most.iter().sum();
    let rounding = kernels.len() as u64 * (BLOCK * PER_THREAD - 1);
    let between = Some((sum.saturating_sub(rounding), sum));
    Some(Sizes { elements: most, element: USUAL_ELEMENT, source: SizeSource::Kernels, between })
}

/// A kernel for many tensors has one block for every chunk of each. The smallest sum over kernels of one name is one pass
/// over all parameters; the last chunk of a tensor is taken to be half full.
fn by_chunks(recording: &Recording, gradients: &[Gradient], asked: &[&Placed]) -> Option<Sizes> {
    let mut blocks = BTreeMap::<u32, u64>::new();
    for placed in optimiser_kernels(recording, asked, "multi_tensor") {
        *blocks.entry(placed.work.name).or_default() += placed.work.amount / CHUNK_THREADS;
    }
    let per_pass = blocks.into_values().min()?;
    let tensors = gradients.len() as u64;
    let most = per_pass * CHUNK;
    let least = most.saturating_sub(tensors * (CHUNK - 1));
    let middle = least + (most - least) / 2;
    let share = |place: u64| middle / tensors + u64::from(place < middle % tensors);
    let elements = (0..tensors).map(share).collect();
    Some(Sizes { elements, element: USUAL_ELEMENT, source: SizeSource::Chunks, between: Some((least, most)) })
}
