"""What the catalog names: models, devices, machines, networks, with the source of their figures."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from . import _stepcast


@dataclass(frozen=True)
class CatalogModel:
    """A network of the zoo."""

    name: str
    description: str
    parameters: int
    forward_flop: float
    """Operations of the forward pass of one sample."""
    source: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class CatalogDevice:
    """A processor or accelerator; quantities carry their units."""

    id: str
    name: str
    kind: str
    memory: str
    memory_rate: str
    source: str
    bf16: str | None = None
    float8: str | None = None
    power: str | None = None


@dataclass(frozen=True)
class CatalogMachine:
    """A machine with its devices, links and ports."""

    id: str
    name: str
    device: str
    gpus: int
    network: str
    source: str
    within: str | None = None
    ports: int | None = None


@dataclass(frozen=True)
class CatalogNetwork:
    """A network between machines, or a link within them."""

    id: str
    name: str
    bandwidth: str
    latency: str
    transport: str
    source: str


Row = TypeVar("Row")


def _listed(kind: type[Row], command: str) -> list[Row]:
    text, error, code = _stepcast.printed([command, "--json"])
    assert code == 0, error
    listed = json.loads(text)
    rows = listed if isinstance(listed, list) else [{"id": name, **figures} for name, figures in listed.items()]
    return [_row(kind, row) for row in rows]


def _row(kind: type[Row], figures: dict[str, Any]) -> Row:
    named = {key.replace("-", "_"): tuple(value) if isinstance(value, list) else value for key, value in figures.items()}
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: value for key, value in named.items() if key in known})


def models() -> list[CatalogModel]:
    """All models of the zoo: `stepcast models`.

    >>> import stepcast
    >>> next(model.parameters for model in stepcast.models() if model.name == "resnet50")
    25557032
    """
    return _listed(CatalogModel, "models")


def devices() -> list[CatalogDevice]:
    """All devices: `stepcast devices`."""
    return _listed(CatalogDevice, "devices")


def machines() -> list[CatalogMachine]:
    """All machines: `stepcast machines`."""
    return _listed(CatalogMachine, "machines")


def networks() -> list[CatalogNetwork]:
    """All networks: `stepcast networks`."""
    return _listed(CatalogNetwork, "networks")
