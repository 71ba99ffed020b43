//! Arguments of Megatron-LM, as a list or in a shell script (docs.nvidia.com/megatron-core, user guide;
//! `megatron/training/arguments.py`).

use super::emit::Launch;
use super::keys::Keys;
use super::settings::{Settings, cannot};
use super::{Framework, Group, Launched, shell};
use serde_json::Value;
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{
    ExpertsSection, MlaSection, Mlp, NormKind, Transformer, TransformerSection,
};
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{OverlapPreset, Recompute, ScheduleKind, Sharding, States};

/// Flags that say nothing about the time of a step, and those of launchers.
const WITHOUT_EFFECT: &str = "\
    --accumulate- --adam- --apply-query-key-layer-scaling --async-save --attention-softmax \
    --auto-detect-ckpt --calculate-per-token-loss --check- --ckpt- --clip-grad --config-logger \
    --create-attention-mask --cross-entropy- --data- --dataloader-type --decoupled-lr --deterministic \
    --dist-ckpt --distributed-backend --distributed-timeout --enable-one-logger --end-weight-decay \
    --eod-mask --eval- --exit- --finetune --full-validation --gres --init-method --initial-loss --job-name \
    --load --log- --loss-scale --lr --manual-gc --master- --max-restarts --mem --merge-file --min- \
    --mmap-bin --mock-data --moe-aux-loss --moe-router- --moe-z-loss --moe-grouped-gemm \
    --moe-token-dispatcher --moe-permute-fusion --no-async-tensor --no-check- --no-create- \
    --no-gradient-accumulation-fusion --no-load --no-masked-softmax-fusion --no-mmap --no-one-logger \
    --no-persist --no-rope-fusion --no-save --node-rank --non-persistent --norm-epsilon --num-dataset \
    --num-workers --output --override-opt --partition --per-split-data --profile --qos --rdzv- --rerun- \
    --reset- --rotary- --save --seed --sgd- --split --start-weight-decay --swiglu- --tee --tensorboard \
    --test-data --time --timing- --tokenizer- --train-data --transformer-impl --use-checkpoint \
    --use-cpu-init --use-dist-ckpt --use-flash-attn --use-legacy --use-mcore --use-mp-args --use-rope \
    --use-torch-fsdp2-reshard --valid-data --vocab-file --wandb --weight-decay --error --exclusive --account \
    --cpus-per-task --ntasks --num-gpus --use-pytorch-profiler --extra-vocab-size --iterations-to-skip --ft-";

/// Rows of the vocabulary are padded to a multiple of this for each tensor-parallel rank.
const PADDED: u64 = 128;

/// The vocabulary of GPT-2, if none is given.
const GPT2: u64 = 50_257;

