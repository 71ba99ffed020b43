//! Pulled parameters in a recording (Li 2020, section 3.2): the rate of the link, the cost of parsing (α and β), and the errors
//! of the ends that the model of streams predicts (the paper's Table 1).
//!
//! Streams of a connection are sent one after the other, and parsing holds up none of them. A stream of s bytes with which the
//! connection has sent S bytes therefore ends S/rate + α·s + β after the first request: three coefficients by least squares.

use crate::nnls;
use std::collections::{BTreeSet, VecDeque};
use stepcast_core::profile::{Profile, Resource, Step};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_stats::{mean, quantile};
use stepcast_trace::{Content, Imported, Overview, SummaryFigure, SummaryValue};

/// Windows that are tried: none, and the paper's.
const WINDOWS: [f64; 2] = [f64::INFINITY, 28e6];

const MOST_STEPS: usize = 200;

/// Results from the streams of a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamFigures {
    pub rate: BytesPerSec,
    /// 1/α: rate of parsing; none if it takes no time.
    pub parse_rate: Option<BytesPerSec>,
    /// β: fixed time of a stream, including the latency of its request.
    pub parse_fixed: Seconds,
    /// Bytes after which a stream is preempted; none if none is.
    pub window: Option<Bytes>,
    /// Whether streams were sent in the order of their arrivals rather than of their requests.
    pub by_arrival: bool,
    /// Errors of predicted ends relative to the time since the first request: mean, median, 95 % and largest.
    pub errors: [f64; 4],
}

/// Streams of one step from one server, in the order in which they were requested, or sent.
struct Requests {
    /// Times since the first request.
    start: Vec<f64>,
    end: Vec<f64>,
    size: Vec<f64>,
}

impl Requests {
    fn new(profile: &Profile, step: &Step, server: u32, (window, by_arrival): (f64, bool)) -> Option<Self> {
        let own = |&op: &usize| {
            let operation = &profile.operations[op];
            operation.resource == Resource::Downlink && operation.server == server && operation.bytes > 0
        };
        let own = (0..profile.operations.len()).filter(own).collect();
        let mut order = profile.sending_order(step, own, window);
        if !by_arrival {
            order.sort_by(|&a, &b| step.start[a].total_cmp(&step.start[b]));
        }
        let first = order.iter().map(|&op| step.start[op]).reduce(f64::min)?;
        let since = |times: &[f64]| order.iter().map(|&op| times[op] - first).collect();
        let size = order.iter().map(|&op| profile.operations[op].bytes as f64).collect();
        Some(Self { start: since(&step.start), end: since(&step.end), size })
    }

    /// When each stream has been sent at `rate`: on its first turn up to `window` bytes, on its second the rest.
    fn sent(&self, start: &[f64], window: f64, rate: f64) -> Vec<f64> {
        let mut sent = vec![0.0; self.size.len()];
        let (mut now, mut next) = (0.0_f64, 0);
        // Stream, bytes left, most bytes of its next turn.
        let mut queue: VecDeque<(usize, f64, f64)> = VecDeque::new();
        loop {
            while next < start.len() && start[next] <= now {
                queue.push_back((next, self.size[next], window));
                next += 1;
            }
            match queue.pop_front() {
                Some((stream, left, most)) => {
                    if left > most {
                        queue.push_back((stream, left - most, f64::INFINITY));
                    }
                    now += left.min(most) / rate;
                    sent[stream] = now;
                }
                None if next < start.len() => now = start[next],
                None => return sent,
            }
        }
    }
}

/// The streams of a profile; none if there are too few to determine a rate.
pub fn streams(profile: &Profile) -> Option<StreamFigures> {
    let servers: BTreeSet<u32> = profile.operations.iter().map(|operation| operation.server).collect();
    let tried = WINDOWS.into_iter().flat_map(|window| [(window, false), (window, true)]);
    let found = tried.filter_map(|how| {
        let steps = profile.steps.iter().take(MOST_STEPS);
        let of_step = steps.flat_map(|step| servers.iter().map(move |&server| (step, server)));
        let requests = of_step.filter_map(|(step, server)| Requests::new(profile, step, server, how));
        fit(&requests.collect::<Vec<_>>(), how)
    });
    found.reduce(|best, next| if next.errors[0] < best.errors[0] { next } else { best })
}

