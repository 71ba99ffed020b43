//! Properties of every pass and every fusion rule; eqs. 12-16 are solved letter by letter as the slow twin.

use super::paper_fabric;
use proptest::prelude::*;
use stepcast_analytic::collectives::ring_update;
use stepcast_analytic::liu2022::{Layer, Pass, Plan, csf, osf, plan};
use stepcast_core::fitted::transfer::{Curve, LogLinear};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::strategy::{BufferReading, Fusion};

/// The inputs of eqs. 12-16, by layer from the input (1) to the output (n); index 0 is not used.
#[derive(Debug, Clone)]
struct Letters {
    backward: Vec<f64>,
    size: Vec<f64>,
    buffer: f64,
    timeout: f64,
    per_byte: f64,
    overhead: f64,
}

/// What each layer flushes, and T_update.
#[derive(Debug, Clone)]
struct Solved {
    f: Vec<f64>,
    update: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Print {
    /// With corrections 1-4.
    Corrected,
    /// With correction 5 as well.
    Concurrent,
}

impl Letters {
    fn solve(&self, print: Print) -> Solved {
        let Self { backward, size, buffer, timeout, .. } = self;
        let n = self.size.len() - 1;
        let transfer = |bytes: f64| if bytes == 0.0 { 0.0 } else { self.per_byte * bytes + self.overhead };
        let late = |time: f64| time >= *timeout;
        let zero = vec![0.0; n + 1];
        let (mut b, mut f, mut wait, mut tau) = (zero.clone(), zero.clone(), zero.clone(), zero);
        for i in (1..=n).rev() {
            let fresh = i == n || b[i + 1] + size[i] > *buffer || backward[i] >= *timeout;
            b[i] = if fresh { size[i] } else { b[i + 1] + size[i] };
        }
        for i in 1..=n {
            let overflow = i > 1 && b[i] + size[i - 1] > *buffer;
            f[i] = if i == 1 || late(backward[i - 1]) || overflow { b[i] } else { 0.0 };
            wait[i] = match i > 1 {
                true if late(backward[i - 1]) => *timeout,
                true if overflow => backward[i - 1],
                _ => 0.0,
            };
        }
        let ready = |i: usize| backward[i..n].iter().sum::<f64>();
        let mut free = 0.0_f64;
        for i in (1..=n).rev() {
            match print {
                Print::Concurrent => {
                    tau[i] = free.max(ready(i) + wait[i]);
                    if f[i] > 0.0 {
                        free = tau[i] + transfer(f[i]);
                    }
                }
                _ if i == n => tau[i] = 0.0,
                _ => {
                    let end = tau[i + 1] + wait[i + 1] + transfer(f[i + 1]);
                    tau[i] = end.max(ready(i));
                }
            }
        }
        let update = match print {
            Print::Concurrent => free,
            _ => tau[1] + transfer(f[1]),
        };
        Solved { f, update }
    }

    fn pass(&self) -> Pass {
        let layers = self.backward.iter().zip(&self.size).skip(1).rev();
        let layer = |(&backward, &size): (&f64, &f64)| Layer {
            backward: Seconds::new(backward),
            gradients: Bytes::new(size),
        };
        Pass::new(layers.map(layer).collect())
    }

    fn curve(&self) -> Curve {
        let bandwidth = BytesPerSec::new(1.0 / self.per_byte);
        Curve::AlphaBeta { startup: Seconds::new(self.overhead), bandwidth }
    }

