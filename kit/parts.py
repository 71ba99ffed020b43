"""The kernels that training of transformers consists of, one by one: products, attention, passes over memory, updates.

Every case is a label and a function that returns rows. Bytes are counted as docs/transformers.md counts them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from queued import Bench

Row = dict[str, Any]
Case = tuple[str, Callable[[], list[Row]]]

SEED = 1
# Width between layers, width of keys and values together, width of the MLP.
WIDTHS = [(768, 768, 3072), (1024, 512, 2816), (1600, 1600, 6400), (2048, 1024, 5632), (2560, 2560, 10240),
          (3072, 1024, 8192), (4096, 2048, 14336), (5120, 5120, 13824), (8192, 2048, 28672)]  # fmt: skip
TOKENS = [512, 1024, 2048, 4096, 8192, 16384]
CPU_WIDTHS = [(128, 128, 512), (256, 256, 1024), (384, 128, 1024), (512, 512, 2048), (768, 768, 3072)]
CPU_TOKENS = [64, 128, 256]
PRODUCTS_OF_A_WIDTH = 12
# The device does not rest between these.
LOADED = [(4096, 4096, 4096), (8192, 8192, 8192), (8192, 28672, 8192), (16384, 4096, 4096)]
CPU_LOADED = [(256, 512, 512)]

# Heads, width of a head, sequence, batch.
ATTENTION = [(12, 64, 1024, 8), (16, 64, 512, 16), (16, 64, 2048, 4), (25, 64, 4096, 2), (16, 128, 512, 8),
             (16, 128, 1024, 8), (16, 128, 2048, 4), (32, 128, 4096, 2), (32, 128, 8192, 1), (32, 64, 8192, 1),
             (8, 128, 2048, 2), (4, 128, 4096, 1), (20, 96, 2048, 4), (32, 96, 1024, 4), (8, 256, 2048, 2),
             (16, 256, 4096, 1), (32, 80, 2048, 2), (16, 32, 1024, 8)]  # fmt: skip
CPU_ATTENTION = [(4, 64, 128, 2), (8, 64, 256, 1), (4, 32, 256, 2)]

# Tokens and width of what norms, sums and activations pass over.
PASSED = [(512, 1024), (1024, 2048), (2048, 4096), (4096, 2048), (4096, 8192), (8192, 4096), (8192, 5632), (16384, 1600)]
CPU_PASSED = [(128, 256), (256, 512), (256, 1024)]
LOGITS = [(2048, 32000), (4096, 50304), (8192, 32000), (2048, 128256), (4096, 128256)]
CPU_LOGITS = [(64, 4096), (128, 8192)]
COPIES = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26, 1 << 28]
UPDATED = [(48, 1 << 20), (96, 1 << 21), (24, 1 << 24), (8, 1 << 26)]
CPU_UPDATED = [(12, 1 << 16), (8, 1 << 18)]
HOST_COPIES = [1 << 20, 1 << 24, 1 << 28]


class Parts:
    """Cases for one device in one number format of 16 bits, or 32 on a CPU."""

    def __init__(self, bench: Bench, kind: Any, name: str) -> None:
        self.bench, self.torch, self.device = bench, bench.torch, bench.device
        self.kind, self.name = kind, name
        self.width = 2 if bench.is_gpu else 4

    def _random(self, *size: int) -> Any:
        return self.torch.randn(*size, device=self.device, dtype=self.torch.float32).to(self.kind)

    def _us(self, call: Callable[[], Any], kernels: int = 1) -> float:
        return round(1e6 * self.bench.seconds(call, kernels), 3)

    # Products.

    def _product(self, family: str, trans: str, m: int, n: int, k: int, loaded: bool) -> list[Row]:
        a = self._random(m, k) if trans[0] == "n" else self._random(k, m).t()
        b = self._random(k, n) if trans[1] == "n" else self._random(n, k).t()
        c = self._random(m, n)
        call = lambda: self.torch.mm(a, b, out=c)  # noqa: E731
        took = 1e6 * self.bench.loaded_seconds(call) if loaded else self._us(call)
        shape = {"kind": "product", "family": family, "precision": self.name, "trans": trans, "m": m, "n": n, "k": k}
        return [shape | {"loaded": loaded, "us": round(took, 3)}]

    def products(self) -> list[Case]:
        """Forward, gradient of the input and of the weight, of the shards of linear layers over 1 to 8 ranks."""
        chosen = random.Random(SEED)
        gpu = self.bench.is_gpu
        cases: list[Case] = []
        for hidden, keys, mlp in WIDTHS if gpu else CPU_WIDTHS:
            for place in range(PRODUCTS_OF_A_WIDTH):
                tokens, tensor = chosen.choice(TOKENS if gpu else CPU_TOKENS), chosen.choice((1, 1, 2, 4, 8))
                out, into = [
                    (hidden // tensor, hidden), ((hidden + 2 * keys) // tensor, hidden), (hidden, hidden // tensor),
                    (mlp // tensor, hidden), (2 * mlp // tensor, hidden), (hidden, mlp // tensor),
                ][place % 6]  # fmt: skip
                trans, shape = chosen.choice(
                    [("nt", (tokens, out, into)), ("nn", (tokens, into, out)), ("tn", (out, into, tokens))]
                )
                cases.append(self._case("product", self._product, f"width {hidden}", trans, *shape, False))
        for shape in LOADED if gpu else CPU_LOADED:
            cases.append(self._case("product under load", self._product, "under load", "nt", *shape, True))
            cases.append(self._case("product", self._product, "under load", "nt", *shape, False))
        return cases

    # Attention.

    def _attention(self, heads: int, width: int, sequence: int, batch: int, backend: str) -> list[Row]:
        torch = self.torch
        make = lambda: self._random(batch, sequence, heads, width).transpose(1, 2).requires_grad_()  # noqa: E731
        query, key, value = make(), make(), make()
        gradient = self._random(batch, sequence, heads, width).transpose(1, 2)
        attend = lambda: torch.nn.functional.scaled_dot_product_attention(  # noqa: E731
            query, key, value, is_causal=True
        )
        with attention_backend(torch, backend):
            out = attend()
            back = lambda: torch.autograd.grad(out, (query, key, value), gradient, retain_graph=True)  # noqa: E731
            forward, backward = self._us(attend), self._us(back, 3)
        shape = {"heads": heads, "width": width, "sequence": sequence, "batch": batch, "backend": backend}
        head = {"kind": "attention", "family": f"heads of {width}", "precision": self.name, "causal": True}
        return [head | shape | {"fwd_us": forward, "bwd_us": backward}]

    def attention(self) -> list[Case]:
        """As PyTorch chooses it, and by flash attention if that is another choice."""
        gpu = self.bench.is_gpu
        cases = []
        for backend in ("default", "flash") if gpu else ("default",):
            for shape in ATTENTION if gpu else CPU_ATTENTION:
                cases.append(self._case(f"attention {backend}", self._attention, *shape, backend))
        return cases

    # Passes over memory.

    def _passes(self, tokens: int, width: int) -> list[Row]:
        """Forward and backward of what lies between products; bytes of an element in units of its width."""
        torch, functional = self.torch, self.torch.nn.functional
        x = self._random(tokens, width).requires_grad_()
        y = self._random(tokens, width).requires_grad_()
        gradient = self._random(tokens, width)
        scale = self._random(width).requires_grad_()
        shift = self._random(width).requires_grad_()
        norm = getattr(functional, "rms_norm", None)
        calls: list[tuple[str, Callable[[], Any], tuple[Any, ...], tuple[float, float], tuple[int, int]]] = [
            ("layer-norm", lambda: functional.layer_norm(x, (width,), scale, shift), (x, scale, shift), (2, 5), (1, 3)),
            ("gelu", lambda: functional.gelu(x), (x,), (2, 3), (1, 1)),
            ("gated", lambda: functional.silu(x) * y, (x, y), (5, 8), (2, 3)),
            ("sum", lambda: x + y, (), (3, 0), (1, 0)),
        ]
        if norm is not None:
            calls.append(("rms-norm", lambda: norm(x, (width,), scale), (x, scale), (2, 5), (1, 3)))
        rows = []
        for name, call, inputs, passes, kernels in calls:
            out = call()
            back = lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)  # noqa: B023, E731
            for place, timed in enumerate((call, back)[: 2 if inputs else 1]):
                rows.append({
                    "kind": "pass", "family": name, "precision": self.name, "backward": place == 1, "rate": "pass",
                    "tokens": tokens, "width": width, "bytes": passes[place] * self.width * tokens * width,
                    "kernels": kernels[place], "us": self._us(timed, kernels[place]),
                })  # fmt: skip
        return rows

    def _loss(self, tokens: int, vocabulary: int) -> list[Row]:
        torch = self.torch
        logits = self._random(tokens, vocabulary).requires_grad_()
        targets = torch.randint(vocabulary, (tokens,), device=self.device)
        call = lambda: torch.nn.functional.cross_entropy(logits.float(), targets)  # noqa: E731
        loss = call()
        back = lambda: torch.autograd.grad(loss, logits, retain_graph=True)  # noqa: E731
        number, rows = tokens * vocabulary, []
        for backward, timed, each, kernels in ((False, call, 22, 4), (True, back, 20, 4)):
            rows.append({
                "kind": "pass", "family": "loss", "precision": self.name, "backward": backward, "rate": "stream",
                "tokens": tokens, "width": vocabulary, "bytes": each * number, "kernels": kernels,
                "us": self._us(timed, kernels),
            })  # fmt: skip
        return rows

    def _copies(self, elements: int) -> list[Row]:
        torch = self.torch
        wide = torch.randn(elements, device=self.device)
        narrow = torch.empty(elements, device=self.device, dtype=torch.bfloat16)
        other = torch.empty_like(wide)
        head = {"kind": "pass", "precision": "fp32", "backward": False, "rate": "stream", "tokens": 1, "width": elements}
        copy = {"family": "copy", "bytes": 8 * elements, "us": self._us(lambda: other.copy_(wide))}
        cast = {"family": "cast", "bytes": 6 * elements, "us": self._us(lambda: narrow.copy_(wide))}
        return [head | {"kernels": 1} | each for each in (copy, cast)]

    def passes(self) -> list[Case]:
        gpu = self.bench.is_gpu
        cases = [self._case("passes", self._passes, *size) for size in (PASSED if gpu else CPU_PASSED)]
        cases += [self._case("loss", self._loss, *size) for size in (LOGITS if gpu else CPU_LOGITS)]
        cases += [self._case("copies", self._copies, size) for size in (COPIES if gpu else COPIES[:4])]
        return cases

    # Updates.

    def _update(self, tensors: int, elements: int, wide: bool) -> list[Row]:
        torch = self.torch
        kind = torch.float32 if wide else self.kind
        weights = [torch.nn.Parameter(torch.zeros(elements, device=self.device, dtype=kind)) for _ in range(tensors)]
        for weight in weights:
            weight.grad = torch.full_like(weight, 1e-3)
        fused = {"fused": True} if self.bench.is_gpu else {}
        optimiser = torch.optim.AdamW(weights, lr=1e-4, **fused)
        number = tensors * elements
        width = 4 if wide or not self.bench.is_gpu else 2
        return [{
            "kind": "update", "family": f"updates of {elements}", "precision": "fp32" if wide else self.name,
            "tensors": tensors, "params": number, "bytes": 7 * width * number, "us": self._us(optimiser.step, 8),
        }]  # fmt: skip

    def updates(self) -> list[Case]:
        """Fused AdamW: weight, gradient and two states read, weight and states written."""
        gpu = self.bench.is_gpu
        sizes = UPDATED if gpu else CPU_UPDATED
        return [self._case("update", self._update, *size, wide) for wide in ((True, False) if gpu else (True,)) for size in sizes]

    # The link to the host.

    def _host_copies(self, size: int) -> list[Row]:
        torch = self.torch
        here = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        there = torch.empty(size, dtype=torch.uint8, device=self.device)
        copies = (("to-device", lambda: there.copy_(here, non_blocking=True)),
                  ("to-host", lambda: here.copy_(there, non_blocking=True)))  # fmt: skip
        return [
            {"kind": "host-copy", "family": name, "bytes": size, "us": self._us(call)} for name, call in copies
        ]

    def host_copies(self) -> list[Case]:
        sizes = HOST_COPIES if self.bench.is_gpu else []
        return [self._case("host copies", self._host_copies, size) for size in sizes]

    def _case(self, label: str, measure: Callable[..., list[Row]], *args: Any) -> Case:
        return f"{label} {' '.join(map(str, args))}", lambda: measure(*args)


def attention_backend(torch: Any, backend: str) -> Any:
    """A context in which PyTorch uses that implementation of attention."""
    import contextlib

    if backend == "default":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.FLASH_ATTENTION)
