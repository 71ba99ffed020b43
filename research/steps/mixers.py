"""Times of what mixes tokens in place of attention, on one GPU: gated delta nets, Mamba 2 and Mamba 1.

    python3 mixers.py build PACKAGES NAME   # compiles an extension of causal_conv1d or mamba_ssm, whose sources lie in PACKAGES
    python3 mixers.py warm PACKAGES N       # compiles the kernels of one shape, so that shapes can be compiled side by side
    python3 mixers.py measure PACKAGES [PART...]   # prints one JSON object for every shape, batch and part

Kernels of causal_conv1d, of mamba_ssm and of flash-linear-attention, as Megatron-LM and the transformers library call them, in
bfloat16. Times are the sums of kernels on the device, from PyTorch's profiler, so that a slow host does not count; `kept` are the bytes
that stay allocated from the forward pass to the backward pass, beside the inputs.
"""
import json
import os
import sys

import torch

mode, packages = sys.argv[1], sys.argv[2]
SOURCES = {"causal_conv1d_cuda": "conv_csrc", "selective_scan_cuda": "mamba_csrc/selective_scan"}
sys.path[:0] = [packages, *(os.path.join(packages, "built", name) for name in SOURCES)]

# Heads of keys and of values, width of a key and of a value.
DELTA = [(16, 32, 128, 128), (4, 8, 128, 128), (16, 16, 128, 128), (16, 48, 128, 128), (8, 8, 128, 256), (32, 32, 64, 64)]
# Heads, width of a head, groups, state, tokens of a chunk.
MAMBA_2 = [(128, 64, 8, 128, 128), (128, 64, 8, 128, 256), (256, 64, 8, 256, 128), (128, 80, 8, 128, 128), (64, 64, 8, 128, 128),
           (80, 64, 1, 128, 256), (16, 64, 1, 128, 128)]
# Channels and state.
MAMBA_1 = [(8192, 16), (16384, 16), (2048, 16)]
SHAPES = [("delta", shape) for shape in DELTA] + [("mamba-2", shape) for shape in MAMBA_2] + [("mamba-1", shape) for shape in MAMBA_1]
BATCHES = [(1, 4096), (1, 8192), (4, 4096), (1, 32768), (8, 2048)]
ROUNDS = 5


def build(name):
    from torch.utils import cpp_extension

    os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"
    flags = ["-O3", "-std=c++17", "-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__", "-U__CUDA_NO_BFLOAT16_OPERATORS__",
             "-U__CUDA_NO_BFLOAT16_CONVERSIONS__", "-U__CUDA_NO_BFLOAT162_OPERATORS__", "-U__CUDA_NO_BFLOAT162_CONVERSIONS__",
             "--expt-relaxed-constexpr", "--expt-extended-lambda", "--use_fast_math"]
    folder = os.path.join(packages, "built", name)
    os.makedirs(folder, exist_ok=True)
    sources = os.path.join(packages, SOURCES[name])
    files = [os.path.join(sources, file) for file in sorted(os.listdir(sources)) if file.endswith((".cu", ".cpp"))]
    cpp_extension.load(name, files, extra_cflags=["-O3", "-std=c++17"], extra_cuda_cflags=flags, build_directory=folder,
                       extra_include_paths=[sources], is_python_module=False)


def random(*shape, dtype=torch.bfloat16, scale=1.0):
    return (torch.randn(*shape, device="cuda") * scale).to(dtype).requires_grad_()


def convolution(batch, tokens, channels):
    """The short convolution of `channels`, with the channels of a token beside each other."""
    from causal_conv1d import causal_conv1d_fn

    inputs = [random(batch, tokens, channels), random(channels, 4), random(channels)]
    return inputs, lambda states, weight, bias: causal_conv1d_fn(states.transpose(1, 2), weight, bias, activation="silu")


def norm(batch, tokens, width, group):
    """RMS norm of groups of `group` channels, with a gate."""
    from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn

    inputs = [random(batch * tokens, width), random(batch * tokens, width), random(width)]
    return inputs, lambda states, gate, weight: rmsnorm_fn(states, weight, None, z=gate, group_size=group)


def delta_convolution(shape, batch, tokens):
    keys, values, key, value = shape
    return convolution(batch, tokens, 2 * keys * key + values * value)


def delta_norm(shape, batch, tokens):
    return norm(batch, tokens, shape[1] * shape[3], shape[3])


def delta_scan(shape, batch, tokens):
    from fla.ops.common import chunk_o
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    # Triton 3.4 to 3.7.0 computes wrong gradients here on Hopper, and the library refuses. They take their time all the same.
    chunk_o.TRITON_ABOVE_3_7_1 = True

    keys, values, key, value = shape
    inputs = [random(batch, tokens, keys, key), random(batch, tokens, keys, key), random(batch, tokens, values, value),
              random(batch, tokens, values), random(batch, tokens, values), random(values, dtype=torch.float32),
              random(values, dtype=torch.float32)]

    def scan(query, keyed, valued, gate, beta, decay, bias):
        steps = -decay.exp() * torch.nn.functional.softplus(gate.float() + bias)
        return chunk_gated_delta_rule(query, keyed, valued, g=steps, beta=beta.sigmoid(), use_qk_l2norm_in_kernel=True)[0]

    return inputs, scan


