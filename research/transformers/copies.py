"""What PyTorch's FSDP does on the device beside its collectives, timed on the one GPU at hand for a layer of Llama 3 8B and 8 ranks.

    python3 copies.py            kernels alone
    python3 copies.py ranks      kernels in steps of two ranks on this GPU, by NCCL"""
import collections
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from triton.testing import do_bench

RANKS = 8
LAYER = [(4096, 4096), (1024, 4096), (1024, 4096), (4096, 4096), (14336, 4096), (14336, 4096), (4096, 14336), (4096,), (4096,)]
HEAD = [(128256, 4096)]


def alone():
    for name, shapes in (("layer", LAYER), ("output layer", HEAD)):
        sizes = [torch.Size(shape).numel() for shape in shapes]
        total = sum(sizes)
        gathered = torch.randn(RANKS, total // RANKS, device="cuda", dtype=torch.bfloat16)
        whole = [torch.empty(RANKS, size // RANKS, device="cuda", dtype=torch.bfloat16) for size in sizes]
        gradients = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in shapes]
        shards = [torch.randn(size // RANKS, device="cuda") for size in sizes]
        input16 = [torch.empty(size // RANKS, device="cuda", dtype=torch.bfloat16) for size in sizes]
        flat = torch.empty(total, device="cuda", dtype=torch.bfloat16)
        full = [torch.randn(size, device="cuda") for size in sizes]
        out = {kind: torch.empty(RANKS, total // RANKS, device="cuda", dtype=kind) for kind in (torch.float32, torch.bfloat16)}
        split = [size // RANKS for size in sizes]
        works = {
            "gathered weights out, 4 B": (4, lambda: torch.ops.fsdp.split_with_sizes_copy(gathered, split, dim=1, out=whole)),
            "gradients into 32 bits, 6 B": (6, lambda: torch.ops.fsdp.chunk_cat(gradients, dim=0, num_chunks=RANKS, out=out[torch.float32])),
            "gradients into 16 bits, 4 B": (4, lambda: torch.ops.fsdp.chunk_cat(gradients, dim=0, num_chunks=RANKS, out=out[torch.bfloat16])),
            "FSDP 1 gradients into one, 4 B": (4, lambda: torch.cat([g.flatten() for g in gradients], out=flat)),
            "shards cast, 6 B of an eighth": (6 / RANKS, lambda: torch._foreach_copy_(input16, shards)),
            "norms, 4 B of all": (4, lambda: torch._foreach_norm(full)),
            "clipped, 8 B of all": (8, lambda: torch._foreach_mul_(full, 1.0)),
        }
        for what, (width, work) in works.items():
            ms = do_bench(work, return_mode="median")
            print(f"{name:14} {what:34} {ms:7.4f} ms {width * total / ms / 1e9:6.2f} TB/s", flush=True)


def rank(number, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29513", RANK=str(number), WORLD_SIZE=str(world), NCCL_HOSTID=str(number), NCCL_SOCKET_IFNAME="lo")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=number, world_size=world)
    import compiled_steps
    with torch.device("cuda"):
        model = compiled_steps.Model(4)
    mixed = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    for layer in model.layers:
        fully_shard(layer, **mixed)
    fully_shard(model, **mixed)
    angles = torch.rand(1024, 64, device="cuda")
    table = torch.polar(torch.ones_like(angles), angles)

    def step():
        tokens = torch.randint(1000, (1, 1024), device="cuda")
        model(tokens, table).float().logsumexp(-1).sum().backward()

    for _ in range(3):
        step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    if number == 0:
        sums = collections.Counter()
        for event in profile.key_averages():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                sums[event.count, event.key[:110]] += event.self_device_time_total / 1e3
        for (count, name), ms in sums.most_common(26):
            print(f"{ms:8.3f} ms {count:4} {name}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if "ranks" in sys.argv:
        mp.spawn(rank, (2,), 2)
    else:
        alone()
