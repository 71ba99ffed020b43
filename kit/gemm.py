#!/usr/bin/env python3
"""Times matrix products: the file that `stepcast fit gemm` reads."""

from __future__ import annotations

import argparse
import itertools
import random
import time
from typing import Any

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

TITLES = "set,dtype,trans,m,n,k,mean_us,min_us"
DTYPES = {"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16"}
TRANSPOSITIONS = ("nn", "nt", "tn", "tt")
RUNS = 5
# Products below this are timed as a queue of calls, others alone.
ALONE_FLOP = 1e9
QUEUE = 20
FLUSH_S = 5.0
SEED = 1
EXAMPLES = """\
  gemm.py -o gemm.csv.gz                      f32 and bf16, 16 to 8192 (15,000 products; an H200 takes about 5 min)
  gemm.py --to 2048 --grid whole --budget 60  small and short
  gemm.py --device cpu --dtype f32 --trans nn --from 16 --to 512 -o cpu.csv
then: stepcast fit gemm gemm.csv.gz -o gemm.toml"""

Product = tuple[str, str, str, int, int, int]


def grid(low: int, high: int, per_doubling: int, offset: float = 0.0) -> list[int]:
    """low·2^((i + offset)/per_doubling) up to high, rounded, each once."""
    sizes: list[int] = []
    for place in itertools.count():
        size = round(low * 2 ** ((place + offset) / per_doubling))
        if size > high:
            return sorted(set(sizes))
        sizes.append(size)
    raise AssertionError


def plan(args: argparse.Namespace) -> list[Product]:
    """What is measured, in random order: the state of a host drifts, and what a budget cuts off is spread evenly."""
    chosen = random.Random(SEED)
    products: list[Product] = []
    for dtype, trans in itertools.product(args.dtype, args.trans):
        half = args.grid == "half" or (args.grid == "auto" and (dtype, trans) == ("f32", "nn"))
        fit = grid(args.low, args.high, 2 if half else 1)
        # Half-way between the points of the half grid; a quarter of a doubling above those of the whole one.
        between = grid(args.low, args.high, 2, 0.5) if half else grid(args.low, args.high, 1, 0.25)
        held = list(itertools.product(set(between) - set(fit), repeat=3))
        held = chosen.sample(sorted(held), min(len(held), args.held * (3 if half else 1)))
        products += [("fit", dtype, trans, *shape) for shape in itertools.product(fit, repeat=3)]
        products += [("held", dtype, trans, *shape) for shape in held]
    chosen.shuffle(products)
    return products


class Bench:
    """Operands are views of two buffers for each precision."""

    def __init__(self, device: Any, largest: int) -> None:
        self._torch = import_torch()
        self._device, self._largest = device, largest
        self._buffers: dict[str, list[Any]] = {}

    def _operands(self, product: Product) -> tuple[Any, Any, Any]:
        _, dtype, trans, m, n, k = product
        if dtype not in self._buffers:
            kind = getattr(self._torch, DTYPES[dtype])
            elements = self._largest**2
            make = lambda: self._torch.randn(elements, device=self._device).to(kind)  # noqa: E731
            self._buffers[dtype] = [make(), make(), make()]
        a, b, c = self._buffers[dtype]
        a = a[: m * k].view(m, k) if trans[0] == "n" else a[: m * k].view(k, m).t()
        b = b[: k * n].view(k, n) if trans[1] == "n" else b[: k * n].view(n, k).t()
        return a, b, c[: m * n].view(m, n)

    def times(self, product: Product) -> list[float]:
        """Microseconds of each run."""
        torch, (_, dtype, _, m, n, k) = self._torch, product
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        a, b, c = self._operands(product)
        calls = QUEUE if 2.0 * m * n * k < ALONE_FLOP else 1
        for _ in range(2):
            torch.mm(a, b, out=c)
        if self._device.type != "cuda":
            return [self._host_run(a, b, c, calls) for _ in range(RUNS)]
        torch.cuda.synchronize()
        marks = []
        for _ in range(RUNS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(calls):
                torch.mm(a, b, out=c)
            end.record()
            marks.append((start, end))
            torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 / calls for start, end in marks]

    def _host_run(self, a: Any, b: Any, c: Any, calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            self._torch.mm(a, b, out=c)
        return (time.perf_counter() - start) * 1e6 / calls


def line(product: Product, times: list[float]) -> str:
    return ",".join(map(str, product)) + f",{sum(times) / len(times):.3f},{min(times):.3f}"


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "", EXAMPLES, "gemm.csv.gz", append=False)
    made.add_argument("--dtype", type=listed, default=["f32", "bf16"], help="f32,tf32,f16,bf16 (default f32,bf16)")
    made.add_argument("--trans", type=listed, default=["nn", "tn", "nt"], help="nn,tn,nt,tt (default nn,tn,nt)")
    made.add_argument("--from", dest="low", type=count, default=16, help="smallest size (default 16)")
    made.add_argument("--to", dest="high", type=count, default=8192, help="largest size (default 8192)")
    made.add_argument(
        "--grid",
        choices=("auto", "half", "whole"),
        default="auto",
        help="sizes by half or whole doublings (auto: half for f32 nn, whole for others)",
    )
    made.add_argument("--held", type=int, default=350, help="held products of a kind (default 350; half grid: 3×)")
    args = made.parse_args()
    for given, known, what in ((args.dtype, DTYPES, "precision"), (args.trans, TRANSPOSITIONS, "transposition")):
        for name in given:
            if name not in known:
                raise KitError(f'"{name}" is no {what}', f"use {', '.join(known)}")
    if args.low > args.high or args.held < 0:
        raise KitError("there is nothing to measure", "--from must not exceed --to, nor --held be negative")
    return args


def main() -> None:
    args = arguments()
    output = Output(args.output, force=args.force)
    device = pick_device(args.device)
    if device.type == "cpu" and {"tf32", "f16"} & set(args.dtype):
        raise KitError("tf32 and f16 are measured on GPUs only", "use --dtype f32,bf16")
    products, bench = plan(args), Bench(device, args.high)
    budget, progress = Budget(args.budget), Progress(len(products), args.quiet)
    facts = provenance(device, seed=SEED, repeats=RUNS, queue=f"{QUEUE} calls below {ALONE_FLOP:.0e} FLOP")
    done: list[tuple[Product, str]] = []
    missing = {(product[0], product[1], product[2]): 0 for product in sorted(products)}

    def flush() -> None:
        output.write([TITLES, *(text for _, text in sorted(done))], facts)

    try:
        flushed = time.monotonic()
        for product in products:
            if budget.is_over():
                break
            done.append((product, line(product, bench.times(product))))
            progress.step(" ".join(map(str, product)))
            if time.monotonic() - flushed > FLUSH_S:
                flush()
                flushed = time.monotonic()
    finally:
        progress.stop()
        measured = {product for product, _ in done}
        for product in products:
            missing[product[:3]] += product not in measured
        left = {" ".join(kind): number for kind, number in missing.items() if number}
        facts |= {"seconds": round(budget.spent, 1), "left_out": left}
        flush()
    for kind, number in left.items():
        note(f"out of time: {number} products of {kind} were left out")
    print(f"{args.output}: {len(done)} products in {budget.spent:.0f} s")


if __name__ == "__main__":
    guarded(main)
