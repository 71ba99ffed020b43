//! A whole machine, measured by `kit/machine.py`: achieved rates of the parts of transformers on its device, steps of other
//! networks, and times of collectives.
//!
//! The constants are those of the compute model (`analytic::transformer::compute`). They are fitted to all times at once, as
//! logarithms, and every kind of measurement counts alike. The constants of the catalog are the prior.
//! Families of shapes that are held out in turn show the error for other shapes.

mod figures;
mod read;

pub use figures::{Decoder, Piece};

use crate::report::{FitErrorRow, FitErrors, FitReport, artefact};
use crate::steps::{self, PreparedSteps};
use crate::{FitError, Problem, Quality};
use figures::{Figure, FigureKind, On};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use stepcast_core::fitted::artefact::ArtefactKind;
use stepcast_core::fitted::machine::{CONSTANTS, Decides, MachineModel, MeasuredConstants, Uncertainty};
use stepcast_core::fitted::steps::{Nominal, StepModel};
use stepcast_core::machine::{Device, catalog};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::prior::{Priors, REPEATS, Transformers};
use stepcast_stats::quantile_of_sorted;

/// Which attention jobs use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionChoice {
    /// The implementation that PyTorch chooses.
    #[default]
    Default,
    /// Flash attention, even where PyTorch would choose another.
    Flash,
}

/// Standard deviation of the logarithm of a constant before anything is measured.
const EXPECTED: f64 = 0.5;
/// Standard deviation of the logarithm of a time, beyond which it counts as an outlier.
const NOISE: f64 = 0.04;
const OUTLIER: f64 = 0.08;
/// No kind of measurement weighs more than this many times the mean.
const MOST_WEIGHT: f64 = 2.0;
/// Median of the absolute value of a standard normal variable.
const MEDIAN_OF_NORMAL: f64 = 0.6745;

/// Groups of priors, and the measurements from which the error of their constants is estimated.
const GROUPS: [(&str, &[FigureKind]); 5] = [
    ("rate of products", &[FigureKind::Product]),
    ("rate of attention", &[FigureKind::Attention]),
    ("rate of memory", &[FigureKind::Pass, FigureKind::Update]),
    ("start of kernels", &[FigureKind::Block]),
    ("host of transformers", &[FigureKind::Step]),
];

/// Fits the machine of `data`, whose device is called `device` if the file does not say; the measurements of `test`,
/// if given, replace held-out families. The fit can be cancelled.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    device: Option<&str>,
    attention: AttentionChoice,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let rows = read::read(data, wanted)?;
    let name = data.display().to_string();
    let lacking = |what: &str| {
        let remedy = "measure the machine with `python3 kit/machine.py -o machine.jsonl`";
        Fault::in_file(name.clone(), format!("it has no {what}"), remedy)
    };
    let described = rows.described.as_ref().ok_or_else(|| lacking("line of kind \"machine\""))?;
    if described.kind != "gpu" {
        let remedy = "measure a GPU, or fit `steps` for networks on a CPU";
        return Err(
            Fault::in_file(name, "it was measured on a CPU, whose parts are not fitted", remedy).into()
        );
    }
    let (id, sheet) = named(device.unwrap_or(&described.device))?;
    let priors = Priors::shipped().map_err(Fault::from)?;
    let on = On { device: &sheet, id: &id, precision: described.precision, priors: &priors };
    let figures = on.figures(&rows)?;
    for kind in [FigureKind::Block, FigureKind::Step] {
        if !figures.iter().any(|figure| figure.kind == kind) {
            return Err(lacking(kind.name()).into());
        }
    }
    let fit_fault = |error: FitError| Fault::in_file(name.clone(), error.to_string(), "measure it again");
    let fit = fit(&on, &figures, &start(&sheet, &priors.transformer)).map_err(fit_fault)?;
    let (solution, left_out) = (&fit.solution, &fit.left_out);
    let on_fit = errors_of(&on, &figures, solution);
    let chosen = constants(solution, attention);
    let (held, mut notes) = match test {
        Some(path) => {
            let tested = on.figures(&read::read(path, wanted)?)?;
            let predicted = on.predicted(&tested, &chosen, &constants(solution, AttentionChoice::Flash));
            let held = tested.into_iter().zip(predicted);
            (
                held.map(|(figure, predicted)| (figure.kind, figure.family, predicted / figure.measured))
                    .collect(),
                Vec::new(),
            )
        }
        None => (left_out.clone(), vec!["Held out: each family of shapes in turn.".to_owned()]),
    };
    let quality = |of: &[(FigureKind, String, f64)], kind: FigureKind| {
        Quality::from_pairs(of.iter().filter(|(own, ..)| *own == kind).map(|(_, _, ratio)| (*ratio, 1.0)))
    };
    let mut errors = BTreeMap::new();
    let mut table = Vec::new();
    for &kind in FigureKind::ALL {
        let held = quality(&held, kind);
        let Some(fit) = quality(&on_fit, kind) else { continue };
        let own = FitErrors { fit, held };
        table.extend(FitErrorRow::rows(kind.name(), &own));
        errors.insert(kind.name().to_owned(), own);
    }
    let networks = networks(data, &rows.networks, &mut notes, wanted)?;
    let peak = sheet.peak(described.precision).unwrap_or_else(|| sheet.fp32_peak());
    let model = MachineModel {
        device: id.clone(),
        precision: described.precision,
        peak,
        memory_rate: sheet.memory_rate,
        transformer: chosen,
        uncertainty: uncertainty(left_out, &priors),
        times: read::collective_times(&rows.collectives),
        steps: networks,
    };
    notes.extend(told(&model, &sheet));
    let measurements = figures.len();
    let artefact = artefact(ArtefactKind::Machine, data, measurements, &date, &errors, &model)?;
    Ok(FitReport { rows: table, left_out: Vec::new(), notes, artefact })
}

