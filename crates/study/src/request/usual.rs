//! Scenarios of a model alone: gradients are summed by all-reduce, and a transformer is split so that it fits.

use super::{Folder, Request};
use crate::predict::MethodChoice;
use std::path::Path;
use stepcast_core::fault::{Fault, Note, Remedy, RequestOption};
use stepcast_core::machine::{Machine, Transport, catalog};
use stepcast_core::model::zoo;
use stepcast_core::prediction::Verdict;
use stepcast_core::scenario::{Document, Edit, ModelSection, ScenarioFile};
use stepcast_core::strategy::{
    Architecture, OverlapPreset, PlanSection, Recompute, Sharding, StrategySection, Synchronisation,
};

/// Keys of a plan that say nothing about how the model is split.
const BATCHES: [&str; 2] = ["strategy.plan.global-batch", "strategy.plan.micro-batch"];

/// Keys that say which workers share a machine.
const LAYOUT: [&str; 3] = ["cluster.machine", "cluster.nodes", "strategy.all-reduce"];

/// Whether a name is that of a transformer of the zoo, or of a `config.json` of Hugging Face.
pub fn is_transformer(model: &str) -> bool {
    model.ends_with(".json") || zoo::transformer(model).is_some()
}

/// Whether a path names an ONNX file.
pub fn is_onnx(path: &str) -> bool {
    path.ends_with(".onnx") || path.ends_with(".onnx.gz")
}

/// How the devices of one machine are joined, and machines to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// The network within a machine.
    pub within: String,
    /// The network between machines and the ports to it, if the whole machine is known.
    pub between: Option<(String, u32)>,
}

/// The first machine of the catalog with this device.
fn machine_with(device: &str) -> Option<&'static Machine> {
    let device = catalog::device(device).ok()?;
    catalog::machines().ok()?.values().find(|machine| machine.device().is_ok_and(|own| own == device))
}

/// Whether devices of a machine are built for machines of several: what joins them is not a slot.
fn joins_devices(machine: &Machine) -> bool {
    let within = catalog::network(&machine.within);
    machine.gpus > 1 && within.is_ok_and(|within| within.transport != Transport::Pcie)
}

/// The links of the first machine of the catalog with this device; of others nothing is known.
pub fn links(device: &str, each: u32) -> Option<Links> {
    let machine = machine_with(device).filter(|_| each > 1)?;
    let whole = machine.gpus == each;
    Some(Links {
        within: machine.within.clone(),
        between: whole.then(|| (machine.network.clone(), machine.ports)),
    })
}

/// What is assumed of the machines of several workers where nothing says which of them share one: edits of the scenario,
/// and a note.
fn assumed_machines(plain: &Request, edits: &[Edit]) -> Option<(Vec<Edit>, Note)> {
    let given = |key: &str| edits.iter().rfind(|edit| edit.key().starts_with(key));
    let scenario = plain.scenario().ok()?;
    let workers = scenario.cluster.workers();
    if workers < 2 || LAYOUT.iter().any(|key| given(key).is_some()) {
        return None;
    }
    let network = given("cluster.network");
    let device = given("cluster.workers.device").and_then(|edit| edit.value()?.as_str());
    let machine = device.and_then(machine_with).filter(|machine| joins_devices(machine));
    // A network joins several machines: so few workers would not need it if they shared one.
    let Some(machine) = machine.filter(|own| network.is_none() || workers > u64::from(own.gpus)) else {
        let on = &scenario.cluster.network.name;
        let text = format!("No machine is given: each of the {workers} workers is one of its own on {on}");
        let together = Remedy::GiveOption {
            option: RequestOption::Workers,
            value: Some(format!("1x{workers}")),
            purpose: "to put them into one".to_owned(),
        };
        let network = Remedy::option_to(RequestOption::Network, "for another network");
        return Some((Vec::new(), Note { text, remedy: [together, network].into() }));
    };
    let each = workers.min(machine.gpus.into());
    let mut assumed = vec![
        Edit::set("cluster.nodes.workers", each as i64),
        Edit::set("cluster.nodes.network", machine.within.as_str()),
    ];
    if network.is_none() {
        assumed.push(Edit::set("cluster.network", machine.network.as_str()));
        assumed.push(Edit::set("cluster.nodes.ports", machine.ports));
    }
    let taken = match workers.div_ceil(each) {
        1 if each == u64::from(machine.gpus) => format!("are taken as one {}", machine.name),
        1 => format!("are taken to share one {}", machine.name),
        several => format!("are taken as {several} machines like the {}", machine.name),
    };
    let apart = Remedy::GiveOption {
        option: RequestOption::Workers,
        value: Some(format!("{workers}x1")),
        purpose: "to make each a machine of its own".to_owned(),
    };
    let machine = Remedy::option_to(RequestOption::Machine, "to name another");
    let text = format!("No machine is given: the {workers} workers {taken}");
    Some((assumed, Note { text, remedy: [apart, machine].into() }))
}

