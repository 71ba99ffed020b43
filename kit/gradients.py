#!/usr/bin/env python3
"""Profiles one worker: the `profile` rows that `stepcast validate ddp-gloo` reads."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from common import (
    Budget,
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
    provenance,
)

EXAMPLES = """\
  gradients.py --device cpu --cores 1 --model resnet50,alexnet --batch 4 -o jobs.jsonl
  gradients.py --model mynet:make --input 3,64,64 --append -o jobs.jsonl
rows of jobs come from allreduce.py --ddp; then: stepcast validate ddp-gloo --data jobs.jsonl"""


def pin(cores: list[int]) -> None:
    """This process, and the threads it will have, on these cores; before PyTorch is imported."""
    os.environ["OMP_NUM_THREADS"] = str(len(cores))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def available() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def profile(model: str, device: Any, args: argparse.Namespace) -> dict[str, Any]:
    import tasks
    import timing

    import_torch().manual_seed(0)
    tasks.set_precision("fp32")
    task = tasks.build(model, tuple(args.input) if args.input else None)
    worker = timing.Worker(task, device, args.batch)
    worker.warm_up(args.warm_up)
    forward, backward, optimiser = zip(*worker.parts(args.steps), strict=True)
    gradients, _ = worker.gradients(args.steps)
    return {
        "kind": "profile",
        "model": task.name,
        "batch": args.batch,
        "fwd": forward,
        "bwd": backward,
        "opt": optimiser,
        "grads": [
            {"name": each["name"], "bytes": each["bytes"], "ready": round(each["ready"], 6)} for each in gradients
        ],
        "N": 1,
        "rate": args.rate,
        "cores_per_rank": args.cores,
    }


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "", EXAMPLES, "jobs.jsonl", append=True)
    made.add_argument("--model", type=listed, default=["resnet18"], help="networks, or module:function")
    made.add_argument("--batch", type=count, default=4, help="samples of a step (default 4)")
    made.add_argument("--input", type=counts, help="size of a sample, such as 3,224,224")
    made.add_argument("--steps", type=count, default=5, help="steps that are timed (default 5)")
    made.add_argument("--warm-up", type=count, default=2, help="steps before (default 2)")
    made.add_argument("--cores", type=count, help="cores of the worker; give the number that the jobs' ranks have")
    made.add_argument("--rate", default="1gbit", help="written to the row; one worker uses no network")
    return made.parse_args()


def main() -> None:
    args = arguments()
    cores = available()
    if args.cores and args.cores < len(cores):
        pin(cores[: args.cores])
    args.cores = args.cores or len(cores)
    torch = import_torch()
    torch.set_num_threads(args.cores)
    import tasks

    for model in args.model:
        tasks.check(model)
    output = Output(args.output, force=args.force, append=args.append)
    device = pick_device(args.device)
    budget, progress = Budget(args.budget), Progress(len(args.model), args.quiet)
    facts = provenance(device, steps=args.steps, warm_up=args.warm_up)
    rows: list[str] = []

    def write() -> None:
        facts.update(seconds=round(budget.spent, 1), left_out=args.model[len(rows) :])
        output.write(rows, facts)

    try:
        for model in args.model:
            if budget.is_over():
                break
            rows.append(json.dumps(profile(model, device, args)))
            write()
            progress.step(model)
    finally:
        progress.stop()
        write()
    for model in args.model[len(rows) :]:
        note(f"out of time: {model} was left out")
    print(f"{args.output}: {len(rows)} profiles in {budget.spent:.0f} s")


if __name__ == "__main__":
    guarded(main)
