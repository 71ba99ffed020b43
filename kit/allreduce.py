#!/usr/bin/env python3
"""Times all-reduces, and DDP jobs if asked: the `allreduce` and `ddp` rows that `stepcast validate ddp-gloo` reads."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from common import (
    BAD_INPUT,
    Budget,
    KitError,
    Output,
    Progress,
    count,
    counts,
    guarded,
    import_torch,
    listed,
    note,
    parser,
    pick_device,
    positive,
    provenance,
)
from gradients import available, pin

SIZES = [4**power for power in range(5, 14)]  # 1 KiB to 64 MiB
GRACE_S = 5.0
EXAMPLES = """\
  allreduce.py --ranks 4 --rate 10gbit -o jobs.jsonl                   four ranks on this machine
  torchrun --nnodes 2 --node-rank 0 --master-addr HOST --nproc-per-node 1 \\
      allreduce.py --rate 10gbit --ddp resnet50,alexnet --bucket 25,0.001 --append -o jobs.jsonl
                                                                       on two machines; rank 0 writes the file
  allreduce.py --ranks 2 --cores 1 --rate 1gbit --ddp resnet18 --input 3,64,64 --append -o jobs.jsonl
GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME chooses the network; then: stepcast validate ddp-gloo --data jobs.jsonl"""


def repetitions(size: int) -> int:
    return 10 if size < 1 << 20 else 3 if size < 1 << 26 else 2


class Ranks:
    """All processes of the job; this one's view."""

    def __init__(self, device: Any) -> None:
        import torch
        import torch.distributed as distributed

        self._torch, self._all, self._device = torch, distributed, device
        self.rank, self.number = distributed.get_rank(), distributed.get_world_size()

    def agreed(self, flag: bool) -> bool:
        """What rank 0 says."""
        box = self._torch.tensor([int(flag)], device=self._device)
        self._all.broadcast(box, 0)
        return bool(box.item())

    def mean(self, rows: list[list[float]]) -> list[list[float]]:
        """Of rows that all have the same length, element by element over all ranks."""
        box = self._torch.tensor(rows, dtype=self._torch.float64, device=self._device)
        self._all.all_reduce(box)
        return (box / self.number).tolist()

    def barrier(self) -> None:
        self._all.barrier()


