"""Rates of fused attention on a GPU that is hot, and what PyTorch's ring of context-parallel ranks adds up: `attention.py`, on one GPU.

Prints TFLOP/s of FlashAttention 2 and cuDNN forward, and forward and backward together, in the first eighth of a second after a
rest and after twelve seconds; then the sums of one step around a ring in passes over queries in 16 bits at `PASS` of the memory rate
of an H200. `flash`, `flash-back` and `cudnn` of catalog/priors.toml come from it; RING_EAGER of stepcast-analytic is held against it.
"""
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

PASS = 0.5774 * 4.8e12


def seconds(run, times):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3 / times


def timed(run):
    seconds(run, 2)
    return seconds(run, 20)


def rates(backend, tokens, heads, width, causal, trains):
    tensors = [torch.randn(1, heads, tokens, width, device='cuda', dtype=torch.bfloat16, requires_grad=trains) for _ in range(3)]
    gradient = torch.randn_like(tensors[0])
    operations = 4 * tokens**2 * heads * width * (0.5 if causal else 1) * (3.5 if trains else 1)

    def run():
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(*tensors, is_causal=causal)
        if trains:
            torch.autograd.grad(out, tensors, gradient)

    seconds(run, 1)
    time.sleep(3)
    found, begin = [], time.time()
    while time.time() - begin < 12:
        found.append(operations / seconds(run, 8) / 1e12)
    last = found[-len(found) // 4:]
    return found[0], sum(last) / len(last)


def updated(whole, part, index, adds):
    halves = list(whole.chunk(2, dim=2))
    halves[index] = halves[index] + part if adds else part
    return torch.cat(halves, dim=2)


def ring(tokens, heads=32, width=128):
    """Passes of one step: merged outputs forward, gradients of queries, keys and values backward; mean of both kinds of steps."""
    def wide():
        return torch.randn(1, heads, tokens, width, device='cuda')

    out, block, sums = wide(), wide().bfloat16(), torch.randn(1, heads, tokens, 1, device='cuda')
    gradients, news = [wide() for _ in range(3)], [wide().bfloat16() for _ in range(3)]
    half = slice(0, tokens // 2)

    def merged(out, sums, block, new):
        block, new = block.float(), new.float()
        return out - F.sigmoid(new - sums) * (out - block), sums - F.logsigmoid(sums - new)

    def merge_half():
        found = merged(out[:, :, half], sums[:, :, half], block[:, :, half], sums[:, :, half])
        return [updated(whole, part, 1, False) for whole, part in zip((out, sums), found)]

    def add_keys():
        keys, values = (gradients[i].add_(news[i]) for i in (1, 2))
        return torch.cat([keys.flatten(), values.flatten()]), updated(gradients[0], news[0][:, :, half], 1, True)

    def add_queries():
        keys, values = (updated(gradients[i], news[i][:, :, half], 0, True) for i in (1, 2))
        return torch.cat([keys.flatten(), values.flatten()]), gradients[0].add_(news[0])

    one = tokens * heads * width * 2 / PASS
    both = [[lambda: merged(out, sums, block, sums), merge_half], [add_keys, add_queries]]
    return [sum(timed(run) for run in runs) / 2 / one for runs in both]


if __name__ == '__main__':
    print(torch.__version__, torch.cuda.get_device_name())
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        for tokens, heads in ((16384, 32), (65536, 8)):
            for causal in (True, False):
                for trains in (False, True):
                    rested, hot = rates(backend, tokens, heads, 128, causal, trains)
                    print(f'{backend.name} {tokens} tokens, causal {causal}, backward {trains}: {rested:.0f}, hot {hot:.0f} TFLOP/s')
    for tokens in (8192, 32768):
        forward, backward = ring(tokens)
        print(f'ring, {tokens} tokens: {forward:.1f} passes over queries forward, {backward / 3:.1f} over queries, keys and values backward')
