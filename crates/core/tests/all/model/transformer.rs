//! Parameters against published checkpoints and independent counts; sections and configurations against the zoo.

use crate::test_cases;
use serde_json::Value;
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{
    AdaptersSection, Block, Experts, Mla, Mlp, Modules, NormKind, Pattern, Transformer, TransformerSection,
    Tuning, hugging_face,
};
use stepcast_core::model::{Builder, zoo};
use stepcast_core::text;

const GOLDEN: &str = include_str!("../../../../../validation/transformer/params.json");

fn golden_shape(model: &Value) -> Transformer {
    let number = |key: &str| model[key].as_u64().unwrap();
    let truth = |key: &str| model[key].as_bool().unwrap();
    let moe = &model["moe"];
    Transformer {
        head_width: number("head_dim"),
        kv_heads: number("kv_heads"),
        mlp_width: if moe.is_null() { number("ffn") } else { moe["dense_ffn"].as_u64().unwrap() },
        mlp: if model["mlp"] == "gelu" { Mlp::Gelu } else { Mlp::Swiglu },
        norm: if model["norm"] == "layer" { NormKind::Layer } else { NormKind::Rms },
        bias: truth("bias"),
        qkv_bias: truth("qkv_bias"),
        positions: number("positions"),
        tied: truth("tied"),
        embedding_norm: truth("embed_norm"),
        experts: (!moe.is_null()).then(|| Experts {
            count: moe["experts"].as_u64().unwrap(),
            active: moe["topk"].as_u64().unwrap(),
            width: moe["expert_ffn"].as_u64().unwrap(),
            shared_width: moe["shared_ffn"].as_u64().unwrap(),
            dense_layers: moe["dense_layers"].as_u64().unwrap(),
            every: 1,
            router_bias: moe["router_bias"] != 0,
            shared_gate: false,
        }),
        mla: model["mla"].as_object().map(|mla| Mla {
            query_rank: mla["q_rank"].as_u64().unwrap(),
            key_value_rank: mla["kv_rank"].as_u64().unwrap(),
            nope: mla["nope"].as_u64().unwrap(),
            rope: mla["rope"].as_u64().unwrap(),
            value: mla["v"].as_u64().unwrap(),
        }),
        ..Transformer::gpt(number("layers"), number("hidden"), number("heads"), number("vocab"), 1)
    }
}

#[test]
fn parameters_are_the_golden_ones() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 24);
    let mut published = 0;
    for case in cases {
        let name = case["model"]["name"].as_str().unwrap();
        let shape = golden_shape(&case["model"]);
        let (parts, expect) = (shape.parts(), &case["expect"]);
        let counted = [
            ("embedding", parts.embedding.total()),
            ("layers", parts.of_layers()),
            ("final_norm", parts.final_norm.total()),
            ("output", parts.output.total()),
            ("total", parts.total()),
        ];
        for (key, count) in counted {
            assert_eq!(expect[key], count, "{name}: {key}");
        }
        if let Some(active) = expect["active"].as_u64() {
            assert_eq!(shape.active_parameters(), active, "{name}: active");
        }
        // The zoo has the same model under the same name.
        let named = zoo::transformer(name).unwrap_or_else(|| panic!("the zoo has no {name}"));
        assert_eq!(named.parameters(), parts.total(), "{name} in the zoo");
        assert_eq!(named.active_parameters(), shape.active_parameters(), "{name} in the zoo");
        if let Some(total) = case["published"].as_u64() {
            assert_eq!(parts.total(), total, "{name}: published");
            published += 1;
        }
    }
    assert_eq!(published, 19);
}

#[test]
fn parameters_are_those_of_other_checkpoints() {
    for [name, total] in test_cases(include_str!("../../models/checkpoints.txt")) {
        assert_eq!(zoo::transformer(name).unwrap().parameters().to_string(), total, "{name}");
    }
}

/// Adapters of T5, as PEFT 0.21 counts them.
#[test]
fn adapters_of_t5_are_those_of_peft() {
    for (name, rank, targets, trained) in [
        ("t5-base", 16, "q v", 1_769_472),
        ("t5-large", 16, "q k v o up down", 17_301_504),
        ("t5-v1.1-xl", 8, "q v", 4_718_592),
        ("t5-v1.1-xl", 16, "q k v o gate up down", 35_389_440),
    ] {
        let shape = zoo::transformer(name).unwrap();
        let targets = targets.split(' ').map(str::to_owned).collect();
        let section =
            AdaptersSection { rank: Some(rank), targets: Some(targets), ..AdaptersSection::default() };
        let tuning = Tuning::resolve(Some(&section), None, &shape).unwrap();
        assert_eq!(Transformer { tuning, ..shape }.trained_parameters(), trained, "{name}");
    }
}