def mamba_convolution(shape, batch, tokens):
    heads, width, groups, state, _ = shape
    return convolution(batch, tokens, heads * width + 2 * groups * state)


def mamba_norm(shape, batch, tokens):
    heads, width, groups, *_ = shape
    return norm(batch, tokens, heads * width, heads * width // groups)


def mamba_scan(shape, batch, tokens):
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    heads, width, groups, state, chunk = shape
    inputs = [random(batch, tokens, heads, width), random(batch, tokens, heads), random(batch, tokens, groups, state),
              random(batch, tokens, groups, state), *(random(heads, dtype=torch.float32) for _ in range(3))]

    def scan(states, steps, written, read, decay, skip, bias):
        return mamba_chunk_scan_combined(states, steps, -decay.exp(), written, read, chunk, D=skip, dt_bias=bias, dt_softplus=True)

    return inputs, scan


def mamba_together(shape, batch, tokens):
    """Convolution, scan and norm in the function that keeps least."""
    from mamba_ssm.ops.triton.ssd_combined import mamba_split_conv1d_scan_combined

    heads, width, groups, state, chunk = shape
    channels = heads * width + 2 * groups * state
    inputs = [random(batch, tokens, heads * width + channels + heads), random(channels, 4), random(channels),
              *(random(heads, dtype=torch.float32) for _ in range(3)), random(heads * width)]

    def together(projected, weight, offset, bias, decay, skip, scale):
        return mamba_split_conv1d_scan_combined(projected, weight, offset, bias, -decay.exp(), skip, chunk, rmsnorm_weight=scale,
                                                headdim=width, ngroups=groups, norm_before_gate=False)

    return inputs, together


def selective_convolution(shape, batch, tokens):
    return convolution(batch, tokens, shape[0])


def selective_scan(shape, batch, tokens):
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn

    channels, state = shape
    inputs = [random(batch, channels, tokens), random(batch, channels, tokens), random(channels, state, dtype=torch.float32),
              random(batch, 1, state, tokens), random(batch, 1, state, tokens), random(channels, dtype=torch.float32),
              random(batch, channels, tokens), random(channels, dtype=torch.float32)]

    def scan(states, steps, decay, written, read, skip, gate, bias):
        return selective_scan_fn(states, steps, -decay.exp(), written, read, skip, z=gate, delta_bias=bias, delta_softplus=True)

    return inputs, scan


PARTS = {"delta": [delta_scan, delta_norm, delta_convolution], "mamba-2": [mamba_scan, mamba_norm, mamba_convolution, mamba_together],
         "mamba-1": [selective_scan, selective_convolution]}
EXTENSIONS = [delta_convolution, mamba_convolution, mamba_together, selective_convolution, selective_scan]


def kernels(run):
    """Time of the device in milliseconds and number of kernels of a run."""
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(ROUNDS):
            run()
        torch.cuda.synchronize()
    own = [event for event in profile.events() if event.device_type == torch.profiler.DeviceType.CUDA]
    return sum(event.time_range.elapsed_us() for event in own) / 1e3 / ROUNDS, len(own) / ROUNDS


def measured(inputs, run):
    before = torch.cuda.memory_allocated()
    result = run(*inputs)
    kept = torch.cuda.memory_allocated() - before
    gradient = torch.randn_like(result)
    back = lambda: torch.autograd.grad(result, inputs, gradient, retain_graph=True)
    for _ in range(2):
        back()
        run(*inputs)
    torch.cuda.synchronize()
    forward, forward_kernels = kernels(lambda: run(*inputs))
    backward, backward_kernels = kernels(back)
    return {"forward_ms": round(forward, 5), "backward_ms": round(backward, 5), "kernels": [forward_kernels, backward_kernels], "kept": kept}


def measure(names):
    for kind, shape in SHAPES:
        for batch, tokens in BATCHES:
            for part in PARTS[kind]:
                if names and part.__name__ not in names:
                    continue
                row = {"kind": kind, "shape": shape, "batch": batch, "tokens": tokens, "part": part.__name__}
                try:
                    row |= measured(*part(shape, batch, tokens))
                except Exception as error:
                    row["error"] = repr(error)[:200]
                torch.cuda.empty_cache()
                print(json.dumps(row), flush=True)


def warm(index):
    """All but what needs the extensions, which are compiled at the same time."""
    kind, shape = SHAPES[index]
    for part in PARTS[kind]:
        if part not in EXTENSIONS:
            inputs, run = part(shape, 1, 2048)
            result = run(*inputs)
            torch.autograd.grad(result, inputs, torch.randn_like(result))
    torch.cuda.synchronize()


if mode == "build":
    build(sys.argv[3])
elif mode == "warm":
    warm(int(sys.argv[3]))
else:
    measure(sys.argv[3:])
