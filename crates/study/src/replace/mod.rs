//! Layers whose gradient exchange does not overlap with computing, the exposed communication of each layer's gradients, and the
//! effect of replacing them (Liu 2022, section 4.1).

use crate::predict::budget::pass;
use crate::predict::usual_workers;
use crate::simulate::{BUDGET, all_reduce};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use stepcast_analytic::collectives::curve;
use stepcast_analytic::contention::Contention;
use stepcast_analytic::liu2022::{Liu2022, Outcome, passes, rule};
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::method::{CancelCheck, Method, Stopped};
use stepcast_core::model::{Layer, LayerFile, Model, ModelFile};
use stepcast_core::pass::Pass;
use stepcast_core::prediction::Warning;
use stepcast_core::quantity::{Bytes, Flops, InBaseUnits, Seconds};
use stepcast_core::scenario::{ModelSource, Scenario, ScenarioFile};
use stepcast_core::strategy::Fusion;
use stepcast_core::suggest;
use stepcast_core::workload::Workload;

/// Least exposed share of the step that justifies another network.
const NEGLIGIBLE: f64 = 0.005;

/// The layers to replace and their substitutes. By default: the fully connected head, by convolutions (Liu 2022,
/// Table 3).
#[derive(Debug, Clone, Default)]
pub struct Substitution {
    /// The name of the first layer to replace; all layers after it are replaced too.
    pub from: Option<String>,
    /// The substitute layers.
    pub with: Option<Vec<LayerFile>>,
    /// Numbers of workers at which scaling factors are compared; by default those of scaling tables.
    pub workers: Option<Vec<u32>>,
}

/// A model on the machines of a scenario.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ScalingFigures {
    /// Trainable parameters.
    pub parameters: u64,
    /// Size of all gradients on the wire.
    #[serde(rename = "gradient_bytes", with = "InBaseUnits")]
    pub gradients: Bytes,
    /// Forward operations of one sample.
    #[serde(rename = "forward_flop", with = "InBaseUnits")]
    pub forward: Flops,
    /// Time of one step.
    #[serde(rename = "iteration_s", with = "InBaseUnits")]
    pub iteration: Seconds,
    /// Communication that does not overlap with computing.
    #[serde(rename = "exposed_s", with = "InBaseUnits")]
    pub exposed: Seconds,
    /// Share of computing in the step.
    pub scaling_factor: f64,
}

/// One layer that is removed or added.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct LayerLine {
    /// Its name.
    pub name: String,
    /// Its operation.
    pub op: String,
    /// Shape of its output: "512×7×7".
    pub output: String,
    /// Size of its weights, without biases, as Table 3 of the paper counts.
    #[serde(rename = "weight_bytes", with = "InBaseUnits")]
    pub weights: Bytes,
    /// Trainable parameters.
    pub parameters: u64,
}

/// Layers that substitute others.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Replacement {
    /// The removed layers.
    pub removed: Vec<LayerLine>,
    /// The added layers.
    pub added: Vec<LayerLine>,
    /// The figures after the replacement.
    pub after: ScalingFigures,
    /// The scenario with the new model.
    pub scenario: ScenarioFile,
}

/// Scaling factors at one number of workers (Liu 2022, Figure 8).
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct ReplacedScaling {
    /// How many workers.
    pub workers: u32,
    /// Scaling factor of the unchanged model.
    pub before: f64,
    /// Scaling factor with layers replaced.
    pub after: f64,
}

/// The layers with exposed communication, and the effect of replacing them.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ReplacementReport {
    /// The scenario, every default filled in.
    pub scenario: ScenarioFile,
    /// The figures before the replacement.
    pub before: ScalingFigures,
    /// The layers, the most expensive first.
    pub layers: Vec<ExposedLayer>,
    /// The replacement, if there is one.
    pub replacement: Option<Replacement>,
    /// Its effect at other numbers of workers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<ReplacedScaling>,
    /// Why nothing is replaced.
    pub reason: Option<String>,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
}

/// Why layers cannot be replaced.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The scenario does not allow it.
    #[error("{0}")]
    Scenario(#[from] Fault),
    /// The position of the cut is invalid.
    #[error("{0}")]
    Cut(Fault),
    /// The new layers are invalid.
    #[error("{0}")]
    Layers(Fault),
}

