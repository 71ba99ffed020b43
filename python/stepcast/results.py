"""The results: typed views of the command line's `--json` output, converted on demand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import html
from ._stepcast import Answer, Scenario
from .errors import StepcastError

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Unpack

    from .keywords import Keywords


def to_pandas(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise StepcastError("pandas is not installed", "pip install pandas, or use to_dict()") from error
    return pandas.DataFrame(rows)


class Result:
    """A result as JSON, as a dictionary, as a table, as a plot."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def to_json(self) -> str:
        """The text that the command line prints with `--json`, byte for byte."""
        return self._answer.to_json()

    @cached_property
    def _data(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the result's table."""
        return [dict(self._data)]

    def to_pandas(self) -> pandas.DataFrame:
        return to_pandas(self.rows())

    def to_svg(self) -> str | None:
        """The plot that the command line makes with `--plot`, if there is one."""
        return self._answer.to_svg()

    @property
    def _title(self) -> str:
        return f"{type(self).__name__} of {self._answer.name}"

    def _repr_html_(self) -> str:
        tables = self._answer.to_html()
        return html.page(self._title, html.table(self.rows()) if tables is None else tables, self.to_svg())

    def __repr__(self) -> str:
        return f"<{self._title}>"


@dataclass(frozen=True)
class ScalingPoint:
    """One number of workers."""

    workers: int
    iteration_s: float
    throughput_samples_per_s: float
    speedup: float
    scaling_factor: float
    bottleneck: str
    interval_samples_per_s: tuple[float, float] | None = None


class Forecast(Result):
    """A prediction with its reasons and its scaling curve."""

    @property
    def iteration_s(self) -> float:
        """Time of one step."""
        step = self._answer.step
        assert step is not None
        return step[0]

    @property
    def throughput_samples_per_s(self) -> float:
        """Samples per second of the whole cluster."""
        step = self._answer.step
        assert step is not None
        return step[1]

    @property
    def interval_samples_per_s(self) -> tuple[float, float] | None:
        """The 90 % interval of the throughput."""
        interval = self._data.get("interval")
        return None if interval is None else tuple(interval["throughput_samples_per_s"])

    @property
    def method(self) -> str:
        return str(self._data["prediction"]["method"])

    @property
    def scaling_factor(self) -> float:
        return float(self._data["prediction"]["scaling_factor"])

    @property
    def bottleneck(self) -> str:
        """The bottleneck of the step."""
        return str(self._data["prediction"]["bottleneck"])

    @property
    def warnings(self) -> list[str]:
        return [warning["message"] for warning in self._data["prediction"]["warnings"]]

    @property
    def saturates_at(self) -> int | None:
        """The number of workers beyond which the throughput hardly grows."""
        return self._data.get("saturates_at")

    @property
    def cost(self) -> float | None:
        """The cost of all epochs, where data and prices are given."""
        training: Mapping[str, Any] = self._data.get("training") or {}
        return training.get("cost")

    @property
    def scaling(self) -> list[ScalingPoint]:
        points = []
        for row in self._data["scaling"]:
            interval = row.get("interval_samples_per_s")
            points.append(ScalingPoint(**{**row, "interval_samples_per_s": interval and tuple(interval)}))
        return points

    def rows(self) -> list[dict[str, Any]]:
        """One row for every number of workers."""
        return list(self._data["scaling"]) or [dict(self._data["prediction"])]

    def __str__(self) -> str:
        """The answer as `stepcast predict` prints it."""
        return (self._answer.to_text() or repr(self)).rstrip()

    def __repr__(self) -> str:
        return f"<{self._title}: {self._answer.headline}>"


@dataclass(frozen=True)
class Suspect:
    """An assumption that may be off."""

    name: str
    share: float
    """Probability that it is the cause: its share of the variance of the forecast."""
    remedy: str
    remedies: list[dict[str, Any]]
    """What to do about it as data: alternatives, the best first."""
    factor: float | None = None
    """The factor on its figures that would explain the whole difference."""


class Check(Result):
    """Measured steps against their forecast."""

    @property
    def verdict(self) -> str:
        """`as-forecast`, `slower` or `faster` than the 90 % interval."""
        return str(self._data["verdict"])

    @property
    def inside(self) -> bool:
        """Whether the measured steps lie inside the interval."""
        return self.verdict == "as-forecast"

    @property
    def measured_s(self) -> float:
        """The median of the measured steps."""
        return float(self._data["measured_s"])

    @property
    def forecast_s(self) -> float:
        return float(self._data["forecast_s"])

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """The 90 % interval of the forecast."""
        interval = self._data.get("interval_s")
        return None if interval is None else (float(interval[0]), float(interval[1]))

    @property
    def ratio(self) -> float:
        """Measured over forecast."""
        return float(self._data["ratio"])

    @property
    def corrected_s(self) -> float:
        """The forecast after all assumptions have been updated by the measurement."""
        return float(self._data["corrected_s"])

    @property
    def suspects(self) -> list[Suspect]:
        """Assumptions that may be off, the most likely first."""
        return [Suspect(**suspect) for suspect in self._data["suspects"]]

    @property
    def rest_s(self) -> float | None:
        """What the rest of the run takes, if its number of steps is known."""
        rest: Mapping[str, Any] | None = self._data.get("rest")
        return None if rest is None else float(rest["time_s"])

    def rows(self) -> list[dict[str, Any]]:
        """One row for every assumption that may be off."""
        return list(self._data["suspects"])

    def __repr__(self) -> str:
        return f"<{self._title}: {self.verdict}, {self.ratio:.2f} times the forecast>"


class Comparison(Result):
    """Every method on one scenario."""

    @property
    def chosen(self) -> str | None:
        """The method that `auto` selects."""
        return self._data.get("chosen")

    def rows(self) -> list[dict[str, Any]]:
        return list(self._data["rows"])


class Fusion(Result):
    """Rules of tensor fusion, and the best plan."""

    @property
    def plan(self) -> list[list[str]]:
        """The gradients of each message of the best plan."""
        return [message["gradients"] for message in self._data["plan"]]

    @property
    def gain(self) -> float:
        """The relative gain in throughput of the best plan over the scenario's own rule."""
        return float(self._data["lines"][-1]["gain"])

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of PyTorch and Horovod for the best plan."""
        return dict(self._data["settings"])

    def rows(self) -> list[dict[str, Any]]:
        """The scenario's own rule, then the others, the fastest first."""
        keys = ("rule", "messages", "iteration_s", "scaling_factor", "gain")
        first, *others = self._data["lines"]
        fastest = sorted(others, key=lambda line: float(line["iteration_s"]))
        return [{key: line[key] for key in keys} for line in (first, *fastest)]


@dataclass(frozen=True)
class SearchEntry:
    """One configuration of a search, with its figures."""

    index: int
    values: Mapping[str, str]
    """The varied keys and their values."""
    value: float
    """That of the objective, in seconds and units of currency."""
    method: str
    workers: int
    nodes: int
    iteration_s: float
    throughput_samples_per_s: float
    compute_s: float
    scaling_factor: float
    fits: bool
    bottleneck: str
    warnings: Sequence[str] = ()
    interval_samples_per_s: Sequence[float] | None = None
    update_s: float | None = None
    epoch_s: float | None = None
    training_s: float | None = None
    cost: float | None = None
    staleness: float | None = None
    minibatch: float | None = None
    kernels: Sequence[Mapping[str, Any]] = ()


class Search(Result):
    """The best configurations within constraints."""

    @property
    def best(self) -> list[SearchEntry]:
        """The best configurations, in order."""
        return [SearchEntry(**row) for row in self._data["best"]]

    @property
    def front(self) -> list[SearchEntry]:
        """The Pareto front of time and cost."""
        return [SearchEntry(**row) for row in self._data["front"]]

    @property
    def gap(self) -> float | None:
        """The share by which the best may exceed the optimum: 0 if no better configuration exists."""
        return self._data.get("gap")

    def rows(self) -> list[dict[str, Any]]:
        figures = ({k: v for k, v in row.items() if k != "values"} for row in self._data["best"])
        return [{**row["values"], **rest} for row, rest in zip(self._data["best"], figures, strict=True)]


class Fit(Result):
    """A fitted artefact and its errors."""

    @property
    def artefact(self) -> str:
        """The text of the TOML file, for a device or a scenario to name."""
        return self._answer.artefact or ""

    def rows(self) -> list[dict[str, Any]]:
        return list(self._data["errors"])


class Imported(Result):
    """The contents of a recording."""

    @property
    def notes(self) -> list[str]:
        """Notes about parts that were repaired, left out or look odd."""
        return list(self._data["notes"])

    def scenario(
        self, *, set: Mapping[str, Any] | Iterable[str] | None = None, **keywords: Unpack[Keywords]
    ) -> Scenario:
        """A scenario with the imported profile or model; a profile alone is trained asynchronously by default."""
        return self._answer.scenario(set=set, **keywords)

    def rows(self) -> list[dict[str, Any]]:
        simple = {k: v for k, v in self._data.items() if not isinstance(v, (list, dict))}
        return list(self._data.get("resources") or [simple])


class Validation(Result):
    """Comparison of recomputed figures with published ones, and of predictions with measurements."""

    @property
    def holds(self) -> bool:
        """Whether all errors are within their bounds."""
        return bool(self._answer.holds)

    def rows(self) -> list[dict[str, Any]]:
        data = self._data
        return list(data["rows"]) if isinstance(data.get("rows"), list) else [{"set": set} for set in data]