fn fit(requests: &[Requests], (window, by_arrival): (f64, bool)) -> Option<StreamFigures> {
    let (mut rows, mut ends) = (Vec::new(), Vec::new());
    for streams in requests {
        let bytes = streams.sent(&vec![0.0; streams.start.len()], window, 1.0);
        for ((sent, size), end) in
            bytes.iter().zip(&streams.size).zip(&streams.end).filter(|(_, end)| **end > 0.0)
        {
            rows.push(vec![sent / end, size / end, end.recip()]);
            ends.push(1.0);
        }
    }
    let coefficients = nnls(&rows, &ends).ok()?.coefficients;
    let [per_byte, parse_byte, fixed] = coefficients[..] else { return None };
    if per_byte <= 0.0 {
        return None;
    }
    let mut errors: Vec<f64> = Vec::new();
    for streams in requests {
        let sent = streams.sent(&streams.start, window, per_byte.recip());
        let predicted = sent.iter().zip(&streams.size).map(|(sent, size)| sent + parse_byte * size + fixed);
        let pairs = predicted.zip(&streams.end).filter(|(_, end)| **end > 0.0);
        errors.extend(pairs.map(|(predicted, end)| (predicted / end - 1.0).abs()));
    }
    let largest = errors.iter().copied().fold(0.0, f64::max);
    Some(StreamFigures {
        rate: BytesPerSec::new(per_byte.recip()),
        parse_rate: (parse_byte > 0.0).then(|| BytesPerSec::new(parse_byte.recip())),
        parse_fixed: Seconds::new(fixed),
        window: (window < f64::INFINITY).then(|| Bytes::new(window)),
        by_arrival,
        errors: [mean(&errors), quantile(&mut errors, 0.5), quantile(&mut errors, 0.95), largest],
    })
}

/// Gives a profile with servers the rate at which its streams came.
pub fn measure_link(imported: &mut Imported) {
    if let Content::Profile(profile) = &mut imported.content
        && profile.has_servers()
    {
        profile.link_rate = streams(profile).map(|found| found.rate.get());
    }
}

pub fn overview(imported: &Imported, written: Option<String>) -> Overview {
    let mut overview = Overview::new(imported, written);
    let found = match &imported.content {
        Content::Profile(profile) if profile.has_servers() => streams(profile),
        _ => None,
    };
    let Some(StreamFigures { rate, parse_rate, parse_fixed, window, by_arrival, errors }) = found else {
        return overview;
    };
    let mut figure = |key, label, value, note: &str| {
        overview.summary.figures.push(SummaryFigure { key, label, value, note: note.to_owned() });
    };
    let order = if by_arrival { "sent in the order of arrivals" } else { "sent in the order of requests" };
    figure("stream_rate", "rate of streams that come down", SummaryValue::Rate(rate), order);
    let parsing = parse_rate.map_or(SummaryValue::Text("no cost".to_owned()), SummaryValue::Rate);
    figure("parse_rate", "rate of parsing them", parsing, "methods.simulate.parse-rate");
    figure("parse_fixed", "cost of each", SummaryValue::Time(parse_fixed), "methods.simulate.parse-fixed");
    let whole = window.map_or(SummaryValue::Text("whole".to_owned()), SummaryValue::Size);
    figure("stream_window", "sent at a time", whole, "methods.simulate.window");
    let names = [
        ("stream_end_error_mean", "error of their predicted ends"),
        ("stream_end_error_median", "median of it"),
        ("stream_end_error_p95", "95th percentile"),
        ("stream_end_error_most", "largest"),
    ];
    for ((key, label), error) in names.into_iter().zip(errors) {
        figure(key, label, SummaryValue::Share(error), "");
    }
    overview
}