/// Finds the layers with exposed communication and applies the requested replacement, with cancellation.
pub fn replace(
    scenario: &Scenario,
    mut request: Substitution,
    wanted: &CancelCheck<'_>,
) -> Result<ReplacementReport, Refusal> {
    let model = model(scenario)?;
    applies(scenario)?;
    let step = Step::of(scenario)?;
    let before = figures(scenario, &step);
    let asked = request.from.is_some() || request.with.is_some();
    let hidden = before.exposed < before.iteration * NEGLIGIBLE;
    let workers = request.workers.take();
    let mut scaling = Vec::new();
    let (replacement, reason) = if hidden && !asked {
        let reason = "The backward pass hides the communication: no layer is worth replacing.";
        (None, Some(reason.to_owned()))
    } else {
        match cut(&model, request)? {
            Ok((first, layers)) => {
                let (changed, replacement) = replaced(scenario, &model, first, layers)?;
                for workers in workers.unwrap_or_else(|| usual_workers(scenario, &Liu2022)) {
                    let factor = |scenario: &Scenario| {
                        let resized = scenario.on(scenario.cluster.resized(workers));
                        Ok::<_, Fault>(Step::of(&resized)?.outcome().factor())
                    };
                    scaling.push(ReplacedScaling {
                        workers,
                        before: factor(scenario)?,
                        after: factor(&changed)?,
                    });
                }
                (Some(replacement), None)
            }
            Err(reason) => (None, Some(format!("Nothing is proposed: {reason}."))),
        }
    };
    let (layers, left_out) = step.layers(scenario, wanted)?;
    let mut warnings = all_reduce::assumptions(scenario);
    warnings.extend(left_out);
    let scenario = scenario.to_file();
    Ok(ReplacementReport { scenario, before, layers, replacement, scaling, reason, warnings })
}

/// Checks that the closed form holds; remedies say how to make it hold.
fn applies(scenario: &Scenario) -> Result<(), Fault> {
    Liu2022.applies(scenario).map_err(|why| {
        let remedy = match why.key.to_string().as_str() {
            key @ "strategy.architecture" => Remedy::set(key, "all-reduce"),
            key @ "strategy.synchronisation" => Remedy::set(key, "bsp"),
            _ => Remedy::advice("remove it: layers are compared by the closed form"),
        };
        Fault { remedy: remedy.into(), ..why }
    })
}

fn model(scenario: &Scenario) -> Result<Model, Fault> {
    let refuse = |key, reason: &str, remedy: &str| Fault::in_key(key, reason, remedy);
    if let Fusion::Buckets(_) = scenario.strategy.exchange.fusion {
        let reason = "a list of buckets belongs to one model, and this one is to be changed";
        return Err(refuse("strategy.fusion", reason, "use a rule such as `rule = \"pytorch\"`"));
    }
    scenario.workload.graph.as_deref().cloned().ok_or_else(|| {
        let reason = "a profile has times, but no layers that could be replaced";
        refuse("model.profile", reason, "use `zoo` or `[model.custom]`")
    })
}

/// The position of the cut and the substitute layers, or the reason why there is no proposal.
fn cut(model: &Model, request: Substitution) -> Result<Result<(usize, Vec<LayerFile>), String>, Refusal> {
    let first = request.from.map(|name| find(model, &name)).transpose()?;
    match (first, request.with) {
        (Some(first), Some(layers)) => Ok(Ok((first, layers))),
        (Some(first), None) => {
            let head = model.head_from(first).map_err(|_| {
                let name = &model.layers()[first].name;
                let reason =
                    format!("the layer \"{name}\" does not read a feature map of more than one pixel");
                let with = Remedy::option_to(RequestOption::With, "to say what to put in place");
                let remedy = [Remedy::advice("name a layer that does"), with];
                Refusal::Cut(Fault::new(reason, remedy))
            })?;
            Ok(Ok((first, head.convolutions())))
        }
        (None, Some(layers)) => match model.head() {
            Ok(head) => Ok(Ok((head.first, layers))),
            Err(why) => {
                let reason = format!("where to cut is not clear: {why}");
                let from = Remedy::option_to(RequestOption::From, "to name the first layer to replace");
                Err(Refusal::Layers(Fault::new(reason, from)))
            }
        },
        (None, None) => {
            Ok(model.head().map(|head| (head.first, head.convolutions())).map_err(|why| why.to_string()))
        }
    }
}

fn find(model: &Model, name: &str) -> Result<usize, Refusal> {
    let place = model.layers().iter().position(|layer| layer.name == name);
    place.ok_or_else(|| {
        let names = model.layers().iter().map(|layer| layer.name.as_str());
        let reason = format!("there is no layer \"{name}\"");
        let remedy = suggest::remedy(name, names, Remedy::ListLayers { model: None });
        Refusal::Cut(Fault::new(reason, remedy))
    })
}

fn replaced(
    scenario: &Scenario,
    model: &Model,
    first: usize,
    layers: Vec<LayerFile>,
) -> Result<(Scenario, Replacement), Refusal> {
    let whole = ModelFile { name: format!("{}, replaced", scenario.name()), ..ModelFile::from_model(model) };
    let (file, new) = whole.replaced(first, layers).map_err(Refusal::Layers)?;
    let workload = Workload::from_model(&new, scenario.counting);
    if workload.parameters == 0 {
        let reason = "the new model has no parameters to train";
        return Err(Refusal::Layers(Fault::in_key("layers", reason, "add a layer with weights")));
    }
    let changed = Scenario {
        source: ModelSource::Custom(Arc::new(file)),
        workload: Arc::new(workload),
        ..scenario.clone()
    };
    let replacement = Replacement {
        removed: model.layers()[first..].iter().map(line).collect(),
        added: new.layers()[first..].iter().map(line).collect(),
        after: figures(&changed, &Step::of(&changed)?),
        scenario: changed.to_file(),
    };
    Ok((changed, replacement))
}

