#!/usr/bin/env python3
"""Records several ranks of one GPU with planted faults, by PyTorch's profiler: a folder of traces for each fault.

Ranks share the GPU by CUDA's multi-process service, and NCCL takes each for a machine of its own (NCCL_HOSTID). A step reads data,
waits on the GPU for as long as its layers would compute, and sums gradients of every layer. Needs PyTorch and one GPU.

  research/ranks/one_gpu.py -o recordings                  all faults; then: stepcast check job.toml --measured recordings/slow-rank
  research/ranks/one_gpu.py -o recordings --variations 20  twenty of each, at random ranks, steps and sizes, with what was planted
                                                           in planted.json
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time
from typing import Any, NamedTuple

RANKS, STEPS, WARM_UP, LAYERS = 4, 30, 5, 8
# A step takes about STEP_S, with what its sums take beside computing.
LAYER_S, STEP_S, GRADIENT = 0.002, 0.03, 1 << 20
FAULTS = ("healthy", "slow-rank", "pauses", "documents", "loading")


# Categories and fields of a trace that `stepcast check` does not read.
UNREAD = ("cpu_op", "python_function", "ac2g", "fwdbwd", "Trace", "overhead")
READ = {"cudaLaunchKernel", "cuLaunchKernelEx", "cudaDeviceSynchronize"}


class Planted(NamedTuple):
    """A fault: the rank that has it, its size, and for pauses the steps between them and the first."""

    fault: str
    rank: int
    size: float
    every: int = 0
    first: int = 0

    @staticmethod
    def usual(fault: str) -> Planted:
        return {
            "slow-rank": Planted(fault, 2, 0.10),
            "pauses": Planted(fault, 3, 0.05, 8, 6),
            "loading": Planted(fault, 1, 0.25),
        }.get(fault, Planted(fault, 0, 0.2))

    @staticmethod
    def at_random(fault: str, seed: int) -> Planted:
        """At least as large as what has to be found: a rank that is 10 % slow, pauses of 3 % of the time."""
        chance = random.Random(f"{fault} {seed}")
        sizes = {"slow-rank": (0.10, 0.20), "pauses": (0.03, 0.06), "loading": (0.08, 0.30), "documents": (0.10, 0.25)}
        every = chance.randint(4, 9)
        size = chance.uniform(*sizes.get(fault, (0.0, 0.0)))
        return Planted(fault, chance.randrange(RANKS), size, every, chance.randrange(every))


def strip(path: str) -> None:
    """Leaves out what is not read."""
    with gzip.open(path, "rt") as file:
        trace: dict[str, Any] = json.load(file)
    calls = ("cuda_runtime", "cuda_driver")
    events = [event for event in trace["traceEvents"] if event.get("cat") not in UNREAD]
    trace["traceEvents"] = [event for event in events if event.get("cat") not in calls or event["name"] in READ]
    trace.pop("deviceProperties", None)
    with gzip.open(path, "wt", compresslevel=9) as file:
        json.dump(trace, file, separators=(",", ":"))


def work(rank: int, planted: dict[str, Planted]) -> None:
    os.environ.update(NCCL_HOSTID=f"rank-{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29512", rank=rank, world_size=RANKS)
    device = torch.device("cuda:0")
    gradients = [torch.ones(GRADIENT, device=device) for _ in range(LAYERS)]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for event in (begin, end):
        torch.cuda._sleep(10**8)
        event.record()
    torch.cuda.synchronize()
    second = 10**11 / begin.elapsed_time(end)
    noise = random.Random(rank)

    def layer(share: float) -> None:
        torch.cuda._sleep(int(LAYER_S * share * noise.lognormvariate(0, 0.01) * second))

    def step(number: int, fault: Planted) -> None:
        has_it = rank == fault.rank
        share = noise.lognormvariate(0, fault.size) if fault.fault == "documents" else 1.0
        share *= 1.0 + (fault.size if fault.fault == "slow-rank" and has_it else 0.0)
        with torch.profiler.record_function("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            time.sleep(fault.size * STEP_S if fault.fault == "loading" and has_it else 0.0)
        if fault.fault == "pauses" and has_it and number % fault.every == fault.first:
            time.sleep(fault.size * STEP_S * fault.every)
        for _ in range(LAYERS):
            layer(share / 3)
        works = []
        for gradient in gradients:
            layer(share * 2 / 3)
            works.append(dist.all_reduce(gradient, async_op=True))
        for each in works:
            each.wait()
        torch.cuda.synchronize()

    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for folder, fault in planted.items():
        steps = torch.profiler.schedule(wait=0, warmup=WARM_UP, active=STEPS, repeat=1)
        with torch.profiler.profile(activities=kinds, schedule=steps) as profiler:
            for number in range(WARM_UP + STEPS):
                step(number, fault)
                profiler.step()
        path = f"{folder}/rank{rank}.json.gz"
        profiler.export_chrome_trace(path)
        strip(path)
        dist.barrier()
        if rank == 0:
            print(folder, flush=True)
    dist.destroy_process_group()


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("-o", "--output", required=True, help="the folder of the recordings")
    made.add_argument("--variations", type=int, default=0, help="recordings of each fault, at random ranks, steps and sizes")
    made.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    asked = made.parse_args()
    planted = {f"{asked.output}/{fault}": Planted.usual(fault) for fault in FAULTS}
    if asked.variations:
        seeds = range(asked.variations)
        planted = {f"{asked.output}/{fault}-{seed}": Planted.at_random(fault, seed) for seed in seeds for fault in FAULTS}
    if asked.rank is not None:
        work(asked.rank, planted)
        return
    for folder in planted:
        os.makedirs(folder, exist_ok=True)
    with open(f"{asked.output}/planted.json", "w", encoding="utf-8") as file:
        json.dump({folder.rsplit("/", 1)[-1]: fault._asdict() for folder, fault in planted.items()}, file, indent=1)
    command = [sys.executable, __file__, "-o", asked.output, "--variations", str(asked.variations)]
    # Without the service the ranks would take turns, and their faults would not show.
    started = subprocess.run(["nvidia-cuda-mps-control", "-d"]).returncode == 0
    try:
        ranks = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in range(RANKS)]
        if any([rank.wait() for rank in ranks]):
            raise SystemExit("a rank failed")
    finally:
        if started:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True)


if __name__ == "__main__":
    main()
