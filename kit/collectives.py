"""Times of collectives over the GPUs of a machine, over ranks on its CPU cores, or over the ranks of torchrun."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import Budget, import_torch

SIZES = [4**power for power in range(5, 15)]  # 1 KiB to 256 MiB
CPU_SIZES = SIZES[:8]
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send")

Row = dict[str, Any]


def repeats(size: int) -> int:
    return 20 if size < 1 << 20 else 5 if size < 1 << 26 else 3


def _operation(kind: str, size: int, group: Any, ranks: list[int], device: Any) -> Callable[[], None]:
    """The collective over a tensor of `size` bytes in all: input of sums, output of gathers, one message of a send."""
    import torch
    import torch.distributed as distributed

    number = len(ranks)
    elements = max(size // 4 // number, 1) * number
    whole = torch.ones(elements, device=device)
    part = torch.ones(elements // number, device=device)
    if kind == "all-reduce":
        return lambda: distributed.all_reduce(whole, group=group)
    if kind == "all-gather":
        return lambda: distributed.all_gather_into_tensor(whole, part, group=group)
    if kind == "reduce-scatter":
        return lambda: distributed.reduce_scatter_tensor(part, whole, group=group)
    if kind == "all-to-all":
        other = torch.ones(elements, device=device)
        return lambda: distributed.all_to_all_single(other, whole, group=group)
    mine = distributed.get_rank()

    def send() -> None:
        if mine == ranks[0]:
            distributed.send(whole, ranks[1], group=group)
        elif mine == ranks[1]:
            distributed.recv(whole, ranks[0], group=group)

    return send


def _timed(call: Callable[[], None], number: int, group: Any, device: Any) -> float:
    """Seconds of a call, the longest of all ranks."""
    import torch
    import torch.distributed as distributed

    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for _ in range(2):
        call()
    wait()
    distributed.barrier(group=group)
    wait()
    start = time.perf_counter()
    for _ in range(number):
        call()
    wait()
    took = torch.tensor([(time.perf_counter() - start) / number], dtype=torch.float64, device=device)
    distributed.all_reduce(took, op=distributed.ReduceOp.MAX, group=group)
    return float(took.item())


def of_groups(device: Any, groups: list[list[int]], node: int, budget: float) -> list[Row]:
    """Rows of every group in turn; all ranks call this. `node`: ranks of a machine."""
    import torch.distributed as distributed

    rank, rows, own = distributed.get_rank(), [], Budget(budget)
    for ranks in groups:
        group = distributed.new_group(ranks)
        if rank in ranks:
            rows += _of_group(device, group, ranks, node, own)
        distributed.barrier()
    return rows


def _of_group(device: Any, group: Any, ranks: list[int], node: int, budget: Budget) -> list[Row]:
    import torch
    import torch.distributed as distributed

    rows = []
    machines = len({rank // node for rank in ranks})
    for size in SIZES if device.type == "cuda" else CPU_SIZES:
        for kind in KINDS:
            if kind == "send" and len(ranks) > 2:
                continue
            over = torch.tensor([int(budget.is_over())], device=device)
            distributed.all_reduce(over, op=distributed.ReduceOp.MAX, group=group)
            if over.item():
                return rows
            try:
                seconds = _timed(_operation(kind, size, group, ranks, device), repeats(size), group, device)
            except (RuntimeError, NotImplementedError) as error:
                if size == SIZES[0] and "support" in str(error):
                    continue  # this backend has no such collective; every rank learns it alike
                raise
            place = {"N": len(ranks), "machines": machines, "bytes": size}
            rows.append({"kind": "collective", "family": kind, **place, "us": round(1e6 * seconds, 3)})
    return rows


def sizes_of_groups(number: int) -> list[int]:
    """2, 4, 8, … and all."""
    return sorted({size for size in (2, 4, 8, 16, 32, 64, 128) if size < number} | ({number} if number > 1 else set()))


def _rank(rank: int, number: int, store: str, out: str, backend: str, budget: float) -> None:
    """One of the ranks on this machine."""
    torch = import_torch()
    import torch.distributed as distributed

    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=number)
    rows = of_groups(device, [list(range(size)) for size in sizes_of_groups(number)], number, budget)
    if rank == 0:
        Path(out).write_text(json.dumps(rows))
    distributed.barrier()
    distributed.destroy_process_group()


def on_this_machine(number: int, backend: str, budget: float) -> list[Row]:
    """Starts `number` ranks here, one a GPU, or on CPU cores with gloo."""
    import torch.multiprocessing as processes

    with tempfile.TemporaryDirectory() as folder:
        store, out = f"{folder}/store", f"{folder}/rows.json"
        processes.spawn(_rank, (number, store, out, backend, budget), nprocs=number)
        return [row | {"backend": backend} for row in json.loads(Path(out).read_text())]


def of_torchrun(device: Any, budget: float) -> list[Row]:
    """Over the ranks that torchrun started, on one machine or several; rows on rank 0."""
    import torch.distributed as distributed

    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend)
    number, node = distributed.get_world_size(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    inside = [list(range(size)) for size in sizes_of_groups(min(node, number))]
    # One rank of every machine, and all of them.
    outside = [list(range(0, number, node)), list(range(number))] if number > node else []
    rows = of_groups(device, inside + [ranks for ranks in outside if len(ranks) > 1], node, budget)
    distributed.barrier()
    distributed.destroy_process_group()
    return [row | {"backend": backend} for row in rows]
