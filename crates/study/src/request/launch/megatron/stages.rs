//! The layers of every stage as settings of Megatron-LM.

use super::super::Launched;
use super::super::keys::Keys;
use stepcast_core::fault::Fault;
use stepcast_core::strategy::{Plan, ScheduleKind, stage_share};

pub(super) fn read(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let layers = launched.shape.as_ref().and_then(|shape| shape.layers);
    let each = keys.number("--num-layers-per-virtual-pipeline-stage")?.filter(|each| *each > 0);
    let ends = ["--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"];
    let [first, last] = ends.map(|flag| keys.number(flag));
    let (first, last) = (first?, last?);
    let in_turn = keys.switch("--no-overlap-p2p-communication");
    let layout = keys.word("--pipeline-model-parallel-layout");
    let weighed = ["--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"]
        .map(|flag| u64::from(keys.switch(flag)));
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
    if let (Some(layers), true) = (layers, weighed != [0, 0]) {
        let places = pipeline.saturating_mul(chunks.unwrap_or(1));
        let share = layers.saturating_add(weighed[0] + weighed[1]) / places;
        let count = |place: u64| {
            let less = [(place == 0, weighed[0]), (place + 1 == places, weighed[1])];
            less.iter().filter(|(at, _)| *at).fold(share, |count, (_, less)| count.saturating_sub(*less))
        };
        plan.stage_layers = Some((0..places.min(MOST_SYMBOLS as u64)).map(count).collect());
    }
    // Expressed by omission.
    let usual = |counts: &Vec<u64>| {
        let (all, places) = (counts.iter().sum(), counts.len() as u64);
        (0..).zip(counts).all(|(place, own)| *own == stage_share(all, places, place))
    };
    plan.stage_layers = layout.or(plan.stage_layers.take()).filter(|counts| !usual(counts));
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
    // The text so far, and the open group.
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

/// The flags that divide layers unequally, and whether these also give the number of chunks; none for equal shares.
pub(super) fn written(plan: &Plan, layers: u64, ends: Option<[u64; 3]>) -> Option<(String, bool)> {
    let places = plan.pipeline * plan.virtual_stages;
    let ends = ends.filter(|_| plan.virtual_stages == 1);
    match (&plan.stage_layers, ends) {
        (None, _) if layers.is_multiple_of(places) => None,
        (None, _) if (layers + 2).is_multiple_of(places) => {
            let flags = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split";
            Some((flags.to_owned(), false))
        }
        (Some(_), Some([first, _, last])) => {
            let flags = format!(
                "--decoder-first-pipeline-num-layers {first} --decoder-last-pipeline-num-layers {last}"
            );
            Some((flags, false))
        }
        _ => {
            // `E` embedding, `t` layer, `L` loss.
            let stages: Vec<String> = plan
                .stage_ranges(layers)
                .map(|own| match own.end - own.start {
                    0 => String::new(),
                    count => format!("t*{count}"),
                })
                .collect();
            Some((format!("--pipeline-model-parallel-layout 'E{}L'", stages.join("|")), true))
        }
    }
}
