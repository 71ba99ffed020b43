#!/usr/bin/env python3
"""Times training steps of networks by part, by layer and by gradient."""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

from common import (
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
    provenance,
)

EXAMPLES = """\
  steps.py --model alexnet,vgg11,resnet50 --precision fp32,bf16 --batch 16,64 -o steps.jsonl.gz
  steps.py --model resnet34 --precision fp32 --batch 32 --budget 60
  steps.py --model mynet:make --input 3,64,64     a function of yours that gives a torch.nn.Module
  steps.py --list                                 the networks that need no file of yours"""


def measure(model: str, precision: str, batch: int, device: Any, args: argparse.Namespace) -> dict[str, Any]:
    """One row."""
    import tasks
    import timing

    torch = import_torch()
    torch.manual_seed(0)
    tasks.set_precision(precision)
    task = tasks.build(model, tuple(args.input) if args.input else None)
    is_gpu = device.type == "cuda"
    if is_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    worker = timing.Worker(task, device, batch, precision)
    worker.warm_up(args.warm_up)
    parts = worker.parts(args.steps)
    forward, backward, optimiser = (1e3 * statistics.median(part) for part in zip(*parts, strict=True))
    iteration = 1e3 * worker.iteration(args.steps)
    memory = torch.cuda.max_memory_allocated() if is_gpu else 0
    layers = worker.layers(args.profile_steps)
    gradients, with_hooks = worker.gradients(args.profile_steps)
    return {
        "model": task.name,
        "precision": precision,
        "batch": batch,
        "fwd_ms": forward,
        "bwd_ms": backward,
        "opt_ms": optimiser,
        "iter_ms": iteration,
        "params": sum(parameter.numel() for parameter in worker.parameters),
        "tensors": len(worker.parameters),
        "mem": memory,
        "profile": {
            "layers": layers,
            "grads": [
                {"name": each["name"], "shape": each["shape"], "ready_ms": round(1e3 * each["ready"], 5)}
                for each in gradients
            ],
            "bwd_ms_with_hooks": 1e3 * with_hooks,
        },
    }


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "", EXAMPLES, "steps.jsonl.gz", append=True)
    made.add_argument("--model", type=listed, default=["alexnet", "vgg11", "resnet18", "resnet50"],
                      help="networks, or module:function (default alexnet,vgg11,resnet18,resnet50)")  # fmt: skip
    made.add_argument("--precision", type=listed, default=["fp32"], help="fp32,tf32,bf16,fp16 (default fp32)")
    made.add_argument("--batch", type=counts, default=[16, 64], help="samples of a step (default 16,64)")
    made.add_argument("--input", type=counts, help="size of a sample, such as 3,224,224")
    made.add_argument("--steps", type=count, default=10, help="steps that are timed (default 10)")
    made.add_argument("--profile-steps", type=count, default=5, help="steps that are profiled (default 5)")
    made.add_argument("--warm-up", type=count, default=5, help="steps before (default 5)")
    made.add_argument("--benchmark", action="store_true", help="let cuDNN try its algorithms and take the fastest")
    made.add_argument("--list", action="store_true", help="name the networks")
    return made.parse_args()


def main() -> None:
    args = arguments()
    torch = import_torch()
    import tasks

    if args.list:
        print("\n".join(tasks.names()))
        return
    for precision in args.precision:
        if precision not in tasks.PRECISIONS:
            raise KitError(f'"{precision}" is no precision', f"use {', '.join(tasks.PRECISIONS)}")
    for model in args.model:
        tasks.check(model)
    output = Output(args.output, force=args.force, append=args.append)
    device = pick_device(args.device)
    torch.backends.cudnn.benchmark = args.benchmark
    cases = [(m, p, b) for p in args.precision for m in args.model for b in args.batch]
    budget, progress = Budget(args.budget), Progress(len(cases), args.quiet)
    facts = provenance(device, steps=args.steps, warm_up=args.warm_up, cudnn_benchmark=args.benchmark)
    rows: list[str] = []
    left = [" ".join(map(str, case)) for case in cases]
    reasons: dict[str, str] = {}

    def write() -> None:
        facts["seconds"] = round(budget.spent, 1)
        facts["left_out"] = [f"{case}{reasons.get(case, '')}" for case in left]
        output.write(rows, facts)

    try:
        for case in cases:
            if budget.is_over():
                break
            label = " ".join(map(str, case))
            try:
                rows.append(json.dumps(measure(*case, device, args)))
                left.remove(label)
                write()
            except torch.OutOfMemoryError:
                reasons[label] = " (out of memory)"
            progress.step(label)
    finally:
        progress.stop()
        write()
    for label in left:
        note(f"left out: {label}{reasons.get(label, ' (out of time)')}")
    print(f"{args.output}: {len(rows)} steps in {budget.spent:.0f} s")


if __name__ == "__main__":
    guarded(main)
