"""A running job beside its forecast: step times as they come, and whether they are as expected."""

from __future__ import annotations

import gc
import os
import socket
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _stepcast, results
from .ask import Changes, Source, check, predict, scenario_of
from .errors import InputError, StepcastError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import Keywords

BLOCK = 10
"""Steps after which a contract is looked at."""


class Watch:
    """Records the times of steps and holds them against the forecast.

    A step costs two readings of the clock and one number. Everything else is computed when it is asked for.
    """

    def __init__(
        self,
        scenario: Source,
        method: str,
        steps: int | None,
        synchronise: bool,
        contract: str | os.PathLike[str] | None,
        record: str | os.PathLike[str] | None,
        set: Changes,
        keywords: Keywords,
    ) -> None:
        self._scenario = scenario_of(scenario, set, keywords)
        self._method = method
        self._steps = steps
        self._forecast = predict(self._scenario, method=method, workers=[])
        self._times = array("d")
        self._last: float | None = None
        self._wait = _waiting() if synchronise else None
        self._terms = None if contract is None else Path(contract).read_text(encoding="utf-8")
        self.verdict: str | None = None
        """`kept` or `broken` once the sequential test of the contract has ended."""
        self._record = None if record is None else _Recorder(Path(record))

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
            if self._record is not None:
                self._record.add(len(self._times), now - self._last)
            if self._terms is not None and self.verdict is None and len(self._times) % BLOCK == 0:
                self._judge(self._terms)
        self._last = now

    def _judge(self, terms: str) -> None:
        """Asks whether the contract is kept, without the first ten steps."""
        found = _stepcast.acceptance(terms, self._times[BLOCK:]) if len(self._times) > BLOCK else "open"
        if found != "open":
            self.verdict = found

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Around the wait for the next batch: counted as loading of data in the recording of this rank."""
        yield from self._counted("data")

    @contextmanager
    def communicating(self) -> Iterator[None]:
        """Around collectives that the host waits for: counted as communication in the recording of this rank."""
        yield from self._counted("communication")

    def _counted(self, part: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        if self._record is not None:
            self._record.parts[part] += time.perf_counter() - began

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
        if self._record is not None:
            self._record.close()

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


class _Recorder:
    """Writes the steps of this rank as a table that `stepcast check` reads: one file for each rank in a folder."""

    def __init__(self, folder: Path) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"rank{self.rank}.csv").open("w", encoding="utf-8")
        self._file.write("rank,step,step-time,communication,data,pause,machine\n")
        self._machine = socket.gethostname()
        self.parts = {"communication": 0.0, "data": 0.0, "pause": 0.0}
        self._collecting = 0.0
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, _: Any) -> None:
        if phase == "start":
            self._collecting = time.perf_counter()
        else:
            self.parts["pause"] += time.perf_counter() - self._collecting

    def add(self, step: int, seconds: float) -> None:
        parts = ",".join(f"{self.parts[name]:.6f}" for name in ("communication", "data", "pause"))
        self._file.write(f"{self.rank},{step},{seconds:.6f},{parts},{self._machine}\n")
        self.parts = dict.fromkeys(self.parts, 0.0)

    def close(self) -> None:
        if self._collected in gc.callbacks:
            gc.callbacks.remove(self._collected)
        self._file.close()


def watch(
    model: Any = None,
    scenario: Source = None,
    *,
    method: str = "auto",
    steps: int | None = None,
    synchronise: bool = True,
    contract: str | os.PathLike[str] | None = None,
    record: str | os.PathLike[str] | None = None,
    set: Changes = None,
    **keywords: Unpack[Keywords],
) -> Watch:
    """Watches a training loop beside its forecast.

    `model` is a module of PyTorch whose parameters must be those of the scenario, or none. `steps` is the number of
    steps of the whole run. With `synchronise`, a step ends when the GPU has finished it.

    `contract` is a file that `stepcast contract` wrote; every ten steps, `verdict` says whether its sequential test has ended:
    give it on rank 0 alone. `record` is a folder that gets a table of the steps of each rank, with pauses of the garbage
    collector and what `loading` and `communicating` enclose; `stepcast check --measured FOLDER` then says who is slow.

    >>> import stepcast
    >>> with stepcast.watch(None, "examples/quickstart.toml", steps=3) as watch:
    ...     for batch in range(3):
    ...         watch.step()
    >>> len(watch)
    3
    """
    if steps is not None and (not isinstance(steps, int) or steps < 1):
        raise InputError(f"{steps!r} is no number of steps", "use a number such as 10000", "steps")
    found = Watch(scenario, method, steps, synchronise, contract, record, set, keywords)
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
