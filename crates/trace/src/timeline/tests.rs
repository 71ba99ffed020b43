use super::*;
use crate::{Content, Options, import};
use serde_json::Value;
use stepcast_core::profile::{Operation, Resource};
use stepcast_core::quantity::Seconds;

fn event(process: u32, lane: u32, name: &'static str, since: f64, until: f64) -> Event<'static> {
    let (since, until) = (Seconds::new(since), Seconds::new(until));
    Event { process, lane, name: name.into(), kind: None, since, until, figure: None, flow: Flow::None }
}

fn sample() -> Timeline<'static> {
    let process = |name: &str| Process {
        name: name.to_owned(),
        lanes: vec!["steps".to_owned(), "a \"b\"".to_owned()],
        levels: vec![("uplink".to_owned(), "%")],
    };
    let operation = |name, resource, after: &[u32]| Operation::new(name, resource, 0, after);
    let about = About {
        format: FORMAT.to_owned(),
        name: "sample".to_owned(),
        batch: 8,
        operations: vec![
            operation("x", Resource::Worker, &[]),
            operation("nothing", Resource::Server, &[2]),
            operation("y", Resource::Worker, &[0]),
        ],
    };
    Timeline {
        about,
        processes: vec![process("worker 0"), process("worker 1")],
        events: vec![
            Event { figure: Some(("stale", 3)), ..event(0, 0, "step 0", 0.0, 0.7) },
            event(0, 0, "step 1", 0.75, 1.5),
            Event { flow: Flow::Begins(7), ..event(0, 1, "x", 0.1, 0.1 + 0.2) },
            event(0, 1, "y", 0.1 + 0.2, 1.0 / 3.0),
            event(0, 1, "y", 0.4, 0.5),
            event(0, 1, "x", 0.8, 0.9),
            event(0, 1, "y", 0.9, 1.4),
            Event { flow: Flow::Ends(7), ..event(1, 1, "x", 1e-9, 1e5) },
        ],
        levels: vec![
            Level { process: 1, level: 0, at: Seconds::new(0.25), value: 62.5 },
            Level { process: 1, level: 0, at: Seconds::new(0.5), value: 0.0 },
        ],
    }
}

fn printed() -> Vec<Value> {
    let mut text = Vec::new();
    chrome::print(&sample(), &mut text).unwrap();
    let value: Value = serde_json::from_slice(&text).unwrap();
    value["traceEvents"].as_array().unwrap().clone()
}

fn number(event: &Value, key: &str) -> f64 {
    event[key].as_f64().unwrap()
}

#[test]
fn events_keep_their_times_and_touch_without_overlapping() {
    let complete: Vec<Value> = printed().into_iter().filter(|event| event["ph"] == "X").collect();
    let events = sample().events;
    assert_eq!(complete.len(), events.len());
    for (line, event) in complete.iter().zip(&events) {
        assert!((number(line, "ts") - event.since.get() * 1e6).abs() <= 0.000_501, "{line}");
        let length = (event.until - event.since).get() * 1e6;
        assert!((number(line, "dur") - length).abs() <= 0.001_01, "{line}");
        assert_eq!(line["pid"], event.process + 1);
        assert_eq!(line["tid"], event.lane + 1);
        assert_eq!(line["name"], event.name.as_ref());
    }
    let nanoseconds = |value: f64| (value * 1e3).round() as u64;
    let end = nanoseconds(number(&complete[2], "ts")) + nanoseconds(number(&complete[2], "dur"));
    assert_eq!(end, nanoseconds(number(&complete[3], "ts")));
    assert_eq!(complete[0]["args"]["stale"], 3);
    assert!(complete[1].get("args").is_none());
}

#[test]
fn processes_and_lanes_are_named() {
    let names: Vec<(u64, u64, String)> = printed()
        .iter()
        .filter(|event| event["name"] == "process_name" || event["name"] == "thread_name")
        .map(|event| {
            let text = event["args"]["name"].as_str().unwrap().to_owned();
            (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap(), text)
        })
        .collect();
    let expected = [
        (1, 0, "worker 0"),
        (1, 1, "steps"),
        (1, 2, "a \"b\""),
        (2, 0, "worker 1"),
        (2, 1, "steps"),
        (2, 2, "a \"b\""),
    ];
    assert_eq!(names, expected.map(|(pid, tid, name)| (pid, tid, name.to_owned())));
}

