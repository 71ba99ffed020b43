"""What the host takes to issue a step of Megatron-LM: GPT models of Megatron core's own modules (`--transformer-impl local`) on one
GPU, small enough that the device waits, by layers and micro-batches.

    PYTHONPATH=/path/to/megatron-core python3 megatron_host.py > steps.jsonl

Each row has the median of 15 steps after 5, the time until the host has issued the passes of a step, and the kernels of one step."""
import itertools
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig

VOCABULARY, SEQUENCE = 50304, 1024


def model(layers, hidden, sharded, llama):
    own = dict(normalization="RMSNorm", add_bias_linear=False, gated_linear_unit=True, activation_func=torch.nn.functional.silu,
               hidden_dropout=0.0, attention_dropout=0.0) if llama else {}
    config = TransformerConfig(num_layers=layers, hidden_size=hidden, num_attention_heads=8, bf16=True, params_dtype=torch.bfloat16,
                               pipeline_dtype=torch.bfloat16, gradient_accumulation_fusion=False, masked_softmax_fusion=False,
                               bias_dropout_fusion=True, bias_activation_fusion=True, **own)
    spec = get_gpt_layer_local_spec(normalization="RMSNorm" if llama else None)
    network = GPTModel(config, spec, VOCABULARY, SEQUENCE, position_embedding_type="rope" if llama else "learned_absolute",
                       share_embeddings_and_output_weights=not llama).cuda().bfloat16()
    ddp = DistributedDataParallelConfig(grad_reduce_in_fp32=True, use_distributed_optimizer=sharded, overlap_grad_reduce=sharded,
                                        overlap_param_gather=sharded)
    network = DistributedDataParallel(config, ddp, network)
    config.finalize_model_grads_func = finalize_model_grads
    optimiser = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16, use_distributed_optimizer=sharded,
                        clip_grad=1.0), [network])
    return network, optimiser


def batch(sequences):
    tokens = torch.randint(0, VOCABULARY, (sequences, SEQUENCE + 1), device="cuda")
    positions = torch.arange(SEQUENCE, device="cuda").unsqueeze(0).expand(sequences, -1)
    mask = torch.ones(SEQUENCE, SEQUENCE, device="cuda").tril().unsqueeze(0).unsqueeze(0) < 0.5
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), positions, mask


def timed(layers, hidden, sequences, micro_batches, sharded=False, llama=False):
    network, optimiser = model(layers, hidden, sharded, llama)
    own = batch(sequences)
    run = get_forward_backward_func()
    issued, forwards = [], []

    def forward(data, network):
        began = time.perf_counter()
        tokens, labels, positions, mask = next(data)
        losses = network(tokens, positions, mask, labels=labels)
        forwards.append(time.perf_counter() - began)
        return losses, lambda output: ((mean := output.float().mean()), {"loss": mean.detach()})

    def step():
        network.zero_grad_buffer()
        optimiser.zero_grad()
        began = time.perf_counter()
        run(forward_step_func=forward, data_iterator=iter([own] * micro_batches), model=[network], num_microbatches=micro_batches,
            seq_length=SEQUENCE, micro_batch_size=sequences, forward_only=False)
        issued.append(time.perf_counter() - began)
        optimiser.step()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    issued.clear()
    forwards.clear()
    times = []
    for _ in range(15):
        began = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    events = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    device = sum(event.device_time for event in events) * 1e-3
    row = dict(layers=layers, hidden=hidden, micro_batch=sequences, micro_batches=micro_batches, sharded=sharded, llama=llama,
               step_ms=1e3 * statistics.median(times), passes_host_ms=1e3 * statistics.median(issued),
               forward_host_ms=1e3 * statistics.median(forwards), device_ms=device,
               kernels=len(events), peak=torch.cuda.max_memory_allocated())
    print(json.dumps(row), flush=True)
    torch.cuda.reset_peak_memory_stats()


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    parallel_state.initialize_model_parallel()
    model_parallel_cuda_manual_seed(1)
    for llama, layers, micro_batches in itertools.product((False, True), (2, 6, 12, 24), (1, 4)):
        timed(layers, 512, 1, micro_batches, llama=llama)
    timed(12, 512, 1, 4, sharded=True)
    timed(12, 2048, 4, 2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
