"""Steps of Llama 3 8B with fewer layers as torchtitan trains it, on the one GPU at hand: parameters in FP32 sharded by FSDP2 over a
single rank, products in bfloat16 or float8, blocks compiled or not, every other product computed again in the backward pass.

    python3 compiled_steps.py > steps.jsonl

Each row has the median of 12 steps after 6, and the time of kernels by what they do in one of them."""
import collections
import functools
import itertools
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

HIDDEN, HEADS, KV_HEADS, WIDTH, VOCABULARY = 4096, 32, 8, 14336, 128256
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def cast(values, kind, along=None):
    largest = values.abs().amax() if along is None else values.abs().amax(along, keepdim=True)
    scale = torch.finfo(kind).max / largest.float().clamp(min=1e-12)
    return (values.float() * scale).to(kind), scale.reciprocal()


def product(a, b, kind_a, kind_b, rows):
    """a @ b.T of matrices whose rows lie along what is summed."""
    along = 1 if rows else None
    (a8, sa), (b8, sb) = cast(a, kind_a, along), cast(b, kind_b, along)
    return torch._scaled_mm(a8.contiguous(), b8.contiguous().t(), scale_a=sa, scale_b=sb.t() if rows else sb,
                            out_dtype=torch.bfloat16, use_fast_accum=True)


class Float8(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, rows):
        ctx.save_for_backward(x, w)
        ctx.rows = rows
        return product(x, w, E4M3, E4M3, rows)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        kind = E4M3 if ctx.rows else E5M2
        return product(g, w.t(), kind, E4M3, ctx.rows), product(g.t(), x.t(), kind, E4M3, ctx.rows), None


class Linear(nn.Linear):
    recipe = ""

    def forward(self, x):
        if not self.recipe:
            return super().forward(x)
        flat = x.reshape(-1, x.shape[-1])
        return Float8.apply(flat, self.weight, self.recipe == "fp8-row").view(*x.shape[:-1], -1)


def rotated(x, table):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * table[:, None]).flatten(3).type_as(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        head = HIDDEN // HEADS
        self.wq, self.wo = Linear(HIDDEN, HIDDEN, bias=False), Linear(HIDDEN, HIDDEN, bias=False)
        self.wk, self.wv = Linear(HIDDEN, KV_HEADS * head, bias=False), Linear(HIDDEN, KV_HEADS * head, bias=False)
        self.w1, self.w3 = Linear(HIDDEN, WIDTH, bias=False), Linear(HIDDEN, WIDTH, bias=False)
        self.w2 = Linear(WIDTH, HIDDEN, bias=False)
        self.before, self.between = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)

    def forward(self, x, table):
        h = self.before(x)
        q, k, v = (w(h).unflatten(-1, (-1, HIDDEN // HEADS)) for w in (self.wq, self.wk, self.wv))
        q, k = rotated(q, table), rotated(k, table)
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 2) for t in (k, v))
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            a = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)
        x = x + self.wo(a.transpose(1, 2).flatten(2))
        h = self.between(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(HIDDEN), nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, tokens, table):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, table)
        return self.output(self.norm(x))


def every_other():
    seen = collections.Counter()
    aten = torch.ops.aten

    def policy(ctx, op, *_, **__):
        if op in (aten.mm.default, aten._scaled_mm.default):
            seen[ctx.is_recompute] += 1
            return CheckpointPolicy.MUST_SAVE if seen[ctx.is_recompute] % 2 else CheckpointPolicy.PREFER_RECOMPUTE
        kept = op in (aten._scaled_dot_product_flash_attention.default, aten.max.default)
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def built(layers, compiled, recompute, recipe, sharded):
    Linear.recipe = recipe
    with torch.device("cuda"):
        model = Model(layers)
    for i, layer in enumerate(model.layers):
        if recompute == "layer":
            layer = checkpoint_wrapper(layer, preserve_rng_state=False)
        elif recompute == "operators":
            layer = checkpoint_wrapper(layer, context_fn=every_other, preserve_rng_state=False)
        if compiled:
            layer = torch.compile(layer, fullgraph=True)
        model.layers[i] = layer
    if sharded:
        mixed = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
        for layer in model.layers:
            fully_shard(layer, **mixed)
        fully_shard(model, **mixed)
    else:
        model.bfloat16()
    return model


def purpose(name):
    low = name.lower()
    for word, what in (("flash", "attention"), ("fmha", "attention"), ("nvjet", "products"), ("gemm", "products"), ("cutlass", "products"),
                       ("nccl", "collectives"), ("multi_tensor", "optimiser"), ("fused_adam", "optimiser"), ("memcpy", "copies"),
                       ("memset", "copies"), ("cat", "copies"), ("triton", "passes")):
        if word in low:
            return what
    return "passes"


def timed(layers, sequence, batch, compiled, recompute, recipe, sharded):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = built(layers, compiled, recompute, recipe, sharded)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    head = HIDDEN // HEADS
    angles = torch.outer(torch.arange(sequence, device="cuda"), 1 / 5e5 ** (torch.arange(0, head, 2, device="cuda") / head))
    table = torch.polar(torch.ones_like(angles), angles)

    def loss_of(logits, labels):
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())

    if compiled:
        loss_of = torch.compile(loss_of)

    def step():
        tokens = torch.randint(VOCABULARY, (batch, sequence), device="cuda")
        logits = model(tokens, table)
        loss = loss_of(logits, tokens)
        del logits
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        adam.step()
        adam.zero_grad()

    times = []
    for i in range(18):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        if i >= 6:
            times.append(time.perf_counter() - start)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    kernels, names = collections.Counter(), collections.Counter()
    for event in profile.key_averages():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kernels[purpose(event.key)] += event.self_device_time_total / 1e3
            names[event.key[:70]] += event.self_device_time_total / 1e3
    peak = torch.cuda.max_memory_allocated() / 1e9
    torch.cuda.reset_peak_memory_stats()
    for name, ms in names.most_common(14):
        print(f"   {ms:8.2f} {name}", file=sys.stderr)
    return {"step_ms": round(1e3 * statistics.median(times), 3), "peak_gb": round(peak, 2), "kernels_ms": {k: round(v, 2) for k, v in kernels.items()}}


# layers, sequence, batch, compiled, recompute, recipe, sharded
CASES = [
    (8, 8192, 1, True, "operators", "", True), (16, 8192, 1, True, "operators", "", True),
    (8, 8192, 1, True, "operators", "", False), (8, 8192, 1, True, "operators", "fp8", True),
    (8, 8192, 1, True, "operators", "fp8-row", True), (8, 4096, 1, False, "", "", True),
    (8, 4096, 1, True, "", "", True), (8, 4096, 1, True, "", "fp8", True), (8, 4096, 1, False, "", "fp8", True), (8, 4096, 1, False, "layer", "", True),
    (8, 8192, 2, False, "operators", "", True), (8, 8192, 2, True, "operators", "", True), (8, 8192, 2, True, "operators", "fp8", True),
    (8, 4096, 1, False, "operators", "", True), (8, 4096, 1, True, "operators", "fp8", True),
]


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512", RANK="0", WORLD_SIZE="1")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
    begun = time.time()
    for case in CASES[int(sys.argv[1]) if len(sys.argv) > 1 else 0:]:
        row = dict(zip(("layers", "sequence", "batch", "compiled", "recompute", "recipe", "sharded"), case))
        try:
            row |= timed(*case)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {str(error)[:300]}"
        print(json.dumps(row), flush=True)
        print(json.dumps(row), round(time.time() - begun), file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