fn line(layer: &Layer) -> LayerLine {
    LayerLine {
        name: layer.name.clone(),
        op: LayerFile::from_op(&layer.op).op,
        output: layer.output.to_string(),
        weights: Bytes::new(layer.cost.weights as f64 * 4.0),
        parameters: layer.cost.weights + layer.cost.biases,
    }
}

fn figures(scenario: &Scenario, step: &Step) -> ScalingFigures {
    let outcome = step.outcome();
    ScalingFigures {
        parameters: scenario.workload.parameters,
        gradients: step.pass.gradients(),
        forward: scenario.workload.layers.iter().map(|layer| layer.forward).sum(),
        iteration: outcome.iteration(),
        exposed: outcome.exposed(),
        scaling_factor: outcome.factor(),
    }
}

/// A layer and the communication cost of its gradients.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ExposedLayer {
    /// Its name.
    pub name: String,
    /// Size of its gradients on the wire.
    #[serde(rename = "gradient_bytes", with = "InBaseUnits")]
    pub size: Bytes,
    /// Their share of the gradients of all layers.
    pub share: f64,
    /// How much shorter the step would be if they needed no exchange. The costs of several layers do not add up:
    /// after the gradients of one are removed, those of another may still have to wait.
    #[serde(rename = "exposed_s", with = "InBaseUnits")]
    pub exposed: Seconds,
}

/// A mean step under the scenario's own rule.
pub(super) struct Step {
    pub(super) pass: Pass,
    update: Curve,
    rule: Fusion,
    contention: Contention,
}

impl Step {
    pub(super) fn of(scenario: &Scenario) -> Result<Self, Fault> {
        let passes = passes(scenario).map_err(|fault| Fault::in_key("model", fault.reason, fault.remedy))?;
        let update = curve(scenario);
        Ok(Self {
            pass: Pass::slowest(&passes).unwrap_or_else(|| Pass::new(Vec::new())),
            rule: rule(scenario, &scenario.strategy.exchange.fusion),
            update,
            contention: Contention::from_scenario(scenario),
        })
    }

    pub(super) fn outcome(&self) -> Outcome {
        self.contention.mean(&self.pass, &self.update, &self.rule).outcome
    }

    /// All layers with gradients, the most expensive first, and a note about omitted ones: if the budget does not pay for a
    /// step without each of them, the layers with the most gradients are examined.
    pub(super) fn layers(
        &self,
        scenario: &Scenario,
        wanted: &CancelCheck<'_>,
    ) -> Result<(Vec<ExposedLayer>, Option<Warning>), Fault> {
        let whole = self.pass.gradients();
        let now = self.outcome().iteration();
        let work = &scenario.workload.layers;
        let affordable = (scenario.methods.simulate.budget / pass(scenario)).max(1) as usize;
        let mut by_size: Vec<usize> = (0..work.len()).collect();
        by_size.sort_by(|&a, &b| work[b].bytes().get().total_cmp(&work[a].bytes().get()));
        let mut is_tried = vec![false; work.len()];
        by_size.into_iter().take(affordable).for_each(|place| is_tried[place] = true);
        let mut first = 0;
        let mut layers: Vec<ExposedLayer> = Vec::new();
        for (work, is_tried) in work.iter().zip(is_tried).rev() {
            let own = first..first + work.tensors.len();
            first = own.end;
            if !is_tried {
                continue;
            }
            if wanted().is_break() {
                return Err(Stopped::Cancelled.into());
            }
            let mut without = self.pass.clone();
            let mut size = Bytes::ZERO;
            for layer in without.layers.get_mut(own).into_iter().flatten() {
                size += std::mem::replace(&mut layer.gradients, Bytes::ZERO);
            }
            let then = self.contention.mean(&without, &self.update, &self.rule).outcome.iteration();
            layers.push(ExposedLayer {
                name: work.name.clone(),
                size,
                share: size / whole,
                // A rule may fuse the remaining gradients less well than all of them.
                exposed: (now - then).max(Seconds::ZERO),
            });
        }
        layers.sort_by(|a, b| b.exposed.get().total_cmp(&a.exposed.get()));
        let left_out = (work.len() > affordable).then(|| Warning {
            code: "left-out",
            message: format!(
                "too many layers and groups for the budget: of {} layers, the {affordable} with the most gradients are \
                 listed; use a larger `{BUDGET}`",
                work.len()
            ),
        });
        Ok((layers, left_out))
    }
}