/// Whether a text has arguments of Megatron-LM.
pub(super) fn recognises(text: &str) -> bool {
    let known = |word: &str| {
        [
            "--num-layers",
            "--tensor-model-parallel-size",
            "--micro-batch-size",
            "--pipeline-model-parallel-size",
        ]
        .iter()
        .any(|flag| word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
    };
    text.split([' ', '\t', '\n', '\r', '"', '\'', '(']).any(known)
}

pub(super) fn read(mut keys: Keys) -> Result<Launched, Fault> {
    let mut launched = Launched::read("Megatron-LM", &mut keys, Framework::Megatron)?;
    launched.plan.overlap = Some(OverlapPreset::Megatron);
    let nodes = either(&mut keys, ["--nnodes", "--nodes", "-N"])?;
    let each = either(&mut keys, ["--nproc-per-node", "--gpus-per-node", "--ntasks-per-node"])?;
    launched.per_machine = each;
    launched.workers = nodes.zip(each).map(|(nodes, each)| nodes.saturating_mul(each));
    sharding(&mut keys, &mut launched)?;
    recomputation(&mut keys, &mut launched)?;
    formats(&mut keys, &mut launched)?;
    launched.sequence = keys.number("--seq-length")?;
    model(&mut keys, &mut launched)?;
    stages(&mut keys, &mut launched)?;
    launched.replica_batch = launched.plan.micro_batch;
    launched.steps = keys.number("--train-iters")?;
    launched.samples = keys.number("--train-samples")?;
    keys.word("--optimizer");
    keys.forget(WITHOUT_EFFECT);
    launched.unknown.extend(keys.rest());
    Ok(launched)
}

fn either(keys: &mut Keys, names: [&str; 3]) -> Result<Option<u64>, Fault> {
    let mut found = None;
    for name in names {
        // A variable of the scheduler says nothing here.
        let known = keys.word(name).filter(|value| !shell::is_unknown(value));
        if let (None, Some(value)) = (found, known) {
            keys.set(name, Value::String(value));
            found = keys.number(name)?;
        }
    }
    Ok(found)
}

fn sharding(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let distributed = keys.switch("--use-distributed-optimizer");
    let own = keys.switch("--use-megatron-fsdp") | keys.switch("--use-custom-fsdp");
    let torch = keys.switch("--use-torch-fsdp2");
    let groups = keys.number("--num-distributed-optimizer-instances")?.filter(|groups| *groups > 1);
    let strategy = keys.word("--data-parallel-sharding-strategy");
    let sharding = match (own, strategy.as_deref()) {
        (true, Some("no_shard") | None) => Sharding::None,
        (true, Some("optim")) => Sharding::Zero1,
        (true, Some("optim_grads")) => Sharding::Zero2,
        (true, Some("optim_grads_params")) if groups.is_some() => Sharding::Hsdp,
        (true, Some("optim_grads_params")) => Sharding::Zero3,
        (true, Some(other)) => {
            let remedy = "use no_shard, optim, optim_grads or optim_grads_params";
            return Err(Fault::new(format!("`--data-parallel-sharding-strategy` is {other}"), remedy));
        }
        (false, _) if torch => Sharding::Zero3,
        (false, _) if distributed => Sharding::Zero1,
        (false, _) => Sharding::None,
    };
    match (sharding, groups) {
        (Sharding::Hsdp, Some(groups)) => launched.group = Some(Group::Count(groups)),
        (_, Some(_)) => launched.unknown.push("--num-distributed-optimizer-instances".to_owned()),
        (_, None) => {}
    }
    let plan = &mut launched.plan;
    plan.sharding = Some(sharding);
    if !keys.switch("--overlap-grad-reduce") && !torch {
        plan.overlap_gradients = Some(false);
    }
    if !keys.switch("--overlap-param-gather") && !torch && sharding != Sharding::None {
        plan.overlap_weights = Some(false);
        plan.overlap_prefetch = (sharding.stage() == 3).then_some(false);
    }
    Ok(())
}

fn recomputation(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let selective = keys.switch("--recompute-activations");
    let modules = keys.word("--recompute-modules").filter(|modules| modules != "core_attn");
    launched.unknown.extend(modules.map(|modules| format!("--recompute-modules {modules}")));
    let method = keys.word("--recompute-method");
    let layers = keys.number("--recompute-num-layers")?;
    launched.plan.recompute = match keys.word("--recompute-granularity").as_deref() {
        None if selective => Some(vec![Recompute::Attention]),
        None => None,
        Some("selective") => Some(vec![Recompute::Attention]),
        Some("full") => {
            if method.as_deref() == Some("block") {
                let count = layers.unwrap_or(1);
                let what =
                    format!("{count} layers of every stage are recomputed there: here all of them are");
                launched.notes.push(what);
            }
            Some(vec![Recompute::Layer])
        }
        Some(other) => {
            let reason = format!("`--recompute-granularity` is {other}");
            return Err(Fault::new(reason, "use full or selective"));
        }
    };
    Ok(())
}

fn formats(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let (half, brain) = (keys.switch("--fp16"), keys.switch("--bf16"));
    let (states, precision) = match (half, brain) {
        (true, _) => (States::MegatronFp16, Precision::Fp16),
        (false, true) => (States::MegatronBf16, Precision::Bf16),
        (false, false) => (States::Fp32, Precision::Fp32),
    };
    launched.plan.states = Some(states);
    launched.precision = Some(precision);
    // Both are usual there.
    let [hidden, attention] = ["--hidden-dropout", "--attention-dropout"].map(|flag| keys.real(flag));
    let dropout = hidden?.unwrap_or(0.1) > 0.0 || attention?.unwrap_or(0.1) > 0.0;
    launched.plan.dropout = dropout.then_some(true);
    Ok(())
}

fn model(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let layers = keys.number("--num-layers")?;
    let hidden = keys.number("--hidden-size")?;
    let heads = keys.number("--num-attention-heads")?;
    let grouped = keys.switch("--group-query-attention");
    let kv_heads = keys.number("--num-query-groups")?.filter(|_| grouped);
    let (head_width, given) = (keys.number("--kv-channels")?, keys.number("--ffn-hidden-size")?);
    let swiglu = keys.switch("--swiglu");
    let bias = !keys.switch("--disable-bias-linear");
    let qkv_bias = keys.switch("--add-qkv-bias") || bias;
    let qk_norm = keys.switch("--qk-layernorm");
    let rms = keys.word("--normalization").is_some_and(|name| name.eq_ignore_ascii_case("rmsnorm"));
    let rotary = keys.switch("--use-rotary-position-embeddings")
        || keys.word("--position-embedding-type").is_some_and(|kind| kind != "learned_absolute");
    let positions = keys.number("--max-position-embeddings")?;
    let tied = !keys.switch("--untie-embeddings-and-output-weights");
    let vocabulary = keys.number("--vocab-size")?;
    let padding = keys.number("--make-vocab-size-divisible-by")?.unwrap_or(PADDED);
    let experts = experts(keys)?;
    let mla = latent(keys)?;
    let (Some(layers), Some(hidden), Some(heads)) = (layers, hidden, heads) else { return Ok(()) };
    let padding = padding.saturating_mul(launched.plan.tensor.unwrap_or(1)).max(1);
    if vocabulary.is_none() {
        let what = format!("the vocabulary is that of the tokeniser: the {GPT2} tokens of GPT-2 are assumed");
        launched.notes.push(format!("{what}; `model.transformer.vocabulary` sets another"));
    }
    // Two thirds of four times the width, in multiples of 64.
    let usual = if swiglu { hidden.saturating_mul(8) / 3 / 64 * 64 } else { hidden.saturating_mul(4) };
    launched.shape = Some(TransformerSection {
        layers: Some(layers),
        hidden: Some(hidden),
        heads: Some(heads),
        kv_heads,
        head_width,
        mlp_width: Some(given.unwrap_or(usual)),
        mlp: Some(if swiglu { Mlp::Swiglu } else { Mlp::Gelu }),
        vocabulary: Some(vocabulary.unwrap_or(GPT2).div_ceil(padding).saturating_mul(padding)),
        sequence: launched.sequence,
        norm: Some(if rms { NormKind::Rms } else { NormKind::Layer }),
        bias: Some(bias),
        qkv_bias: Some(qkv_bias),
        qk_norm: Some(qk_norm),
        positions: Some(if rotary { 0 } else { positions.or(launched.sequence).unwrap_or(0) }),
        tied: Some(tied),
        experts,
        mla,
        ..TransformerSection::default()
    });
    Ok(())
}

fn experts(keys: &mut Keys) -> Result<Option<ExpertsSection>, Fault> {
    let Some(count) = keys.number("--num-experts")? else { return Ok(None) };
    let layers = keys.word("--moe-layer-freq");
    // A pattern such as ([0]*3+[1]*58): the first layers keep a dense MLP.
    let dense = layers.and_then(|pattern| {
        let inner = pattern.trim_matches(['(', ')', ' ']).strip_prefix("[0]*")?.to_owned();
        inner.split('+').next()?.trim().parse().ok()
    });
    Ok(Some(ExpertsSection {
        count: Some(count),
        active: Some(keys.number("--moe-router-topk")?.unwrap_or(2)),
        width: keys.number("--moe-ffn-hidden-size")?,
        shared_width: keys.number("--moe-shared-expert-intermediate-size")?,
        dense_layers: dense,
        router_bias: keys.switch("--moe-router-enable-expert-bias").then_some(true),
    }))
}

fn latent(keys: &mut Keys) -> Result<Option<MlaSection>, Fault> {
    let on = keys.switch("--multi-latent-attention");
    // What is usual there.
    let mla = MlaSection {
        query_rank: keys.number("--q-lora-rank")?,
        key_value_rank: Some(keys.number("--kv-lora-rank")?.unwrap_or(32)),
        nope: Some(keys.number("--qk-head-dim")?.unwrap_or(128)),
        rope: Some(keys.number("--qk-pos-emb-head-dim")?.unwrap_or(64)),
        value: Some(keys.number("--v-head-dim")?.unwrap_or(128)),
    };
    Ok(on.then_some(mla))
}

fn stages(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let layers = launched.shape.as_ref().and_then(|shape| shape.layers);
    let each = keys.number("--num-layers-per-virtual-pipeline-stage")?.filter(|each| *each > 0);
    let ends = ["--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"];
    let [first, last] = ends.map(|flag| keys.number(flag));
    let (first, last) = (first?, last?);
    let in_turn = keys.switch("--no-overlap-p2p-communication");
    let layout = keys.word("--pipeline-model-parallel-layout");
    let plan = &mut launched.plan;
    let chunks = plan.virtual_stages.take();
    let Some(pipeline) = plan.pipeline.filter(|stages| *stages > 1) else { return Ok(()) };
    let of_layers = || Some(layers? / pipeline / each?);
    let chunks = chunks.or_else(of_layers).filter(|chunks| *chunks > 1);
    let layout = layout.map(|text| stages_of(&text, pipeline)).transpose()?;
    let chunks = layout
        .as_ref()
        .map_or(chunks, |counts| Some(counts.len() as u64 / pipeline))
        .filter(|chunks| *chunks > 1);
    plan.virtual_stages = chunks;
    plan.schedule = Some(if chunks.is_some() { ScheduleKind::Interleaved } else { ScheduleKind::OneFOneB });
    plan.overlap_sends = (chunks.is_some() && in_turn).then_some(false);
    if let (Some(layers), None, true) = (layers, chunks, first.is_some() || last.is_some()) {
        let others = pipeline - u64::from(first.is_some()) - u64::from(last.is_some());
        let left = layers.saturating_sub(first.unwrap_or(0)).saturating_sub(last.unwrap_or(0));
        let middle = left.checked_div(others).unwrap_or(0);
        let mut counts = vec![middle; usize::try_from(pipeline).unwrap_or(0).min(4096)];
        if let (Some(given), Some(count)) = (first, counts.first_mut()) {
            *count = given;
        }
        if let (Some(given), Some(count)) = (last, counts.last_mut()) {
            *count = given;
        }
        plan.stage_layers = Some(counts);
    }
    plan.stage_layers = layout.or(plan.stage_layers.take());
    Ok(())
}

/// Symbols of a layout, repetitions counted.
const MOST_SYMBOLS: usize = 100_000;

/// The layers (`t`) of every virtual stage of a layout such as `Et*3|(tt|)*6tL`.
fn stages_of(text: &str, pipeline: u64) -> Result<Vec<u64>, Fault> {
    let wrong = |reason: String| {
        let remedy = "write it as Megatron-LM does, such as `Et*3|(tt|)*6tL`";
        Err(Fault::new(format!("`--pipeline-model-parallel-layout`: {reason}"), remedy))
    };
    let Some(whole) = repeated(text) else { return wrong(format!("\"{text}\" is no layout")) };
    let stages: Vec<&str> = whole.split('|').collect();
    if !(stages.len() as u64).is_multiple_of(pipeline) {
        return wrong(format!("{} stages are no multiple of {pipeline} ranks", stages.len()));
    }
    Ok(stages.iter().map(|stage| stage.matches('t').count() as u64).collect())
}

/// A layout with its repetitions written out; none if it is malformed or too long.
fn repeated(text: &str) -> Option<String> {
    let mut symbols = text.chars().filter(|symbol| !" ,'\"".contains(*symbol)).peekable();
    // What is written so far, and the open group.
    let (mut done, mut group): (String, Option<String>) = (String::new(), None);
    while let Some(symbol) = symbols.next() {
        let unit = match symbol {
            '(' if group.is_none() => {
                group = Some(String::new());
                continue;
            }
            ')' => group.take()?,
            'E' | 'L' | 't' | 'm' | '|' => symbol.to_string(),
            _ => return None,
        };
        let mut times = 1;
        if symbols.next_if_eq(&'*').is_some() {
            let mut digits = String::new();
            while let Some(digit) = symbols.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            times = digits.parse::<usize>().ok()?;
        }
        let into = group.as_mut().unwrap_or(&mut done);
        if unit.len().saturating_mul(times).saturating_add(into.len()) > MOST_SYMBOLS {
            return None;
        }
        into.push_str(&unit.repeat(times));
    }
    group.is_none().then_some(done)
}

/// The flags of a plan.
pub(super) fn write(launch: &Launch<'_>, mut settings: Settings) -> Result<String, Fault> {
    let Launch { shape, plan, nodes, workers_per_node, .. } = *launch;
    if !matches!(plan.schedule_kind(), ScheduleKind::OneFOneB | ScheduleKind::Interleaved) {
        let what = format!("`{}`", plan.schedule_kind());
        return Err(cannot("Megatron-LM", &what, "plan.schedule=[\"1f1b\", \"interleaved\"]"));
    }
    let mut flags =
        vec![format!("torchrun --nnodes {nodes} --nproc-per-node {workers_per_node} pretrain_gpt.py")];
    flags.extend(model_flags(shape, plan.tensor));
    flags.extend(settings.take_if("expert", shape.experts.is_some()).map(flag));
    flags.extend(settings.take(&["tensor", "sequence-parallel", "context"]).into_iter().map(flag));
    flags.extend(settings.take_if("context-exchange", plan.context > 1).map(flag));
    flags.extend(settings.take(&["pipeline", "virtual-stages"]).into_iter().map(flag));
    let ends = launch.ends().filter(|_| plan.virtual_stages == 1);
    flags.extend(plan.stage_layers.as_ref().map(|layers| divided(layers, ends)));
    let overlaps = plan.overlaps();
    if plan.virtual_stages > 1 && !overlaps.sends {
        flags.push("--no-overlap-p2p-communication".to_owned());
    }
    flags.extend(settings.take(&["micro-batch", "global-batch"]).into_iter().map(flag));
    let mut push = |condition: bool, flag: String| {
        if condition {
            flags.push(flag);
        }
    };
    let sharded = |strategy: &str| {
        format!(
            "--use-megatron-fsdp --use-distributed-optimizer --no-gradient-accumulation-fusion --data-parallel-sharding-strategy {strategy}"
        )
    };
    match plan.sharding {
        Sharding::None => {}
        Sharding::Zero1 => push(true, "--use-distributed-optimizer".to_owned()),
        Sharding::Zero2 => push(true, sharded("optim_grads")),
        Sharding::Zero3 => push(true, sharded("optim_grads_params")),
        Sharding::Keep => {
            let set = "plan.sharding=[\"none\", \"zero-1\", \"zero-2\", \"zero-3\", \"hsdp\"]";
            return Err(cannot("Megatron-LM", "`fsdp-keep`", set));
        }
        Sharding::Hsdp => {
            let groups = launch.data * plan.context / plan.sharding_group.unwrap_or(1);
            push(true, sharded("optim_grads_params"));
            push(true, format!("--num-distributed-optimizer-instances {groups}"));
        }
    }
    push(overlaps.gradients, "--overlap-grad-reduce".to_owned());
    settings.take(&["bucket"]).into_iter().for_each(|own| push(true, flag(own)));
    push(overlaps.weights && plan.sharding != Sharding::None, "--overlap-param-gather".to_owned());
    let recompute = plan.recomputation();
    match recompute.what {
        Recompute::None => {}
        Recompute::Operators => {
            let set = "plan.recompute=[\"none\", \"attention\", \"layer\"]";
            return Err(cannot("Megatron-LM", "recomputation of operators", set));
        }
        Recompute::Attention if recompute.layers.is_some() => {
            return Err(cannot(
                "Megatron-LM",
                "recomputation of attention in some layers",
                "plan.recompute-some=false",
            ));
        }
        Recompute::Attention => push(true, "--recompute-granularity selective".to_owned()),
        Recompute::Layer => {
            let (method, layers) = recompute.layers.map_or(("uniform", 1), |layers| ("block", layers));
            let flags = format!(
                "--recompute-granularity full --recompute-method {method} --recompute-num-layers {layers}"
            );
            push(true, flags);
        }
    }
    settings.take(&["attention"]).into_iter().for_each(|own| push(true, flag(own)));
    push(!plan.dropout, "--hidden-dropout 0 --attention-dropout 0".to_owned());
    match plan.states {
        States::Fp32 => {}
        States::MegatronFp16 => push(true, "--fp16".to_owned()),
        _ => push(true, "--bf16".to_owned()),
    }
    flags.extend(settings.rest().map(flag));
    Ok(unsaid(shape) + &flags.join(" \\\n  ") + "\n")
}

/// A flag with its value; `true` has none.
fn flag((name, value): (&'static str, Value)) -> String {
    match value {
        Value::Bool(_) => name.to_owned(),
        Value::String(word) => format!("{name} {word}"),
        value => format!("{name} {value}"),
    }
}

/// The layers of every virtual stage: by those of the ends, or one by one (`E` embedding, `t` layer, `L` loss).
fn divided(layers: &[u64], ends: Option<[u64; 3]>) -> String {
    if let Some([first, _, last]) = ends {
        return format!(
            "--decoder-first-pipeline-num-layers {first} --decoder-last-pipeline-num-layers {last}"
        );
    }
    let stages: Vec<String> = layers.iter().map(|layers| format!("t*{layers}")).collect();
    format!("--pipeline-model-parallel-layout 'E{}L'", stages.join("|"))
}

/// What is trained.
fn model_flags(shape: &Transformer, tensor: u64) -> Vec<String> {
    let mut flags = vec![
        format!("--num-layers {}", shape.layers),
        format!("--hidden-size {}", shape.hidden),
        format!("--num-attention-heads {}", shape.heads),
        format!("--ffn-hidden-size {}", shape.mlp_width),
        format!("--seq-length {}", shape.sequence),
        format!("--max-position-embeddings {}", shape.positions.max(shape.sequence)),
    ];
    let mut push = |condition: bool, flag: String| {
        if condition {
            flags.push(flag);
        }
    };
    push(
        shape.kv_heads != shape.heads,
        format!("--group-query-attention --num-query-groups {}", shape.kv_heads),
    );
    push(shape.head_width * shape.heads != shape.hidden, format!("--kv-channels {}", shape.head_width));
    push(shape.mlp == Mlp::Swiglu, "--swiglu".to_owned());
    push(shape.norm == NormKind::Rms, "--normalization RMSNorm".to_owned());
    push(shape.positions == 0, "--position-embedding-type rope".to_owned());
    push(!shape.bias, "--disable-bias-linear".to_owned());
    push(shape.qkv_bias && !shape.bias, "--add-qkv-bias".to_owned());
    push(shape.qk_norm, "--qk-layernorm".to_owned());
    push(!shape.tied, "--untie-embeddings-and-output-weights".to_owned());
    // The largest padding that leaves these rows as they are.
    let halves = std::iter::successors(Some(PADDED), |padding| (*padding > 1).then_some(padding / 2));
    let padding = halves.into_iter().find(|padding| shape.vocabulary.is_multiple_of(padding * tensor));
    let padding = padding.unwrap_or(1);
    push(true, format!("--vocab-size {} --make-vocab-size-divisible-by {padding}", shape.vocabulary));
    if let Some(experts) = shape.experts {
        push(true, format!("--num-experts {} --moe-router-topk {}", experts.count, experts.active));
        push(true, format!("--moe-ffn-hidden-size {}", experts.width));
        let shared = format!("--moe-shared-expert-intermediate-size {}", experts.shared_width);
        push(experts.shared_width > 0, shared);
        let sparse = shape.layers.saturating_sub(experts.dense_layers);
        let layers = format!("--moe-layer-freq '([0]*{}+[1]*{sparse})'", experts.dense_layers);
        push(experts.dense_layers > 0, layers);
        push(experts.router_bias, "--moe-router-enable-expert-bias".to_owned());
    }
    if let Some(mla) = shape.mla {
        push(true, format!("--multi-latent-attention --kv-lora-rank {}", mla.key_value_rank));
        push(mla.query_rank > 0, format!("--q-lora-rank {}", mla.query_rank));
        let widths =
            [("--qk-head-dim", mla.nope), ("--qk-pos-emb-head-dim", mla.rope), ("--v-head-dim", mla.value)];
        push(true, widths.map(|(flag, width)| format!("{flag} {width}")).join(" "));
    }
    flags
}

/// A comment that names what no flag says.
fn unsaid(shape: &Transformer) -> String {
    let parts = [
        (shape.window.is_some(), "attention within a window"),
        (shape.sandwich, "norms behind each half of a layer"),
        (shape.embedding_norm, "a norm behind the embedding"),
        (!shape.causal, "attention in both directions"),
        (shape.norm == NormKind::LayerNoBias, "norms without a shift"),
    ];
    let parts: Vec<&str> = parts.into_iter().filter_map(|(has, what)| has.then_some(what)).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("# The model also has {}, which these flags do not say.\n", parts.join(", ")),
    }
}
