//! Configurations of torchtitan: Python since 0.3 (`torchtitan/config/configs.py`), TOML before
//! (`torchtitan/config/job_config.py`).

mod write;

pub(super) use write::{divides, refusal, write};

use super::keys::Keys;
use super::{Framework, Group, Launched};
use serde_json::{Value, json};
use stepcast_core::fault::Fault;
use stepcast_core::model::zoo;
use stepcast_core::strategy::{
    ContextExchange, Loss, OverlapPreset, Recompute, ScheduleKind, Sharding, States, stage_share,
};

/// Keys without effect on the time of a step.
const WITHOUT_EFFECT: &str = include_str!("torchtitan_without_effect.txt");

/// Schedules with one stage on each rank have no chunks.
const SCHEDULES: [(&str, ScheduleKind); 7] = [
    ("1F1B", ScheduleKind::OneFOneB),
    ("GPipe", ScheduleKind::Gpipe),
    ("Interleaved1F1B", ScheduleKind::Interleaved),
    ("LoopedBFS", ScheduleKind::LoopedBfs),
    ("InterleavedZeroBubble", ScheduleKind::InterleavedZeroBubble),
    ("ZBVZeroBubble", ScheduleKind::Zbv),
    ("DualPipeV", ScheduleKind::DualPipeV),
];

/// Whether a table of TOML is such a file and no scenario.
pub(super) fn recognises(table: &toml::Table) -> bool {
    let own = ["parallelism", "activation_checkpoint", "job"].iter().any(|key| table.contains_key(*key));
    let training = table.get("training").and_then(toml::Value::as_table);
    let batch =
        |table: &toml::Table| ["local_batch_size", "seq_len"].iter().any(|key| table.contains_key(*key));
    (own || training.is_some_and(batch))
        && !["cluster", "strategy"].iter().any(|key| table.contains_key(*key))
}

/// `layers` is the number of layers of the model, if it does not come from this file.
pub(super) fn read(mut keys: Keys, layers: Option<u64>) -> Result<Launched, Fault> {
    // The loss is compiled with the model unless components say otherwise.
    let compiled = keys.truth("compile.enable")? == Some(true);
    match (compiled, keys.has("compile.components")) {
        (false, _) => keys.forget("compile.components"),
        (true, false) => keys.set("compile.components", json!(["model", "loss"])),
        (true, true) => {}
    }
    let mut launched = Launched::read("torchtitan", &mut keys, Framework::Torchtitan)?;
    if let Some(loss) = keys.word("loss") {
        let usual = launched.plan.loss.unwrap_or(Loss::Eager);
        launched.plan.loss = Some(if loss.contains("Chunked") { Loss::Chunked } else { usual });
    }
    launched.unknown.extend(compiled.then(|| "compile.enable".to_owned()));
    launched.exchange(ContextExchange::AllGather);
    let (name, flavor) = (keys.word("model.name"), keys.word("model.flavor"));
    if let (Some(name), Some(flavor)) = (name, flavor) {
        match write::in_zoo(&name, &flavor) {
            Some(known) => launched.zoo = Some(known),
            None => launched.named = Some(format!("{name} {flavor}")),
        }
    }
    let layers = layers.or_else(|| zoo::transformer(launched.zoo.as_deref()?).map(|shape| shape.layers));
    launched.sequence = keys.number("training.seq_len")?;
    launched.steps = keys.number("training.steps")?;
    let plan = &mut launched.plan;
    plan.overlap = Some(OverlapPreset::Torchtitan);
    plan.states = Some(match keys.word("training.dtype").as_deref() {
        Some("bfloat16") => States::Bf16,
        _ => States::Fp32,
    });
    let divided = keys.truth("parallelism.enable_sequence_parallel")?.unwrap_or(true);
    plan.sequence_parallel = plan.tensor.filter(|ranks| *ranks > 1 && divided).map(|_| true);
    launched.per_machine = keys.number("nproc")?;
    sharding(&mut keys, &mut launched)?;
    batches(&mut keys, &mut launched)?;
    stages(&mut keys, &mut launched, layers)?;
    let mode = keys.word("activation_checkpoint.mode").unwrap_or_else(|| "selective".to_owned());
    let option = keys.word("activation_checkpoint.selective_ac_option");
    launched.plan.recompute = match (mode.as_str(), option.as_deref()) {
        ("none", _) => None,
        ("full", _) => Some(vec![Recompute::Layer]),
        ("selective", Some("op")) => Some(vec![Recompute::Operators]),
        ("selective", every) => {
            let every = every.unwrap_or("2");
            launched.notes.push(format!("one layer of {every} is recomputed there: here all of them are"));
            Some(vec![Recompute::Layer])
        }
        (other, _) => {
            launched.unknown.push(format!("activation_checkpoint.mode = \"{other}\""));
            None
        }
    };
    Ok(launched.without(keys, WITHOUT_EFFECT))
}

