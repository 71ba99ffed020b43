//! Eqs. 12-16, letter by letter, and the golden cases of fusion.

use serde_json::Value;
use stepcast_analytic::liu2022::{Buffer, Layer, Pass, Reading, Schedule};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

/// The golden cases.
pub(super) fn golden() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../../../validation/liu2022/fusion.json")).unwrap()
}

/// A fraction such as "29/2".
pub(super) fn number(value: &Value) -> f64 {
    let text = value.as_str().unwrap();
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap()
}

pub(super) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// The inputs of eqs. 12-16, by layer from the input (1) to the output (n); index 0 is not used.
#[derive(Debug, Clone)]
pub(super) struct Letters {
    pub(super) backward: Vec<f64>,
    pub(super) size: Vec<f64>,
    pub(super) buffer: f64,
    pub(super) timeout: f64,
    pub(super) per_byte: f64,
    pub(super) overhead: f64,
}

/// B, F, t_wait and τ or the start of each message, by layer, and T_update.
#[derive(Debug, Clone)]
pub(super) struct Solved {
    pub(super) b: Vec<f64>,
    pub(super) f: Vec<f64>,
    pub(super) wait: Vec<f64>,
    pub(super) tau: Vec<f64>,
    pub(super) update: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Print {
    /// As printed in the paper.
    Literal,
    /// With corrections 1-4.
    Corrected,
    /// With correction 5 as well.
    Concurrent,
}

impl Letters {
    pub(super) fn of(case: &Value) -> Self {
        let shifted = |key: &str| [&[0.0], numbers(&case[key]).as_slice()].concat();
        Self {
            backward: shifted("t_backward_layer1_to_n"),
            size: shifted("D"),
            buffer: number(&case["Q"]),
            timeout: number(&case["timeout"]),
            per_byte: number(&case["sec_per_byte"]),
            overhead: number(&case["delta"]),
        }
    }

    pub(super) fn solve(&self, print: Print) -> Solved {
        let Self { backward, size, buffer, timeout, .. } = self;
        let (literal, n) = (print == Print::Literal, self.size.len() - 1);
        let transfer = |bytes: f64| match bytes == 0.0 && !literal {
            true => 0.0,
            false => self.per_byte * bytes + self.overhead,
        };
        let late = |time: f64| if literal { time > *timeout } else { time >= *timeout };
        let zero = vec![0.0; n + 1];
        let (mut b, mut f, mut wait, mut tau) = (zero.clone(), zero.clone(), zero.clone(), zero);
        for i in (1..=n).rev() {
            let fresh = i == n || b[i + 1] + size[i] > *buffer || backward[i] >= *timeout;
            b[i] = if fresh { size[i] } else { b[i + 1] + size[i] };
        }
        for i in 1..=n {
            let overflow = i > 1 && b[i] + size[i - 1] > *buffer;
            let waited = if literal { backward[i] } else { backward[i - 1] };
            f[i] = if i == 1 || late(waited) || overflow { b[i] } else { 0.0 };
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
                    tau[i] = end.max(ready(if literal { 1 } else { i }));
                }
            }
        }
        let update = match print {
            Print::Concurrent => free,
            _ => tau[1] + transfer(f[1]),
        };
        Solved { b, f, wait, tau, update }
    }

    pub(super) fn pass(&self) -> Pass {
        let layers = self.backward.iter().zip(&self.size).skip(1).rev();
        let layer = |(&backward, &size): (&f64, &f64)| Layer {
            backward: Seconds::new(backward),
            gradients: Bytes::new(size),
        };
        Pass::new(layers.map(layer).collect())
    }

    pub(super) fn curve(&self) -> Curve {
        let bandwidth = BytesPerSec::new(1.0 / self.per_byte);
        Curve::AlphaBeta { startup: Seconds::new(self.overhead), bandwidth }
    }

    pub(super) fn fused(&self, reading: Reading) -> Schedule {
        let fusion = Buffer::new(Bytes::new(self.buffer)).timeout(Seconds::new(self.timeout));
        Schedule::Fused(fusion.reading(reading))
    }
}
