//! Scenarios: their text, edits of it, ranges, and transformers by name, by table and by configuration; synchronisation, and
//! one refusal for each thing that a plan cannot combine, naming what would be valid.

use crate::test_cases;
use stepcast_core::fault::Fault;
use stepcast_core::files::{Files, NoFiles};
use stepcast_core::model::transformer::Transformer;
use stepcast_core::model::zoo;
use stepcast_core::quantity::SamplesPerSec;
use stepcast_core::scenario::{Document, Edit, ModelSource, Scenario};
use stepcast_core::strategy::{
    Division, Overlaps, Plan, PlanSection, Synchronisation, layers_before, stage_share,
};
use stepcast_core::text;

#[test]
fn a_section_that_is_one_table_is_no_list() {
    for (text, path) in [
        ("[[strategy]]\nbatch = 8", "strategy"),
        ("[[cluster.servers]]\ncount = 2", "cluster.servers"),
        ("strategy.plan = [{ tensor = 2 }]", "strategy.plan"),
        ("strategy = []", "strategy"),
    ] {
        let fault = Document::new("s.toml", format!("model.zoo = \"vgg16\"\n{text}")).file(&[]).unwrap_err();
        assert_eq!(fault.key.to_string(), path, "{fault}");
        assert!(
            fault.reason.contains("is one table") && fault.remedy.contains(&format!("[{path}]")),
            "{fault}"
        );
    }
    let lists = "model.zoo = \"vgg16\"\n[[cluster.workers]]\ncount = 2\n[[cluster.workers]]\ncount = 1";
    assert_eq!(Document::new("s.toml", lists).scenario(&[]).unwrap().cluster.workers(), 3);
}

fn edited(text: &str, key: &str, value: Option<&str>) -> Option<String> {
    Document::new("test", text).edited(&[Edit::from_form(key, value)]).ok()
}

#[test]
fn comments_stay() {
    let text = "# what\n[strategy]\nbatch = 32 # each\n";
    let after = edited(text, "strategy.batch", Some("64")).unwrap();
    assert_eq!(after, "# what\n[strategy]\nbatch = 64 # each\n");
}

#[test]
fn groups_come_and_go() {
    let text = "[[cluster.workers]]\ncount = 2\n";
    let two = edited(text, "cluster.workers.1.count", Some("3")).unwrap();
    assert_eq!(two.matches("[[cluster.workers]]").count(), 2, "{two}");
    assert_eq!(edited(&two, "cluster.workers.1", None).unwrap().trim(), text.trim());
    assert_eq!(edited(text, "cluster.workers.5.count", Some("3")), None);
    assert_eq!(edited("[", "a", Some("3")), None);
    assert_eq!(edited("[data]\nsamples = 1\n", "data", None).unwrap().trim(), "");
}

#[test]
fn a_name_is_a_model() {
    let zoo = |text: &str, edits: &[&str]| {
        let edits = Edit::parse_all(edits).unwrap();
        Document::new("test", text).file(&edits).unwrap().model
    };
    let named = zoo("[model]\nzoo = \"bert-base\"\nsequence = 128\n", &[]);
    assert_eq!(zoo("model = \"bert-base\"\n", &["model.sequence=128"]), named);
    assert_eq!(zoo("[model]\nsequence = 128\n", &["model=bert-base"]), named);
    assert_eq!(zoo("", &["model=a/config.json"]).config.unwrap(), "a/config.json");
    assert_eq!(zoo("model = \"net.onnx.gz\"", &[]).onnx.unwrap(), "net.onnx.gz");
}

/// A text that was edited and printed is the same scenario as one that was edited and read.
#[test]
fn edited_texts_are_edited_scenarios() {
    let text = "[model]\nzoo = \"alexnet\"\n[cluster]\nnetwork = \"10gbe\"\n\
                workers = [{ count = 2, device = \"tesla-t4\" }, { count = 3 }]\n";
    let changes = [
        "model.zoo=resnet50",
        "strategy.synchronisation=local-sgd(4)",
        "workers=5",
        "cluster.workers.0.count=7",
        "cluster.workers.0.device.efficiency=0.5",
        "cluster.network.bandwidth=\"40 Gbit/s\"",
        "cluster.servers.count=3",
        "data.samples=1_000",
        "methods.simulate.steps=100",
    ];
    let edits: Vec<Edit> = changes.iter().map(|change| Edit::parse(change).unwrap()).collect();
    let document = Document::new("test", text);
    let printed = Document::new("test", document.edited(&edits).unwrap());
    let scenario = document.scenario(&edits).unwrap();
    assert_eq!(printed.scenario(&[]).unwrap(), scenario);
    let made = Document::from_file("test", document.file(&[]).unwrap());
    assert_eq!(made.scenario(&edits).unwrap(), scenario);
    assert_eq!(scenario.cluster.groups.iter().map(|group| group.count).collect::<Vec<_>>(), [7, 5]);
}

