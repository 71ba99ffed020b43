//! What imports hold in memory, measured: small files that unpack to many small records, for every format.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use flate2::Compression;
use flate2::write::GzEncoder;
use peak_alloc::PeakAlloc;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use stepcast_trace::{Format, Options, import};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What an import may hold here.
const LIMIT: usize = 8 << 20;
const BUFFERS: usize = 6 << 20;

type Out = GzEncoder<File>;

/// Writes a file, compressed a hundred times and more.
fn packed(folder: &Path, name: &str, write: impl FnOnce(&mut Out)) -> PathBuf {
    let path = folder.join(name);
    let mut out = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    write(&mut out);
    out.finish().unwrap();
    path
}

/// Texts of a format, made of many items.
fn listed(format: Format, folder: &Path) -> Vec<PathBuf> {
    let bombs = include_str!("bombs.txt").lines().filter(|line| !line.starts_with('#'));
    let bombs = bombs.map(|line| line.split(" | ").collect::<Vec<_>>());
    let packed = |bomb: Vec<&str>| {
        let [_, name, count, begin, item, end] = bomb.try_into().unwrap();
        packed(folder, &format!("{name}.json.gz"), |out| {
            out.write_all(begin.as_bytes()).unwrap();
            for index in 0..count.parse::<usize>().unwrap() {
                let comma = if index > 0 { ",\n" } else { "" };
                out.write_all((comma.to_owned() + &item.replace('@', &index.to_string())).as_bytes())
                    .unwrap();
            }
            out.write_all(end.as_bytes()).unwrap();
        })
    };
    bombs.filter(|bomb| bomb[0] == format!("{format:?}")).map(packed).collect()
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(content);
    bytes
}

const WORKER: &str = "/job:worker/replica:0/task:0/device:CPU:0";

