#!/usr/bin/env python3
"""Records several ranks of one GPU with planted faults, by PyTorch's profiler: a folder of traces for each fault.

Ranks share the GPU by CUDA's multi-process service, and NCCL takes each for a machine of its own (NCCL_HOSTID). A step reads data,
waits on the GPU for as long as its layers would compute, and sums gradients of every layer. Needs PyTorch and one GPU.

  research/ranks/one_gpu.py -o recordings      all faults; then: stepcast check job.toml --measured recordings/slow-rank
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time

RANKS, STEPS, WARM_UP, LAYERS = 4, 30, 5, 8
LAYER_S, GRADIENT = 0.002, 1 << 20
FAULTS = ("healthy", "slow-rank", "pauses", "documents", "loading")


def work(rank: int, fault: str, folder: str) -> None:
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

    def step(number: int) -> None:
        tokens = noise.lognormvariate(0, 0.2) if fault == "documents" else 1.0
        share = tokens * (1.1 if fault == "slow-rank" and rank == 2 else 1.0)
        with torch.profiler.record_function("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            time.sleep(0.008 if fault == "loading" and rank == 1 else 0.0)
        if fault == "pauses" and rank == 3 and number % 8 == 6:
            time.sleep(0.012)
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
    steps = torch.profiler.schedule(wait=0, warmup=WARM_UP, active=STEPS, repeat=1)
    with torch.profiler.profile(activities=kinds, schedule=steps) as profiler:
        for number in range(WARM_UP + STEPS):
            step(number)
            profiler.step()
    profiler.export_chrome_trace(f"{folder}/rank{rank}.json.gz")
    dist.destroy_process_group()


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("-o", "--output", required=True, help="the folder of the recordings")
    made.add_argument("--fault", choices=FAULTS, help="one recording")
    made.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    asked = made.parse_args()
    if asked.rank is not None:
        work(asked.rank, asked.fault, asked.output)
        return
    for fault in [asked.fault] if asked.fault else FAULTS:
        folder = f"{asked.output}/{fault}"
        os.makedirs(folder, exist_ok=True)
        command = [sys.executable, __file__, "--fault", fault, "-o", folder]
        ranks = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in range(RANKS)]
        if any([rank.wait() for rank in ranks]):
            raise SystemExit(f"a rank of {fault} failed")
        print(fault, flush=True)


if __name__ == "__main__":
    main()
