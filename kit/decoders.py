"""Decoders: shards of their blocks and output layers behind a pause, and whole training steps.

`gpt` has layer norms, biases, GELU, learned positions and a tied output layer; `llama` RMS norms, SwiGLU, rotary positions,
grouped keys and values, and an output layer of its own. `amp`: 32-bit weights under automatic casts; else all in one format.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from parts import Case, Row
from queued import Bench

STEPS = 6
WARM_UP = 3
# A run of blocks behind a pause issues fewer kernels than the queue holds.
BLOCKS = 2
KERNELS = 60


@dataclass(frozen=True)
class Shape:
    """A decoder and what it computes in a step."""

    arch: str
    h: int
    heads: int
    kv: int
    ffn: int
    seq: int
    mb: int

    @property
    def name(self) -> str:
        return f"{self.arch}{self.h}"


def _gpt(h: int, heads: int, seq: int, mb: int) -> Shape:
    return Shape("gpt", h, heads, heads, 4 * h, seq, mb)


# Shards of blocks: shape, ranks, amp.
BLOCK_CASES = [
    (_gpt(1024, 16, 1024, 4), 1, False), (_gpt(1024, 16, 1024, 4), 4, False), (_gpt(1024, 16, 512, 8), 1, True),
    (_gpt(2048, 16, 2048, 2), 1, False), (_gpt(2048, 16, 2048, 2), 8, False), (_gpt(2048, 32, 1024, 4), 2, True),
    (_gpt(2560, 20, 2048, 2), 1, False), (_gpt(2560, 20, 2048, 4), 4, True), (_gpt(4096, 32, 2048, 1), 1, False),
    (_gpt(4096, 32, 2048, 2), 4, False), (_gpt(6144, 48, 2048, 2), 8, False),
    (Shape("llama", 1024, 16, 4, 2816, 2048, 4), 1, False), (Shape("llama", 1024, 16, 4, 2816, 1024, 2), 1, True),
    (Shape("llama", 2048, 32, 8, 5632, 2048, 4), 1, False), (Shape("llama", 2048, 32, 8, 5632, 4096, 2), 4, True),
    (Shape("llama", 3072, 24, 8, 8192, 4096, 1), 1, False), (Shape("llama", 3072, 24, 8, 8192, 2048, 2), 2, True),
    (Shape("llama", 4096, 32, 8, 14336, 4096, 1), 1, False), (Shape("llama", 4096, 32, 8, 14336, 2048, 2), 8, False),
    (Shape("llama", 4096, 32, 8, 14336, 8192, 1), 4, True), (Shape("llama", 8192, 64, 8, 28672, 4096, 1), 8, False),
    (Shape("llama", 8192, 64, 8, 28672, 2048, 1), 4, False),
]  # fmt: skip
# Output layers: shape, ranks, amp, vocabulary.
HEAD_CASES = [
    (_gpt(1024, 16, 1024, 4), 1, False, 50304), (_gpt(2048, 16, 2048, 2), 4, True, 50304),
    (Shape("llama", 2048, 32, 8, 5632, 2048, 4), 1, True, 32000), (Shape("llama", 3072, 24, 8, 8192, 4096, 1), 2, False, 128256),
    (Shape("llama", 4096, 32, 8, 14336, 4096, 1), 8, False, 128256), (Shape("llama", 4096, 32, 8, 14336, 2048, 1), 1, False, 128256),
]  # fmt: skip
# Whole steps: shape, layers, vocabulary, amp, recomputation.
STEP_CASES = [
    (_gpt(768, 12, 1024, 2), 4, 50304, True, False), (_gpt(768, 12, 1024, 2), 8, 50304, False, False),
    (_gpt(768, 12, 1024, 16), 6, 50304, True, False), (_gpt(768, 12, 1024, 2), 6, 50304, True, True),
    (_gpt(1024, 16, 512, 1), 8, 32000, False, False), (_gpt(1024, 16, 512, 1), 4, 32000, False, True),
    (_gpt(1024, 16, 2048, 8), 6, 50304, False, False), (_gpt(1024, 16, 2048, 4), 6, 50304, True, True),
    (_gpt(2048, 16, 1024, 8), 4, 50304, True, False), (_gpt(2048, 16, 2048, 4), 4, 50304, False, True),
    (_gpt(2560, 20, 2048, 4), 4, 50304, False, False), (_gpt(2560, 20, 1024, 2), 4, 32000, True, False),
    (_gpt(4096, 32, 2048, 4), 3, 50304, False, False), (_gpt(4096, 32, 2048, 2), 2, 50304, True, True),
    (Shape("llama", 512, 8, 8, 1408, 512, 1), 8, 32000, False, False), (Shape("llama", 512, 8, 8, 1408, 512, 1), 4, 32000, True, False),
    (Shape("llama", 512, 8, 8, 1408, 512, 1), 4, 32000, True, True), (Shape("llama", 1024, 16, 4, 2816, 2048, 8), 4, 32000, False, False),
    (Shape("llama", 1024, 16, 4, 2816, 2048, 8), 4, 32000, True, True), (Shape("llama", 2048, 32, 8, 5632, 2048, 8), 4, 32000, True, False),
    (Shape("llama", 2048, 32, 8, 5632, 4096, 2), 4, 128256, False, False), (Shape("llama", 3072, 24, 8, 8192, 4096, 2), 3, 128256, False, False),
    (Shape("llama", 3072, 24, 8, 8192, 4096, 1), 3, 128256, True, True), (Shape("llama", 4096, 32, 8, 14336, 4096, 2), 3, 32000, False, False),
    (Shape("llama", 4096, 32, 8, 14336, 2048, 2), 3, 32000, True, False), (Shape("llama", 4096, 32, 8, 14336, 8192, 1), 2, 32000, False, True),
]  # fmt: skip
CPU_STEP_CASES = [
    (_gpt(128, 4, 64, 1), 2, 1024, False, False), (_gpt(256, 4, 128, 1), 2, 2048, False, False),
    (_gpt(256, 4, 128, 2), 4, 2048, False, True), (Shape("llama", 256, 4, 2, 704, 128, 2), 2, 2048, False, False),
]  # fmt: skip
CPU_BLOCK_CASES = [(_gpt(256, 4, 128, 1), 1, False), (Shape("llama", 256, 4, 2, 704, 128, 2), 2, False)]


class RmsNorm(nn.Module):
    """Where this version of PyTorch has none."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5)
        return (x.float() * scale).to(x.dtype) * self.weight


