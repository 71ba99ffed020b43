//! One refusal for each thing that cannot be combined, naming what would be valid.

use super::{Division, Plan, PlanSection};
use crate::fault::Fault;
use crate::files::NoFiles;
use crate::model::zoo;

fn plan(text: &str) -> Plan {
    toml::from_str::<PlanSection>(text).unwrap().fill(None, &NoFiles).unwrap()
}

fn divide(model: &str, workers: u64, text: &str) -> Result<Division, Fault> {
    plan(text).divide(&zoo::transformer(model).unwrap(), workers)
}

#[test]
fn what_is_left_open_is_derived() {
    let found = divide("llama3-70b", 512, "tensor = 8\npipeline = 4\nglobal-batch = 1024").unwrap();
    assert_eq!(found, Division { data: 16, micro_batches: 64, global_batch: 1024 });
    let found = divide("llama3-70b", 64, "tensor = 8\npipeline = 4").unwrap();
    assert_eq!(found, Division { data: 2, micro_batches: 4, global_batch: 8 });
    let found = divide("llama3-8b", 8, "sharding = \"hsdp\"\nsharding-group = 4").unwrap();
    assert_eq!(found, Division { data: 8, micro_batches: 1, global_batch: 8 });
}

#[test]
fn refusals_name_the_key_and_what_would_be_valid() {
    let cases = [
        ("gpt2", 8, "tensor = 8", "tensor", "use 1, 2, 3, 4, 6 or 12"),
        ("qwen2.5-7b", 28, "tensor = 14", "tensor", "use 1, 2, 4 or 28"),
        ("llama3-8b", 33, "pipeline = 33", "pipeline", "use 32 or less"),
        ("llama3-8b", 4, "pipeline = 4\nstage-layers = [8, 8, 16]", "stage-layers", "one for each"),
        ("llama3-8b", 2, "pipeline = 2\nstage-layers = [8, 8]", "stage-layers", "add up"),
        (
            "llama3-8b",
            4,
            "pipeline = 4\nvirtual-stages = 2\nschedule = \"1f1b\"",
            "virtual-stages",
            "interleaved",
        ),
        ("llama3-8b", 4, "pipeline = 4\nvirtual-stages = 4\nschedule = \"zbv\"", "virtual-stages", "= 2"),
        ("llama3-8b", 4, "virtual-stages = 2", "virtual-stages", "use `pipeline = 2` or more"),
        ("llama3-8b", 4, "virtual-stages = 2\nschedule = \"zbv\"", "virtual-stages", "`schedule = \"1f1b\"`"),
        ("llama3-8b", 12, "tensor = 8", "tensor", "a multiple of 8 workers"),
        ("llama3-8b", 16, "tensor = 8\ndata = 4", "data", "use 32 workers"),
        ("llama3-8b", 8, "global-batch = 20", "global-batch", "such as 16 or 24"),
        ("llama3-8b", 8, "global-batch = 4", "global-batch", "such as 8"),
        ("llama3-8b", 8, "expert = 2", "expert", "use `expert = 1`"),
        ("mixtral-8x7b", 12, "expert = 3", "expert", "use 1, 2 or 4"),
        ("mixtral-8x7b", 4, "expert = 8", "expert", "use 1, 2 or 4"),
        ("llama3-8b", 3, "context = 3", "context", "divisor of the sequence: 1, 2, 4, 8"),
        ("llama3-8b", 8, "offload = [\"optimiser\"]", "offload", "zero-2"),
        ("llama3-8b", 1, "recompute-layers = 4", "recompute-layers", "add `recompute = [\"layer\"]`"),
        (
            "llama3-8b",
            2,
            "pipeline = 2\nstage-recompute = [4, 0]",
            "stage-recompute",
            "add `recompute = [\"layer\"]`",
        ),
        (
            "llama3-8b",
            2,
            "pipeline = 2\nrecompute = [\"layer\"]\nrecompute-layers = 2\nstage-recompute = [4, 0]",
            "stage-recompute",
            "remove one",
        ),
        (
            "llama3-8b",
            2,
            "pipeline = 2\nrecompute = [\"layer\"]\nstage-recompute = [4]",
            "stage-recompute",
            "one for each",
        ),
        (
            "llama3-8b",
            2,
            "pipeline = 2\nrecompute = [\"layer\"]\nstage-recompute = [4, 17]",
            "stage-recompute",
            "no more than",
        ),
        ("gpt2", 8, "context = 8\ncontext-exchange = \"all-to-all\"", "context", "ring"),
        ("llama3-8b", 8, "sharding = \"hsdp\"", "sharding", "sharding-group = 8"),
        (
            "llama3-8b",
            8,
            "sharding = \"hsdp\"\nsharding-group = 3",
            "sharding-group",
            "divisor of them: 1, 2, 4 or 8",
        ),
        ("llama3-8b", 8, "sharding = \"zero-1\"\nsharding-group = 4", "sharding-group", "remove it"),
        (
            "llama3-8b",
            4,
            "pipeline = 4\nvirtual-stages = 2\nglobal-batch = 6",
            "schedule",
            "a replica has a multiple of 4",
        ),
    ];
    for (model, workers, text, key, remedy) in cases {
        let fault = divide(model, workers, text).expect_err(text);
        assert_eq!(fault.key.to_string(), key, "{text}: {fault}");
        assert!(fault.remedy.contains(remedy), "{text}: {fault}");
    }
}

#[test]
fn sections_are_written_back() {
    let first = plan("tensor = 8\nrecompute = [\"attention\"]\nstage-layers = [40, 40]\npipeline = 2");
    assert_eq!(first.section().fill(None, &NoFiles).unwrap(), first);
}

#[test]
fn the_first_layers_of_every_virtual_stage_are_computed_again() {
    let plan = plan(
        "pipeline = 2\nvirtual-stages = 2\nstage-layers = [10, 4, 2, 16]\nrecompute = [\"layer\"]\nrecompute-layers = 4",
    );
    let ranges: Vec<_> = plan.recomputed_ranges(32).collect();
    assert_eq!(ranges, [0..4, 10..14, 14..16, 16..20]);
    let own = Plan { recompute_layers: None, stage_recompute: Some(vec![10, 0, 1, 3]), ..plan };
    assert_eq!(own.recomputed_ranges(32).collect::<Vec<_>>(), [0..10, 10..10, 14..15, 16..19]);
}

#[test]
fn a_switch_overrules_the_preset() {
    let preset = plan("overlap = \"megatron\"\nvirtual-stages = 2").overlaps();
    let found = plan("overlap = \"megatron\"\nvirtual-stages = 2\noverlap-gradients = false").overlaps();
    assert!(preset.gradients && preset.sends);
    assert_eq!(found, super::Overlaps { gradients: false, ..preset });
    let alone = plan("overlap = \"none\"\noverlap-sends = true");
    assert!(alone.overlaps().sends && !alone.without_overlap().overlaps().sends);
}
