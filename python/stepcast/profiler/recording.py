"""Timed steps as a profile: docs/profile.md has the format."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ..errors import StepcastError
from .marks import Timed


def common(steps: list[Timed]) -> list[Timed]:
    """The steps that did what most of them did: layers and gradients in the same order."""
    if not steps:
        raise StepcastError(
            "no whole step was seen", "run a few more steps inside `with`: forward and backward passes of this model"
        )
    if not any(step.ready for step in steps):
        raise StepcastError("no gradient was seen", "run the backward pass inside `with`, of this model")
    (names, _), *_ = Counter(step.names for step in steps if step.ready).most_common(1)
    return [step for step in steps if step.names == names]


def record(
    steps: list[Timed], sizes: dict[str, int], batch: int, name: str, source: str, scale: float
) -> dict[str, Any]:
    """A profile of `steps`, all times multiplied by `scale`.

    Computing covers the step: a layer's forward pass goes on from the end of the one before, a gradient's backward pass
    from the gradient before, the loss with the first of them, and what follows the last gradient (optimiser, loading
    of data) is the rest.
    """
    layers, gradients = steps[0].names
    operations: list[dict[str, Any]] = []
    spans: list[list[tuple[float, float]]] = [[] for _ in steps]
    names: Counter[str] = Counter()

    def add(what: str, resource: str, ends: list[float] | None, after: list[int], size: int = 0) -> int:
        names[what] += 1
        unique = what if names[what] == 1 else f"{what} ({names[what]})"
        operation: dict[str, Any] = {"name": unique, "resource": resource}
        if size:
            operation["bytes"] = size
        if after:
            operation["after"] = after
        operations.append(operation)
        for place, step in enumerate(spans):
            now = computed[place]
            end = now if ends is None else max(ends[place], now)
            step.append((now, end))
            if resource == "worker":
                computed[place] = end
        return len(operations) - 1

    computed = [0.0 for _ in steps]
    weights = {gradient: add(f"{gradient}/weight", "downlink", None, [], sizes[gradient]) for gradient in gradients}
    last: list[int] = []
    for place, layer in enumerate(layers):
        ends = [step.forward[place][1] for step in steps]
        own = [weight for gradient, weight in weights.items() if gradient.rpartition(".")[0] == layer]
        last = [add(f"{layer}/forward", "worker", ends, own + last)]
    for place, gradient in enumerate(gradients):
        ends = [step.ready[place][1] for step in steps]
        last = [add(f"{gradient}/backward", "worker", ends, last or list(weights.values()))]
        sent = add(gradient, "uplink", None, last, sizes[gradient])
        add(f"{gradient}/update", "server", None, [sent])
    add("rest", "worker", [step.length for step in steps], last)
    return {
        "format": "stepcast-profile/1",
        "name": name,
        "source": source,
        "batch": batch,
        "operations": operations,
        "steps": [
            {
                "start": [scale * start for start, _ in step],
                "end": [scale * end for _, end in step],
                "length": scale * timed.length,
            }
            for step, timed in zip(spans, steps, strict=True)
        ],
    }


def printed(profile: dict[str, Any]) -> str:
    """One line for every operation and step."""
    head = {key: value for key, value in profile.items() if key not in ("operations", "steps")}
    lines = json.dumps(head, indent=0).rstrip("\n}") + ","
    parts = []
    for key in ("operations", "steps"):
        items = ",\n".join(json.dumps(item, separators=(",", ":")) for item in profile[key])
        parts.append(f'"{key}": [\n{items}\n]')
    return lines + "\n" + ",\n".join(parts) + "\n}\n"
