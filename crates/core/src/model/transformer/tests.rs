//! Parameters against published checkpoints and independent counts; sections and configurations against the zoo.

use super::*;
use crate::model::{Builder, zoo};
use serde_json::Value;

const GOLDEN: &str = include_str!("../../../../../validation/transformer/params.json");

/// Totals of published checkpoints that the golden file does not have.
const PUBLISHED: &[(&str, u64)] = &[
    ("bert-base-mlm", 109_514_298),
    ("llama3.2-1b", 1_235_814_400),
    ("llama3.2-3b", 3_212_749_824),
    ("mistral-nemo-12b", 12_247_782_400),
    ("mistral-large-123b", 122_610_069_504),
    ("qwen2.5-0.5b", 494_032_768),
    ("qwen2.5-1.5b", 1_543_714_304),
    ("qwen2.5-3b", 3_085_938_688),
    ("qwen2.5-14b", 14_770_033_664),
    ("qwen2.5-32b", 32_763_876_352),
    ("qwen2.5-72b", 72_706_203_648),
    ("qwen3-0.6b", 596_049_920),
    ("qwen3-4b", 4_022_468_096),
    ("qwen3-8b", 8_190_735_360),
    ("qwen3-14b", 14_768_307_200),
    ("qwen3-32b", 32_762_123_264),
    ("qwen3-30b-a3b", 30_532_122_624),
    ("qwen3-235b-a22b", 235_093_634_560),
    ("gemma2-2b", 2_614_341_888),
    ("gemma2-9b", 9_241_705_984),
    ("gemma2-27b", 27_227_128_320),
    ("deepseek-v2", 235_741_434_880),
    ("phi4-14b", 14_659_507_200),
    ("gemma3-1b", 999_885_952),
    ("kimi-k2", 1_026_408_232_448),
    ("llama4-scout", 107_769_861_120),
    ("glm4.5-air", 106_852_251_264),
    ("mpt-7b", 6_649_286_656),
    ("mpt-30b", 29_957_200_896),
];

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
            ("layers", parts.layers()),
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
    for &(name, total) in PUBLISHED {
        assert_eq!(zoo::transformer(name).unwrap().parameters(), total, "{name}");
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

#[test]
fn shards_hold_whole_key_value_heads() {
    let shape = zoo::transformer("llama3-70b").unwrap();
    let layer = shape.layer_parameters(false);
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

fn section(text: &str) -> Result<(String, Transformer), crate::fault::Fault> {
    toml::from_str::<TransformerSection>(text).unwrap().resolve()
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
}

#[test]
fn configurations_give_the_shapes_of_the_zoo() {
    let cases = [
        (
            "gpt2-xl",
            r#"{"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024,
                "vocab_size": 50257, "n_inner": null}"#,
        ),
        (
            "llama3-70b",
            r#"{"model_type": "llama", "hidden_size": 8192, "num_attention_heads": 64, "num_hidden_layers": 80,
                "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256,
                "max_position_embeddings": 8192, "tie_word_embeddings": false, "rope_scaling": null}"#,
        ),
        (
            "mixtral-8x7b",
            r#"{"model_type": "mixtral", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
                "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
                "max_position_embeddings": 8192, "num_local_experts": 8, "num_experts_per_tok": 2,
                "sliding_window": null}"#,
        ),
        (
            "qwen2.5-7b",
            r#"{"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_hidden_layers": 28,
                "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
                "max_position_embeddings": 4096, "sliding_window": 131072, "use_sliding_window": false}"#,
        ),
        (
            "gemma2-9b",
            r#"{"model_type": "gemma2", "hidden_size": 3584, "num_attention_heads": 16, "num_hidden_layers": 42,
                "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336, "vocab_size": 256000,
                "max_position_embeddings": 8192, "sliding_window": 4096}"#,
        ),
        (
            "deepseek-v3",
            r#"{"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128,
                "num_hidden_layers": 61, "num_key_value_heads": 128, "intermediate_size": 18432,
                "vocab_size": 129280, "max_position_embeddings": 4096, "q_lora_rank": 1536, "kv_lora_rank": 512,
                "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256,
                "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
                "first_k_dense_replace": 3}"#,
        ),
        (
            "mpt-7b",
            r#"{"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "max_seq_len": 2048,
                "vocab_size": 50432, "no_bias": true, "attn_config": {"alibi": true}}"#,
        ),
        (
            "bloom-176b",
            r#"{"model_type": "bloom", "n_embed": 14336, "num_attention_heads": 112, "n_layer": 70,
                "seq_length": 2048, "vocab_size": 250880}"#,
        ),
    ];
    for (name, text) in cases {
        assert_eq!(hugging_face::read(text).unwrap().1, zoo::transformer(name).unwrap(), "{name}");
    }
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
    let none = r#"{"model_type": "gpt2", "n_embd": 12, "n_head": 3, "n_layer": 0, "vocab_size": 5}"#;
    assert_eq!(wrong(none), "layers: must be between 1 and 2000, but is 0");
}

/// DeepSeek-V3 with its module for a second token: a layer with experts, a projection and three norms more, in both counts.
#[test]
fn modules_for_further_tokens_add_a_layer_a_projection_and_norms() {
    let main = zoo::transformer("deepseek-v3").unwrap();
    let shape = Transformer { layers: main.layers + 1, multi_token: 1, ..main };
    let h = main.hidden;
    let module = main.layer_parameters(true).total() + 2 * h * h + 3 * h;
    assert_eq!(shape.parameters(), main.parameters() + module);
    let laid_out = |shape: Transformer| shape.layout(Builder::new("deepseek-v3", "test")).unwrap();
    assert_eq!(laid_out(shape).parameters(), shape.parameters());
    shape.check().unwrap();
    assert_eq!(
        Transformer { multi_token: 62, ..shape }.check().unwrap_err().to_string().split(':').next(),
        Some("multi-token")
    );
}
