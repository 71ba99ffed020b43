"""Results as HTML for notebooks: tables, and the plot below them.

Most tables come from the extension, which also builds them for the command line; those of sweeps and validations are
built here.
"""

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


def number(value: float) -> str:
    """
    >>> [number(x) for x in (0.12345, 3.0, 822.06, 13032.4, 1e12)]
    ['0.1235', '3', '822.1', '13,030', '1e+12']
    """
    return f"{float(f'{value:.4g}'):,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"


SHARES = ("gain", "scaling_factor")
"""Keys whose values are shown in percent."""


TITLES = {"iteration_s": "step time"}
"""Columns that are not named like their keys."""


def cell(key: str, value: Any) -> tuple[str, str]:
    """A column's title and the text of one of its cells, with units.

    >>> cell("iteration_s", 0.5), cell("interval_samples_per_s", [1041.675, 2103.01]), cell("gain", -0.0314)
    (('step time', '500 ms'), ('interval', '1,042–2,103'), ('gain', '-3.1 %'))
    """
    title = TITLES.get(key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if key.endswith("_samples_per_s"):
        key = key.removesuffix("_samples_per_s")
        if isinstance(value, (list, tuple)):
            value = "–".join(number(end) for end in value)
        value = f"{number(value)} samples/s" if is_number else value
    elif key.endswith("_s"):
        key = key.removesuffix("_s")
        value = seconds(value) if is_number else value
    elif key in SHARES and is_number:
        value = f"{100 * value:.1f} %"
    elif isinstance(value, float):
        value = number(value)
    elif isinstance(value, (list, tuple)):
        value = ", ".join(str(item) for item in value)
    return title or key.replace("_", " "), "" if value is None else str(value)


def table(rows: Sequence[Mapping[str, Any]], most: int = 16) -> str:
    """A table of at most `most` rows; the number of further rows is given below it."""
    keys: list[str] = []
    for row in rows[:most]:
        keys.extend(key for key in row if key not in keys)
    keys = [key for key in keys if not any(isinstance(row.get(key), Mapping) for row in rows[:most])]
    # The index of a point is useful to programs only.
    keys = [key for key in keys if key != "index"]
    head = "".join(f"<th>{html.escape(cell(key, None)[0])}</th>" for key in keys)
    body = "".join("<tr>" + "".join(_cell(cell(key, row.get(key))[1]) for key in keys) + "</tr>" for row in rows[:most])
    more = f"<p>and {len(rows) - most:,} more</p>" if len(rows) > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(text: str) -> str:
    style = " style='white-space: nowrap'" if len(text) < 32 else ""
    return f"<td{style}>{html.escape(text)}</td>"


def page(title: str, tables: str, svg: str | None) -> str:
    """A title, tables as HTML, and a plot."""
    return f"<div><h4>{html.escape(title)}</h4>{tables}{svg or ''}</div>"