/// Tensors of whole models of transformers 5.17, without those of embedding, positions and last norm.
#[test]
fn layers_have_the_tensors_of_their_modules() {
    for (name, all, ends) in
        [("gpt2", 148, 4), ("gpt2-medium", 292, 4), ("llama3.2-1b", 146, 2), ("qwen2.5-0.5b", 290, 2)]
    {
        let shape = zoo::transformer(name).unwrap();
        assert_eq!(shape.layers * shape.layer_tensors(shape.block(0)) + ends, all, "{name}");
    }
}

/// Brown et al. 2020, table 2.1, in millions.
#[test]
fn parameters_of_gpt3_are_those_printed() {
    let printed = [("gpt3-1.3b", 1320), ("gpt3-2.7b", 2650), ("gpt3-6.7b", 6660), ("gpt3-13b", 12_850)];
    for (name, millions) in printed {
        let found = zoo::transformer(name).unwrap().parameters();
        assert!(found.abs_diff(millions * 1_000_000) <= 5_000_000, "{name}: {found}");
    }
}

/// Two ways to count: by parts, and layer by layer with inferred shapes.
#[test]
fn laid_out_models_have_the_parameters_of_their_parts() {
    for name in zoo::transformers() {
        let shape = zoo::transformer(name).unwrap();
        shape.check().unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(zoo::build(name).unwrap().parameters(), shape.parameters(), "{name} in the layered zoo");
        let model = shape.layout(Builder::new(name, "test")).unwrap();
        assert_eq!(model.parameters(), shape.parameters(), "{name} laid out");
    }
}

/// GPT-2 laid out by its shape counts what the layout of its implementation counts, up to dropout.
#[test]
fn both_layouts_of_gpt2_agree() {
    let ours = zoo::transformer("gpt2").unwrap().layout(Builder::new("gpt2", "test")).unwrap().cost();
    let theirs = zoo::build("gpt2").unwrap().cost();
    assert_eq!(ours.multiply_add, theirs.multiply_add);
    assert_eq!((ours.activation, ours.normalisation), (theirs.activation, theirs.normalisation));
}

/// Models over patches and frames have the products of the layouts of their implementations.
#[test]
fn both_layouts_of_signals_agree() {
    for name in ["dit-xl-2", "vit-b-16", "vit-h-14", "whisper-tiny", "whisper-large-v3"] {
        let ours = zoo::transformer(name).unwrap().layout(Builder::new(name, "test")).unwrap().cost();
        assert_eq!(ours.multiply_add, zoo::build(name).unwrap().cost().multiply_add, "{name}");
    }
}

/// T5 laid out by its shape has the products of the layout of its implementation, whatever the lengths.
#[test]
fn both_layouts_of_t5_agree() {
    for name in ["t5-base", "t5-v1.1-small"] {
        for sequence in [512, 1024] {
            let shape = zoo::transformer(name).unwrap().with_sequence(sequence);
            let ours = shape.layout(Builder::new(name, "test")).unwrap().cost();
            let theirs = zoo::build_for(name, Some(sequence)).unwrap().cost();
            assert_eq!(ours.multiply_add, theirs.multiply_add, "{name}");
        }
    }
}

#[test]
fn shards_hold_whole_key_value_heads() {
    let shape = zoo::transformer("llama3-70b").unwrap();
    let layer = shape.layer_parameters(Block::DENSE);
    let head = 2 * shape.head_width * shape.hidden;
    assert_eq!(layer.key_value, 8 * head);
    let shard = |ranks: u64| layer.dense_shard(ranks, shape.kv_heads);
    assert_eq!(shard(8) - layer.tensor / 8 - layer.every, head);
    assert_eq!(shard(16) - layer.tensor / 16 - layer.every, head);
    assert_eq!(layer.dense_shard(1, shape.kv_heads), layer.total());
}

#[test]
fn sections_describe_every_shape_completely() {
    for name in zoo::transformers() {
        let shape = zoo::transformer(name).unwrap();
        assert_eq!(shape.section(name).resolve().unwrap(), (name.to_owned(), shape), "{name}");
    }
}

fn section(text: &str) -> Result<(String, Transformer), Fault> {
    text::parse::<TransformerSection>(text).unwrap().resolve()
}