impl Request {
    /// The scenario of a model of the zoo, an ONNX file or a `config.json`, trained by all-reduce. A transformer gets the
    /// first of the usual plans that fits into memory, and a note says so.
    pub fn from_model(model: &str, mut edits: Vec<Edit>) -> Result<Self, Fault> {
        let request = |plan: Option<PlanSection>, edits: &[Edit]| {
            Self::new(document(model, plan), Folder::new(Path::new("").to_owned()), edits.to_vec())
        };
        let mut plain = request(None, &edits);
        let (assumed, note) = assumed_machines(&plain, &edits).unzip();
        if let Some(assumed) = assumed.filter(|assumed| !assumed.is_empty()) {
            edits.splice(0..0, assumed);
            plain = request(None, &edits);
        }
        if let Some(note) = &note {
            plain.files.note(note.clone());
        }
        let divides = |edit: &Edit| edit.key().starts_with("strategy.plan") && !BATCHES.contains(&edit.key());
        if !is_transformer(model) || edits.iter().any(divides) {
            return Ok(plain);
        }
        let Ok(scenario) = plain.scenario() else { return Ok(plain) };
        let workers = scenario.cluster.workers();
        let node = u64::from(scenario.cluster.workers_per_node()).min(workers);
        let mut chosen = None;
        for (plan, words) in usual_plans(workers, node) {
            let planned = request(Some(plan), &edits);
            let Some(fits) = planned.fits() else { continue };
            chosen = Some((planned, words, fits));
            if fits {
                break;
            }
        }
        let Some((planned, words, fits)) = chosen else { return Ok(plain) };
        let why = if fits { "this is the first usual plan that fits" } else { "but no usual plan fits" };
        if let Some(note) = note {
            planned.files.note(note);
        }
        planned.files.note(format!("No plan is given: {words}; {why}. `[strategy.plan]` gives another."));
        Ok(planned)
    }

    /// Whether the plan fits into memory; none if it cannot be predicted.
    fn fits(&self) -> Option<bool> {
        let method = self.method(MethodChoice::Auto).ok()?;
        let report = method.predict(&*self.scenario().ok()?).ok()?.transformer?;
        Some(report.memory.verdict != Verdict::DoesNotFit)
    }
}

/// Plans in the order in which they are tried, each with its description: replicas, sharded replicas, then also tensor
/// parallelism within nodes and stages between them.
fn usual_plans(workers: u64, node: u64) -> Vec<(PlanSection, String)> {
    let sharded = PlanSection {
        sharding: Some(Sharding::Zero3),
        overlap: Some(OverlapPreset::Fsdp2),
        ..PlanSection::default()
    };
    let recomputed =
        |plan: &PlanSection| PlanSection { recompute: Some(vec![Recompute::Layer]), ..plan.clone() };
    let mut plans = vec![(PlanSection::default(), "every worker holds the whole model".to_owned())];
    if workers > 1 {
        let words = "weights are sharded over all workers (FSDP)".to_owned();
        plans.push((sharded.clone(), words.clone()));
        plans.push((recomputed(&sharded), format!("{words}, activations are recomputed")));
    }
    if node > 1 {
        let split = PlanSection {
            tensor: Some(node),
            sequence_parallel: Some(true),
            sharding: Some(Sharding::Zero1),
            ..PlanSection::default()
        };
        let mut stages = 1;
        while workers.is_multiple_of(node * stages) {
            let plan = PlanSection { pipeline: Some(stages), ..split.clone() };
            let words = format!("{node} tensor-parallel workers in each of {stages} stages");
            plans.push((plan.clone(), words.clone()));
            plans.push((recomputed(&plan), format!("{words}, activations are recomputed")));
            stages *= 2;
        }
    }
    plans
}

