//! Logs of running jobs, how far the job is, and whether it is as fast as its forecast.

use crate::{request, scenario};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_study::check::{
    Check, Known, Reading, RunningForecast, Verdict, check, follow, read_progress, read_steps,
};
use stepcast_study::{MethodChoice, unwatched};

fn line(seconds: u64, step: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    format!(
        " [2024-05-{:02} {:02}:{:02}:{:02}] iteration {step:8}/    1000 | consumed samples: 1 | elapsed time per iteration (ms): \
         10000.0 | lm loss: 9.1 |\n",
        1 + hours / 24,
        hours % 24,
        minutes % 60,
        seconds % 60
    )
}

const JOB: &str = "[model]\nzoo = \"resnet50\"\n[[cluster.workers]]\ncount = 8\ndevice = \"tesla-v100-sxm2-16gb\"\n\
                   [price]\nworker-hour = 2.0\n";

fn followed(log: &str, deadline: f64) -> RunningForecast {
    let time = |reading: &Reading| match reading {
        Reading::Step(time) => Ok(*time),
        _ => Err(Fault::new("no step", "")),
    };
    follow(&scenario(JOB, &[]), &read_progress(log), &time, None, Some(Seconds::new(deadline))).unwrap()
}

#[test]
fn a_steady_run_ends_when_its_steps_do() {
    let log: String = (1..=50).map(|at| line(at * 100, at * 10)).collect();
    let found = followed(&log, 10_300.0);
    assert_eq!((found.done, found.steps, found.restarts, found.pauses), (500, 1000, 0, 0));
    assert!((found.goodput - 1.0).abs() < 1e-9 && (found.rest.get() - 5000.0).abs() < 60.0, "{found:?}");
    assert!((found.cost.unwrap() / (8.0 * 2.0 * (4900.0 + 5000.0) / 3600.0) - 1.0).abs() < 0.02);
    assert!(found.in_time.unwrap() > 0.9 && followed(&log, 9_500.0).in_time.unwrap() < 0.1);
}

/// After 300 steps the run stands still for 20 minutes, and begins again at step 251.
#[test]
fn restarts_and_pauses_are_goodput_that_is_lost() {
    let first: String = (1..=30).map(|at| line(at * 100, at * 10)).collect();
    let second: String = (1..=25).map(|at| line(3000 + 1200 + at * 100, 250 + at * 10)).collect();
    let found = followed(&(first.clone() + &second), 12_000.0);
    assert_eq!((found.restarts, found.done), (1, 500));
    assert!(found.lost_steps >= 40 && (found.paused.get() - 1200.0).abs() < 100.0, "{found:?}");
    assert!((found.goodput - 4900.0 / 6600.0).abs() < 0.01, "{found:?}");
    let [least, most] = found.rest_interval;
    assert!(found.rest.get() > 5300.0 && least < found.rest && found.rest < most);
    let paused: String = (31..=50).map(|at| line(at * 100 + 600, at * 10)).collect();
    let found = followed(&(first + &paused), 12_000.0);
    assert_eq!((found.restarts, found.pauses), (0, 1));
    assert!((found.paused.get() - 600.0).abs() < 1.0 && found.goodput < 0.9);
}

#[test]
fn times_of_lines_are_those_of_the_calendar() {
    let read = |line: &str| read_progress(line)[0];
    let iteration = "iteration       10/  500000 | elapsed time per iteration (ms): 1.0 |";
    let of_megatron = read(&format!("[1970-01-02 00:00:01] {iteration}"));
    assert_eq!((of_megatron.at, of_megatron.step, of_megatron.of), (Some(86_401.0), 10, Some(500_000)));
    let of_titan = read("at 2024-02-29T12:00:00,1 INFO - step: 20  loss: 7 tps: 6,512");
    assert_eq!((of_titan.at, of_titan.step, of_titan.of), (Some(1_709_208_000.0), 20, None));
    assert_eq!(read(&format!("2024-2-29 {iteration}")).at, None);
}

fn one(line: &str) -> Reading {
    read_steps("log", line).unwrap()[0]
}