def norm(shape: Shape) -> nn.Module:
    if shape.arch == "gpt":
        return nn.LayerNorm(shape.h)
    return nn.RMSNorm(shape.h, eps=1e-5) if hasattr(nn, "RMSNorm") else RmsNorm(shape.h)


def rotated(x: Any, cosine: Any, sine: Any) -> Any:
    half = x.shape[-1] // 2
    return x * cosine + torch.cat((-x[..., half:], x[..., :half]), -1) * sine


class Block(nn.Module):
    """The shard of a block that one of `ranks` ranks holds."""

    def __init__(self, shape: Shape, ranks: int = 1) -> None:
        super().__init__()
        h, gpt = shape.h, shape.arch == "gpt"
        self.width = h // shape.heads
        self.heads, self.groups = shape.heads // ranks, max(shape.kv // ranks, 1)
        own, keys, ffn = self.heads * self.width, self.groups * self.width, shape.ffn // ranks
        self.gpt = gpt
        self.first, self.second = norm(shape), norm(shape)
        if gpt:
            self.qkv = nn.Linear(h, own + 2 * keys)
            self.up = nn.Linear(h, ffn)
        else:
            self.q = nn.Linear(h, own, bias=False)
            self.k, self.v = (nn.Linear(h, keys, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(h, ffn, bias=False) for _ in range(2))
        self.out = nn.Linear(own, h, bias=gpt)
        self.down = nn.Linear(ffn, h, bias=gpt)

    def _heads(self, x: Any, number: int) -> Any:
        return x.view(*x.shape[:2], number, self.width).transpose(1, 2)

    def _attention(self, x: Any, positions: Any) -> Any:
        if self.gpt:
            own, keys = self.heads * self.width, self.groups * self.width
            q, k, v = self.qkv(x).split((own, keys, keys), -1)
        else:
            q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = self._heads(q, self.heads), self._heads(k, self.groups), self._heads(v, self.groups)
        if positions is not None:
            q, k = (rotated(each, *(part.to(each.dtype) for part in positions)) for each in (q, k))
        grouped = {"enable_gqa": True} if self.groups != self.heads else {}
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True, **grouped)
        return self.out(attended.transpose(1, 2).reshape(*x.shape[:2], -1))

    def forward(self, x: Any, positions: Any = None) -> Any:
        x = x + self._attention(self.first(x), positions)
        y = self.second(x)
        if self.gpt:
            return x + self.down(functional.gelu(self.up(y)))
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Head(nn.Module):
    """Last norm, output layer of which one of `ranks` ranks holds a part, and loss."""

    def __init__(self, shape: Shape, vocabulary: int, ranks: int = 1) -> None:
        super().__init__()
        self.norm = norm(shape)
        self.out = nn.Linear(shape.h, vocabulary // ranks, bias=False)

    def forward(self, x: Any, targets: Any) -> Any:
        logits = self.out(self.norm(x)).float()
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class Decoder(nn.Module):
    """Embedding, blocks and output layer."""

    def __init__(self, shape: Shape, layers: int, vocabulary: int, recompute: bool) -> None:
        super().__init__()
        self.shape, self.recompute = shape, recompute
        self.embedding = nn.Embedding(vocabulary, shape.h)
        self.places = nn.Embedding(shape.seq, shape.h) if shape.arch == "gpt" else None
        self.blocks = nn.ModuleList(Block(shape) for _ in range(layers))
        self.head = Head(shape, vocabulary)
        if shape.arch == "gpt":
            self.head.out.weight = self.embedding.weight

    def forward(self, tokens: Any, targets: Any, positions: Any) -> Any:
        x = self.embedding(tokens)
        if self.places is not None:
            x = x + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            if self.recompute:
                from torch.utils.checkpoint import checkpoint

                x = checkpoint(block, x, positions, use_reentrant=False)
            else:
                x = block(x, positions)
        return self.head(x, targets)


class Decoders:
    """Cases for one device; `half` is its format of 16 bits."""

    def __init__(self, bench: Bench, half: Any, half_name: str) -> None:
        self.bench, self.half, self.half_name = bench, half, half_name

    def _precision(self, amp: bool) -> str:
        return "amp" if amp else self.half_name

    def _casts(self, amp: bool) -> Any:
        return torch.autocast(self.bench.device.type, dtype=self.half) if amp else contextlib.nullcontext()

    def _made(self, module: nn.Module, amp: bool) -> nn.Module:
        return module.to(self.bench.device, torch.float32 if amp else self.half).train()

    def _positions(self, shape: Shape) -> Any:
        if shape.arch == "gpt":
            return None
        width = shape.h // shape.heads
        angles = torch.outer(torch.arange(shape.seq).float(), 1e4 ** (-torch.arange(0, width, 2).float() / width)).repeat(1, 2)
        return angles.cos().to(self.bench.device), angles.sin().to(self.bench.device)

    def _input(self, shape: Shape, amp: bool) -> Any:
        kind = torch.float32 if amp else self.half
        return torch.randn(shape.mb, shape.seq, shape.h, device=self.bench.device).to(kind).requires_grad_()

    def _row(self, kind: str, shape: Shape, amp: bool, **more: Any) -> Row:
        own = {"arch": shape.arch, "h": shape.h, "heads": shape.heads, "kv": shape.kv, "ffn": shape.ffn}
        place = {"kind": kind, "model": shape.name, "family": f"{kind}s of {shape.name}"}
        return place | own | {"seq": shape.seq, "mb": shape.mb, "precision": self._precision(amp)} | more

    def _shard(self, forward: Any, inputs: list[Any], count: int) -> dict[str, float]:
        """Forward and backward of `count` modules in a row, behind a pause, and both as the host issues them; ms each."""
        out = forward()
        gradient = torch.randn_like(out)
        back = lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)  # noqa: E731
        ahead = self.bench.seconds(forward, count * KERNELS)
        behind = self.bench.seconds(back, count * KERNELS)

        def both() -> None:
            torch.autograd.grad(forward(), inputs, gradient)

        both()
        issued = self.bench.issue_seconds(both)
        ms = lambda seconds: round(1e3 * seconds / count, 5)  # noqa: E731
        return {"fwd_ms": ms(ahead), "bwd_ms": ms(behind), "host_ms": ms(issued)}

    def _block(self, shape: Shape, ranks: int, amp: bool) -> list[Row]:
        blocks = [self._made(Block(shape, ranks), amp) for _ in range(BLOCKS)]
        x, positions = self._input(shape, amp), self._positions(shape)

        def forward() -> Any:
            y = x
            with self._casts(amp):
                for block in blocks:
                    y = block(y, positions)
            return y

        inputs = [x, *(weight for block in blocks for weight in block.parameters())]
        return [self._row("block", shape, amp, t=ranks, **self._shard(forward, inputs, BLOCKS))]

    def _head(self, shape: Shape, ranks: int, amp: bool, vocabulary: int) -> list[Row]:
        head = self._made(Head(shape, vocabulary, ranks), amp)
        x = self._input(shape, amp)
        targets = torch.randint(vocabulary // ranks, (shape.mb, shape.seq), device=self.bench.device)

        def forward() -> Any:
            with self._casts(amp):
                return head(x, targets)

        times = self._shard(forward, [x, *head.parameters()], 1)
        return [self._row("head", shape, amp, t=ranks, vocab=vocabulary, **times)]

    def _step(self, shape: Shape, layers: int, vocabulary: int, amp: bool, recompute: bool) -> list[Row]:
        bench = self.bench
        model = self._made(Decoder(shape, layers, vocabulary, recompute), amp)
        fused = {"fused": True} if bench.is_gpu else {}
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, **fused)
        draw = lambda: torch.randint(vocabulary, (shape.mb, shape.seq), device=bench.device)  # noqa: E731
        tokens, targets, positions = draw(), draw(), self._positions(shape)

        def step() -> None:
            optimiser.zero_grad(set_to_none=True)
            with self._casts(amp):
                loss = model(tokens, targets, positions)
            loss.backward()
            optimiser.step()

        for _ in range(WARM_UP):
            step()
        issued = bench.issue_seconds(step, 3)
        times = bench.consecutive(step, STEPS)
        parameters = sum(weight.numel() for weight in model.parameters())
        memory = torch.cuda.max_memory_allocated() if bench.is_gpu else 0
        return [self._row(
            "step", shape, amp, L=layers, vocab=vocabulary, recompute=recompute, params=parameters,
            step_ms=[round(1e3 * each, 4) for each in times], host_ms=round(1e3 * issued, 4), peak_allocated=memory,
        )]  # fmt: skip

    def blocks(self) -> list[Case]:
        gpu = self.bench.is_gpu
        made: list[Case] = []
        for case in BLOCK_CASES if gpu else CPU_BLOCK_CASES:
            made.append((f"block {case[0].name} over {case[1]}", lambda case=case: self._block(*case)))
        for case in HEAD_CASES if gpu else []:
            made.append((f"output layer {case[0].name} over {case[1]}", lambda case=case: self._head(*case)))
        return made

    def steps(self) -> list[Case]:
        made: list[Case] = []
        for case in STEP_CASES if self.bench.is_gpu else CPU_STEP_CASES:
            made.append((f"step {case[0].name}, {case[1]} layers", lambda case=case: self._step(*case)))
        return made
