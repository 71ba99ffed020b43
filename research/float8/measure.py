"""Products of linear layers in float8 against bfloat16 on the GPU at hand, and the casts that float8 needs.

    python3 measure.py > float8.csv

Each row is one product of a training step (m x k by k x n): the time in bfloat16; that of the float8 product alone, with one
scale for each tensor; and that of casting both factors, which reads each twice (its largest value, then its values) and writes a
byte for each value. Medians of 20 repeats, microseconds.
"""
import statistics
import sys

import torch

SHAPES = [(tokens, n, k) for tokens in (4096, 8192, 16384) for n, k in
          ((4096, 4096), (14336, 4096), (4096, 14336), (6144, 4096), (8192, 8192), (28672, 8192), (8192, 28672), (2048, 2048), (1024, 1024))]
FP8 = torch.float8_e4m3fn
LARGEST = torch.finfo(FP8).max


def microseconds(work, repeats=20):
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def cast(values):
    scale = LARGEST / values.abs().max().float().clamp(min=1e-12)
    return (values * scale).to(FP8), scale.reciprocal()


def main():
    cast_compiled = torch.compile(cast, dynamic=False)
    print("m,n,k,bf16_us,float8_us,cast_us")
    for m, n, k in SHAPES:
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        (a8, sa), (b8, sb) = cast_compiled(a), cast_compiled(b)
        plain = microseconds(lambda: a @ b.t())
        product = microseconds(lambda: torch._scaled_mm(a8, b8.t(), scale_a=sa, scale_b=sb, out_dtype=torch.bfloat16, use_fast_accum=True))
        casts = microseconds(lambda: (cast_compiled(a), cast_compiled(b)))
        print(f"{m},{n},{k},{plain:.1f},{product:.1f},{casts:.1f}", flush=True)
    print(torch.__version__, torch.cuda.get_device_name(), file=sys.stderr)


if __name__ == "__main__":
    main()
