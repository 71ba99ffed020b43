//! Sizes of gradients: from recorded shapes, from copies for the exchange, or from kernels of the optimiser.

use super::gradients::Gradient;
use super::messages::GradientSums;
use super::recording::Recording;
use super::records::{Collective, Kind, Phase, Placed, Time};
use std::collections::BTreeMap;

/// Where sizes come from, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SizeSource {
    /// Shapes that were recorded.
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
pub(super) fn of_step(
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
    /// Shapes of tensors that are divided over ranks are those of the whole: they share what is exchanged, if that is less.
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
    let copies = asked.iter().filter(|it| it.work.kind == Kind::Copy && it.phase == Phase::Backward);
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

/// Where every gradient is sent by itself, it is copied just before.
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
            Kind::Copy => (copy.work.amount / element, copy.work.amount / element),
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

/// Kernels of the optimiser by their names: those for one tensor, and those for many.
fn optimiser_kernels<'a>(
    recording: &'a Recording,
    asked: &'a [&Placed],
    part: &'static str,
) -> impl Iterator<Item = &'a Placed> {
    asked.iter().copied().filter(move |placed| {
        placed.phase == Phase::Optimiser && recording.name(placed.work.name).contains(part)
    })
}

/// Gradients are set to zero one by one, in the order of parameters: the reverse of that of gradients.
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
