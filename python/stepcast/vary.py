"""Keys and their values, in the notation of `--vary`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .errors import InputError

Vary = Mapping[str, Any] | Sequence[str] | str


def axes(vary: Vary) -> list[str]:
    """
    >>> axes({"batch": [16, 32], "workers.count": range(1, 65), "network.bandwidth": "1Gbit/s,10Gbit/s"})
    ['batch=16,32', 'workers.count=1..64', 'network.bandwidth=1Gbit/s,10Gbit/s']
    >>> axes({"batch": range(8, 65, 8)})
    ['batch=8..64:8']
    """
    if isinstance(vary, str):
        return [vary]
    if isinstance(vary, Mapping):
        return [f"{key}={_values(key, values)}" for key, values in vary.items()]
    texts = list(vary)
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"{text!r} is no axis", 'write "batch=16,32", or use a dict', "vary")
    return texts


def _values(key: str, values: Any) -> str:
    if isinstance(values, str):
        return values
    if isinstance(values, range) and len(values) > 1 and values.step > 0:
        step = f":{values.step}" if values.step > 1 else ""
        return f"{values[0]}..{values[-1]}{step}"
    if not isinstance(values, Iterable):
        values = [values]
    return ",".join(_value(key, value) for value in values)


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{value} is no number to compute with", "use finite numbers", key)
    if isinstance(value, (str, int, float)) or hasattr(value, "__index__") or hasattr(value, "__float__"):
        return str(value)
    raise InputError(f"a {type(value).__name__} is no value of a scenario", "use str, int, float or bool", key)