/// A source with one configuration, of GPT-2.
struct Config;

impl Files for Config {
    fn text(&self, path: &str) -> Result<String, Fault> {
        match path {
            "config.json" => Ok(r#"{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
                                    "vocab_size": 50257, "n_positions": 1024}"#
                .to_owned()),
            _ => Err(Fault::new(format!("no file {path}"), "")),
        }
    }
}

fn scenario(model: &str) -> Result<Scenario, Fault> {
    Document::new("s.toml", format!("[model]\n{model}")).scenario_with(&Config, &[])
}

#[test]
fn names_tables_and_configurations_give_the_same_shape() {
    let named = scenario("zoo = \"gpt2\"").unwrap();
    let shape = named.source.transformer().unwrap();
    assert_eq!(shape, zoo::transformer("gpt2").unwrap());
    let table = scenario("transformer = { base = \"gpt2\" }").unwrap();
    let config = scenario("config = \"config.json\"").unwrap();
    for other in [&table, &config] {
        assert_eq!(other.source.transformer(), Some(shape));
        assert_eq!(other.workload.parameters, named.workload.parameters);
        assert_eq!(other.workload.forward, named.workload.forward);
    }
    assert_eq!(scenario("zoo = \"resnet50\"").unwrap().source.transformer(), None);
}

#[test]
fn a_sequence_changes_the_work_but_not_the_parameters() {
    let usual = scenario("zoo = \"llama3-8b\"").unwrap();
    let short = scenario("zoo = \"llama3-8b\"\nsequence = 2048").unwrap();
    assert_eq!(short.source.transformer().unwrap().sequence, 2048);
    assert_eq!(short.workload.parameters, usual.workload.parameters);
    // Attention grows faster than the sequence.
    assert!(usual.workload.forward.get() > 4.0 * short.workload.forward.get());
    assert_eq!(scenario("zoo = \"gpt2\"\nsequence = 512").unwrap().workload.sample.get() as u64, 4 * 512);
    let table = scenario("sequence = 64\ntransformer = { base = \"gpt2\" }").unwrap();
    assert_eq!(table.source.transformer().unwrap().sequence, 64);
}

/// Lengths of both stacks: the target keeps its share of the input unless it is given.
#[test]
fn a_table_beside_a_name_says_what_differs() {
    let shape = |text: &str| scenario(text).unwrap().source.transformer().unwrap();
    let cut = shape("zoo = \"llama3-8b\"\ntransformer = { layers = 4 }");
    assert_eq!(cut, Transformer { layers: 4, ..zoo::transformer("llama3-8b").unwrap() });
    let lengths = |text: &str| (shape(text).sequence, shape(text).target);
    assert_eq!(lengths("zoo = \"t5-base\"\nsequence = 1024"), (1024, 228));
    assert_eq!(
        lengths("zoo = \"t5-base\"\nsequence = 1024\ntransformer = { modules = \"t5\" }"),
        (1024, 228)
    );
    assert_eq!(lengths("zoo = \"t5-base\"\nsequence = 1024\ntransformer = { target = 128 }"), (1024, 128));
    assert_eq!(
        scenario("zoo = \"resnet50\"\ntransformer = { layers = 4 }").unwrap_err().key.to_string(),
        "model.transformer"
    );
}

#[test]
fn scenarios_are_written_back() {
    for model in [
        "zoo = \"llama3-8b\"\nsequence = 2048",
        "zoo = \"gpt2\"",
        "transformer = { base = \"deepseek-v3\", layers = 4, name = \"cut\" }",
        "config = \"config.json\"\nsequence = 256",
    ] {
        let first = scenario(model).unwrap();
        let again = first.to_file().resolve_with(&Config).unwrap();
        assert_eq!(again, first, "{model}");
        assert_eq!(again.to_file(), first.to_file(), "{model}");
    }
    let cut = scenario("transformer = { base = \"gpt2\", name = \"cut\" }").unwrap();
    assert!(matches!(&cut.source, ModelSource::Transformer { name, .. } if name == "cut"));
}