fn sharding(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let [tensor, context, pipeline] = launched.ranks();
    let plan = &mut launched.plan;
    let replicate = keys.number("parallelism.data_parallel_replicate_degree")?.unwrap_or(1);
    // Without a number, or with -1: all remaining ranks.
    let shard = keys.number("parallelism.data_parallel_shard_degree")?;
    launched.workers = shard.map(|shard| {
        [replicate, tensor, context, pipeline].iter().fold(shard, |all, ranks| all.saturating_mul(*ranks))
    });
    let kept = match keys.word("parallelism.fsdp_reshard_after_forward").as_deref() {
        None | Some("default") => pipeline > 1,
        Some(how) => how == "never",
    };
    // Ranks that divide a sequence also divide the weights.
    plan.sharding =
        Some(match (shard.is_none_or(|shard| shard.saturating_mul(context) > 1), replicate, kept) {
            (false, ..) => Sharding::None,
            (true, 1, false) => Sharding::Zero3,
            // Gathered weights stay for all micro-batches, and gradients are reduced after the last one.
            (true, 1, true) if pipeline > 1 => Sharding::Keep,
            (true, 1, true) => Sharding::Zero2,
            (true, groups, kept) => {
                launched.group = Some(Group::Count(groups));
                if kept {
                    launched.notes.push("weights are taken to be gathered for every pass".to_owned());
                }
                Sharding::Hsdp
            }
        });
    Ok(())
}

fn batches(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let local = keys.number("training.local_batch_size")?.unwrap_or(8);
    launched.replica_batch = Some(local);
    let micro = keys.number("parallelism.pipeline_parallel_microbatch_size")?.unwrap_or(1);
    let staged = launched.plan.pipeline.is_some_and(|stages| stages > 1);
    launched.plan.micro_batch = Some(if staged { micro } else { local });
    let round = launched.workers.map(|all| launched.replicas(all).saturating_mul(local));
    if let (true, Some(round), Some(all)) = (staged, round, launched.plan.global_batch)
        && all > round
    {
        let what =
            format!("the pipeline runs empty after every {round} of {all} sequences there, here at the end");
        launched.notes.push(what);
    }
    Ok(())
}

