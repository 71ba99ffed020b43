"""Answers as a notebook shows them: a table, and the drawing below it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any


def seconds(value: float) -> str:
    """
    >>> [seconds(x) for x in (0.0000042, 0.0123, 3.2956, 43000.0)]
    ['4.2 µs', '12.3 ms', '3.296 s', '11.94 h']
    """
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (120.0, 1.0, "s"), (7200.0, 1 / 60, "min")):
        if abs(value) < limit:
            return f"{value * factor:.4g} {unit}"
    return f"{value / 3600:.4g} h"


def told(key: str, value: Any) -> tuple[str, str]:
    """A column's title and what stands below it, units spelled out.

    >>> told("iteration_s", 0.5), told("interval_samples_per_s", [1041.675, 2103.01])
    (('iteration', '500 ms'), ('interval', '1042 to 2103'))
    """
    if key.endswith("_samples_per_s"):
        key = key.removesuffix("_samples_per_s")
        if isinstance(value, (list, tuple)):
            value = " to ".join(f"{end:.4g}" for end in value)
        value = f"{value:.4g} samples/s" if isinstance(value, (int, float)) else value
    elif key.endswith("_s"):
        key = key.removesuffix("_s")
        value = seconds(value) if isinstance(value, (int, float)) else value
    elif isinstance(value, float):
        value = f"{value:.4g}"
    elif isinstance(value, (list, tuple)):
        value = ", ".join(str(item) for item in value)
    elif value is None:
        value = ""
    return key.replace("_", " "), str(value)


def table(rows: Sequence[Mapping[str, Any]], most: int = 16) -> str:
    """Rows as a table; those beyond `most` are only counted."""
    keys: list[str] = []
    for row in rows[:most]:
        keys.extend(key for key in row if key not in keys)
    keys = [key for key in keys if not any(isinstance(row.get(key), Mapping) for row in rows[:most])]
    head = "".join(f"<th>{html.escape(told(key, None)[0])}</th>" for key in keys)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(told(key, row.get(key, ''))[1])}</td>" for key in keys) + "</tr>"
        for row in rows[:most]
    )
    more = f"<p>and {len(rows) - most:,} more</p>" if len(rows) > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def page(title: str, rows: Sequence[Mapping[str, Any]], svg: str | None) -> str:
    return f"<div><h4>{html.escape(title)}</h4>{table(rows)}{svg or ''}</div>"
