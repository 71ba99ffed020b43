use super::*;

/// The same with links `factor` times as fast, and every time as much shorter.
fn faster(spec: TcpSpec, factor: f64) -> TcpSpec {
    TcpSpec {
        rate: spec.rate * factor,
        round_trip: spec.round_trip / factor,
        queue: spec.queue / factor,
        idle: spec.idle / factor,
        hystart: spec.hystart / factor,
        cubic: spec.cubic * factor.powi(3),
        first_round_trip: spec.first_round_trip / factor,
        shortest_smoothed: spec.shortest_smoothed / factor,
        host_queue: spec.host_queue / factor,
        established: spec.established / factor,
        tick: spec.tick / factor,
        ..spec
    }
}

const WORKERS: u32 = 3;

/// Bytes that every worker receives and sends, tick by tick: all pull, push when they have everything, and pause.
fn carried(spec: TcpSpec, ticks: u32) -> Vec<[f64; 2]> {
    let mut sampler = Sampler::new(5, WORKERS as usize);
    let mut tcp = Tcp::new(spec, WORKERS as usize, &mut sampler);
    let mut all = Vec::new();
    for tick in 0..ticks {
        let now = f64::from(tick) * spec.tick;
        for worker in 0..WORKERS {
            // The second round begins after windows have shrunk for want of something to send.
            if tick == 40 * worker || tick == 6000 + 300 * worker {
                tcp.offer(now, worker, false, 2e7, &mut sampler);
            }
            if tick == 1500 + 10 * worker {
                tcp.offer(now, worker, true, 2e7, &mut sampler);
            }
        }
        tcp.tick(now + spec.tick, &mut sampler);
        all.extend((0..WORKERS).map(|worker| [tcp.delivered(worker, false), tcp.delivered(worker, true)]));
    }
    all
}

#[test]
fn half_of_all_times_is_twice_the_rate() {
    let spec = TcpSpec::linux(1.25e8, 0.05);
    let (usual, faster) = (carried(spec, 9000), carried(faster(spec, 2.0), 9000));
    let sum = |all: &[[f64; 2]], way: usize| all.iter().map(|bytes| bytes[way]).sum::<f64>();
    for way in [0, 1] {
        assert!(sum(&usual, way) > 1.9e7 * f64::from(WORKERS), "{}", sum(&usual, way));
    }
    for (tick, (one, other)) in usual.iter().zip(&faster).enumerate() {
        for way in [0, 1] {
            assert!((one[way] - other[way]).abs() < 1.0, "{tick}: {one:?} {other:?}");
        }
    }
}
