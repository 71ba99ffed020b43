"""What is trained: a network by name, its random data and its loss."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import nets
from common import KitError

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
# Zoo name: torchvision's name, size of the input.
TORCHVISION = {
    "googlenet": ("googlenet", (3, 224, 224)),
    "inception-v3": ("inception_v3", (3, 299, 299)),
    "efficientnet-b0": ("efficientnet_b0", (3, 224, 224)),
    "vit-b-16": ("vit_b_16", (3, 224, 224)),
}
WITHOUT_AUXILIARY = ("googlenet", "inception-v3")
# Zoo name: class of transformers, its configuration, what differs from the defaults, tokens of a sample.
TRANSFORMERS = {
    "bert-base-mlm": ("BertForMaskedLM", "BertConfig", {}, 128),
    "bert-large-mlm": (
        "BertForMaskedLM",
        "BertConfig",
        {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
        128,
    ),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {}, 1024),
    "gpt2-medium": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 1024, "n_layer": 24, "n_head": 16}, 1024),
}
Batch = tuple[tuple[Any, ...], Tensor | None]


@dataclass
class Task:
    """A network with what it takes to train it on random data."""

    name: str
    module: nn.Module
    # From batch size and device to inputs and, if the loss is a cross entropy, targets.
    data: Callable[[int, torch.device], Batch]

    def loss(self, batch: Batch) -> Tensor:
        inputs, targets = batch
        out = self.module(*inputs)
        if targets is not None:
            return nn.functional.cross_entropy(out, targets)
        return out if out.dim() == 0 else out.float().mean()


class LanguageModel(nn.Module):
    """Predicts its own input; gives the loss."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.m = inner

    def forward(self, tokens: Tensor) -> Tensor:
        return self.m(input_ids=tokens, labels=tokens).loss


def names() -> list[str]:
    return [*nets.BUILT_IN, *TORCHVISION, *TRANSFORMERS]


def images(shape: tuple[int, ...], classes: int) -> Callable[[int, torch.device], Batch]:
    def data(batch: int, device: torch.device) -> Batch:
        labels = torch.randint(0, classes, (batch,), device=device)
        return (torch.randn(batch, *shape, device=device),), labels

    return data


def tokens(length: int, vocabulary: int) -> Callable[[int, torch.device], Batch]:
    def data(batch: int, device: torch.device) -> Batch:
        return (torch.randint(0, vocabulary, (batch, length), device=device),), None

    return data


def check(name: str) -> None:
    """Refuses what cannot be built, before anything is measured."""
    zoo = name.lower().replace("_", "-")
    if zoo in TORCHVISION:
        optional("torchvision.models", zoo)
    elif zoo in TRANSFORMERS:
        optional("transformers", zoo)
    elif zoo not in nets.BUILT_IN:
        build(name)


def build(name: str, shape: tuple[int, ...] | None = None) -> Task:
    """A network of the zoo, or what `module:function` gives.

    Such a function takes nothing and gives a module (fed with random tensors of `shape`; the loss is a cross
    entropy over its outputs if they are a row for each sample), or a pair of a module and a function from (batch,
    device) to (inputs, targets); with targets None the module's output, or its mean, is the loss.
    """
    if ":" in name:
        return user_task(name, shape)
    zoo = name.lower().replace("_", "-")
    if zoo in nets.BUILT_IN:
        own, classes, make = nets.BUILT_IN[zoo]
        return Task(zoo, make(), images(shape or own, classes))
    if zoo in TORCHVISION:
        models = optional("torchvision.models", zoo)
        function, own = TORCHVISION[zoo]
        more = {"aux_logits": False, "init_weights": False} if zoo in WITHOUT_AUXILIARY else {}
        module = getattr(models, function)(weights=None, **more)
        return Task(zoo, module, images(shape or own, 1000))
    if zoo in TRANSFORMERS:
        library = optional("transformers", zoo)
        kind, settings, changes, length = TRANSFORMERS[zoo]
        config = getattr(library, settings)(**changes)
        return Task(zoo, LanguageModel(getattr(library, kind)(config)), tokens(length, config.vocab_size))
    near = difflib.get_close_matches(zoo, names(), 1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    raise KitError(f'there is no model "{name}"', f"{hint}use {', '.join(names())}, or module:function of your own")


def optional(module: str, model: str) -> Any:
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError) as error:  # RuntimeError: built for another PyTorch
        package = module.partition(".")[0]
        raise KitError(
            f"{model} needs {package}, which cannot be imported: {error}", f"install {package}, or use another model"
        ) from error


def user_task(name: str, shape: tuple[int, ...] | None) -> Task:
    module, _, function = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        made = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise KitError(
            f"{name} gives no model: {error}", "name a module that can be imported and a function without arguments"
        ) from error
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], nn.Module) and callable(made[1]):
        return Task(name, *made)
    if not isinstance(made, nn.Module):
        raise KitError(
            f"{name} gives a {type(made).__name__}", "give a torch.nn.Module, or a pair of one and a function for data"
        )
    shape = shape or (3, 224, 224)

    def data(batch: int, device: torch.device) -> Batch:
        inputs = torch.randn(batch, *shape, device=device)
        with torch.no_grad():
            out = made(inputs[:2])  # two samples: a normalisation over one may be refused
        if not isinstance(out, Tensor):
            raise KitError(f"{name} puts out a {type(out).__name__}", "give a pair with data, and a loss as output")
        if out.dim() != 2:
            return (inputs,), None
        return (inputs,), torch.randint(0, out.shape[1], (batch,), device=device)

    return Task(name, made, data)


def set_precision(precision: str) -> None:
    """32-bit products use no tensor units unless `tf32` is asked for."""
    reduced = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = reduced
    torch.backends.cudnn.allow_tf32 = reduced


def casts(precision: str, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Automatic casts for bf16 and fp16; weights and gradients stay in 32 bits."""
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16}
    if precision not in kinds:
        return contextlib.nullcontext()
    return torch.autocast(device.type, kinds[precision])
