"""What a step is made of: when each layer ends and each gradient is ready, as shares of its length.

One step tells the order of all of them; later ones, in each of which only some are noted, tell the shares.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import StepcastError
from .marks import Timed

Part = Callable[[str], int]


@dataclass(frozen=True)
class Shape:
    forward: list[tuple[str, float]]
    """Ends of layers in their order."""
    ready: list[tuple[str, float]]
    """Gradients in the order in which they are ready."""
    steps: int
    """Steps that went into it."""


def shape(whole: Timed | None, steps: list[Timed], part_of_layer: Part, part_of_gradient: Part) -> Shape:
    """The shape of `whole` by what was noted in `steps`; those that did something else are left out."""
    if whole is None:
        raise StepcastError(
            "no whole step was seen", "run a few more steps inside `with`: forward and backward passes of this model"
        )
    if not whole.ready:
        raise StepcastError("no gradient was seen", "run the backward pass inside `with`, of this model")
    forward = [[share] for share in _shares(whole.forward, whole.length)]
    ready = [[share] for share in _shares(whole.ready, whole.length)]
    used = 0
    for step in steps:
        layers = [at for at, (name, _) in enumerate(whole.forward) if part_of_layer(name) == step.part]
        gradients = [at for at, (name, _) in enumerate(whole.ready) if part_of_gradient(name) == step.part]
        same = [name for name, _ in step.forward] == [whole.forward[at][0] for at in layers]
        if same and [name for name, _ in step.ready] == [whole.ready[at][0] for at in gradients]:
            used += 1
            for found, places, noted in ((forward, layers, step.forward), (ready, gradients, step.ready)):
                for at, share in zip(places, _shares(noted, step.length), strict=True):
                    found[at].append(share)
    return Shape(_settled(whole.forward, forward), _settled(whole.ready, ready), used + 1)


def _shares(noted: list[tuple[str, float]], length: float) -> list[float]:
    return [min(1.0, since / length) if length > 0 else 0.0 for _, since in noted]


def _settled(noted: list[tuple[str, float]], shares: list[list[float]]) -> list[tuple[str, float]]:
    """The median of what each was seen at; the step in which all were noted, and which took longer by that, counts where
    there is nothing else. Nothing ends before what went before it."""
    latest, settled = 0.0, []
    for (name, _), (first, *later) in zip(noted, shares, strict=True):
        latest = max(latest, statistics.median(later or [first]))
        settled.append((name, latest))
    return settled
