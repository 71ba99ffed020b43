"""How a module is split over ranks, as its parameters tell it: keys of `[strategy.plan]`, and the process groups behind them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ROLES = {
    "tensor": ("tp", "tensor"),
    "context": ("cp", "context"),
    "pipeline": ("pp", "pipe"),
    "expert": ("ep", "expert"),
    "data": ("dp", "data", "fsdp", "shard", "replica"),
}


@dataclass
class Split:
    """The plan of a job, seen from one of its ranks."""

    ranks: int = 1
    """All ranks of the job."""
    plan: dict[str, Any] = field(default_factory=dict)
    """Keys of `[strategy.plan]`."""
    groups: list[tuple[str, str, int]] = field(default_factory=list)
    """Process groups of this rank: name of the dimension of the mesh, what it divides, ranks."""

    @property
    def is_whole(self) -> bool:
        """Whether this rank holds the whole module."""
        return not any(self.plan.get(key, 1) > 1 for key in ("tensor", "context", "pipeline", "expert")) and (
            self.plan.get("sharding", "none") == "none"
        )


def split(module: Any, given: Mapping[str, Any]) -> Split:
    """What the meshes of sharded parameters, FSDP and DistributedDataParallel tell, and what is `given` beside.

    Ranks that none of these explains are stages of a pipeline where replicas are known, and replicas where they are not.
    """
    found = Split(ranks=_world())
    sharded = _sharded_modules(module)
    sizes: dict[str, tuple[str, int]] = {}
    replicas = shards = 1
    for parameter in module.parameters():
        mesh, placements = getattr(parameter, "device_mesh", None), getattr(parameter, "placements", None)
        if mesh is None or placements is None:
            continue
        shape = tuple(int(size) for size in mesh.shape)
        for place, (size, placement) in enumerate(zip(shape, placements, strict=True)):
            name, role = _role(mesh, place, len(shape), bool(sharded))
            if size > sizes.get(name, ("", 0))[1]:
                sizes[name] = (role, size)
            if role == "data" and type(placement).__name__ == "Replicate":
                replicas = max(replicas, size)
            elif role == "data":
                shards = max(shards, size)
    found.groups = [(name, role, size) for name, (role, size) in sizes.items()]
    for name, role, size in found.groups:
        found.plan[role] = found.plan.get(role, 1) * size
    if sharded:
        found.plan["sharding"] = "hsdp" if replicas > 1 else _kept(sharded)
        if replicas > 1:
            found.plan["sharding-group"] = shards
    elif type(module).__name__ == "DistributedDataParallel":
        size = int(module.process_group.size())
        found.plan["data"], found.groups = size, [*found.groups, ("data", "data", size)]
    found.plan |= given
    divided = 1
    for key in ("tensor", "context", "pipeline", "data"):
        divided *= found.plan.get(key, 1)
    rest = next((key for key in ("data", "pipeline") if key not in found.plan), None)
    if rest and found.groups and divided < found.ranks and found.ranks % divided == 0:
        found.plan[rest] = found.ranks // divided
    return found


def speed_of(step_s: Callable[[float], float], measured_s: float) -> float:
    """The speed of computing at which a step takes as long as measured, between a hundredth and a hundred times.

    A step gets shorter with the speed, so the interval that holds it is halved until it is known to a thousandth. A step that
    waits for its links at any speed leaves the speed at an end of the interval.
    """
    low, high = 0.01, 100.0
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if step_s(middle) > measured_s else (low, middle)
    return math.sqrt(low * high)


def _world() -> int:
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())


def _sharded_modules(module: Any) -> list[Any]:
    """Those that `fully_shard` was called on: their class is named after it."""
    return [each for each in module.modules() if type(each).__name__.startswith("FSDP")]


def _role(mesh: Any, place: int, dimensions: int, is_sharded: bool) -> tuple[str, str]:
    """Name of a dimension of a mesh and what it divides; without a name FSDP's come first, as PyTorch's examples have them."""
    names = getattr(mesh, "mesh_dim_names", None)
    if names:
        name = str(names[place])
        for role, words in ROLES.items():
            if any(part.startswith(words) for part in name.lower().replace("-", "_").split("_")):
                return name, role
    else:
        name = f"dimension {place} of {dimensions}"
    return name, "data" if is_sharded and (dimensions == 1 or place < dimensions - 1) else "tensor"


def _kept(sharded: list[Any]) -> str:
    """Whether weights stay whole between the forward and the backward pass in most modules."""
    kept = dropped = 0
    for module in sharded[1:] or sharded:
        state = module._get_fsdp_state() if hasattr(module, "_get_fsdp_state") else None
        group = getattr(state, "_fsdp_param_group", None)
        if group is None:
            continue
        if getattr(group, "post_forward_mesh_info", None) is None:
            kept += 1
        else:
            dropped += 1
    return "fsdp-keep" if kept > dropped else "zero-3"
