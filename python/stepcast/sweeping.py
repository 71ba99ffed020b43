"""Predictions for every combination of values: `stepcast sweep`, locally or on other machines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _stepcast, html
from .ask import Changes, Path, Source, scenario_of
from .errors import InputError
from .executors import Rows, run
from .results import to_pandas
from .vary import Vary, axes

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from .keywords import ScenarioKeywords

MOST_POINTS = 10_000_000
"""Most points without a limit, as on the command line."""

CHUNK = 512
"""Points that travel together."""

FIRST, LARGEST, BRIEF_S = 256, 131_072, 0.25
"""Points that are predicted here at a time: twice as many as before for as long as that takes no time."""


class Sweep:
    """The rows of a sweep, in order."""

    def __init__(self, asked: _stepcast.Sweep, chunks: list[bytes], file: str | None, points: int) -> None:
        self._asked, self._chunks, self._file, self._points = asked, chunks, file, points

    def __len__(self) -> int:
        return self._points

    @property
    def keys(self) -> list[str]:
        """The full names of the varied keys."""
        return self._asked.keys

    @property
    def methods(self) -> list[str]:
        """The methods that predict points: one, unless no method models all of them."""
        return self._asked.methods

    @property
    def file(self) -> str | None:
        """The file that the rows were written to, if any."""
        return self._file

    def to_jsonl(self) -> bytes:
        """One JSON object per line: the output of the command line with `--json`, byte for byte."""
        if self._file is None:
            return b"".join(self._chunks)
        return self._asked.rows(0, self._points, "jsonl")

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row as a dictionary."""
        for line in self.to_jsonl().splitlines():
            yield json.loads(line)

    def to_dict(self) -> dict[str, Any]:
        return {"vary": self._asked.vary, "rows": list(self.rows())}

    def to_pandas(self) -> pandas.DataFrame:
        return to_pandas(list(self.rows()))

    def to_svg(self) -> str | None:
        """The plot over one or two varied keys, if there are no more."""
        rate = "throughput_samples_per_s"
        return self._asked.to_svg([(row[rate], row["fits"]) if rate in row else None for row in self.rows()])

    def _repr_html_(self) -> str:
        return html.page(f"Sweep of {self._asked.name}", html.table(list(self.rows())), self.to_svg())

    def __repr__(self) -> str:
        return f"<Sweep of {self._asked.name}: {self._points:,} points over {', '.join(self.keys)}>"


def sweep(
    scenario: Source = None,
    vary: Vary = (),
    *,
    method: str = "auto",
    limit: int | None = None,
    output: Path | None = None,
    resume: bool = False,
    force: bool = False,
    threads: int | None = None,
    executor: Any = None,
    chunk: int = CHUNK,
    set: Changes = None,
    **keywords: Unpack[ScenarioKeywords],
) -> Sweep:
    """A prediction for every combination of values; the last key changes fastest.

    `executor` runs chunks of points elsewhere: an executor of `concurrent.futures`, a Dask `Client` or the module
    `ray`; the rows are the same bytes. `threads` is the number of threads of each worker. With
    `output` (.csv or .jsonl) rows are appended in order to a file that survives Ctrl-C and is completed with
    `resume=True`.

    >>> import stepcast
    >>> swept = stepcast.sweep("examples/quickstart.toml", {"batch": [16, 32], "servers.count": range(1, 5)})
    >>> len(swept), swept.keys
    (8, ['strategy.batch', 'cluster.servers.count'])
    >>> next(swept.rows())["workers"]
    3
    """
    texts = axes(vary)
    if not texts:
        raise InputError("nothing varies", 'name keys and values: vary={"batch": [16, 32]}', "vary")
    asked = _stepcast.Sweep(scenario_of(scenario, set, keywords), texts, method)
    points = _points(asked, limit)
    format, file = "jsonl", None
    if output is not None:
        format = os.fspath(output).rpartition(".")[2]
        file = _stepcast.SweepFile(asked, output, format, resume, force)
    since = min(file.rows, points) if file else 0
    if executor is None:
        found = _here(asked, since, points, format, threads)
    else:
        if not isinstance(chunk, int) or chunk < 1:
            raise InputError(f"a chunk has at least one point, not {chunk!r}", "use a number such as 512", "chunk")
        found = run(executor, Rows.of(asked, format, threads), since, points, chunk)
    chunks = []
    for rows, count in found:
        if file:
            file.append(rows, count)
        else:
            chunks.append(rows)
    return Sweep(asked, chunks, None if output is None else os.fspath(output), points)


def _points(asked: _stepcast.Sweep, limit: int | None) -> int:
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise InputError(f"a limit is a number from 1 on, not {limit!r}", "leave it out for all points", "limit")
    if limit is None and asked.points > MOST_POINTS:
        reason = f"the sweep has {asked.points:,} points"
        raise InputError(reason, "vary fewer values, or set limit=1_000_000 for only the first million", "vary")
    return asked.points if limit is None else min(limit, asked.points)


def _here(
    asked: _stepcast.Sweep, since: int, points: int, format: str, threads: int | None
) -> Iterator[tuple[bytes, int]]:
    size = FIRST
    while since < points:
        until = min(since + size, points)
        begun = time.monotonic()
        yield asked.rows(since, until, format, threads), until - since
        if time.monotonic() - begun < BRIEF_S:
            size = min(2 * size, LARGEST)
        since = until