#[test]
fn arrows_begin_and_end_inside_their_events() {
    let events = printed();
    let of = |ph: &str| events.iter().filter(|event| event["ph"] == ph).collect::<Vec<_>>();
    let (begins, ends) = (of("s"), of("f"));
    assert_eq!((begins.len(), ends.len()), (1, 1));
    assert_eq!((&begins[0]["id"], &ends[0]["id"]), (&7.into(), &7.into()));
    for arrow in [begins[0], ends[0]] {
        let around = |event: &&Value| {
            let since = number(event, "ts");
            let inside = since <= number(arrow, "ts") && number(arrow, "ts") < since + number(event, "dur");
            event["pid"] == arrow["pid"] && event["tid"] == arrow["tid"] && inside
        };
        assert!(of("X").into_iter().any(|event| around(&event)), "{arrow}");
    }
}

#[test]
fn levels_are_counters() {
    let events = printed();
    let levels: Vec<&Value> = events.iter().filter(|event| event["ph"] == "C").collect();
    assert_eq!(levels.len(), 2);
    assert_eq!(
        (&levels[0]["name"], &levels[0]["pid"], &levels[0]["args"]["%"]),
        (&"uplink".into(), &2.into(), &62.5.into())
    );
    assert!((number(levels[0], "ts") - 250_000.0).abs() < 1e-9);
}

#[test]
fn nothing_is_a_timeline_too() {
    let mut text = Vec::new();
    chrome::print(&Timeline::default(), &mut text).unwrap();
    let value: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value["traceEvents"].as_array().unwrap().len(), 0);
    let mut packets = Vec::new();
    perfetto::print(&Timeline::default(), &mut packets).unwrap();
    assert!(packets.is_empty());
}

#[test]
fn both_formats_give_the_profile_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut profiles = Vec::new();
    for name in ["timeline.json", "timeline.pftrace"] {
        let path = folder.path().join(name);
        write_timeline(&path, &sample()).unwrap();
        match import(&[path], &Options::default()).unwrap().content {
            Content::Profile(profile) => profiles.push(profile),
            Content::Model(_) => panic!("a timeline is no model"),
        }
    }
    assert_eq!(profiles[0], profiles[1]);
    let profile = &profiles[0];
    assert_eq!((profile.batch, profile.steps.len(), profile.name.as_str()), (8, 2, "sample"));
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
    let [first, second] = &profile.steps[..] else { panic!("there are two steps") };
    assert!(close(&first.start, &[0.1, 0.5, 0.3]) && close(&first.end, &[0.3, 0.5, 0.5]), "{first:?}");
    assert!(close(&[first.length, second.length], &[0.75, 0.75]));
    assert!(close(&second.start, &[0.05, 0.65, 0.15]), "{second:?}");
}

#[test]
fn what_is_cut_short_is_an_error() {
    for is_json in [true, false] {
        let mut whole = Vec::new();
        let printed = if is_json {
            chrome::print(&sample(), &mut whole)
        } else {
            perfetto::print(&sample(), &mut whole)
        };
        printed.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for length in (1..whole.len() - 1).step_by(7) {
            std::fs::write(&path, &whole[..length]).unwrap();
            if let Ok(imported) = import(std::slice::from_ref(&path), &Options::default()) {
                // Between two packets there is nothing to see.
                assert!(!is_json, "{length} of {}: {imported:?}", whole.len());
            }
        }
    }
}

#[test]
fn events_that_overlap_get_lanes_of_their_own() {
    let lanes = vec!["steps".to_owned(), "parsing".to_owned()];
    let mut timeline = Timeline {
        processes: vec![Process { name: "w".to_owned(), lanes, levels: vec![] }],
        events: vec![
            event(0, 1, "late", 0.5, 1.5),
            event(0, 1, "outer", 0.0, 1.0),
            event(0, 1, "inner", 0.2, 0.4),
            event(0, 1, "touching", 1.0, 2.0),
            event(0, 0, "step", 0.0, 2.0),
        ],
        ..Timeline::default()
    };
    timeline.untangle();
    assert_eq!(timeline.processes[0].lanes, ["steps", "parsing", "parsing (2)"]);
    let places: Vec<(u32, &str)> =
        timeline.events.iter().map(|event| (event.lane, event.name.as_ref())).collect();
    assert_eq!(places, [(0, "step"), (1, "outer"), (1, "inner"), (1, "touching"), (2, "late")]);
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.json");
    write_timeline(&path, &sample()).unwrap();
    let first = std::fs::read(&path).unwrap();
    write_timeline(&path, &sample()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
    let absent = folder.path().join("absent").join("timeline.json");
    assert!(write_timeline(&absent, &sample()).unwrap_err().remedy.contains("folder"));
    assert!(write_timeline(Path::new("/"), &sample()).is_err());
}