/// The entry of the catalog for a device as people or PyTorch call it.
fn named(name: &str) -> Result<(String, Device), Fault> {
    let device = catalog::device(name).map_err(|fault| {
        let entry = Remedy::option_to(RequestOption::Device, "to name the entry");
        Fault::new(fault.reason, fault.remedy.or(entry))
    })?;
    let known = catalog::devices()?;
    let id = known.iter().find(|(_, known)| known.name == device.name).map_or(name, |(id, _)| id.as_str());
    Ok((id.to_owned(), device))
}

/// Places of the constants of attention, of which there are two sets: PyTorch's choice, and flash attention.
fn attention() -> impl Iterator<Item = usize> {
    let rows = CONSTANTS.iter().enumerate();
    rows.filter(|(_, row)| row.decided_by == Decides::Attention).map(|(place, _)| place)
}

/// Logarithms of the expected constants of a device: those of its generation, with the constants of attention twice.
fn start(device: &Device, assumed: &Transformers) -> Vec<f64> {
    let own = assumed.of_generation(device.generation).to_array();
    own.into_iter().chain(attention().map(|place| own[place])).map(f64::ln).collect()
}

/// The constants at a point of the search.
fn constants(at: &[f64], choice: AttentionChoice) -> MeasuredConstants {
    let mut values: [f64; CONSTANTS.len()] = std::array::from_fn(|place| at[place].exp());
    if choice == AttentionChoice::Flash {
        for (flash, place) in at[CONSTANTS.len()..].iter().zip(attention()) {
            values[place] = flash.exp();
        }
    }
    MeasuredConstants::from_array(values)
}

fn ratios(on: &On<'_>, figures: &[Figure], at: &[f64]) -> Vec<f64> {
    let [own, flash] = [AttentionChoice::Default, AttentionChoice::Flash].map(|choice| constants(at, choice));
    let predicted = on.predicted(figures, &own, &flash);
    figures.iter().zip(predicted).map(|(figure, predicted)| predicted / figure.measured).collect()
}

fn errors_of(on: &On<'_>, figures: &[Figure], at: &[f64]) -> Vec<(FigureKind, String, f64)> {
    let of = |(figure, ratio): (&Figure, f64)| (figure.kind, figure.family.clone(), ratio);
    figures.iter().zip(ratios(on, figures, at)).map(of).collect()
}

/// The result of a fit: logarithms of constants, and every figure predicted without its family.
struct Fit {
    solution: Vec<f64>,
    left_out: Vec<(FigureKind, String, f64)>,
}

/// The constants that fit `figures` best, near the expected ones.
fn fit(on: &On<'_>, figures: &[Figure], expected: &[f64]) -> Result<Fit, FitError> {
    let count = |kind: FigureKind| figures.iter().filter(|figure| figure.kind == kind).count() as f64;
    let kinds = FigureKind::ALL.iter().filter(|kind| count(**kind) > 0.0).count() as f64;
    let mean = figures.len() as f64 / kinds;
    let weights: Vec<f64> =
        figures.iter().map(|figure| (mean / count(figure.kind)).sqrt().min(MOST_WEIGHT)).collect();
    let hold = vec![NOISE / EXPECTED; expected.len()];
    let residuals = |at: &[f64]| ratios(on, figures, at).into_iter().map(f64::ln).collect();
    let problem =
        Problem { residuals: &residuals, weights: &weights, start: expected, hold: &hold, scale: OUTLIER };
    let solution = problem.solve()?;
    let folds = folds(figures);
    let logs = problem.left_out(&solution, &folds)?;
    let left_out = folds.iter().flatten().zip(logs.into_iter().flatten());
    let left_out =
        left_out.map(|(index, log)| (figures[*index].kind, figures[*index].family.clone(), log.exp()));
    Ok(Fit { left_out: left_out.collect(), solution })
}

