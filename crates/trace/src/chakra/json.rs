//! Chakra's traces as JSON, in the shapes that its tools write: PyTorch's execution traces (`nodes`), converted traces as a
//! list (`workload_graph`), and protobuf messages printed one after the other.

use super::node::{Kind, Node, Nodes};
use super::operators::Operators;
use crate::objects::{self, Object, number, text, whole};
use crate::source::Source;
use serde_json::Value;
use stepcast_core::fault::Fault;

/// Keys under which nodes are listed.
const LISTS: [&str; 2] = ["nodes", "workload_graph"];

/// Whether a JSON file that begins like this holds nodes.
pub(super) fn recognises(head: &[u8]) -> bool {
    let starts = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let has = |word: &str| head.windows(word.len()).any(|bytes| bytes == word.as_bytes());
    let nodes =
        ["\"ctrl_deps\"", "\"ctrlDeps\"", "\"data_deps\"", "\"dataDeps\""].iter().any(|word| has(word));
    starts && (nodes || has("\"workload_graph\"") || has("-chakra."))
}

/// The nodes, and the operators whose shapes PyTorch recorded.
pub(super) fn read(source: &mut Source<'_>, notes: &mut Vec<String>) -> Result<(Nodes, Operators), Fault> {
    let has = |word: &str| source.head().windows(word.len()).any(|bytes| bytes == word.as_bytes());
    let listed = LISTS.iter().any(|list| has(&format!("\"{list}\"")));
    let mut nodes = Nodes::default();
    let mut operators = Operators::default();
    objects::each(source, if listed { &LISTS } else { &[] }, notes, &mut |object| {
        take(&object, &mut nodes) + operators.take(&object)
    })?;
    Ok((nodes, operators))
}

/// The value of the first of `keys` that exists.
fn any<'a>(object: &'a Object, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| object.get(*key))
}

/// An attribute in any of its forms: a key of the node, `{"name": …, "value": …}` or `{"name": …, "int64Val": …}`.
fn attribute<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    let list = any(object, &["attrs", "attr"])?.as_array()?;
    let found =
        list.iter().filter_map(Value::as_object).find(|entry| text(entry.get("name")) == Some(name))?;
    found
        .iter()
        .find(|(key, _)| *key == "value" || key.ends_with("Val") || key.ends_with("_val"))
        .map(|(_, value)| value)
}

/// Takes a node: the bytes that are kept of it.
fn take(object: &Object, nodes: &mut Nodes) -> usize {
    let Some(id) = whole(any(object, &["id", "Id"])) else { return 0 };
    let list = |keys: &[&str]| match any(object, keys) {
        Some(Value::Array(list)) => list.iter().filter_map(|before| whole(Some(before))).collect(),
        other => whole(other).into_iter().collect::<Vec<u64>>(),
    };
    let kind = match any(object, &["type", "NodeType"]) {
        Some(Value::String(name)) => node_kind(name),
        other => whole(other),
    };
    let collective = match attribute(object, "comm_type") {
        Some(Value::String(name)) => collective_kind(name),
        other => whole(other),
    };
    // PyTorch's own traces have no kinds.
    let kind = kind.map_or(Kind::Compute, |kind| Kind::from_numbers(kind, collective));
    let duration = any(object, &["duration_micros", "durationMicros", "runtime", "exclusive_dur"]);
    if let Some(group) = text(attribute(object, "pg_name")).filter(|_| matches!(kind, Kind::Collective(_))) {
        nodes.group(group);
    }
    nodes.push(Node {
        id,
        kind,
        data: list(&["data_deps", "dataDeps"]),
        control: list(&["ctrl_deps", "ctrlDeps"]),
        micros: number(duration).unwrap_or(0.0),
        host: whole(attribute(object, "is_cpu_op")) == Some(1),
        lane: whole(attribute(object, "stream")).or(whole(attribute(object, "tid"))).unwrap_or(0),
        bytes: whole(attribute(object, "comm_size")).unwrap_or(0),
    })
}

/// The numbers of the schema's names.
fn node_kind(name: &str) -> Option<u64> {
    const NAMES: [&str; 8] = [
        "INVALID_NODE",
        "METADATA_NODE",
        "MEM_LOAD_NODE",
        "MEM_STORE_NODE",
        "COMP_NODE",
        "COMM_SEND_NODE",
        "COMM_RECV_NODE",
        "COMM_COLL_NODE",
    ];
    NAMES.iter().position(|known| *known == name).map(|index| index as u64)
}

fn collective_kind(name: &str) -> Option<u64> {
    match name {
        "ALL_REDUCE" => Some(0),
        "REDUCE_SCATTER" => Some(7),
        "REDUCE_SCATTER_BLOCK" => Some(8),
        other => other.parse().ok(),
    }
}
