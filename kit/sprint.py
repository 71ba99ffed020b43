#!/usr/bin/env python3
"""Times the components of SPRINT's threads (Oyama 2016, Tables 3 and 4): the file that `stepcast fit sprint` reads."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from common import (
    Budget,
    Output,
    Progress,
    count,
    counts,
    guarded,
    import_torch,
    note,
    parser,
    pick_device,
    provenance,
)

TITLES = "set,component,parameters,batch,nodes,gpus,mean_ms"
RUNS = 5
# Parameters of a thread's buffers: rows for the fit, and others to test with.
FIT = [1 << 20, 1 << 22, 1 << 24]
HELD = [3 << 20, 3 << 22]
EXAMPLES = """\
  sprint.py --model vgg16 -o sprint.csv                     one machine: all but the all-reduce
  sprint.py --device cpu --model resnet18 --batch 1,2 --most 4194304 -o cpu-sprint.csv
  torchrun --nnodes 4 --node-rank 0 --master-addr HOST --nproc-per-node 1 sprint.py --model vgg16 -o sprint.csv
                                                            on four machines, with the all-reduce; rank 0 writes
then: stepcast fit sprint sprint.csv -o sprint.toml, and methods.oyama2016.fitted = "sprint.toml" in a scenario"""

Call = Callable[[], Any]
Row = tuple[str, str, int, int, int, Call]


def by_parameter(torch: Any, device: Any, size: int) -> Iterator[tuple[str, Call]]:
    """Components whose time grows with the parameters, as Algorithms 1 and 2 do them."""
    pinned = {"pin_memory": True} if device.type == "cuda" else {}
    weights, buffer, total, momentum, old = (torch.zeros(size, **pinned) for _ in range(5))
    on_device = torch.zeros(size, device=device)
    arrived = torch.zeros(size, **pinned)

    def update_gradient() -> None:
        arrived.copy_(on_device)
        buffer.add_(arrived)

    def add_momentum() -> None:
        total.add_(old)
        total.add_(momentum, alpha=0.9)

    yield "fetch-weights", lambda: on_device.copy_(weights)
    yield "compute-update", lambda: on_device.mul_(0.5)
    yield "update-gradient", update_gradient
    yield "sum-gradient", lambda: total.add_(buffer)
    yield "update-old-weights", lambda: old.copy_(weights)
    yield "add-momentum", add_momentum
    yield "update-momentum", lambda: torch.sub(total, old, out=momentum)
    yield "update-weights", lambda: weights.copy_(total)


def by_sample(torch: Any, device: Any, model: str, batch: int) -> Iterator[tuple[str, Call]]:
    """Components whose time grows with the samples: images to the device, deformed, and their gradient."""
    import tasks
    from timing import Worker

    worker = Worker(tasks.build(model), device, batch)
    images = worker.batch[0][0]
    host = images.cpu()
    turned = torch.tensor([[0.98, -0.17, 0.0], [0.17, 0.98, 0.0]], device=device).expand(batch, 2, 3)

    def deform() -> None:
        grid = torch.nn.functional.affine_grid(turned, list(images.shape), align_corners=False)
        torch.nn.functional.grid_sample(images, grid, align_corners=False)

    def gradient() -> None:
        worker.optimiser.zero_grad(set_to_none=True)
        worker.forward().backward()

    yield "load-image", lambda: images.copy_(host)
    if images.dim() == 4:
        yield "deform-image", deform
    yield "compute-gradient", gradient


def milliseconds(torch: Any, device: Any, call: Call) -> float:
    """Mean of some runs after two that do not count."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    found = []
    for _ in range(RUNS + 2):
        wait()
        start = time.perf_counter()
        call()
        wait()
        found.append(time.perf_counter() - start)
    return 1e3 * sum(found[2:]) / RUNS


def rows_of(torch: Any, device: Any, args: argparse.Namespace) -> Iterator[Row]:
    """Set, component, parameters, batch, nodes and the call."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as SPRINT's update thread
    for part, sizes in (("fit", FIT), ("held", HELD)):
        for size in (size for size in sizes if size <= args.most):
            for name, call in by_parameter(torch, device, size):
                yield part, name, size, 1, 1, call
    torch.set_num_threads(threads)
    for batch in args.batch:
        for name, call in by_sample(torch, device, args.model, batch):
            yield "fit", name, 1, batch, 1, call
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        distributed = torch.distributed
        distributed.init_process_group("gloo")
        for nodes in (1 << power for power in range(1, world.bit_length())):
            group = distributed.new_group(list(range(nodes)))
            for size in (size for size in FIT if size <= args.most):
                values = torch.zeros(size)
                inside = distributed.get_rank() < nodes
                together = lambda: distributed.all_reduce(values, group=group) if inside else None  # noqa: B023, E731
                yield "fit", "all-reduce", size, 1, nodes, together


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "", EXAMPLES, "sprint.csv", append=False)
    made.add_argument("--model", default="vgg16", help="network whose gradient is timed (default vgg16)")
    made.add_argument("--batch", type=counts, default=[1, 2, 4, 8], help="sub-batches (default 1,2,4,8)")
    made.add_argument("--most", type=count, default=FIT[-1], help=f"most parameters (default {FIT[-1]})")
    return made.parse_args()


def main() -> None:
    args = arguments()
    leads = os.environ.get("RANK", "0") == "0"
    output = Output(args.output, force=args.force) if leads else None
    device, torch = pick_device(args.device), import_torch()
    total = 8 * sum(size <= args.most for size in FIT + HELD) + 3 * len(args.batch)
    budget, progress = Budget(args.budget), Progress(total, args.quiet or not leads)
    facts, rows, left = provenance(device, model=args.model, repeats=RUNS), [], 0
    try:
        for part, name, parameters, batch, nodes, call in rows_of(torch, device, args):
            # Processes of a job measure the same rows: none may leave earlier.
            if budget.is_over() and name != "all-reduce":
                left += 1
                continue
            mean = milliseconds(torch, device, call)
            rows.append(f"{part},{name},{parameters},{batch},{nodes},1,{mean:.6f}")
            if name != "all-reduce":
                progress.step(f"{name}, {parameters} parameters, batch {batch}")
    finally:
        progress.stop()
        if output:
            output.write([TITLES, *rows], facts | {"seconds": round(budget.spent, 1), "left_out": {"rows": left}})
    if left:
        note(f"out of time: {left} rows were left out")
    if leads:
        print(f"{args.output}: {len(rows)} components in {budget.spent:.0f} s")


if __name__ == "__main__":
    guarded(main)
