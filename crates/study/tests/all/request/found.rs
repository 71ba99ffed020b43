//! What is found for a framework is emitted, and read back as the same plan with the same step and memory.

use super::launch::request;
use crate::{fastest, go};
use proptest::prelude::*;
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_core::method::Method as _;
use stepcast_core::scenario::Scenario;
use stepcast_study::explore::plan::{Aim, plan};
use stepcast_study::request::launch::{Framework, emit};

/// Time of a step, and memory of the fullest device.
fn figures(scenario: &Scenario) -> [f64; 2] {
    let prediction = Method.predict(scenario).unwrap();
    [prediction.iteration.get(), prediction.transformer.unwrap().memory.most.get()]
}

/// What a recipe says of the model, before settings that a plan decides.
fn recipe(framework: Framework, sequence: u64) -> String {
    match framework {
        Framework::Axolotl => format!("base_model: own\nsequence_len: {sequence}\n"),
        Framework::LlamaFactory => {
            format!("model_name_or_path: own\nfinetuning_type: full\ncutoff_len: {sequence}\n")
        }
        Framework::Torchtune => {
            format!("model:\n  _component_: torchtune.models.own\ntokenizer:\n  max_seq_len: {sequence}\n")
        }
        Framework::Trl => format!("model_name_or_path: own\nmax_length: {sequence}\n"),
        _ => String::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 18, ..ProptestConfig::default() })]
    #[test]
    fn plans_that_are_found_for_a_framework_are_read_back(
        model in prop::sample::select(vec!["gpt3-2.7b", "llama3-8b", "qwen3-8b", "mixtral-8x7b", "deepseek-v2-lite", "llama3-70b"]),
        machines in prop::sample::select(vec![2_u64, 3, 4, 8]),
        batch in prop::sample::select(vec![48_u64, 64, 192]),
        chunks in prop::sample::select(vec!["[1]", "[1, 2, 4]"]),
        framework in prop::sample::select(Framework::ALL.to_vec()),
    ) {
        let (count, zoo) = (format!("cluster.machines={machines}"), format!("model.zoo={model}"));
        let cluster = ["cluster.machine=dgx-h100", &count, &zoo];
        let text = format!(
            "[model]\n[cluster]\n[strategy.plan]\n[plan]\nframeworks = [\"{framework}\"]\nglobal-batch = {batch}\n\
             virtual-stages = {chunks}\nmicro-batch = [1, 2]\ncontext = [1, 2]\n"
        );
        let scenario = crate::scenario(&text, &cluster);
        // What does not fit has no plan.
        let Ok(report) = plan(&scenario, Aim::Time, &mut go) else {
            return Ok(());
        };
        prop_assert_eq!(report.framework, Some(framework));
        prop_assert!(report.launches.contains(&framework));
        let sequence = scenario.transformer_of_plan().unwrap().sequence;
        let emitted = recipe(framework, sequence) + &emit(&scenario, &report, framework).unwrap();
        let best = report.stages.as_ref().map_or(&report.best, |stages| &stages.entry);
        let named = if framework == Framework::Megatron { &cluster[..2] } else { &cluster[..] };
        let request = request(&emitted, named).unwrap();
        let read = request.scenario().unwrap();
        let [step, memory] = figures(&read);
        // Rows of a vocabulary that ranks do not divide are padded.
        let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-5;
        prop_assert!(near(step, best.step.get()), "{step} instead of {}: {}\n{emitted}", best.step, best.words);
        prop_assert!(near(memory, best.memory.get()), "{memory} instead of {}: {}\n{emitted}", best.memory, best.words);
        let notes = request.take_notes();
        let left_out = notes.iter().any(|note| note.text.contains("left out"));
        prop_assert!(!left_out, "{notes:?}\n{emitted}");
    }
}

#[test]
fn part_of_a_machine_has_as_many_processes() {
    let text = "model.zoo = \"gpt2-medium\"\n[[cluster.workers]]\ncount = 2\ndevice = \"h200\"\n\
                [cluster.nodes]\nworkers = 8\nnetwork = \"nvlink4\"\n[plan]\nglobal-batch = 16\n[strategy.plan]\n";
    for framework in [Framework::Fsdp, Framework::Torchtitan, Framework::Megatron] {
        let scenario = crate::scenario(text, &[&format!("plan.frameworks=[\"{framework}\"]")]);
        let emitted = emit(&scenario, &fastest(&scenario), framework).unwrap();
        let named = ["cluster.workers.device=h200", "model.zoo=gpt2-medium"];
        let named = if framework == Framework::Megatron { &named[..1] } else { &named[..] };
        assert_eq!(super::launch::scenario(&emitted, named).cluster.workers(), 2, "{emitted}");
    }
}
