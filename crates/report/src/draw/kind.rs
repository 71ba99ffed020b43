//! Colours of what a step is spent on, the same in every plot.

use super::style::SERIES;

/// Words in the names of parts of a step and of lanes that do the same, with the series that colours them. The first that
/// fits counts.
const KINDS: [(&[&str], usize); 6] = [
    (&["start-up", "recompute"], 5),
    (&["uplink", "push", "gradients", "all-reduce"], 1),
    (&["downlink", "pull", "sharded weights"], 2),
    (&["queueing", "bubble"], 3),
    (&["host-to-device", "parsing"], 4),
    (&["comput", "thread"], 0),
];

/// The series of each name: that of its kind, or the first that no other name has, as long as there is one.
pub(crate) fn series_of(names: &[&str]) -> Vec<usize> {
    let known = |name: &str| {
        let kind = KINDS.iter().find(|(words, _)| words.iter().any(|word| name.contains(word)));
        kind.map(|(_, series)| *series)
    };
    let mut taken: Vec<usize> = names.iter().filter_map(|name| known(name)).collect();
    let mut own = |place: usize| {
        let free = (0..SERIES).find(|series| !taken.contains(series)).unwrap_or(place);
        taken.push(free);
        free
    };
    names.iter().enumerate().map(|(place, name)| known(name).unwrap_or_else(|| own(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_have_the_colours_of_the_parts_of_a_step() {
        assert_eq!(
            series_of(&["compute", "push", "pull"]),
            series_of(&["worker, thread 0", "server 0, uplink", "downlink"])
        );
        let others = series_of(&["one", "compute", "two"]);
        assert_eq!((others[1], others[0] == others[2]), (0, false), "{others:?}");
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(series_of(&many.iter().map(String::as_str).collect::<Vec<_>>()).len(), 20);
    }
}
