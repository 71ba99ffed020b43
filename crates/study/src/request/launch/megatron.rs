//! Arguments of Megatron-LM, as a list or in a shell script (`megatron/training/arguments.py`).

use super::keys::Keys;
use super::{Group, Launched, shell};
use serde_json::Value;
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{Mlp, NormKind};
use stepcast_core::precision::Precision;
use stepcast_core::scenario::{ExpertsSection, MlaSection, TransformerSection};
use stepcast_core::strategy::{
    Attention, ContextExchange, OverlapPreset, Recompute, ScheduleKind, Sharding, States,
};

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
    let mut launched = Launched::of("Megatron-LM");
    let nodes = either(&mut keys, ["--nnodes", "--nodes", "-N"])?;
    let each = either(&mut keys, ["--nproc-per-node", "--gpus-per-node", "--ntasks-per-node"])?;
    launched.per_machine = each;
    launched.workers = nodes.zip(each).map(|(nodes, each)| nodes.saturating_mul(each));
    ranks(&mut keys, &mut launched)?;
    sharding(&mut keys, &mut launched)?;
    recomputation(&mut keys, &mut launched)?;
    formats(&mut keys, &mut launched)?;
    launched.sequence = keys.number("--seq-length")?;
    model(&mut keys, &mut launched)?;
    stages(&mut keys, &mut launched)?;
    launched.plan.micro_batch = keys.number("--micro-batch-size")?;
    launched.replica_batch = launched.plan.micro_batch;
    launched.plan.global_batch = keys.number("--global-batch-size")?;
    launched.steps = keys.number("--train-iters")?;
    launched.samples = keys.number("--train-samples")?;
    if keys.word("--attention-backend").as_deref() == Some("unfused") {
        launched.plan.attention = Some(Attention::Unfused);
    }
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

fn ranks(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let plan = &mut launched.plan;
    plan.overlap = Some(OverlapPreset::Megatron);
    plan.tensor = keys.number("--tensor-model-parallel-size")?;
    plan.sequence_parallel = keys.switch("--sequence-parallel").then_some(true);
    plan.context = keys.number("--context-parallel-size")?;
    plan.pipeline = keys.number("--pipeline-model-parallel-size")?;
    plan.expert = keys.number("--expert-model-parallel-size")?;
    plan.context_exchange = match keys.word("--cp-comm-type").as_deref() {
        None | Some("p2p") => None,
        Some("all_gather") => Some(ContextExchange::AllGather),
        Some("a2a") => Some(ContextExchange::AllToAll),
        Some(other) => {
            launched.unknown.push(format!("--cp-comm-type {other}"));
            None
        }
    };
    Ok(())
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
    plan.bucket = keys.number("--ddp-bucket-size")?;
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
    launched.plan.float8 = keys.word("--fp8-format").map(|_| true);
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
    let chunks = keys.number("--num-virtual-stages-per-pipeline-rank")?;
    let each = keys.number("--num-layers-per-virtual-pipeline-stage")?.filter(|each| *each > 0);
    let ends = ["--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"];
    let [first, last] = ends.map(|flag| keys.number(flag));
    let (first, last) = (first?, last?);
    let in_turn = keys.switch("--no-overlap-p2p-communication");
    let layout = keys.word("--pipeline-model-parallel-layout");
    let plan = &mut launched.plan;
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
