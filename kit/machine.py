#!/usr/bin/env python3
"""Measures this machine in one run: the file from which `stepcast fit machine` makes a device and its links."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from typing import Any

import collectives
from common import (
    Budget,
    KitError,
    Output,
    Progress,
    count,
    guarded,
    import_torch,
    listed,
    note,
    parser,
    pick_device,
    provenance,
)

GROUPS = ("products", "attention", "passes", "updates", "host-copies", "blocks", "steps", "networks", "collectives")
SEED = 1
FLUSH_S = 5.0
# Seconds of the budget that networks leave for collectives, and that collectives may take.
COLLECTIVES_S = 40.0
NETWORKS = ("alexnet", "resnet18", "resnet50", "vgg11", "mobilenet-v2", "densenet121")
NETWORK_BATCHES = (8, 64)
EXAMPLES = """\
  machine.py -o machine.jsonl                      everything, in less than five minutes
  machine.py --only products,attention,blocks --budget 60 -o part.jsonl
  machine.py --only collectives --ranks 4 --device cpu --append -o machine.jsonl    gloo between four CPU ranks
  torchrun --nnodes 2 --node-rank 0 --master-addr HOST --nproc-per-node 8 \\
      machine.py -o machine.jsonl                  collectives over two machines; rank 0 measures the rest and writes
then: stepcast fit machine machine.jsonl -o machine.toml"""


def half_format(torch: Any, device: Any) -> tuple[Any, str]:
    """The number format of products: 16 bits on GPUs, with bf16's range where there are units for it."""
    if device.type != "cuda":
        return torch.float32, "fp32"
    has_bf16 = torch.version.hip is not None or torch.cuda.get_device_capability(device)[0] >= 8
    return (torch.bfloat16, "bf16") if has_bf16 else (torch.float16, "fp16")


def described(device: Any, precision: str) -> dict[str, Any]:
    """The row of the machine itself: what PyTorch tells of the device, and versions."""
    torch = import_torch()
    facts = provenance(device)
    row = {"kind": "machine", "precision": precision}
    row |= {key: facts.get(key) for key in ("date", "device", "torch", "cuda", "cpu", "cores", "system", "python")}
    row["type"] = "gpu" if device.type == "cuda" else "cpu"
    row["gpus"] = torch.cuda.device_count() if device.type == "cuda" else 0
    if device.type == "cuda":
        own = torch.cuda.get_device_properties(device)
        names = ("total_memory", "multi_processor_count", "clock_rate", "memory_clock_rate", "memory_bus_width",
                 "L2_cache_size", "major", "minor")  # fmt: skip
        row |= {name: getattr(own, name) for name in names if hasattr(own, name)}
    return row


def cases(groups: list[str], device: Any) -> list[tuple[str, str, Any]]:
    """Group, label and function of everything on this device, in random order within a group."""
    import decoders
    import parts
    from queued import Bench

    torch = import_torch()
    bench = Bench(device)
    half, name = half_format(torch, device)
    kernels, whole = parts.Parts(bench, half, name), decoders.Decoders(bench, half, name)
    plan = {
        "products": kernels.products, "attention": kernels.attention, "passes": kernels.passes,
        "updates": kernels.updates, "host-copies": kernels.host_copies, "blocks": whole.blocks, "steps": whole.steps,
        "networks": lambda: networks(device),
    }  # fmt: skip
    chosen, made = random.Random(SEED), []
    for group in GROUPS:
        if group in groups and group in plan:
            own = plan[group]()
            chosen.shuffle(own)
            made += [(group, label, measure) for label, measure in own]
    return made