    fn fused(&self, reading: BufferReading) -> Fusion {
        let (size, timeout) = (Bytes::new(self.buffer), Some(Seconds::new(self.timeout)));
        Fusion::Buffer { size, timeout, reading }
    }
}

/// Times and sizes in multiples of a quarter, which are exact in binary.
fn letters() -> impl Strategy<Value = Letters> {
    let layers = prop::collection::vec((0u32..40, 0u32..40), 1..12);
    (layers, 0u32..120, 1u32..60, 0u32..20).prop_map(|(layers, buffer, timeout, overhead)| {
        let quarter = |n: u32| f64::from(n) / 4.0;
        Letters {
            backward: [0.0].into_iter().chain(layers.iter().map(|layer| quarter(layer.0))).collect(),
            size: [0.0].into_iter().chain(layers.iter().map(|layer| quarter(layer.1))).collect(),
            buffer: quarter(buffer),
            timeout: quarter(timeout),
            per_byte: 0.5,
            overhead: quarter(overhead),
        }
    })
}

fn schedules(letters: &Letters) -> Vec<Fusion> {
    vec![
        Fusion::None,
        Fusion::All,
        letters.fused(BufferReading::Concurrent),
        letters.fused(BufferReading::Serial),
        Fusion::buffer(Bytes::new(letters.buffer)),
        Fusion::Adaptive,
        Fusion::MgWfbp,
    ]
}

/// A buffer that always waits.
fn waiting(size: Bytes, reading: BufferReading) -> Fusion {
    Fusion::Buffer { size, timeout: None, reading }
}

fn piecewise(letters: &Letters) -> Curve {
    Curve::Piecewise(LogLinear::continuous(
        Bytes::new(6.0),
        Seconds::new(0.5),
        BytesPerSec::new(2.0),
        Seconds::new(letters.overhead + 2.0),
    ))
}

proptest! {
    #[test]
    fn every_byte_is_sent_once_and_in_order(letters in letters()) {
        let pass = letters.pass();
        for curve in [letters.curve(), piecewise(&letters)] {
            for schedule in schedules(&letters) {
                let plan = plan(&pass, &curve, &schedule);
                prop_assert_eq!(plan.sent(), pass.gradients());
                prop_assert_eq!(plan.outcome, osf(&pass, &curve, &schedule));
                let mut free = Seconds::ZERO;
                let mut next = 0;
                for flush in &plan.flushes {
                    prop_assert!(flush.first >= next && flush.last >= flush.first);
                    let size: Bytes = pass.layers[flush.first..=flush.last].iter().map(|l| l.gradients).sum();
                    prop_assert_eq!(flush.size, size);
                    prop_assert!(flush.start >= free && flush.start >= flush.ready);
                    prop_assert_eq!(flush.end, flush.start + curve.time(flush.size));
                    (free, next) = (flush.end, flush.last + 1);
                }
                prop_assert_eq!(plan.outcome.update, free.max(pass.overlap()));
                prop_assert!(plan.outcome.exposed() >= Seconds::ZERO && plan.outcome.factor() <= 1.0);
            }
        }
    }

    #[test]
    fn the_recursion_is_that_of_the_corrected_equations(mut letters in letters()) {
        // In eq. 15, unlike here, a layer without gradients that flushes nothing waits.
        letters.size[1..].iter_mut().for_each(|size| *size = size.max(0.25));
        let pass = letters.pass();
        for (reading, print) in [(BufferReading::Serial, Print::Corrected), (BufferReading::Concurrent, Print::Concurrent)] {
            let found = plan(&pass, &letters.curve(), &letters.fused(reading));
            let solved = letters.solve(print);
            prop_assert_eq!(found.outcome.update.get(), solved.update);
            let sent: Vec<f64> = solved.f[1..].iter().rev().copied().filter(|&f| f > 0.0).collect();
            prop_assert_eq!(found.flushes.iter().map(|flush| flush.size.get()).collect::<Vec<_>>(), sent);
        }
    }

    #[test]
    fn without_fusion_the_update_is_a_longest_path(letters in letters()) {
        // τ unrolled: from some layer's ready time on, the network is busy without a gap.
        let (pass, curve) = (letters.pass(), letters.curve());
        let mut ready = 0.0;
        let mut longest = 0.0_f64;
        for (index, layer) in pass.layers.iter().enumerate() {
            ready += if index == 0 { 0.0 } else { layer.backward.get() };
            let rest: f64 = pass.layers[index..].iter().map(|layer| curve.time(layer.gradients).get()).sum();
            longest = longest.max(ready + rest);
        }
        prop_assert_eq!(osf(&pass, &curve, &Fusion::None).update.get(), longest);
    }

    #[test]
    fn an_endless_buffer_is_csf(letters in letters()) {
        let pass = letters.pass();
        for reading in [BufferReading::Concurrent, BufferReading::Serial] {
            let endless = waiting(Bytes::new(f64::INFINITY), reading);
            for curve in [letters.curve(), piecewise(&letters)] {
                prop_assert_eq!(plan(&pass, &curve, &endless), plan(&pass, &curve, &Fusion::All));
                let (found, expected) = (osf(&pass, &curve, &endless).factor(), csf(&pass, &curve));
                prop_assert!((found - expected).abs() <= 4e-16);
            }
            // Sums of quarters have no rounding error, so the results are bitwise equal.
            let found = osf(&pass, &letters.curve(), &endless).factor();
            prop_assert_eq!(found.to_bits(), csf(&pass, &letters.curve()).to_bits());
            // The same holds for a buffer that just holds everything.
            let enough = waiting(pass.gradients(), reading);
            prop_assert_eq!(osf(&pass, &letters.curve(), &enough), osf(&pass, &letters.curve(), &endless));
        }
    }

    #[test]
    fn no_buffer_sends_every_layer_alone_but_late(letters in letters()) {
        let (pass, curve) = (letters.pass(), letters.curve());
        let off = plan(&pass, &curve, &Fusion::None);
        let [concurrent, serial] = [BufferReading::Concurrent, BufferReading::Serial]
            .map(|reading| plan(&pass, &curve, &waiting(Bytes::ZERO, reading)));
        for fused in [&concurrent, &serial] {
            let sizes = |plan: &Plan| plan.flushes.iter().map(|flush| flush.size).collect::<Vec<_>>();
            prop_assert_eq!(sizes(fused), sizes(&off));
        }
        prop_assert!(off.outcome.update <= concurrent.outcome.update);
        prop_assert!(concurrent.outcome.update <= serial.outcome.update);
        // A timeout of zero means no wait: fusion is off.
        for reading in [BufferReading::Concurrent, BufferReading::Serial] {
            let fusion = Fusion::Buffer { size: Bytes::new(f64::INFINITY), timeout: Some(Seconds::ZERO), reading };
            prop_assert_eq!(osf(&pass, &curve, &fusion), off.outcome);
        }
    }

    #[test]
    fn one_worker_scales_perfectly(letters in letters(), overhead in 0.0..1.0f64) {
        let pass = letters.pass();
        prop_assume!(pass.computing() > Seconds::ZERO);
        let curve = ring_update(&paper_fabric(), 1, Seconds::new(overhead));
        prop_assert_eq!(csf(&pass, &curve), 1.0);
        for schedule in schedules(&letters) {
            let outcome = osf(&pass, &curve, &schedule);
            prop_assert_eq!(outcome.factor(), 1.0);
            prop_assert_eq!(outcome.iteration(), pass.computing());
        }
    }

    #[test]
    fn overlap_only_loses_by_its_fixed_costs(mut letters in letters()) {
        letters.overhead = 0.0;
        let (pass, curve) = (letters.pass(), letters.curve());
        let per_layer = osf(&pass, &curve, &Fusion::None);
        for schedule in schedules(&letters) {
            prop_assert!(per_layer.update <= osf(&pass, &curve, &schedule).update);
        }
    }

    #[test]
    fn on_a_line_adaptive_fusion_compares_the_wait_with_the_overhead(mut letters in letters()) {
        letters.size[1..].iter_mut().for_each(|size| *size = size.max(0.25));
        let pass = letters.pass();
        let plan = plan(&pass, &letters.curve(), &Fusion::Adaptive);
        let fused = |index: usize| !plan.flushes.iter().any(|flush| flush.last == index);
        for (index, next) in pass.layers.iter().skip(1).enumerate() {
            prop_assert_eq!(fused(index), next.backward.get() < letters.overhead);
        }
    }

    #[test]
    fn everybody_waits_for_the_slowest(letters in letters(), slower in 1u32..8, delay in 0u32..8) {
        let pass = letters.pass();
        let slow = Pass {
            forward: pass.forward * f64::from(slower),
            layers: pass.layers.iter().map(|l| Layer { backward: l.backward * f64::from(slower), ..*l }).collect(),
            update: Seconds::ZERO,
        };
        let delay = Seconds::new(f64::from(delay));
        let alone = Pass { forward: delay + slow.forward, ..slow.clone() };
        let both = Pass::slowest(&[(Seconds::ZERO, pass.clone()), (delay, slow.clone())]).unwrap();
        prop_assert_eq!(&both, &alone);
        prop_assert_eq!(Pass::slowest(&[(delay, slow)]).unwrap(), alone);
        prop_assert_eq!(Pass::slowest(&[]), None);
        // One worker starts late and another is slow: the later one counts, layer by layer.
        let crossed = Pass::slowest(&[(Seconds::new(9.0), pass.clone()), (Seconds::ZERO, both.clone())]).unwrap();
        let end = (Seconds::new(9.0) + pass.computing()).max(both.computing());
        prop_assert_eq!(crossed.computing(), end);
        prop_assert_eq!(crossed.forward, (Seconds::new(9.0) + pass.forward).max(both.forward));
    }
}

#[test]
fn mg_wfbp_waits_for_quick_layers() {
    // Backward order: 1 s, 2 s, 3 s, 4 s with 8, 3, 2 and 1 bytes, at one byte per second plus δ each.
    let found = |overhead: f64| {
        let letters = Letters {
            backward: vec![0.0, 4.0, 3.0, 2.0, 1.0],
            size: vec![0.0, 1.0, 2.0, 3.0, 8.0],
            buffer: 0.0,
            timeout: 0.0,
            per_byte: 1.0,
            overhead,
        };
        let plan = plan(&letters.pass(), &letters.curve(), &Fusion::MgWfbp);
        plan.flushes.iter().map(|flush| (flush.size.get(), flush.start.get())).collect::<Vec<_>>()
    };
    // The first waits: 2 < 8 + 2δ. The second does if 3 < 3 + 2δ, the third if 4 < 2 + 2δ.
    assert_eq!(found(0.0), [(11.0, 2.0), (2.0, 13.0), (1.0, 15.0)]);
    assert_eq!(found(0.5), [(13.0, 5.0), (1.0, 18.5)]);
    assert_eq!(found(1.0), [(13.0, 5.0), (1.0, 19.0)]);
    assert_eq!(found(1.5), [(14.0, 9.0)]);
}