/// The scenario of a model alone.
fn document(model: &str, plan: Option<PlanSection>) -> Document {
    let name = Some(model.to_owned());
    let section = match model {
        _ if is_onnx(model) => ModelSection { onnx: name, ..ModelSection::default() },
        _ if model.ends_with(".json") => ModelSection { config: name, ..ModelSection::default() },
        _ => ModelSection { zoo: name, ..ModelSection::default() },
    };
    let strategy = StrategySection {
        architecture: Some(Architecture::AllReduce),
        synchronisation: Some(Synchronisation::Bsp),
        plan,
        ..StrategySection::default()
    };
    let file = ScenarioFile { model: section, strategy, ..ScenarioFile::default() };
    Document::from_file(model, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(model: &str, changes: &[&str]) -> Request {
        let changes = changes.iter().map(|text| Edit::parse(text).unwrap()).collect();
        Request::from_model(model, changes).unwrap()
    }

    fn note_texts(notes: &[Note]) -> String {
        notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_large_transformer_is_split_until_it_fits() {
        let cluster = ["cluster.machine=dgx-h100", "cluster.machines=8"];
        let small = request("gpt2", &cluster);
        assert_eq!(small.scenario().unwrap().strategy.plan.as_ref().unwrap().sharding, Sharding::None);
        let large = request("llama3-70b", &cluster);
        assert_eq!(large.fits(), Some(true));
        assert_ne!(large.scenario().unwrap().strategy.plan.as_ref().unwrap().sharding, Sharding::None);
        assert!(large.take_notes()[0].text.starts_with("No plan is given: "));
    }

    #[test]
    fn a_given_plan_is_kept() {
        let request = request("llama3-8b", &["cluster.machine=dgx-h100", "strategy.plan.tensor=2"]);
        assert_eq!(request.scenario().unwrap().strategy.plan.as_ref().unwrap().tensor, 2);
        assert!(request.take_notes().is_empty());
    }

    #[test]
    fn other_models_are_trained_by_all_reduce() {
        let scenario = request("resnet50", &["cluster.workers.device=a100"]).scenario().unwrap();
        assert_eq!(scenario.strategy.architecture, Architecture::AllReduce);
        assert_eq!(scenario.strategy.plan, None);
    }

    #[test]
    fn assumed_machines_are_noted() {
        let notes = |changes: &[&str]| note_texts(&request("resnet50", changes).take_notes());
        let four = "cluster.workers.count=4";
        assert!(notes(&[four]).contains("each of the 4 workers is one of its own on 10 Gigabit Ethernet"));
        for known in ["cluster.nodes.workers=4", "cluster.workers.count=1"] {
            assert_eq!(notes(&[four, known]), "", "{known}");
        }
    }

    #[test]
    fn devices_of_whole_machines_share_them() {
        let cluster = |changes: &[&str]| request("llama3-8b", changes).scenario().unwrap().cluster.clone();
        let h100 = "cluster.workers.device=h100";
        let one = cluster(&[h100, "cluster.workers.count=8"]);
        assert_eq!(one.workers_per_node(), 8);
        let several = cluster(&[h100, "cluster.workers.count=512"]);
        assert_eq!(several.workers_per_node(), 8);
        assert_eq!(several.network, catalog::network("infiniband-ndr").unwrap());
        let roce = [h100, "cluster.workers.count=512", "cluster.network=roce-100g"];
        assert_eq!(cluster(&roce).network, catalog::network("roce-100g").unwrap());
        assert_eq!(cluster(&roce).workers_per_node(), 8);
        // A network between so few workers says that each is a machine.
        let apart = cluster(&[h100, "cluster.workers.count=4", "cluster.network=100gbe"]);
        assert_eq!(apart.workers_per_node(), 1);
        let cards = cluster(&["cluster.workers.device=rtx-4090", "cluster.workers.count=8"]);
        assert_eq!(cards.workers_per_node(), 1);
    }
}
