"""Steps of transformers over patches and frames on the GPU at hand, one JSON object a line.

    python3 signals.py bf16 >> steps.jsonl
    python3 signals.py amp >> steps.jsonl
    python3 signals.py count

ViT and Whisper as Hugging Face's library runs them; DiT and the transformer of Stable Diffusion 3 written here after their papers (Peebles
and Xie 2023; Esser et al. 2024), operation by operation, with PyTorch's attention. Weights, gradients and moments in bfloat16, or in
32 bits under autocast; fused AdamW. `count` prints what a layer keeps for the backward pass, in elements of the hidden width a token.
"""
import gc
import json
import sys

import timing
import torch
import transformers
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

# Samples, and whether layers are computed again.
RUNS = {
    "vit-b-16": [(32, False), (256, False)],
    "vit-l-16": [(64, False), (256, False), (256, True)],
    "vit-h-14": [(64, False)],
    "dit-b-2": [(64, False)],
    "dit-l-2": [(64, False)],
    "dit-xl-2": [(32, False), (128, False), (256, True)],
    "stable-diffusion-3-medium": [(4, False), (8, False), (16, True)],
    "whisper-small": [(8, False), (32, False)],
    "whisper-large-v3": [(8, False), (16, False), (32, True)],
}
VIT = {"vit-b-16": [768, 12, 12, 3072, 16], "vit-l-16": [1024, 24, 16, 4096, 16], "vit-h-14": [1280, 32, 16, 5120, 14]}
DIT = {"dit-b-2": [768, 12, 12], "dit-l-2": [1024, 24, 16], "dit-xl-2": [1152, 28, 16]}
WHISPER = {"whisper-small": [768, 12, 12, 80, 51865], "whisper-large-v3": [1280, 32, 20, 128, 51866]}


def heads_of(states, heads):
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def modulated(states, scale, shift):
    return states * (1 + scale) + shift


class Mlp(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))


class Condition(nn.Module):
    """The sum of a step in time and of a class or a pooled text."""

    def __init__(self, width, classes=0, pooled=0):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.classes = nn.Embedding(classes, width) if classes else None
        self.pooled = nn.Sequential(nn.Linear(pooled, width), nn.SiLU(), nn.Linear(width, width)) if pooled else None

    def forward(self, time, label):
        return self.time(time) + (self.classes or self.pooled)(label)


class Stream(nn.Module):
    """Weights of the tokens of one kind in a layer; `last` ends behind attention."""

    def __init__(self, width, heads, last=False):
        super().__init__()
        self.heads, self.last = heads, last
        self.modulation = nn.Linear(width, (2 if last else 6) * width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(1 if last else 2))
        self.qkv = nn.Linear(width, 3 * width)
        if not last:
            self.out, self.mlp = nn.Linear(width, width), Mlp(width)

    def begin(self, states, condition):
        vectors = self.modulation(functional.silu(condition))[:, None].chunk(2 if self.last else 6, -1)
        joined = self.qkv(modulated(self.norms[0](states), vectors[0], vectors[1]))
        return vectors, [heads_of(part, self.heads) for part in joined.chunk(3, -1)]

    def end(self, states, vectors, attended):
        states = states + vectors[2] * self.out(attended)
        return states + vectors[5] * self.mlp(modulated(self.norms[1](states), vectors[3], vectors[4]))


def attend(*qkv):
    return functional.scaled_dot_product_attention(*qkv).transpose(1, 2).flatten(2)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.image = Stream(width, heads)

    def forward(self, states, condition):
        vectors, qkv = self.image.begin(states, condition)
        return self.image.end(states, vectors, attend(*qkv))


class JointLayer(nn.Module):
    def __init__(self, width, heads, last):
        super().__init__()
        self.image, self.text = Stream(width, heads), Stream(width, heads, last)

    def forward(self, image, text, condition):
        of_image, first = self.image.begin(image, condition)
        of_text, second = self.text.begin(text, condition)
        attended = attend(*(torch.cat(parts, 2) for parts in zip(first, second)))
        split = image.shape[1]
        image = self.image.end(image, of_image, attended[:, :split])
        return image, text if self.text.last else self.text.end(text, of_text, attended[:, split:])


class Diffusion(nn.Module):
    def __init__(self, width, layers, heads, patch, outputs, tokens, condition, text=0, recompute=False):
        super().__init__()
        self.patches, self.condition = nn.Linear(patch, width), condition
        self.text = nn.Linear(text, width) if text else None
        self.register_buffer("positions", torch.zeros(1, tokens, width))
        each = (lambda index: JointLayer(width, heads, index == layers - 1)) if text else (lambda _: Layer(width, heads))
        self.layers = nn.ModuleList(each(index) for index in range(layers))
        self.norm, self.modulation = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6), nn.Linear(width, 2 * width)
        self.output, self.recompute = nn.Linear(width, outputs), recompute

    def forward(self, patches, time, label, text=None):
        states, condition = self.patches(patches) + self.positions, self.condition(time, label)
        text = self.text(text) if self.text else None
        for layer in self.layers:
            given = (states, condition) if text is None else (states, text, condition)
            made = checkpoint(layer, *given, use_reentrant=False) if self.recompute else layer(*given)
            states, text = (made, None) if text is None else made
        scale, shift = self.modulation(functional.silu(condition))[:, None].chunk(2, -1)
        return self.output(modulated(self.norm(states), scale, shift))


