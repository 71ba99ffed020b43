//! Predictions for every combination of values.

use crate::problem::Problem;
use crate::request::{ScenarioBody, method_choice};
use crate::study::{Job, Shown, Study, values};
use crate::work;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepcast_report::format::name;
use stepcast_report::plots::varied::{Swept, SweptFigure};
use stepcast_report::table::NEUTRAL;
use stepcast_report::tables::{FirstRows, sweep as tables};
use stepcast_study::explore::sweep::{Agreement, Axis, Format, SweepRow, Variants, rows};

/// Most points; larger sweeps are for the command line.
const MOST: u128 = 100_000;

/// The sweep request.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
pub(crate) struct SweepRequest {
    #[serde(flatten)]
    asked: ScenarioBody,
    /// The keys to vary: "workers.count=1..64".
    vary: Vec<String>,
    /// The method; by default the first that applies.
    #[serde(default)]
    method: Option<String>,
}

/// Summary of a sweep; the rows themselves are JSON lines.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub(crate) struct SweepReport {
    /// Points.
    points: u64,
    /// Points that were predicted.
    predicted: u64,
    /// The methods that predicted them.
    methods: Vec<&'static str>,
    #[serde(skip)]
    lines: Vec<u8>,
}

impl Study for SweepRequest {
    type Report = SweepReport;

    fn answer(&self, job: &mut Job<'_>) -> Result<(SweepReport, Shown), Problem> {
        let axes = Axis::parse_all(&self.vary)?;
        if axes.is_empty() {
            let remedy = "add a key to vary, such as batch=16,32,64";
            return Err(Problem::invalid("vary", "no key is varied", remedy));
        }
        let mut drawn = Swept::new(&axes, SweptFigure::Throughput);
        let request = self.asked.request(job.shared)?;
        let variants = request.variants(axes)?;
        let points = variants.grid().points();
        if points > MOST {
            let reason = format!("{:.1e} points are too many here", points as f64);
            return Err(Problem::invalid("vary", reason, "vary fewer values, or use `stepcast sweep`"));
        }
        let points = points as u64;
        let agreement = Agreement::of(&variants, method_choice(self.method.as_deref())?);
        let called = name(variants.first().name());
        let mut first = FirstRows::new(points);
        let (mut done, mut lines, mut failed) = (0, Vec::new(), None);
        let as_lines = !job.is_shown();
        let each = |row: SweepRow| (as_lines.then(|| Format::JsonLines.line(&variants, &row)), row);
        let token = job.token();
        let next = |some: Vec<(Option<std::io::Result<Vec<u8>>>, SweepRow)>| {
            done += some.len() as u64;
            for (line, row) in some {
                match line {
                    Some(Ok(line)) => lines.extend_from_slice(&line),
                    Some(Err(error)) => failed = Some(error),
                    None => {}
                }
                if let Some(drawn) = &mut drawn {
                    drawn.see(&row);
                }
                first.see(row);
            }
            job.progress(done, Some(points), "points", || drawn.as_ref().map(|drawn| drawn.svg(&called)))
        };
        let ended = rows(&variants, &agreement, 0..points, &|| work::check(token), each, next);
        if let Some(error) = failed {
            return Err(Problem::fault(error));
        }
        if ended.is_break() {
            return Err(Problem::stopped());
        }
        let shown = job.show(|| {
            let plot = drawn.as_ref().map(|drawn| drawn.svg(&called));
            shown(&variants, &agreement, &first, plot)
        })?;
        let methods = agreement.methods().to_vec();
        Ok((SweepReport { points, predicted: first.predicted(), methods, lines }, shown))
    }

    fn written(report: &SweepReport) -> Result<Response, Problem> {
        Ok(([(header::CONTENT_TYPE, "application/jsonl")], report.lines.clone()).into_response())
    }
}

fn shown(
    variants: &Variants<'_>,
    agreement: &Agreement,
    first: &FirstRows,
    plot: Option<String>,
) -> Result<Shown, Problem> {
    let mut shown = Shown::new(&first.notes(variants, agreement, NEUTRAL).join(" "));
    if let Some(svg) = plot {
        shown.plot("sweep", svg);
    }
    let table = first.table(variants, None);
    shown.table_of(&table, first.rows().iter().map(|row| Some(row.index)).collect());
    for row in first.rows() {
        let axes = variants.axes().iter().zip(&row.digits);
        let pairs: Vec<_> = axes.map(|(axis, digit)| (axis.key.clone(), axis.value(*digit))).collect();
        shown.offer(row.index, tables::values(variants.axes(), &row.digits), values(&pairs));
    }
    Ok(shown)
}
