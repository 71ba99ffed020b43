//! Synchronisation, and one refusal for each thing that a plan cannot combine, naming what would be valid.

use crate::test_cases;
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::model::zoo;
use stepcast_core::scenario::Document;
use stepcast_core::strategy::{
    Division, Overlaps, Plan, PlanSection, Synchronisation, layers_before, stage_share,
};
use stepcast_core::text;

fn plan(text: &str) -> Plan {
    text::parse::<PlanSection>(text).unwrap().fill(None, &NoFiles).unwrap()
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
    for [model, workers, text, key, remedy] in test_cases(include_str!("../plans.txt")) {
        let fault = divide(model, workers.parse().unwrap(), &text.replace("; ", "\n")).expect_err(text);
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
    assert_eq!(found, Overlaps { gradients: false, ..preset });
    assert!(plan("overlap = \"none\"\noverlap-sends = true").overlaps().sends);
}

#[test]
fn layers_before_a_virtual_stage_are_the_shares_of_the_earlier_ones() {
    for layers in 1..40 {
        for places in 1..=layers + 2 {
            let mut before = 0;
            for place in 0..places {
                assert_eq!(layers_before(layers, places, place), before, "{layers} {places} {place}");
                before += stage_share(layers, places, place);
            }
            assert_eq!(before, layers);
        }
    }
}

/// DualPipe on p stages is DualPipeV on half as many, with twice the replicas.
#[test]
fn dual_pipe_is_two_pipelines() {
    let resolved = |plan: &str| {
        let text = format!(
            "model.zoo = \"llama3-8b\"\ncluster.workers = [{{ count = 16 }}]\n[strategy.plan]\n{plan}\n"
        );
        Document::new("s.toml", text).scenario(&[]).map(|scenario| scenario.strategy.plan)
    };
    let dual = resolved("schedule = \"dualpipe\"\npipeline = 8\ndata = 2\nglobal-batch = 32").unwrap();
    let halves = "schedule = \"dualpipev\"\npipeline = 4\nvirtual-stages = 2\ndata = 4\nglobal-batch = 32";
    assert_eq!(dual, resolved(halves).unwrap());
    let division = dual.unwrap().divide(&zoo::transformer("llama3-8b").unwrap(), 16).unwrap();
    assert_eq!(division, Division { data: 4, micro_batches: 8, global_batch: 32 });
    for (odd, key) in [
        ("pipeline = 7", "pipeline"),
        ("pipeline = 2", "pipeline"),
        ("pipeline = 8\nvirtual-stages = 2", "virtual-stages"),
    ] {
        let fault = resolved(&format!("schedule = \"dualpipe\"\n{odd}")).unwrap_err();
        assert_eq!(fault.key.to_string(), format!("strategy.plan.{key}"), "{fault}");
        assert!(fault.reason.contains("`dualpipe`"), "{fault}");
    }
}

#[test]
fn synchronisation_reads_what_it_writes() {
    for text in ["bsp", "async", "ssp(3)", "local-sgd(8)"] {
        assert_eq!(text.parse::<Synchronisation>().unwrap().to_string(), text);
    }
    for text in ["", "ssp", "ssp()", "ssp(-1)", "local-sgd(0)", "local-sgd(99999999999)", "bulk"] {
        assert!(text.parse::<Synchronisation>().is_err(), "{text}");
    }
}
