//! The part of a trace before its events: the job, its process groups, and the devices.

use serde::Deserialize;
use serde_json::Value;

/// The part of the file before the events.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    #[serde(rename = "distributedInfo")]
    pub(super) distributed: Option<Distributed>,
    #[serde(rename = "deviceProperties")]
    pub(super) devices: Vec<Device>,
    #[serde(skip)]
    groups: Vec<Group>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Distributed {
    pub(super) rank: Option<u64>,
    pub(super) world_size: Option<u64>,
    pg_config: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Device {
    pub(super) name: String,
}

/// A process group of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Its description, or else its name.
    pub(super) name: String,
    pub(super) ranks: u32,
}

impl Head {
    /// Empty if it cannot be read.
    pub(super) fn parse(text: &str) -> Self {
        let mut head: Self = serde_json::from_str(text).unwrap_or_default();
        let listed = head.distributed.as_mut().map(|own| own.pg_config.take());
        let listed = listed.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        head.groups = listed.iter().filter_map(group).collect();
        head
    }

    /// The process groups of the job; none if they are not recorded.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }
}

fn group(value: &Value) -> Option<Group> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let described = text("pg_desc").filter(|text| !text.is_empty() && *text != "undefined");
    let name = described.or_else(|| text("pg_name"))?.to_owned();
    let ranks = value.get("pg_size").and_then(Value::as_u64).and_then(|size| u32::try_from(size).ok());
    Some(Group { name, ranks: ranks.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_job() {
        let text = r#"{"deviceProperties":[{"name":"H200"}],"distributedInfo":{"rank":1,"pg_config":[
            {"pg_name":"0","pg_desc":"default_pg","pg_size":4},{"pg_name":"3","pg_desc":"undefined","pg_size":2},7]}}"#;
        let head = Head::parse(text);
        let group = |name: &str, ranks| Group { name: name.to_owned(), ranks };
        assert_eq!(head.groups(), [group("default_pg", 4), group("3", 2)]);
        assert_eq!(head.devices[0].name, "H200");
        let odd = Head::parse(r#"{"distributedInfo":{"rank":1,"pg_config":"default"}}"#);
        assert_eq!(odd.distributed.as_ref().and_then(|own| own.rank), Some(1));
        assert!(odd.groups().is_empty());
    }
}
