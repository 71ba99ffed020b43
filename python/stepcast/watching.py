"""A running job beside its forecast: step times as they come, and whether they are as expected."""

from __future__ import annotations

import time
from array import array
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import results
from .ask import Changes, Source, check, predict, scenario_of
from .errors import InputError, StepcastError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import Keywords


class Watch:
    """Records the times of steps and holds them against the forecast.

    A step costs two readings of the clock and one number. Everything else is computed when it is asked for.
    """

    def __init__(
        self, scenario: Source, method: str, steps: int | None, synchronise: bool, set: Changes, keywords: Keywords
    ) -> None:
        self._scenario = scenario_of(scenario, set, keywords)
        self._method = method
        self._steps = steps
        self._forecast = predict(self._scenario, method=method, workers=[])
        self._times = array("d")
        self._last: float | None = None
        self._wait = _waiting() if synchronise else None

    @property
    def forecast(self) -> results.Forecast:
        """The forecast that steps are held against."""
        return self._forecast

    @property
    def times_s(self) -> list[float]:
        """The times of all steps so far."""
        return list(self._times)

    def __len__(self) -> int:
        return len(self._times)

    def step(self) -> None:
        """Marks the end of a step. The first call only starts the clock, unless the watch was entered."""
        if self._wait is not None:
            self._wait()
        now = time.perf_counter()
        if self._last is not None:
            self._times.append(now - self._last)
        self._last = now

    __call__ = step

    def pause(self) -> None:
        """Stops the clock until the next step, for checkpoints and evaluations."""
        self._last = None

    def __enter__(self) -> Watch:
        if self._wait is not None:
            self._wait()
        self._last = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._last = None

    @property
    def check(self) -> results.Check:
        """The steps so far against the forecast: inside the interval or not, what is most likely off, and the rest."""
        if not self._times:
            raise StepcastError("no step was recorded", "call watch.step() after every step")
        left = None if self._steps is None else max(self._steps - len(self._times), 0)
        return check(self._scenario, self._times, steps_left=left, method=self._method)

    def report(self) -> str:
        """The verdict in a few lines."""
        found = self.check
        unit = f"{found.measured_s:.4g} s a step, forecast {found.forecast_s:.4g} s"
        interval = found.interval_s
        within = "" if interval is None else f" ({interval[0]:.4g} to {interval[1]:.4g} s)"
        words = {"as-forecast": "as forecast", "slower": "slower than forecast", "faster": "faster than forecast"}
        lines = [f"{words.get(found.verdict, found.verdict)}: {unit}{within}"]
        if not found.inside and found.suspects:
            suspect = found.suspects[0]
            factor = "" if suspect.factor is None else f", {suspect.factor:.2g} times what is assumed"
            lines.append(f"most likely off: {suspect.name} ({suspect.share:.0%}{factor}); {suspect.remedy}")
        if found.rest_s is not None:
            lines.append(f"the rest takes {_human(found.rest_s)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Watch of {self._scenario.name}: {len(self)} steps>"


def watch(
    model: Any = None,
    scenario: Source = None,
    *,
    method: str = "auto",
    steps: int | None = None,
    synchronise: bool = True,
    set: Changes = None,
    **keywords: Unpack[Keywords],
) -> Watch:
    """Watches a training loop beside its forecast.

    `model` is a module of PyTorch whose parameters must be those of the scenario, or none. `steps` is the number of
    steps of the whole run. With `synchronise`, a step ends when the GPU has finished it.

    >>> import stepcast
    >>> with stepcast.watch(None, "examples/quickstart.toml", steps=3) as watch:
    ...     for batch in range(3):
    ...         watch.step()
    >>> len(watch)
    3
    """
    if steps is not None and (not isinstance(steps, int) or steps < 1):
        raise InputError(f"{steps!r} is no number of steps", "use a number such as 10000", "steps")
    found = Watch(scenario, method, steps, synchronise, set, keywords)
    if model is not None:
        _compare_parameters(model, found)
    return found


def _compare_parameters(model: Any, watch: Watch) -> None:
    """Refuses a model that is not the one that is forecast: parameters differ by more than a tenth."""
    if not hasattr(model, "parameters"):
        raise InputError(f"a {type(model).__name__} has no parameters", "give a module of PyTorch, or None", "model")
    own = sum(parameter.numel() for parameter in model.parameters())
    forecast = watch._scenario.parameters
    if not 0.9 * forecast < own < 1.1 * forecast:
        reason = f"the model has {own:,} parameters, and that of the scenario {forecast:,}"
        raise InputError(reason, "give the scenario of this model", "scenario")


def _waiting() -> Any:
    """What waits for the GPU, if PyTorch has been imported and there is one."""
    import sys

    torch = sys.modules.get("torch")
    return torch.cuda.synchronize if torch is not None and torch.cuda.is_available() else None


def _human(seconds: float) -> str:
    for unit, length in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.3g} s"
