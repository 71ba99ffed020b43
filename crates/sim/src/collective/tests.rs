use super::*;

fn machines(workers: usize, per_node: u32) -> Machines {
    let port = BytesPerSec::new(1e9);
    let nodes = Nodes { workers: per_node, port, step: Seconds::ZERO };
    Machines {
        ports: vec![port; workers],
        step: Seconds::ZERO,
        combine_byte: Seconds::ZERO,
        nodes: Some(nodes),
    }
}

/// By worker: whom it has heard from in the end, directly or not, as a set of bits.
fn heard(program: &Program) -> Vec<u64> {
    let graph = &program.graph;
    let workers = program.workers();
    let mut known: Vec<Vec<u64>> = (0..workers).map(|worker| vec![1 << worker; graph.len()]).collect();
    let mut changed = true;
    while changed {
        changed = false;
        let mut tell = |known: &mut [Vec<u64>], (from, op): (usize, u32), (to, next): (usize, u32)| {
            let more = known[to][next as usize] | known[from][op as usize];
            changed |= std::mem::replace(&mut known[to][next as usize], more) != more;
        };
        for op in 0..graph.len() as u32 {
            for worker in 0..workers {
                for &next in graph.successors(op) {
                    tell(&mut known, (worker, op), (worker, next));
                }
                for &(neighbour, next) in graph.told(op) {
                    if let Some(to) = program.neighbours[worker][usize::from(neighbour)] {
                        tell(&mut known, (worker, op), (to as usize, next));
                    }
                }
            }
        }
    }
    known.iter().map(|known| known.iter().fold(0, |all, known| all | known)).collect()
}

#[test]
fn everybody_hears_from_everybody() {
    let packets = 2;
    for workers in 1..=17 {
        for collective in [
            Collective::ReduceScatter,
            Collective::AllGather,
            Collective::Ring,
            Collective::HalvingDoubling,
            Collective::Tree,
            Collective::DoubleTree { packets },
            Collective::Hierarchical,
        ] {
            for per_node in (1..=workers as u32).filter(|per_node| (workers as u32).is_multiple_of(*per_node))
            {
                let program = collective.program(&machines(workers, per_node), Bytes::new(1e6)).unwrap();
                let all = vec![(1 << workers) - 1; workers];
                assert_eq!(heard(&program), all, "{collective:?} {workers} {per_node}");
            }
        }
        let program = Collective::Broadcast.program(&machines(workers, 1), Bytes::new(1e6)).unwrap();
        assert!(heard(&program).iter().all(|known| known & 1 == 1), "{workers}");
    }
}
