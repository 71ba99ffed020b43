"""Times gradients of weights on one GPU, written in 16 or 32 bits or added to 32 bits, singly and for the experts of a layer.

    python3 research/transformers/accumulate.py > accumulate.jsonl
"""

import json
import time

import torch

DEVICE = torch.device("cuda")


def timed(run):
    """Seconds of a call under load: the median of five windows of 60 ms."""
    run(), torch.cuda.synchronize()
    start = time.perf_counter()
    run(), torch.cuda.synchronize()
    calls = max(2, int(0.06 / (time.perf_counter() - start)))
    windows = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
        windows.append((time.perf_counter() - start) / calls)
    return sorted(windows)[2]


def single(out, width, tokens):
    a = torch.randn(tokens, out, device=DEVICE, dtype=torch.bfloat16)
    b = torch.randn(tokens, width, device=DEVICE, dtype=torch.bfloat16)
    narrow = torch.empty(out, width, device=DEVICE, dtype=torch.bfloat16)
    wide = torch.zeros(out, width, device=DEVICE)

    def separate():
        torch.mm(a.t(), b, out=narrow)
        wide.add_(narrow)

    return {
        "bf16": timed(lambda: torch.mm(a.t(), b, out=narrow)),
        "fp32": timed(lambda: torch.mm(a.t(), b, out_dtype=torch.float32, out=wide)),
        "added": timed(lambda: torch.addmm(wide, a.t(), b, out_dtype=torch.float32, out=wide)),
        "separate": timed(separate),
    }


def experts(count, out, width, tokens):
    a = torch.randn(count, tokens, out, device=DEVICE, dtype=torch.bfloat16)
    b = torch.randn(count, tokens, width, device=DEVICE, dtype=torch.bfloat16)
    w = torch.randn(count, width, out, device=DEVICE, dtype=torch.bfloat16)
    y = torch.empty_like(a)
    wide = torch.zeros(count, out, width, device=DEVICE)
    streams = [torch.cuda.Stream() for _ in range(4)]

    def each(run):
        """One product for every expert over four streams, as Transformer Engine does."""
        main = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(main)
        for place in range(count):
            with torch.cuda.stream(streams[place % 4]):
                run(place)
        for stream in streams:
            main.wait_stream(stream)

    def graphed(run):
        each(run), torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            each(run)
        return timed(graph.replay)

    ends = torch.arange(1, count + 1, device=DEVICE, dtype=torch.int32) * tokens
    flat = [tensor.reshape(count * tokens, -1) for tensor in (a, b)]
    found = {
        "forward": graphed(lambda e: torch.mm(b[e], w[e], out=y[e])),
        "added": graphed(lambda e: torch.addmm(wide[e], a[e].t(), b[e], out_dtype=torch.float32, out=wide[e])),
        "grouped": timed(lambda: torch._grouped_mm(flat[1], w, offs=ends)),
        "grouped_weight": timed(lambda: torch._grouped_mm(flat[0].t(), flat[1], offs=ends)),
    }
    return found


def attempt(kind, what, sizes):
    try:
        print(json.dumps({"kind": kind, "sizes": sizes} | what(*sizes)), flush=True)
    except RuntimeError as error:
        print(json.dumps({"kind": kind, "sizes": sizes, "error": str(error)[:200]}), flush=True)


def main():
    print(json.dumps({"kind": "machine", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}))
    for out, width in ((4096, 4096), (22016, 4096), (4096, 11008), (12288, 12288), (5760, 2880), (1536, 2048)):
        for tokens in (512, 1024, 2048, 4096, 8192, 16384):
            attempt("single", single, (out, width, tokens))
    for count, out, width in ((16, 5760, 2880), (16, 1536, 2048), (8, 28672, 4096), (4, 4096, 7168)):
        for tokens in (256, 512, 1024, 2048, 4096):
            attempt("experts", experts, (count, out, width, tokens))


main()