#[test]
fn logs_of_frameworks_are_read() {
    let step = |time: f64| Reading::Step(Seconds::new(time));
    for (line, reading) in [
        (
            " iteration 10/ 500 | consumed samples: 1280 | elapsed time per iteration (ms): 1234.5 |",
            step(1.2345),
        ),
        (
            "[titan] step: 20 loss: 7.1 memory: 40.2GiB(42.1%) tps: 6,512 mfu: 41%",
            Reading::TokensPerDevice(6512.0),
        ),
        ("SamplesPerSec=812.5, MemAllocated=1GB", Reading::Throughput(SamplesPerSec::new(812.5))),
        ("Epoch 0: 12%|#2 | 12/100 [00:04<00:30, 2.50it/s, loss=1.2]", step(0.4)),
        ("12/100 [00:24<02:30, 1.25s/it]", step(1.25)),
        ("41 ms", step(0.041)),
        ("0.5", step(0.5)),
    ] {
        assert_eq!(one(line), reading, "{line}");
    }
}

fn times(text: &str) -> Vec<f64> {
    let steps = read_steps("train.log", text).unwrap();
    let time = |reading: &Reading| match reading {
        Reading::Step(time) => time.get(),
        Reading::Throughput(rate) => rate.get(),
        Reading::TokensPerDevice(rate) => *rate,
    };
    steps.iter().map(time).collect()
}

#[test]
fn megatron_prints_more_than_steps() {
    let log = "using world size: 64, data-parallel size: 4, tensor-model-parallel size: 8\n\
               > building train, validation, and test datasets for GPT ...\n 12\n\
               time (ms) | model-and-optimizer-setup: 4012.13 | train/valid/test-data-iterators-setup: 213.90\n\
               [before the start of training step] datetime: 2024-05-01 12:00:00\n \
               [2024-05-01 12:02:10] iteration       10/  500000 | consumed samples:        10240 | elapsed time per \
               iteration (ms): 13245.6 | throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 1.5E-05 | global batch \
               size:  1024 | lm loss: 9.128E+00 | loss scale: 1.0 | grad norm: 3.1 | number of skipped iterations: 0 |\n \
               validation loss at iteration 10 | lm loss value: 9.0E+00 | lm loss PPL: 8.1E+03 |\n \
               [2024-05-01 12:04:20] iteration       20/  500000 | consumed samples:        20480 | elapsed time per \
               iteration (ms): 12987.1 | global batch size:  1024 | lm loss: 8.7E+00 |\n";
    assert_eq!(times(log), [13.2456, 12.9871]);
}

#[test]
fn torchtitan_prints_in_colours() {
    let log = "[rank0]:[titan] 2025-01-01 00:00:00,000 - root - INFO - Training starts at step 1\n\
               [rank0]:[titan] 2025-01-01 00:00:09,120 - root - INFO - \u{1b}[31mstep:  1  \u{1b}[32mloss: 12.2721  \
               \u{1b}[33mmemory: 38.22GiB(40.23%)  \u{1b}[34mtps: 1,234  \u{1b}[36mtflops: 45.04  \u{1b}[35mmfu: 4.55%\u{1b}[39m\n\
               [rank0]:[titan] 2025-01-01 00:00:20,310 - root - INFO - \u{1b}[31mstep: 10  \u{1b}[32mloss:  9.1  \
               \u{1b}[33mmemory: 47.1GiB(49.6%)  \u{1b}[34mtps: 7,301  \u{1b}[36mtflops: 422.0  \u{1b}[35mmfu: 42.7%\u{1b}[39m\n";
    assert_eq!(times(log), [1234.0, 7301.0]);
}

