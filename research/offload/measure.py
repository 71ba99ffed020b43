"""Steps of decoders whose activations or optimiser states are kept in the host's memory, on one GPU.

    python research/offload/measure.py > steps.jsonl

First what the host offers: rates of the link, one way and both ways at once, and of a fused AdamW on the host. Then steps of
decoders of kit/decoders.py in bf16, each without offloading, with activations on the host (blocks' saved tensors leave on a stream of
their own and are fetched a block ahead), and with AdamW on the host.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "kit"))
from decoders import Decoder, Shape  # noqa: E402

STEPS, WARM_UP = 6, 3
CASES = [
    (Shape("llama", 2048, 32, 8, 5632, 2048, 8), 8, 32000),
    (Shape("llama", 4096, 32, 8, 14336, 4096, 2), 6, 32000),
    (Shape("llama", 4096, 32, 8, 14336, 8192, 2), 6, 32000),
    (Shape("gpt", 2560, 20, 20, 10240, 2048, 4), 8, 50304),
    (Shape("gpt", 4096, 32, 32, 16384, 2048, 4), 4, 50304),
]


def seconds(work: Any, count: int) -> float:
    work()
    torch.cuda.synchronize()
    since = time.perf_counter()
    for _ in range(count):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - since) / count


def host() -> dict[str, float]:
    """Rates in bytes a second."""
    size = 1 << 30
    near = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
    far = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]

    def both() -> None:
        with torch.cuda.stream(streams[0]):
            far[0].copy_(near[0], non_blocking=True)
        with torch.cuda.stream(streams[1]):
            near[1].copy_(far[1], non_blocking=True)

    down = size / seconds(lambda: far[0].copy_(near[0], non_blocking=True), 5)
    up = size / seconds(lambda: near[1].copy_(far[1], non_blocking=True), 5)
    duplex = size / seconds(both, 5)
    weights = [torch.zeros(1 << 26, requires_grad=True) for _ in range(4)]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    adam = torch.optim.AdamW(weights, fused=True)
    update = seconds(adam.step, 3)
    # Weights, gradients and two moments of 32 bits: gradients are read, the others read and written.
    return {"down": down, "up": up, "both_ways": duplex, "update": 4 * (1 << 26) * (4 + 3 * 8) / update}


class Offloaded:
    """Saved tensors of blocks on the host. They leave on one stream and return on another, a block ahead of its use."""

    def __init__(self) -> None:
        self.down, self.up = torch.cuda.Stream(), torch.cuda.Stream()
        self.pool: dict[tuple[Any, ...], list[Any]] = {}
        self.blocks: list[list[dict[str, Any]]] = []
        self.weights: set[int] = set()

    def begin(self) -> None:
        self.blocks.append([])

    def pack(self, tensor: Any) -> Any:
        if tensor.untyped_storage().data_ptr() in self.weights or tensor.numel() < 1 << 16:
            return tensor
        key = (tuple(tensor.shape), tensor.dtype)
        free = self.pool.setdefault(key, [])
        far = free.pop() if free else torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        self.down.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.down):
            far.copy_(tensor, non_blocking=True)
        tensor.record_stream(self.down)
        kept = {"far": far, "key": key, "device": tensor.device, "near": None, "block": len(self.blocks) - 1}
        self.blocks[-1].append(kept)
        return kept

    def fetch(self, block: int) -> None:
        self.up.wait_stream(self.down)
        with torch.cuda.stream(self.up):
            for kept in self.blocks[block] if block >= 0 else []:
                if kept["near"] is None:
                    kept["near"] = kept["far"].to(kept["device"], non_blocking=True)
                    kept["ready"] = self.up.record_event()

    def unpack(self, kept: Any) -> Any:
        if not isinstance(kept, dict):
            return kept
        if kept["near"] is None:
            self.fetch(kept["block"])
        if not kept.get("ahead"):
            for other in self.blocks[kept["block"]]:
                other["ahead"] = True
            # What the block before will need, once this one has begun.
            self.fetch(kept["block"] - 1)
        torch.cuda.current_stream().wait_event(kept["ready"])
        near = kept.pop("near")
        kept["near"] = None
        near.record_stream(torch.cuda.current_stream())
        return near

    def end(self) -> None:
        torch.cuda.current_stream().wait_stream(self.up)
        for block in self.blocks:
            for kept in block:
                self.pool[kept["key"]].append(kept["far"])
        self.blocks.clear()


def step_of(shape: Shape, layers: int, vocabulary: int, offload: str | None) -> Any:
    model = Decoder(shape, layers, vocabulary, False).to("cuda", torch.bfloat16).train()
    draw = lambda: torch.randint(vocabulary, (shape.mb, shape.seq), device="cuda")  # noqa: E731
    tokens, targets, positions = draw(), draw(), None
    if shape.arch == "llama":
        width = shape.h // shape.heads
        angles = torch.outer(torch.arange(shape.seq).float(), 1e4 ** (-torch.arange(0, width, 2).float() / width)).repeat(1, 2)
        positions = angles.cos().cuda(), angles.sin().cuda()
    near = list(model.parameters())
    offloaded = Offloaded()
    if offload == "activations":
        offloaded.weights = {weight.untyped_storage().data_ptr() for weight in near}
        for block in model.blocks:
            plain = block.forward

            def hooked(x: Any, places: Any, plain: Any = plain) -> Any:
                offloaded.begin()
                with torch.autograd.graph.saved_tensors_hooks(offloaded.pack, offloaded.unpack):
                    return plain(x, places)

            block.forward = hooked
    if offload == "optimiser":
        far = [weight.detach().cpu().pin_memory().requires_grad_() for weight in near]
        for weight in far:
            weight.grad = torch.empty_like(weight).pin_memory()
        adam = torch.optim.AdamW(far, lr=1e-4, fused=True)
    else:
        adam = torch.optim.AdamW(near, lr=1e-4, fused=True)

    def step() -> None:
        for weight in near:
            weight.grad = None
        model(tokens, targets, positions).backward()
        if offload != "optimiser":
            adam.step()
            offloaded.end()
            return
        with torch.no_grad():
            for mine, own in zip(far, near):
                mine.grad.copy_(own.grad, non_blocking=True)
            torch.cuda.synchronize()
            adam.step()
            for mine, own in zip(far, near):
                own.copy_(mine, non_blocking=True)

    return step, sum(weight.numel() for weight in near)


def main() -> None:
    print(json.dumps({"kind": "host", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__} | host()), flush=True)
    for shape, layers, vocabulary in CASES:
        for offload in (None, "activations", "optimiser"):
            torch.cuda.empty_cache()
            step, parameters = step_of(shape, layers, vocabulary, offload)
            for _ in range(WARM_UP):
                step()
            torch.cuda.reset_peak_memory_stats()
            taken = seconds(step, STEPS)
            row = {
                "kind": "step", "arch": shape.arch, "h": shape.h, "heads": shape.heads, "kv": shape.kv, "ffn": shape.ffn,
                "seq": shape.seq, "mb": shape.mb, "L": layers, "vocab": vocabulary, "offload": offload,
                "params": parameters, "step_ms": 1e3 * taken, "peak_allocated": torch.cuda.max_memory_allocated(),
            }  # fmt: skip
            print(json.dumps(row), flush=True)
            del step


if __name__ == "__main__":
    main()
