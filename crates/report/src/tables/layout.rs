//! The groups of ranks of a plan.

use crate::adapters::role_name;
use crate::format::{count, several};
use crate::table::{Column, Table};
use stepcast_study::predict::layout::{Layout, Role};

/// How many ranks there are, and how they are divided.
pub fn summary(layout: &Layout) -> String {
    let kinds = [
        (layout.tensor, "tensor ranks"),
        (layout.context, "context ranks"),
        (layout.pipeline, "stages"),
        (layout.data, "replicas"),
    ];
    let factors = kinds.iter().filter(|(number, _)| *number > 1);
    let factors: Vec<String> = factors.map(|(number, name)| format!("{} {name}", count(*number))).collect();
    let machines = several(layout.count(Role::Node), "machine");
    let split = if factors.is_empty() { String::new() } else { format!(": {}", factors.join(" × ")) };
    format!("{} on {machines}{split}.", several(layout.ranks, "rank"))
}

/// One row for each kind of groups.
pub fn groups(layout: &Layout) -> Table {
    let mut table = Table::new(
        "Groups",
        [
            Column::names("of"),
            Column::numbers("ranks"),
            Column::numbers("groups"),
            Column::numbers("on a machine"),
            Column::numbers("machines"),
        ],
    );
    for group in &layout.groups {
        table.row([
            role_name(group.role).to_owned(),
            count(group.size),
            count(group.groups),
            count(group.per_node),
            count(group.nodes),
        ]);
    }
    table.note = "Ranks of a group that are on one machine, and machines that a group is on, at most. Ranks are numbered \
                  tensor fastest, then context, replica and stage."
        .to_owned();
    table
}