def networks(device: Any) -> list[tuple[str, Any]]:
    """Convolutional networks, as steps.py measures them."""
    import steps

    args = argparse.Namespace(input=None, steps=5, profile_steps=3, warm_up=3)
    is_gpu = device.type == "cuda"
    made = []
    for precision in ("fp32", "bf16") if is_gpu else ("fp32",):
        for model in NETWORKS:
            for batch in NETWORK_BATCHES if is_gpu else (2,):
                case = (model, precision, batch, device, args)
                head = {"kind": "network", "family": model}
                made.append((f"{model} {precision} {batch}", lambda case=case, head=head: [head | steps.measure(*case)]))
    return made


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "", EXAMPLES, "machine.jsonl", append=True)
    made.add_argument("--only", type=listed, default=list(GROUPS), help=f"some of {','.join(GROUPS)} (default all)")
    made.add_argument("--ranks", type=count, help="ranks of collectives (default: all GPUs; on a CPU none)")
    made.set_defaults(budget=290.0)
    args = made.parse_args()
    for name in args.only:
        if name not in GROUPS:
            raise KitError(f'"{name}" is not measured', f"use {', '.join(GROUPS)}")
    return args


def measured_collectives(args: argparse.Namespace, device: Any, budget: Budget) -> list[dict[str, Any]]:
    """Over ranks that are started here."""
    torch = import_torch()
    gpus = torch.cuda.device_count() if device.type == "cuda" else 0
    ranks = args.ranks or gpus
    if ranks < 2:
        note("collectives need two GPUs, or --ranks on a CPU: left out")
        return []
    if device.type == "cuda" and ranks > gpus:
        raise KitError(f"{ranks} ranks need as many GPUs, and there are {gpus}", "use --device cpu, or fewer ranks")
    left = max(args.budget - budget.spent, 5.0)
    return collectives.on_this_machine(ranks, "nccl" if device.type == "cuda" else "gloo", min(left, COLLECTIVES_S))


def main() -> None:
    args = arguments()
    torch = import_torch()
    under_torchrun = int(os.environ.get("WORLD_SIZE", "1")) > 1
    writes = os.environ.get("RANK", "0") == "0"
    output = Output(args.output, force=args.force, append=args.append) if writes else None
    device = pick_device(args.device)
    budget = Budget(args.budget)
    rows: list[dict[str, Any]] = []
    if under_torchrun and "collectives" in args.only:
        if device.type == "cuda":
            device = pick_device(f"cuda:{os.environ.get('LOCAL_RANK', '0')}")
        rows += collectives.of_torchrun(device, COLLECTIVES_S)
    if output is None:
        return
    facts = provenance(device, seed=SEED)
    _, precision = half_format(torch, device)
    rows.insert(0, described(device, precision))
    plan = cases(args.only, device)
    progress, left = Progress(len(plan), args.quiet), []

    def flush() -> None:
        output.write(map(json.dumps, rows), facts | {"seconds": round(budget.spent, 1), "left_out": left})

    waits = device.type == "cuda" and "collectives" in args.only and not under_torchrun and torch.cuda.device_count() > 1
    networks_until = args.budget - (COLLECTIVES_S if waits else 0.0)
    try:
        flushed = time.monotonic()
        for group, label, measure in plan:
            if budget.is_over() or (group == "networks" and budget.spent > networks_until):
                left.append(f"{label} (out of time)")
                continue
            start = time.monotonic()
            try:
                if device.type == "cuda":
                    torch.cuda.empty_cache()
                    torch.cuda.reset_peak_memory_stats()
                rows += [row | {"at": round(budget.spent, 1)} for row in measure()]
            except torch.OutOfMemoryError:
                left.append(f"{label} (out of memory)")
            except (RuntimeError, NotImplementedError, AttributeError, TypeError) as error:
                left.append(f"{label} ({str(error).splitlines()[0] if str(error) else type(error).__name__})")
            facts.setdefault("seconds_of", {})
            facts["seconds_of"][group] = round(facts["seconds_of"].get(group, 0.0) + time.monotonic() - start, 1)
            progress.step(label)
            if time.monotonic() - flushed > FLUSH_S:
                flush()
                flushed = time.monotonic()
        if "collectives" in args.only and not under_torchrun:
            rows += measured_collectives(args, device, budget)
    finally:
        progress.stop()
        flush()
    for label in left[:20]:
        note(f"left out: {label}")
    if len(left) > 20:
        note(f"and {len(left) - 20} more, which {args.output}.provenance.json lists")
    print(f"{args.output}: {len(rows)} rows in {budget.spent:.0f} s")
    sys.stdout.flush()


if __name__ == "__main__":
    guarded(main)