#[test]
fn refusals_name_the_key() {
    let wrong = |model: &str| scenario(model).unwrap_err().key.to_string();
    assert_eq!(wrong("zoo = \"gpt2\"\nsequence = 1025"), "model.sequence");
    assert_eq!(wrong("zoo = \"resnet50\"\nsequence = 8"), "model.sequence");
    assert_eq!(wrong("zoo = \"llama3-8b\"\nsequence = 0"), "model.sequence");
    assert_eq!(wrong("config = \"config.json\"\nsequence = 2048"), "model.sequence");
    assert_eq!(wrong("config = \"other.json\""), "model.config");
    assert_eq!(wrong("transformer = { base = \"gpt2\", heads = 7 }"), "model.transformer.heads");
    assert_eq!(wrong("zoo = \"gpt2\"\ntransformer = { base = \"gpt2\" }"), "model.transformer");
    assert_eq!(wrong("profile = \"a\"\nconfig = \"b\""), "model.profile");
}

fn on_cluster(cluster: &str) -> Result<Scenario, Fault> {
    scenario(&format!("zoo = \"vgg16\"\n{cluster}"))
}

const RANGES: &str = include_str!("../ranges.toml");

/// A capped device is in the same machine, whoever names it.
#[test]
fn changed_devices_stay_in_their_machine() {
    let capped = [
        "[[cluster.workers]]\ncount = 8\ndevice = { base = \"h200-sxm\", power = \"500 W\" }",
        "[cluster]\nmachine = \"dgx-h200\"\n[[cluster.workers]]\ndevice = { power = \"500 W\" }",
    ];
    let whole = on_cluster("[cluster]\nmachine = \"dgx-h200\"").unwrap().cluster;
    for text in capped {
        let cluster = on_cluster(text).unwrap().cluster;
        assert_eq!(cluster.groups[0].device.power.map(|power| power.get()), Some(500.0));
        assert_eq!(cluster.nodes, whole.nodes, "{text}");
    }
}

#[test]
fn ranges_are_found_and_the_centre_is_asked() {
    let scenario = on_cluster(RANGES).unwrap();
    let keys: Vec<String> = scenario.uncertain.iter().map(|input| input.key().to_string()).collect();
    assert_eq!(
        keys,
        [
            "cluster.network.bandwidth",
            "cluster.network.efficiency",
            "cluster.servers.bandwidth",
            "cluster.workers[0].device.efficiency",
            "cluster.workers[1].speed",
            "input.rate",
        ]
    );
    assert!((scenario.cluster.network.bandwidth.get() / 90e18_f64.sqrt() - 1.0).abs() < 1e-12);
    let [low, high] = scenario.at_ends(&scenario.uncertain[3]);
    assert_eq!(low.cluster.groups[0].device.efficiency, Some(0.4));
    assert_eq!(high.cluster.groups[0].device.efficiency, Some(0.5));
    assert_eq!(high.cluster.groups[1], scenario.cluster.groups[1]);
    let rates = scenario.at_ends(&scenario.uncertain[5]).map(|end| end.input.rate.map(SamplesPerSec::get));
    assert_eq!(rates, [Some(2000.0), Some(3000.0)]);
}

#[test]
fn ranges_are_written_back() {
    let first = on_cluster(RANGES).unwrap();
    let again = first.to_file().resolve().unwrap();
    assert_eq!(again.uncertain, first.uncertain);
    assert_eq!(again.to_file(), first.to_file());
}

#[test]
fn every_end_must_be_possible() {
    let network = |keys: &str| format!("[cluster.network]\nbase = \"10gbe\"\n{keys}");
    let wrong = on_cluster(&network("efficiency = \"0.9..1.1\"")).unwrap_err();
    assert_eq!(wrong.key.to_string(), "cluster.network.efficiency");
    let wrong = on_cluster(&network("bandwidth = \"1e-90..1e90 Gbit/s\"")).unwrap_err();
    assert!(wrong.reason.contains("too small to be meant"), "{wrong:?}");
}

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
    assert_eq!(found, Division { data: 2, micro_batches: 32, global_batch: 64 });
    let found = divide("llama3-8b", 8, "sharding = \"hsdp\"\nsharding-group = 4").unwrap();
    assert_eq!(found, Division { data: 8, micro_batches: 1, global_batch: 8 });
    let found = divide("llama3-8b", 3, "micro-batch = 2").unwrap();
    assert_eq!(found, Division { data: 3, micro_batches: 1, global_batch: 6 });
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