#[test]
fn a_section_starts_from_a_transformer_of_the_zoo() {
    let (name, cut) = section("base = \"llama3-70b\"\nlayers = 16").unwrap();
    assert_eq!(name, "llama3-70b");
    assert_eq!(cut, Transformer { layers: 16, ..zoo::transformer("llama3-70b").unwrap() });
    let (_, wide) = section("base = \"llama3-8b\"\nhidden = 8192\nheads = 64").unwrap();
    assert_eq!(wide.head_width, 128);
    let (name, own) =
        section("layers = 2\nhidden = 64\nheads = 4\nvocabulary = 100\nsequence = 8\nbias = true").unwrap();
    assert_eq!((name.as_str(), own.mlp_width, own.qkv_bias, own.head_width), ("transformer", 256, true, 16));
}

#[test]
fn sections_refuse_what_is_no_shape() {
    let wrong = |text: &str| section(text).unwrap_err();
    let small = "layers = 2\nhidden = 64\nheads = 4\nvocabulary = 100\nsequence = 8\n";
    assert!(wrong("layers = 2").reason.contains("`hidden`"));
    assert!(wrong("base = \"lama3-8b\"").remedy.contains("llama3-8b"));
    assert_eq!(wrong(&small.replace("64", "66")).key.to_string(), "heads");
    assert_eq!(wrong(&format!("{small}kv-heads = 3")).key.to_string(), "kv-heads");
    assert_eq!(wrong(&format!("{small}positions = 4")).key.to_string(), "sequence");
    assert_eq!(wrong(&small.replace("layers = 2", "layers = 0")).key.to_string(), "layers");
    assert_eq!(wrong(&small.replace("heads = 4", "heads = 0")).key.to_string(), "heads");
    let experts = format!("{small}[experts]\ncount = 4\nactive = 5");
    assert_eq!(wrong(&experts).key.to_string(), "experts.active");
    assert_eq!(wrong(&format!("{small}[mla]\nrope = 5")).key.to_string(), "mla");
    let crowded =
        format!("{small}[signal]\npatch = 4\nclass-tokens = 5\n[condition]\ntext = 4\ntext-tokens = 5");
    assert_eq!(wrong(&crowded).key.to_string(), "condition.text-tokens");
    for [pattern, reason] in [
        ["LX", "\"X\" is no kind"],
        ["", "1 to 128 letters"],
        ["LA", "delta nets of unknown widths"],
        ["AM", "Mamba layers of unknown widths"],
        ["EA", "an encoder needs the first layers and a target"],
        ["aC", "cross-attention needs an encoder"],
    ] {
        let fault = wrong(&format!("{small}pattern = \"{pattern}\""));
        assert!(fault.key == "pattern" && fault.reason.contains(reason), "{pattern}: {fault}");
    }
    let kinds =
        format!("{}pattern = \"AaMmf\"\n[mamba]\nheads = 2", small.replace("layers = 2", "layers = 5"));
    assert!(wrong(&kinds).reason.contains("more than four"));
}

#[test]
fn configurations_give_the_shapes_of_the_zoo() {
    for [name, text] in test_cases(include_str!("../../models/configurations.txt")) {
        let zoo = zoo::transformer(name).unwrap();
        // Diffusers have matrices of their own for queries, keys and values.
        let modules = if zoo.modules == Modules::Timm { Modules::Plain } else { zoo.modules };
        assert_eq!(hugging_face::read(text).unwrap().1, Transformer { modules, ..zoo }, "{name}");
    }
}

#[test]
fn configurations_have_the_parameters_of_the_models_that_the_library_makes() {
    for line in include_str!("../../models/library.txt").lines().filter(|line| !line.starts_with('#')) {
        let (parameters, text) = line.split_once(' ').unwrap();
        let shape = hugging_face::read(text).unwrap_or_else(|fault| panic!("{fault}: {text}")).1;
        assert_eq!(shape.parameters(), parameters.parse::<u64>().unwrap(), "{text}");
    }
}

/// A model that also sees: what is usual is left out, and the number of experts has the library's new name.
#[test]
fn parts_for_text_are_read() {
    let sees = |text: &str| {
        let file = format!(r#"{{"model_type": "sees", "_name_or_path": "own", "text_config": {text}}}"#);
        hugging_face::read(&file).unwrap()
    };
    let small = r#"{"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024}"#;
    let (name, shape) = sees(small);
    assert_eq!(name.as_deref(), Some("own, text"));
    assert_eq!((shape.heads, shape.kv_heads, shape.head_width, shape.vocabulary), (8, 4, 256, 262_208));
    let experts = |key: &str| {
        sees(&format!(
            r#"{{"model_type": "qwen3_vl_moe_text", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
            "num_hidden_layers": 2, "vocab_size": 100, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "{key}": 8}}"#
        ))
    };
    assert_eq!(experts("num_experts"), experts("num_local_experts"));
}

