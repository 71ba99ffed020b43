"""Peaks of memory of pipeline stages under FSDP2: four ranks, two stages of two, on one GPU.

    NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 torchrun --nproc-per-node 4 research/transformers/keep.py 1f1b keep 4 4

Arguments: schedule (1f1b or interleaved), whether weights stay gathered (keep) or not (divide), layers of a stage, micro-batches.
Layers are computed again. Every rank calls itself a host, so that NCCL accepts several on one device.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.utils.checkpoint import checkpoint

TOKENS, WIDTH, INNER, HEADS = 2048, 4096, 14336, 32


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, INNER, bias=False)
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def compute(self, x):
        batch, tokens, _ = x.shape
        heads = [y.view(batch, tokens, HEADS, -1).transpose(1, 2) for y in self.qkv(self.before(x)).chunk(3, -1)]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        normed = self.between(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))

    def forward(self, x):
        return checkpoint(self.compute, x, use_reentrant=False)


class Stage(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main():
    schedule, units, layers, micro_batches = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.environ["NCCL_HOSTID"] = f"rank {os.environ['RANK']}"
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    device = torch.device("cuda:0")
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("stages", "replicas"))
    place = mesh["stages"].get_local_rank()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    chunks = 2 if schedule == "interleaved" else 1
    stages = []
    for chunk in range(chunks):
        stage = Stage(layers // chunks).cuda()
        for unit in [*stage.layers, stage]:
            fully_shard(unit, mesh=mesh["replicas"], mp_policy=policy, reshard_after_forward=units != "keep")
        index = place + 2 * chunk
        stages.append(PipelineStage(stage, index, 2 * chunks, device, group=mesh["stages"].get_group()))
    update = torch.optim.AdamW([p for stage in stages for p in stage.submod.parameters()], fused=True)

    def loss(output, _):
        return output.float().square().mean()

    if chunks > 1:
        run = ScheduleInterleaved1F1B(stages, micro_batches, loss_fn=loss)
    else:
        run = Schedule1F1B(stages[0], micro_batches, loss_fn=loss)
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        x = torch.randn(micro_batches, TOKENS, WIDTH, device=device, dtype=torch.bfloat16)
        if place == 0:
            run.step(x)
        else:
            run.step(target=x, losses=[])
        update.step()
        update.zero_grad()
    gib = [peak() / 2**30 for peak in (torch.cuda.max_memory_allocated, torch.cuda.max_memory_reserved)]
    print(f"rank {dist.get_rank()}: {gib[0]:.2f} GiB of tensors, {gib[1]:.2f} GiB reserved", flush=True)
    dist.destroy_process_group()


main()