def build(name, batch, recompute, number):
    """A model and a function that computes its loss."""
    random = lambda *dims: torch.randn(*dims, device="cuda", dtype=number)
    if name in VIT:
        width, layers, heads, inner, patch = VIT[name]
        config = transformers.ViTConfig(
            hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=inner, patch_size=patch,
            num_labels=1000, attn_implementation="sdpa")
        model = transformers.ViTForImageClassification(config)
        images, labels = random(batch, 3, 224, 224), torch.randint(0, 1000, (batch,), device="cuda")
        loss = lambda: model(pixel_values=images, labels=labels).loss
    elif name in WHISPER:
        width, layers, heads, frequencies, vocabulary = WHISPER[name]
        config = transformers.WhisperConfig(
            d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads, decoder_attention_heads=heads,
            encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width, num_mel_bins=frequencies, vocab_size=vocabulary, use_cache=False,
            attn_implementation="sdpa")
        model = transformers.WhisperForConditionalGeneration(config)
        frames, labels = random(batch, frequencies, 3000), torch.randint(0, vocabulary, (batch, 448), device="cuda")
        loss = lambda: model(input_features=frames, labels=labels).loss
    else:
        if name in DIT:
            width, layers, heads = DIT[name]
            model = Diffusion(width, layers, heads, 16, 32, 256, Condition(width, classes=1001), recompute=recompute)
            given = (random(batch, 256, 16), random(batch, 256), torch.randint(0, 1000, (batch,), device="cuda"))
            target = random(batch, 256, 32)
        else:
            model = Diffusion(1536, 24, 24, 64, 64, 4096, Condition(1536, pooled=2048), 4096, recompute)
            given = (random(batch, 4096, 64), random(batch, 256), random(batch, 2048), random(batch, 154, 4096))
            target = random(batch, 4096, 64)
        loss = lambda: functional.mse_loss(model(*given).float(), target.float())
    if recompute and hasattr(model, "gradient_checkpointing_enable"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train(), loss


def measure(name, batch, recompute, mixed):
    number = torch.float32 if mixed else torch.bfloat16
    torch.set_default_dtype(number)
    with torch.device("cuda"):
        model, loss = build(name, batch, recompute, number)
    torch.set_default_dtype(torch.float32)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=mixed):
            value = loss()
        value.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return timing.measure(step) | {"parameters": sum(own.numel() for own in model.parameters())}


def count():
    """Elements of the hidden width that one layer keeps a token, in bfloat16 and under autocast, by bytes of an element."""
    for mixed in (False, True):
        for kind, width, tokens in (("dit", 1152, 256), ("sd3", 1536, 1024)):
            number = torch.float32 if mixed else torch.bfloat16
            text = torch.randn(2, 128, width, device="cuda", dtype=number) if kind == "sd3" else None
            layer = (JointLayer(width, 16, False) if text is not None else Layer(width, 16)).cuda().to(number)
            states = torch.randn(2, tokens, width, device="cuda", dtype=number, requires_grad=True)
            condition = torch.randn(2, width, device="cuda", dtype=number)
            kept, weights = {}, {own.data_ptr() for own in layer.parameters()}

            def keep(tensor):
                if tensor.data_ptr() not in weights:
                    kept[(tensor.untyped_storage().data_ptr(), tensor.dtype)] = (tensor.untyped_storage().nbytes(), tuple(tensor.shape))
                return tensor

            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                with torch.autocast("cuda", torch.bfloat16, enabled=mixed):
                    layer(states, condition) if text is None else layer(states, text, condition)
            every = 2 * tokens * width + (0 if text is None else 2 * 128 * width)
            shapes = sorted((round(size / every, 3), str(number), shape) for (_, number), (size, shape) in kept.items())
            print(json.dumps({"kind": kind, "mixed": mixed, "bytes": sum(size for size, _ in kept.values()) / every, "kept": shapes}))


def main():
    if sys.argv[1] == "count":
        return count()
    for name, runs in RUNS.items():
        for batch, recompute in runs:
            row = {"precision": sys.argv[1], "model": name, "micro_batch": batch, "recompute": recompute}
            print(json.dumps(row | measure(name, batch, recompute, sys.argv[1] == "amp")), flush=True)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
