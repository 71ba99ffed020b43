"""Times the products of output layers on one GPU, for vocabularies that are multiples of eight and for others.

    python3 research/transformers/misaligned.py > misaligned.jsonl
"""

import json

import torch

VOCABULARIES = (50257, 50258, 50260, 50264, 32001, 32002, 32004, 32008, 151665, 30522)


def milliseconds(run, calls=20):
    for _ in range(4):
        run()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / calls


def random(*sizes):
    return torch.randn(*sizes, device="cuda", dtype=torch.bfloat16)


for tokens in (4096, 8192, 16384):
    for hidden in (768, 1024, 1600, 2048, 4096):
        for vocabulary in VOCABULARIES:
            if tokens * vocabulary > 1.4e9:
                continue
            states, weights, gradients = random(tokens, hidden), random(vocabulary, hidden), random(tokens, vocabulary)
            row = {
                "tokens": tokens,
                "hidden": hidden,
                "vocabulary": vocabulary,
                "forward_ms": milliseconds(lambda: states @ weights.t()),
                "input_ms": milliseconds(lambda: gradients @ weights),
                "weights_ms": milliseconds(lambda: gradients.t() @ states),
            }
            print(json.dumps(row), flush=True)
