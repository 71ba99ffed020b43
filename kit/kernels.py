#!/usr/bin/env python3
"""Times the kernels beside the products of a gradient: the file that `stepcast fit kernels` reads."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

from common import Budget, Output, Progress, count, guarded, import_torch, note, parser, pick_device, provenance

TITLES = "set,kernel,elements,mean_us,min_us"
RUNS = 5
QUEUE = 20
SEED = 1
WINDOW = 3
CLASSES = 1000
# Batch, maps and side of what a layer reads; rows for the fit, and others to test with.
FIT = [(batch, maps, side) for batch in (1, 4, 16, 64) for maps, side in ((3, 224), (64, 56), (128, 28), (512, 14))]
HELD = [(batch, maps, side) for batch in (2, 8, 32) for maps, side in ((32, 112), (96, 56), (256, 14))]
EXAMPLES = """\
  kernels.py -o kernels.csv                an H200 takes about 10 s
  kernels.py --device cpu --most 8 -o cpu-kernels.csv
then: stepcast fit kernels kernels.csv -o kernels.toml"""

Call = Callable[[], Any]
Kernel = tuple[str, int, Call]


def kernels(torch: Any, device: Any, batch: int, maps: int, side: int) -> list[Kernel]:
    """Name, elements touched as Oyama 2016 counts them, and the call."""
    functional = torch.nn.functional
    images = torch.randn(batch, maps, side, side, device=device)
    outputs = images.numel()
    patches = functional.unfold(images, WINDOW, padding=1)
    slopes = torch.randn_like(images)
    pooled, places = functional.max_pool2d(images, 2, return_indices=True)
    scores = torch.randn(batch * maps, CLASSES, device=device)
    pool_gradient = lambda: torch.ops.aten.max_pool2d_with_indices_backward(  # noqa: E731
        pooled, images, [2, 2], [2, 2], [0, 0], [1, 1], False, places
    )
    return [
        ("im2col", patches.numel(), lambda: functional.unfold(images, WINDOW, padding=1)),
        ("col2im", patches.numel(), lambda: functional.fold(patches, (side, side), WINDOW, padding=1)),
        ("activation", outputs, lambda: torch.relu(images)),
        ("activation-gradient", outputs, lambda: torch.ops.aten.threshold_backward(slopes, images, 0)),
        ("pool", outputs, lambda: functional.max_pool2d(images, 2, return_indices=True)),
        ("pool-gradient", outputs, pool_gradient),
        ("softmax", scores.numel(), lambda: torch.softmax(scores, dim=1)),
    ]


def times(torch: Any, device: Any, call: Call) -> list[float]:
    """Microseconds of each run: a queue of calls on a GPU, one on a CPU."""
    for _ in range(3):
        call()
    found = []
    for _ in range(RUNS):
        if device.type != "cuda":
            start = time.perf_counter()
            call()
            found.append((time.perf_counter() - start) * 1e6)
            continue
        torch.cuda.synchronize()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(QUEUE):
            call()
        last.record()
        torch.cuda.synchronize()
        found.append(first.elapsed_time(last) * 1e3 / QUEUE)
    return found


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "", EXAMPLES, "kernels.csv", append=False)
    made.add_argument("--most", type=count, default=64, help="largest batch (default 64)")
    return made.parse_args()


def main() -> None:
    args = arguments()
    output, device, torch = Output(args.output, force=args.force), pick_device(args.device), import_torch()
    sizes = [("fit", *size) for size in FIT if size[0] <= args.most]
    sizes += [("held", *size) for size in HELD if size[0] <= args.most]
    random.Random(SEED).shuffle(sizes)
    budget, progress = Budget(args.budget), Progress(len(sizes), args.quiet)
    facts = provenance(device, seed=SEED, repeats=RUNS, queue=f"{QUEUE} calls")
    rows: dict[tuple[str, str, int], str] = {}
    left = 0
    try:
        for part, batch, maps, side in sizes:
            if budget.is_over():
                left += 1
                continue
            for name, elements, call in kernels(torch, device, batch, maps, side):
                found = times(torch, device, call)
                mean, least = sum(found) / len(found), min(found)
                rows[part, name, elements] = f"{part},{name},{elements},{mean:.3f},{least:.3f}"
            progress.step(f"batch {batch}, {maps} maps of {side}")
    finally:
        progress.stop()
        facts |= {"seconds": round(budget.spent, 1), "left_out": {"sizes": left} if left else {}}
        output.write([TITLES, *(rows[key] for key in sorted(rows))], facts)
    if left:
        note(f"out of time: {left} sizes were left out")
    print(f"{args.output}: {len(rows)} kernels in {budget.spent:.0f} s")


if __name__ == "__main__":
    guarded(main)
