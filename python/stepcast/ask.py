"""One function for each command of the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _stepcast, results
from ._stepcast import Scenario
from .errors import InputError
from .vary import Vary, axes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import Keywords, ScenarioKeywords

Path = str | os.PathLike[str]
Source = Scenario | Path | Mapping[str, Any] | None
Changes = Mapping[str, Any] | Iterable[str] | None


def scenario_of(source: Source, set: Changes, keywords: ScenarioKeywords | Keywords) -> Scenario:
    """The scenario of a call, with overrides."""
    if not isinstance(source, Scenario):
        return Scenario(source, set=set, **keywords)
    return source.changed(set=set, **keywords) if set is not None or keywords else source


def predict(
    scenario: Source = None,
    *,
    method: str = "auto",
    workers: int | Iterable[int] | None = None,
    worth: float = 0.05,
    set: Changes = None,
    **keywords: Unpack[Keywords],
) -> results.Forecast:
    """A forecast with reasons and a scaling curve: `stepcast predict`.

    One number of `workers` changes the scenario; several are those of the scaling curve.

    >>> import stepcast
    >>> forecast = stepcast.predict(zoo="vgg16", batch=64, workers=[1, 2, 4])
    >>> [point.workers for point in forecast.scaling]
    [1, 2, 4]
    """
    asked = scenario_of(scenario, set, keywords)
    numbers = None
    if isinstance(workers, int):
        asked = asked.resized(*whole([workers], "workers"))
    elif workers is not None:
        numbers = whole(workers, "workers")
    return results.Forecast(_stepcast.predict(asked, method, numbers, worth))


def whole(numbers: Iterable[Any], key: str) -> list[int]:
    """Whole numbers of workers."""
    found = []
    for number in numbers:
        if isinstance(number, bool) or not hasattr(number, "__index__") or not 1 <= int(number) < 2**32:
            raise InputError(f"{number!r} is no number of workers", "use numbers such as [1, 2, 4, 8]", key)
        found.append(int(number))
    return found


def check(
    scenario: Source = None,
    steps: Iterable[float] = (),
    *,
    steps_left: int | None = None,
    method: str = "auto",
    set: Changes = None,
    **keywords: Unpack[ScenarioKeywords],
) -> results.Check:
    """Measured steps, in seconds, against the forecast: `stepcast check`.

    The first tenth of them, at most 50, is left out as warm-up.

    >>> import stepcast
    >>> scenario = stepcast.Scenario(zoo="resnet50", architecture="all-reduce")
    >>> stepcast.check(scenario, [stepcast.predict(scenario).iteration_s] * 20).verdict
    'as-forecast'
    """
    asked = scenario_of(scenario, set, keywords)
    return results.Check(_stepcast.check(asked, method, [float(step) for step in steps], steps_left))


def compare(
    scenario: Source = None, *, workers: int | None = None, set: Changes = None, **keywords: Unpack[Keywords]
) -> results.Comparison:
    """Every method side by side: `stepcast compare`."""
    asked = scenario_of(scenario, set, keywords)
    number = None if workers is None else whole([workers], "workers")[0]
    return results.Comparison(_stepcast.compare(asked, number))


def fuse(scenario: Source = None, *, set: Changes = None, **keywords: Unpack[ScenarioKeywords]) -> results.Fusion:
    """The best tensor fusion, and what to set in PyTorch or Horovod: `stepcast fuse`."""
    if scenario is None and set is None and not keywords:
        keywords = {"architecture": "all-reduce", "synchronisation": "bsp"}
        return results.Fusion(_stepcast.fuse(Scenario().changed(**keywords)))
    return results.Fusion(_stepcast.fuse(scenario_of(scenario, set, keywords)))


def search(
    scenario: Source = None,
    *,
    minimize: str,
    vary: Vary = (),
    subject_to: Sequence[str] = (),
    devices: Mapping[str, float | None] | Sequence[str] = (),
    count: str = "0..8",
    method: str = "auto",
    how: str | None = None,
    budget: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    set: Changes = None,
    **keywords: Unpack[Keywords],
) -> results.Search:
    """The best configuration within constraints: `stepcast search`.

    `devices` replaces the scenario's groups of workers, optionally with the price of one worker per hour; `count` is
    the range of the number of workers in each group.

    >>> import stepcast
    >>> found = stepcast.search(zoo="resnet50", minimize="iteration", vary={"batch": [16, 32, 64]})
    >>> found.best[0].values
    {'strategy.batch': '16'}
    """
    asked = scenario_of(scenario, set, keywords)
    varied = axes(vary)
    if devices:
        prices = devices if isinstance(devices, Mapping) else dict.fromkeys(devices)
        groups = [{"device": device, "price": price} for device, price in prices.items()]
        asked = asked.changed(workers=groups)
        varied = [f"cluster.workers.{place}.count={count}" for place in range(len(groups))] + varied
    if isinstance(subject_to, str):
        subject_to = [subject_to]
    return results.Search(
        _stepcast.search(asked, minimize, varied, list(subject_to), method, how, budget, seed, threads)
    )


def fit(
    what: str,
    data: Path,
    *,
    output: Path | None = None,
    force: bool = False,
    test: Path | None = None,
    device: str | None = None,
    multiprocessors: int | None = None,
    gemm: Path | None = None,
) -> results.Fit:
    """Fits coefficients to measurements: `stepcast fit`; `what` is efficiency, gemm, kernels, machine, sprint, steps or transfer."""
    return results.Fit(_stepcast.fit(what, data, output, force, test, device, multiprocessors, gemm))


def import_trace(
    files: Path | Sequence[Path],
    *,
    batch: int | None = None,
    graphs: Path | None = None,
    sizes: Mapping[str, int] | None = None,
    name: str | None = None,
    output: Path | None = None,
    max_memory: int | None = None,
) -> results.Imported:
    """A recording as a profile or a model: `stepcast import`; `max_memory` is in bytes."""
    several = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    return results.Imported(_stepcast.import_trace(several, batch, graphs, dict(sizes or {}), name, output, max_memory))


def validate(
    set: str | None = None, *, data: Path | None = None, held_out: bool = False, gemm: Path | None = None
) -> results.Validation:
    """Recomputes published figures and predicts measured runs: `stepcast validate`."""
    return results.Validation(_stepcast.validate(set, data, held_out, gemm))