#[test]
fn bars_of_lightning_return_to_their_line() {
    let log = "GPU available: True (cuda), used: True\n\rSanity Checking DataLoader 0: 100%|##| 2/2 [00:01<00:00, 9.10it/s]\n\
               \rTraining: |          | 0/? [00:00<?, ?it/s]\rEpoch 0:   0%|          | 0/100 [00:00<?, ?it/s]\
               \rEpoch 0:   1%|1         | 1/100 [00:01<01:39,  0.50it/s, v_num=0, loss=7.1]\
               \rEpoch 0:   2%|2         | 2/100 [00:01<01:00,  2.00it/s, v_num=0, loss=6.9]\
               \rEpoch 0:   3%|3         | 3/100 [00:01<00:48,  2.50it/s, v_num=0, loss=6.8]\n\
               \rValidation DataLoader 0:  50%|##| 5/10 [00:00<00:00, 20.1it/s]\rValidation DataLoader 0: 100%|##| 10/10 \
               [00:00<00:00, 20.0it/s]\rEpoch 1:   1%|1         | 1/100 [00:00<00:40,  2.50it/s, v_num=0]\n";
    assert_eq!(times(log), [2.0, 0.5, 0.4, 0.4]);
    let trainer = "Loading checkpoint shards: 100%|##| 4/4 [00:10<00:00,  2.50s/it]\n\
                   \r  0%|          | 1/1000 [00:03<50:00,  3.00s/it]\r  0%|          | 2/1000 [00:05<40:00,  2.40s/it]\
                   {'loss': 2.1, 'learning_rate': 5e-05}\n";
    assert_eq!(times(trainer), [3.0, 2.4]);
}

#[test]
fn plain_lines_may_be_mixed_with_words() {
    assert_eq!(times("started\r\n41 ms\r\n0.043\r\n\r\n1.2 s\r\n"), [0.041, 0.043, 1.2]);
}

#[test]
fn tables_are_read_by_their_header() {
    let steps = read_steps("run.csv", "step,step-time\n1,41 ms\n2,0.043\n").unwrap();
    assert_eq!(steps.len(), 2);
    let rates = read_steps("run.csv", "throughput\n812 samples/s\n").unwrap();
    assert_eq!(rates, [Reading::Throughput(SamplesPerSec::new(812.0))]);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let refused = |text: &str| read_steps("run.csv", text).unwrap_err().to_string();
    assert!(refused("").contains("no step times"));
    assert!(refused("hello\n").contains("no step times"));
    assert!(refused("step-time\nfast\n").contains("run.csv:2"));
    assert!(refused("step-time\n-1 s\n").contains("not positive"));
}

fn checked(slowness: f64) -> Check {
    let text = "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\nbatch = 32\n\
                [[cluster.workers]]\ncount = 16\ndevice = \"tesla-v100-sxm2-16gb\"\n[cluster.network]\n\
                bandwidth = \"10 Gbit/s\"\nrented = false\n[data]\nsamples = 1281167\nepochs = 1";
    let request = request(text, &[]);
    let method = request.method(MethodChoice::Auto).unwrap();
    let forecast = method.predict(&request.scenario().unwrap()).unwrap().iteration;
    let mut readings = vec![Reading::Step(forecast * (10.0 * slowness)); 3];
    readings
        .extend([0.99, 1.0, 1.01].repeat(9).iter().map(|vary| Reading::Step(forecast * (slowness * vary))));
    check(&request, method, &readings, Known::default(), &unwatched).unwrap()
}

#[test]
fn a_job_as_forecast_is_inside_and_changes_little() {
    let check = checked(1.0);
    assert_eq!((check.verdict, check.left_out, check.steps), (Verdict::AsForecast, 3, 27));
    assert!((check.ratio - 1.0).abs() < 1e-9 && (check.corrected / check.forecast - 1.0).abs() < 1e-6);
    let rest = check.rest.unwrap();
    assert_eq!(rest.steps, 1_281_167_u64.div_ceil(16 * 32) - 30);
}

#[test]
fn a_slow_job_is_outside_and_names_what_may_be_off() {
    let check = checked(3.0);
    assert_eq!(check.verdict, Verdict::Slower);
    assert!(check.corrected > check.measured * 0.97 && check.corrected < check.measured, "{check:?}");
    let network = check.suspects.iter().find(|it| it.name == "rate of the network").unwrap();
    assert!(network.share > 0.0 && network.factor.is_none_or(|factor| factor < 1.0), "{network:?}");
    let shares: f64 = check.suspects.iter().map(|suspect| suspect.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert!(check.suspects.windows(2).all(|pair| pair[0].share >= pair[1].share));
}
