"""Rates of products and attention of one GPU under caps of its power, for which nvidia-smi needs the rights of an administrator.

    python3 research/transformers/power.py 700 600 500 400 300 > power.jsonl

The first cap is the board's own; it is set again at the end.
"""

import json
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

HEADS, WIDTH, TOKENS, SIDE = 32, 128, 8192, 8192


def smi(*arguments):
    return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def rate(run, operations):
    """Operations a second, after a second under load."""

    def for_seconds(seconds):
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            for _ in range(4):
                run()
            calls += 4
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / calls

    for_seconds(1.0)
    return operations / for_seconds(2.0)


def kernels():
    a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    narrow = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
    one = torch.tensor(1.0, device="cuda")
    shape = (1, HEADS, TOKENS, WIDTH)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))

    def attention(backend):
        def run():
            with sdpa_kernel(backend):
                out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                out.backward(out.detach())

        return run

    product = 2 * SIDE**3
    attended = 3.5 * 2 * HEADS * WIDTH * TOKENS**2
    return [
        ("product, 16 bits", lambda: torch.mm(a, b), product),
        ("product, 8 bits", lambda: torch._scaled_mm(*narrow, one, one, out_dtype=torch.bfloat16), product),
        ("FlashAttention 2", attention(SDPBackend.FLASH_ATTENTION), attended),
        ("cuDNN attention", attention(SDPBackend.CUDNN_ATTENTION), attended),
    ]


def main():
    caps = sys.argv[1:]
    for cap in caps:
        smi("-pl", cap)
        for name, run, operations in kernels():
            print(json.dumps({"cap_w": int(cap), "kernel": name, "tflops": rate(run, operations) / 1e12}), flush=True)
    smi("-pl", caps[0])


main()