#[test]
fn configurations_say_what_is_wrong() {
    let wrong = |text: &str| hugging_face::read(text).unwrap_err().reason;
    assert!(wrong("{").starts_with("it is not JSON"));
    assert_eq!(wrong("{}"), "it has no `model_type`");
    assert_eq!(wrong(r#"{"model_type": "rwkv"}"#), "the `model_type` \"rwkv\" is not known");
    assert_eq!(wrong(r#"{"model_type": "gpt2"}"#), "it has no `n_embd`");
    assert_eq!(wrong(r#"{"model_type": "gpt2", "n_embd": "x"}"#), "`n_embd` is \"x\", not a whole number");
    let odd = r#"{"model_type": "gpt2", "n_embd": 10, "n_head": 3, "n_layer": 1, "vocab_size": 5}"#;
    assert_eq!(wrong(odd), "3 heads do not divide the width 10");
    let letters = r#"{"model_type": "nemotron_h", "hybrid_override_pattern": "M-E"}"#;
    assert_eq!(wrong(letters), "the layer type \"E\" is not modelled");
    let none = r#"{"model_type": "gpt2", "n_embd": 12, "n_head": 3, "n_layer": 0, "vocab_size": 5}"#;
    assert_eq!(wrong(none), "layers: must be between 1 and 2000, but is 0");
    let huge = r#"{"model_type": "vit", "hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 1,
        "intermediate_size": 48, "image_size": 1099511627776, "patch_size": 1, "num_channels": 3}"#;
    assert!(wrong(huge).starts_with("sequence: must be between"), "{}", wrong(huge));
    let wide = huge
        .replace("1099511627776", "224")
        .replace("\"hidden_size\": 12", "\"hidden_size\": 9223372036854775809");
    assert!(wrong(&wide).starts_with("hidden: must be between"), "{}", wrong(&wide));
}

/// Qwen3-Next with its module for a second token, a layer with attention: 81,324,862,720 parameters are in its checkpoint.
#[test]
fn a_pattern_of_all_letters_does_not_repeat() {
    let main = zoo::transformer("qwen3-next-80b-a3b").unwrap();
    let pattern = Pattern::parse(&format!("{}A", "LLLA".repeat(12))).unwrap();
    let shape = Transformer { layers: 49, multi_token: 1, pattern: Some(pattern), ..main };
    assert_eq!(shape.parameters(), 81_324_862_720);
    assert_eq!(Pattern::parse(&"LLLA".repeat(12)).unwrap(), main.pattern.unwrap());
}

/// DeepSeek-V3 with its module for a second token: a layer with experts, a projection and three norms more, in both counts.
#[test]
fn modules_for_further_tokens_add_a_layer_a_projection_and_norms() {
    let main = zoo::transformer("deepseek-v3").unwrap();
    let shape = Transformer { layers: main.layers + 1, multi_token: 1, ..main };
    let h = main.hidden;
    let module = main.layer_parameters(Block::EXPERTS).total() + 2 * h * h + 3 * h;
    assert_eq!(shape.parameters(), main.parameters() + module);
    let laid_out = |shape: Transformer| shape.layout(Builder::new("deepseek-v3", "test")).unwrap();
    assert_eq!(laid_out(shape).parameters(), shape.parameters());
    shape.check().unwrap();
    assert_eq!(
        Transformer { multi_token: 62, ..shape }.check().unwrap_err().to_string().split(':').next(),
        Some("multi-token")
    );
}

/// Llama 7B at rank 1,024: Table 1 of the paper with m ≤ n: mr of projections and 2nr of moments.
#[test]
fn moments_of_low_rank_are_those_of_the_paper() {
    let shape = Transformer::llama(32, 4096, [32, 32], 11_008, 32_000, 2048);
    let own = shape.low_rank(shape.block(0), 1024);
    assert_eq!(own.weights, 4 * 4096 * 4096 + 3 * 4096 * 11_008);
    assert_eq!(own.projections, 7 * 4096 * 1024);
    assert_eq!(own.moment, (4 * 4096 + 3 * 11_008) * 1024);
}