/// The figures that are held out together: one family of every kind. Shards and steps of a model are one family.
fn folds(figures: &[Figure]) -> Vec<Vec<usize>> {
    let kind = |figure: &Figure| match figure.kind {
        FigureKind::Block | FigureKind::Head | FigureKind::Step => FigureKind::Step,
        FigureKind::Flash => FigureKind::Attention,
        other => other,
    };
    let mut families: BTreeMap<FigureKind, Vec<&str>> = BTreeMap::new();
    for figure in figures {
        let known = families.entry(kind(figure)).or_default();
        if !known.contains(&figure.family.as_str()) {
            known.push(&figure.family);
        }
    }
    let most = families.values().map(Vec::len).max().unwrap_or(0);
    let fold = |number: usize| {
        let is_out = |figure: &Figure| {
            let known = &families[&kind(figure)];
            // Without its only family, a kind's constants would stay at the expected ones.
            known.len() > 1 && known.get(number).is_some_and(|family| *family == figure.family)
        };
        (0..figures.len()).filter(|index| is_out(&figures[*index])).collect()
    };
    (0..most).map(fold).collect()
}

fn root_mean_square(values: &[f64]) -> f64 {
    (values.iter().map(|value| value * value).sum::<f64>() / values.len().max(1) as f64).sqrt()
}

/// The error of predictions for other shapes, from held-out families.
///
/// The common factor of a group's constants is known with the standard error of the mean over families, never worse than
/// without a measurement. What remains are single steps: their error as a normal spread with the same median.
fn uncertainty(left_out: &[(FigureKind, String, f64)], priors: &Priors) -> Uncertainty {
    let mean_of = |kinds: &[FigureKind], family: &str| {
        let own = left_out.iter().filter(|(kind, own, _)| kinds.contains(kind) && own == family);
        let logs: Vec<f64> = own.map(|(.., ratio)| ratio.ln()).collect();
        logs.iter().sum::<f64>() / logs.len() as f64
    };
    let families = |kinds: &[FigureKind]| -> BTreeSet<&str> {
        left_out
            .iter()
            .filter(|(kind, ..)| kinds.contains(kind))
            .map(|(_, family, _)| family.as_str())
            .collect()
    };
    let group = |(name, kinds): &(&str, &[FigureKind])| {
        let means: Vec<f64> = families(kinds).into_iter().map(|family| mean_of(kinds, family)).collect();
        let assumed = priors.groups.iter().find(|group| group.name == *name)?.spread;
        let error = root_mean_square(&means) / (means.len() as f64).sqrt();
        (!means.is_empty()).then(|| ((*name).to_owned(), error.hypot(REPEATS).min(assumed)))
    };
    let steps = left_out.iter().filter(|(kind, ..)| *kind == FigureKind::Step);
    let mut errors: Vec<f64> = steps.map(|(.., ratio)| ratio.ln().abs()).collect();
    errors.sort_unstable_by(f64::total_cmp);
    Uncertainty {
        groups: GROUPS.iter().filter_map(group).collect(),
        residual: if errors.is_empty() { 0.0 } else { quantile_of_sorted(&errors, 0.5) / MEDIAN_OF_NORMAL },
        families: u32::try_from(families(&[FigureKind::Step]).len()).unwrap_or(u32::MAX),
        rows: u32::try_from(errors.len()).unwrap_or(u32::MAX),
    }
}

/// The steps of networks in the file, if there are several of them.
fn networks(
    data: &Path,
    lines: &str,
    notes: &mut Vec<String>,
    wanted: &CancelCheck<'_>,
) -> Result<Option<StepModel>, Stopped> {
    if lines.is_empty() {
        return Ok(None);
    }
    let steps::MeasuredSteps { steps: measured, notes: about } =
        steps::parse(&data.display().to_string(), lines, wanted)?;
    notes.extend(about);
    steps::several_models(data, &measured)?;
    let prepared = PreparedSteps::new(&measured, Nominal::h200(), None);
    prepared.fit(|_| true, wanted).map(Some).map_err(|error| steps::stopped(data, &error))
}

/// The results in words.
fn told(model: &MachineModel, sheet: &Device) -> Vec<String> {
    let own = &model.transformer;
    let rate = |share: f64| (model.peak * share).human();
    let memory = |share: f64| (model.memory_rate * share).human();
    let mut notes = vec![
        format!(
            "Large products on the {} reach {} after a rest and {} under load; attention {} forward and {} backward, with \
             heads of 128.",
            sheet.name,
            rate(own.product / own.sustained),
            rate(own.product),
            rate(own.flash / own.sustained),
            rate(own.flash_back / own.sustained)
        ),
        format!(
            "Copies reach {}, norms and activations {}, updates {}; the host takes {:.1} us for a kernel.",
            memory(own.memory),
            memory(own.pass),
            memory(own.update),
            own.host * 1e6
        ),
    ];
    if model.times.is_empty() {
        notes.push(
            "No collectives: links are assumed. Run the kit on several GPUs to measure them.".to_owned(),
        );
    }
    notes
}
