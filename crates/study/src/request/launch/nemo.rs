//! Configurations of NeMo and Megatron-Bridge, and Megatron-LM's own in YAML: flags of Megatron-LM in other letters.

use super::keys::Keys;
use super::yaml;
use serde_json::Value;
use stepcast_core::fault::Fault;

/// Keys with a name of their own.
const RENAMED: [(&str, &str); 14] = [
    ("num_nodes", "--nnodes"),
    ("devices", "--nproc-per-node"),
    ("gpus_per_node", "--nproc-per-node"),
    ("max_steps", "--train-iters"),
    ("encoder_seq_length", "--seq-length"),
    ("virtual_pipeline_model_parallel_size", "--num-virtual-stages-per-pipeline-rank"),
    ("num_moe_experts", "--num-experts"),
    ("activations_checkpoint_granularity", "--recompute-granularity"),
    ("fp8", "--fp8-format"),
    ("num_layers_in_first_pipeline_stage", "--decoder-first-pipeline-num-layers"),
    ("num_layers_in_last_pipeline_stage", "--decoder-last-pipeline-num-layers"),
    ("fp16_enabled", "--fp16"),
    ("megatron_amp_O2", "--bf16"),
    ("use_megatron_fsdp", "--use-megatron-fsdp"),
];

/// Keys whose absence is a flag.
const ABSENT: [(&str, &str); 3] = [
    ("bias", "--disable-bias-linear"),
    ("add_bias_linear", "--disable-bias-linear"),
    ("share_embeddings_and_output_weights", "--untie-embeddings-and-output-weights"),
];

/// Whether a text is such a configuration.
pub(super) fn recognises(text: &str) -> bool {
    let known = |line: &str| {
        let name = line.split(':').next().unwrap_or_default().trim().trim_start_matches('-');
        line.contains(':')
            && ["tensor_model_parallel_size", "pipeline_model_parallel_size"]
                .contains(&name.replace('-', "_").as_str())
    };
    text.lines().any(known)
}

/// Its keys as flags, whatever sections they are in.
pub(super) fn keys(text: &str) -> Result<Keys, Fault> {
    let mut flags = Keys::default();
    for (path, value) in yaml::keys(text)?.all() {
        let name = path.rsplit('.').next().unwrap_or_default();
        if name.starts_with("--") {
            flags.set(name, value);
            continue;
        }
        let word = value.as_str().unwrap_or_default().to_lowercase();
        let absent = ABSENT.iter().find(|(theirs, _)| *theirs == name);
        let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == name);
        match (name, absent, renamed) {
            (_, Some((_, flag)), _) => flags.set(*flag, Value::Bool(value == Value::Bool(false))),
            (_, _, Some((_, flag))) => flags.set(*flag, value),
            ("precision", ..) => {
                let half =
                    if word.starts_with("fp16") || word.starts_with("16") { "--fp16" } else { "--bf16" };
                flags.set(half, true.into());
            }
            ("activation" | "activation_func", ..) => {
                flags.set("--swiglu", (word.contains("swiglu") || word.contains("silu")).into());
            }
            ("num_query_groups", ..) => {
                flags.set("--group-query-attention", (!value.is_null()).into());
                flags.set("--num-query-groups", value);
            }
            ("name", ..) if word.contains("distributed") => {
                flags.set("--use-distributed-optimizer", true.into())
            }
            _ => flags.set(format!("--{}", name.replace('_', "-")), value),
        }
    }
    Ok(flags)
}