/// Files of a format that hold as much as they can for their size.
fn bombs(format: Format, folder: &Path) -> Vec<PathBuf> {
    let mut files = listed(format, folder);
    match format {
        Format::Onnx => {
            let head = [&[0x08, 0x08][..], &field(2, b"x")].concat();
            let node = field(1, &[field(1, b"a"), field(2, b"b"), field(4, b"Relu")].concat());
            let wide = field(1, &[field(1, b"").repeat(200_000), field(4, b"Sum")].concat());
            let tensor = field(5, &[field(8, b"w"), [0x08, 1].repeat(50)].concat());
            let graphs = [
                node.repeat(200_000),
                wide.repeat(20),
                tensor.repeat(100_000),
                field(11, b"").repeat(130_000),
            ];
            for (number, graph) in graphs.iter().enumerate() {
                let model = [head.clone(), field(7, graph)].concat();
                files
                    .push(packed(folder, &format!("{number}.onnx.gz"), |out| out.write_all(&model).unwrap()));
            }
            // Functions that call each other, with and without nodes at the end.
            for leaf in [field(4, b"Relu"), Vec::new()] {
                let mut model = [head.clone(), field(7, &field(1, &field(4, b"f0")))].concat();
                for level in 0..12 {
                    let call = field(7, &field(4, format!("f{}", level + 1).as_bytes()));
                    let body = if level == 11 { field(7, &leaf) } else { call.repeat(20) };
                    let body = if level == 11 && leaf.is_empty() { Vec::new() } else { body };
                    model.extend(field(25, &[field(1, format!("f{level}").as_bytes()), body].concat()));
                }
                let name = format!("functions{}.onnx.gz", leaf.len());
                files.push(packed(folder, &name, |out| out.write_all(&model).unwrap()));
            }
        }
        Format::Timeline => files.push(packed(folder, "name.json.gz", |out| {
            out.write_all(b"{\"stepcast\":{\"format\":\"stepcast-timeline/1\",\"name\":\"x\",\"batch\":1,")
                .unwrap();
            out.write_all(b"\"operations\":[{\"name\":\"0\",\"resource\":\"worker\"}]},").unwrap();
            out.write_all(b"\"traceEvents\":[{\"name\":\"").unwrap();
            (0..200).for_each(|_| out.write_all(&[b'x'; 100_000]).unwrap());
            out.write_all(b"\"}]}").unwrap();
        })),
        Format::RunMetadata => {
            let device = |records: &[u8]| {
                field(1, &field(1, &[field(1, WORKER.as_bytes()), records.to_vec()].concat()))
            };
            let record = |index: u32| {
                let name = field(1, format!("n{index}").as_bytes());
                field(2, &[name, vec![0x10, 5, 0x28, 1]].concat())
            };
            let named: Vec<u8> = (0..50_000).flat_map(record).collect();
            let graph = field(3, &field(1, b"").repeat(130_000));
            files.extend([
                packed(folder, "empty.pb.gz", |out| {
                    out.write_all(&device(&field(2, b"").repeat(200_000))).unwrap()
                }),
                packed(folder, "named.pb.gz", |out| out.write_all(&device(&named)).unwrap()),
                packed(folder, "graph.pb.gz", |out| {
                    out.write_all(&[device(&record(1)), graph].concat()).unwrap();
                }),
                packed(folder, "long.pb.gz", |out| {
                    out.write_all(&device(&record(1))).unwrap();
                    (0..200).for_each(|_| out.write_all(&field(9, &[0; 100_000])).unwrap());
                }),
            ]);
        }
        Format::Kineto | Format::TensorFlowTimeline | Format::Horovod => {}
        Format::Chakra => {
            let message =
                field(0, &[&[0x08, 1][..], &field(2, b"n"), &[0x18, 4, 0x38, 1]].concat())[1..].to_vec();
            let long = {
                let node =
                    [&[0x08, 1][..], &field(2, b"n"), &[0x18, 4], &[0x28, 1].repeat(1_500_000)].concat();
                field(0, &node)[1..].to_vec()
            };
            files.extend([
                packed(folder, "nodes.et.gz", |out| {
                    out.write_all(&[3, 0x0a, 1, b'x']).unwrap();
                    (0..130_000).for_each(|_| out.write_all(&message).unwrap());
                }),
                packed(folder, "long.et.gz", |out| {
                    out.write_all(&[3, 0x0a, 1, b'x']).unwrap();
                    out.write_all(&message).unwrap();
                    out.write_all(&long).unwrap();
                }),
            ]);
        }
        Format::Layers => files.push(packed(folder, "layers.csv.gz", |out| {
            out.write_all(b"layer,forward_ms,backward_ms,bytes\n").unwrap();
            (0..60_000).for_each(|_| out.write_all(b"a,1,1,4\n").unwrap());
        })),
    }
    files
}

/// One after the other: the allocator counts for the whole program.
#[test]
fn imports_hold_no_more_than_they_may() {
    every_format_is_bounded();
    dictionaries_are_bounded();
}

fn every_format_is_bounded() {
    for &format in Format::ALL {
        let folder = tempfile::tempdir().unwrap();
        for path in bombs(format, folder.path()) {
            let shown = format!("{}: {}", format.name(), path.file_name().unwrap().display());
            assert_eq!(Format::detect(&path).unwrap(), format, "{shown}");
            let options = Options { batch: Some(32), max_memory: Some(LIMIT as u64), ..Options::default() };
            let before = ALLOCATED.current_usage();
            ALLOCATED.reset_peak_usage();
            let imported = import(&[path], &options);
            let peak = ALLOCATED.peak_usage().saturating_sub(before);
            drop(imported);
            assert!(peak <= LIMIT + BUFFERS, "{shown} takes {} MiB", peak >> 20);
        }
    }
}

/// Dictionaries of xz count, whether a block needs them or not.
fn dictionaries_are_bounded() {
    // A stream of 72 bytes whose only block declares a dictionary of 4 GiB.
    let bomb = include_bytes!("dictionary.xz");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.json.xz");
    std::fs::write(&path, bomb).unwrap();
    let error = import(&[path], &Options::default()).unwrap_err();
    assert!(error.reason.contains("of memory"), "{error}");
}
