"""The shape and the lengths of steps as a profile: docs/profile.md has the format."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from .shape import Shape


def record(
    shape: Shape, lengths: list[float], sizes: dict[str, int], batch: int, name: str, source: str
) -> dict[str, Any]:
    """A profile of steps of such a shape and such lengths.

    Computing covers the step: a layer's forward pass goes on from the end of the one before, a gradient's backward pass
    from the gradient before, the loss with the first of them, and what follows the last gradient (optimiser, loading
    of data) is the rest.
    """
    operations: list[dict[str, Any]] = []
    spans: list[tuple[float, float]] = []
    names: Counter[str] = Counter()
    computed = 0.0

    def add(what: str, resource: str, end: float | None, after: list[int], size: int = 0) -> int:
        nonlocal computed
        names[what] += 1
        unique = what if names[what] == 1 else f"{what} ({names[what]})"
        operation: dict[str, Any] = {"name": unique, "resource": resource}
        if size:
            operation["bytes"] = size
        if after:
            operation["after"] = after
        operations.append(operation)
        spans.append((computed, computed if end is None else max(end, computed)))
        if resource == "worker":
            computed = spans[-1][1]
        return len(operations) - 1

    gradients = [gradient for gradient, _ in shape.ready]
    weights = {gradient: add(f"{gradient}/weight", "downlink", None, [], sizes[gradient]) for gradient in gradients}
    last: list[int] = []
    for layer, end in shape.forward:
        own = [weight for gradient, weight in weights.items() if gradient.rpartition(".")[0] == layer]
        last = [add(f"{layer}/forward", "worker", end, own + last)]
    for gradient, end in shape.ready:
        last = [add(f"{gradient}/backward", "worker", end, last or list(weights.values()))]
        sent = add(gradient, "uplink", None, last, sizes[gradient])
        add(f"{gradient}/update", "server", None, [sent])
    add("rest", "worker", 1.0, last)
    return {
        "format": "stepcast-profile/1",
        "name": name,
        "source": source,
        "batch": batch,
        "operations": operations,
        "steps": [
            {
                "start": [length * start for start, _ in spans],
                "end": [length * end for _, end in spans],
                "length": length,
            }
            for length in lengths
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