def micro(ranks: Ranks, device: Any, size: int) -> dict[str, Any]:
    """All-reduces of one size, mean over ranks."""
    import torch
    import torch.distributed as distributed

    data = torch.ones(max(size // 4, 1), device=device)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    times = []
    for _ in range(repetitions(size) + 1):
        wait()
        ranks.barrier()
        wait()
        start = time.perf_counter()
        distributed.all_reduce(data)
        wait()
        times.append(time.perf_counter() - start)
        data.fill_(1.0)
    return {"kind": "allreduce", "bytes": size, "times": [round(value, 7) for value in ranks.mean([times[1:]])[0]]}


def job(ranks: Ranks, device: Any, model: str, bucket: float, args: argparse.Namespace) -> dict[str, Any]:
    """One DDP job."""
    import torch

    import tasks
    import timing

    torch.manual_seed(0)
    tasks.set_precision("fp32")
    task = tasks.build(model, tuple(args.input) if args.input else None)
    name = task.name
    task.module.to(device)
    task.module = torch.nn.parallel.DistributedDataParallel(task.module, bucket_cap_mb=bucket)
    worker = timing.Worker(task, device, args.batch)

    def timed(steps: int) -> tuple[list[float], list[list[float]]]:
        whole, parts = [], []
        for _ in range(steps):
            start = time.perf_counter()
            parts.append(list(worker.parts(1)[0]))
            whole.append(time.perf_counter() - start)
        return whole, parts

    worker.warm_up(args.warm_up)  # DDP orders its buckets anew after the first step
    ranks.barrier()
    whole, parts = timed(args.steps)
    ranks.barrier()
    with task.module.no_sync():
        _, alone = timed(3)
    return {
        "kind": "ddp",
        "model": name,
        "batch": args.batch,
        "bucket_mb": bucket,
        "iter": ranks.mean([whole])[0],
        "parts": ranks.mean(parts),
        "no_sync": ranks.mean(alone),
    }


def worker(args: argparse.Namespace) -> None:
    """One rank of the job."""
    torch = import_torch()
    import torch.distributed as distributed

    local = int(os.environ.get("LOCAL_RANK", "0"))
    writes = os.environ["RANK"] == "0"
    output = Output(args.output, force=args.force, append=args.append) if writes else None
    name = args.device
    if args.backend == "gloo" and name == "auto":
        name = "cpu"
    device = pick_device(name)
    if device.type == "cuda":
        device = pick_device(f"cuda:{local}")
    backend = args.backend or ("nccl" if device.type == "cuda" else "gloo")
    if (backend == "nccl") != (device.type == "cuda"):
        raise KitError(f"{backend} does not go with {device.type}", "use nccl on GPUs and gloo on CPUs")
    torch.set_num_threads(args.cores)
    bound = {"device_id": device} if backend == "nccl" else {}
    distributed.init_process_group(backend, **bound)
    ranks = Ranks(device)
    place = {"N": ranks.number, "rate": args.rate, "cores_per_rank": args.cores}
    plan: list[tuple[str, Callable[[], dict[str, Any]]]] = []
    for size in args.sizes:
        plan.append((f"{size} bytes", partial(micro, ranks, device, size)))
    for model, bucket in itertools.product(args.ddp, args.bucket):
        plan.append((f"{model} bucket {bucket:g} MiB", partial(job, ranks, device, model, bucket, args)))
    budget, progress = Budget(args.budget), Progress(len(plan), args.quiet or not writes)
    facts = provenance(device, backend=backend, ranks=ranks.number, pinned=os.environ.get("STEPCAST_KIT_CORES"))
    rows: list[str] = []
    for label, measure in plan:
        if ranks.agreed(budget.is_over()):
            break
        rows.append(json.dumps(measure() | place))
        if output:
            left = [label for label, _ in plan[len(rows) :]]
            output.write(rows, facts | {"seconds": round(budget.spent, 1), "left_out": left})
        progress.step(label)
    if writes:
        for label, _ in plan[len(rows) :]:
            note(f"out of time: {label} was left out")
        print(f"{args.output}: {len(rows)} rows of {ranks.number} ranks in {budget.spent:.0f} s")
    ranks.barrier()
    distributed.destroy_process_group()


def launch(args: argparse.Namespace) -> None:
    """Starts the ranks on this machine, each on cores of its own if there are enough."""
    # What is wrong is said once, before anything starts.
    Output(args.output, force=args.force, append=args.append)
    torch = import_torch()
    gpus = torch.cuda.device_count()
    if args.device != "cpu" and args.backend != "gloo" and 0 < gpus < args.ranks:
        raise KitError(
            f"{args.ranks} ranks need as many GPUs, and there are {gpus}", "use --device cpu, or fewer ranks"
        )
    if args.ddp:
        import tasks

        for model in args.ddp:
            tasks.check(model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cores, children = available(), []
    has_own = args.ranks * args.cores <= len(cores)
    if not has_own:
        note(f"{args.ranks} ranks of {args.cores} cores share {len(cores)}: times will be long")
    for rank in range(args.ranks):
        own = cores[rank * args.cores : (rank + 1) * args.cores] if has_own else []
        job = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": args.ranks, "MASTER_PORT": port}
        environment = os.environ | {key: str(value) for key, value in job.items()} | {"MASTER_ADDR": "127.0.0.1"}
        if own:
            environment["STEPCAST_KIT_CORES"] = ",".join(map(str, own))
        children.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
    try:
        while any(child.poll() is None for child in children) and not any(child.returncode for child in children):
            time.sleep(0.05)
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
        codes = [ended(child) for child in children]
    if any(codes):
        sys.exit(BAD_INPUT if BAD_INPUT in codes else 1)


def ended(child: subprocess.Popen[bytes]) -> int:
    """A rank that waits for its peers hears no signal but the last one."""
    try:
        return child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "", EXAMPLES, "jobs.jsonl", append=True)
    made.add_argument("--ranks", type=count, help="start so many ranks on this machine; without it, use torchrun")
    made.add_argument("--rate", required=True, help="rate of every host's link, such as 10gbit")
    made.add_argument("--backend", choices=("gloo", "nccl"), help="default: nccl on GPUs, gloo on CPUs")
    made.add_argument("--cores", type=count, default=1, help="cores of a rank (default 1)")
    made.add_argument("--sizes", type=counts, default=SIZES, help='bytes (default 1 KiB to 64 MiB; "" for none)')
    made.add_argument("--ddp", type=listed, default=[], metavar="MODEL", help="networks to train with DDP")
    made.add_argument("--bucket", type=lambda text: [positive(part) for part in listed(text)], default=[25.0],
                      help="bucket_cap_mb of DDP (default 25; 0.001: no fusion)")  # fmt: skip
    made.add_argument("--batch", type=count, default=4, help="samples of a rank's step (default 4)")
    made.add_argument("--input", type=counts, help="size of a sample, such as 3,224,224")
    made.add_argument("--steps", type=count, default=5, help="steps that are timed (default 5)")
    made.add_argument("--warm-up", type=count, default=3, help="steps before (default 3)")
    args = made.parse_args()
    if not re.fullmatch(r"\d+(\.\d+)?[kmg]bit", args.rate):
        raise KitError(f'"{args.rate}" is no rate', "write 100mbit, 1gbit, 25gbit")
    return args


def main() -> None:
    args = arguments()
    if "RANK" in os.environ:
        if os.environ.get("STEPCAST_KIT_CORES"):
            pin([int(core) for core in os.environ["STEPCAST_KIT_CORES"].split(",")])
        worker(args)
    elif args.ranks and args.ranks > 1:
        launch(args)
    else:
        raise KitError("an all-reduce needs ranks", "give --ranks N (2 or more), or start this script with torchrun")


if __name__ == "__main__":
    guarded(main)