fn stages(keys: &mut Keys, launched: &mut Launched, layers: Option<u64>) -> Result<(), Fault> {
    let each = keys.number("parallelism.pipeline_parallel_layers_per_stage")?;
    let first = keys.number("parallelism.pipeline_parallel_first_stage_less_layers")?.unwrap_or(1);
    let last = keys.number("parallelism.pipeline_parallel_last_stage_less_layers")?.unwrap_or(1);
    let schedule = keys.word("parallelism.pipeline_parallel_schedule").unwrap_or_else(|| "1F1B".to_owned());
    let plan = &mut launched.plan;
    let Some(pipeline) = plan.pipeline.filter(|stages| *stages > 1) else { return Ok(()) };
    let kind = SCHEDULES.iter().find(|(name, _)| name.eq_ignore_ascii_case(&schedule)).map(|(_, kind)| *kind);
    let kind = kind.ok_or_else(|| {
        let known = SCHEDULES.map(|(name, _)| name).join(", ");
        Fault::new(format!("the schedule \"{schedule}\" is not known"), format!("use one of {known}"))
    })?;
    let whole = matches!(kind, ScheduleKind::OneFOneB | ScheduleKind::Gpipe);
    plan.schedule = Some(kind);
    let usual = if whole { 1 } else { 2 };
    let Some(layers) = layers else {
        plan.virtual_stages = Some(usual);
        return Ok(());
    };
    let weighted = layers.saturating_add(first).saturating_add(last);
    let places = match each.filter(|each| *each > 0) {
        Some(each) => weighted.div_ceil(each),
        None => pipeline.saturating_mul(usual),
    };
    if places == 0 || places > layers || !places.is_multiple_of(pipeline) {
        let reason =
            format!("{layers} layers make up {places} stages, which {pipeline} ranks cannot share equally");
        return Err(Fault::new(reason, "change `pipeline_parallel_layers_per_stage`"));
    }
    plan.virtual_stages = Some(places / pipeline);
    // The remainder goes to the first stages; the first and the last stage have fewer layers, by their weights.
    let (share, more) = (weighted / places, weighted % places);
    let count = |place: u64| {
        let at_ends = [(place == 0, first), (place + 1 == places, last)];
        let less = at_ends.iter().filter(|(is_end, _)| *is_end).map(|(_, less)| *less);
        less.fold(share + u64::from(place < more), u64::saturating_sub)
    };
    let counts: Vec<u64> = (0..places).map(count).collect();
    let usual = |(place, own): (u64, &u64)| *own == stage_share(layers, places, place);
    if !(0..).zip(&counts).all(usual) {
        plan.stage_layers = Some(counts);
    }
    Ok(())
}

/// Whether a text is a configuration in Python.
pub(super) fn recognises_python(text: &str) -> bool {
    text.contains("torchtitan")
        && text.lines().any(|line| line.trim_start().starts_with("config.parallelism."))
}

/// The fields that assignments set, in the words of its TOML files; nothing is executed.
pub(super) fn python_keys(text: &str) -> Keys {
    let mut keys = Keys::default();
    if let Some(family) = text.split("torchtitan.models.").skip(1).map(word).find(|word| *word != "common") {
        keys.set("model.name", family.into());
    }
    // By default, some operators are recomputed.
    let mut policy = "SelectiveAC";
    for line in text.lines() {
        let assigned = line.trim_start().strip_prefix("config.").and_then(|line| line.split_once(" = "));
        let Some((key, value)) = assigned else { continue };
        match key {
            "model_spec" => {
                keys.set("model.flavor", value.split('"').nth(1).unwrap_or_default().into());
                if value.contains("Float8") {
                    keys.set("model.converters", json!(["float8"]));
                }
            }
            "activation_checkpoint" => policy = word(value),
            _ => keys.set(key, literal(value)),
        }
    }
    let mode = match policy {
        "None" => "none",
        "FullAC" => "full",
        "SelectiveAC" => "selective",
        other => other,
    };
    keys.set("activation_checkpoint.mode", mode.into());
    keys.set("activation_checkpoint.selective_ac_option", "op".into());
    if let Some(each) = text.split("--nproc-per-node ").nth(1).map(word) {
        keys.set("nproc", each.into());
    }
    keys
}

/// The letters, digits and underscores at the beginning of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// A literal of Python; anything else as its text.
fn literal(text: &str) -> Value {
    match text.trim() {
        "True" => true.into(),
        "False" => false.into(),
        "None" => Value::Null,
        text => serde_json::from_str(&text.replace('\'', "\"")).unwrap_or_else(|_| text.into()),
    }
}
