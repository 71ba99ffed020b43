"""The answers: typed views of what the command line prints with `--json`, told when somebody asks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import html
from ._stepcast import Answer, Scenario
from .errors import StepcastError

if TYPE_CHECKING:
    import pandas


def to_pandas(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise StepcastError("pandas is not installed", "pip install pandas, or use to_dict()") from error
    return pandas.DataFrame(rows)


class Result:
    """An answer, as JSON, as a dictionary, as a table, as a drawing."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def to_json(self) -> str:
        """The text that the command line prints with `--json`, byte for byte."""
        return self._answer.to_json()

    @cached_property
    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.to_json())
        return told

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.to_json())
        return told

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the answer's table."""
        return [dict(self._told)]

    def to_pandas(self) -> pandas.DataFrame:
        return to_pandas(self.rows())

    def to_svg(self) -> str | None:
        """The drawing that the command line makes with `--plot`, where there is one."""
        return self._answer.to_svg()

    @property
    def _title(self) -> str:
        return f"{type(self).__name__} of {self._answer.name}"

    def _repr_html_(self) -> str:
        return html.page(self._title, self.rows(), self.to_svg())

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
        """Between what a measured throughput should lie, with 90 %."""
        interval = self._told.get("interval")
        return None if interval is None else tuple(interval["throughput_samples_per_s"])

    @property
    def method(self) -> str:
        return str(self._told["prediction"]["method"])

    @property
    def scaling_factor(self) -> float:
        return float(self._told["prediction"]["scaling_factor"])

    @property
    def bottleneck(self) -> str:
        """What limits the step."""
        return str(self._told["prediction"]["bottleneck"])

    @property
    def warnings(self) -> list[str]:
        return [warning["message"] for warning in self._told["prediction"]["warnings"]]

    @property
    def saturates_at(self) -> int | None:
        """The number of workers beyond which more of them are not worth it."""
        return self._told.get("saturates_at")

    @property
    def cost(self) -> float | None:
        """What all epochs cost, where data and prices are given."""
        training: Mapping[str, Any] = self._told.get("training") or {}
        return training.get("cost")

    @property
    def scaling(self) -> list[ScalingPoint]:
        points = []
        for row in self._told["scaling"]:
            interval = row.get("interval_samples_per_s")
            points.append(ScalingPoint(**{**row, "interval_samples_per_s": interval and tuple(interval)}))
        return points

    def rows(self) -> list[dict[str, Any]]:
        """One row for every number of workers."""
        return list(self._told["scaling"]) or [dict(self._told["prediction"])]

    def __repr__(self) -> str:
        rate = f"{self.throughput_samples_per_s:.4g} samples/s"
        return f"<{self._title}: {html.seconds(self.iteration_s)} a step, {rate}>"


class Comparison(Result):
    """Every method on one scenario."""

    @property
    def chosen(self) -> str | None:
        """The method that is taken if none is named."""
        return self._told.get("chosen")

    def rows(self) -> list[dict[str, Any]]:
        return list(self._told["rows"])


class Fusion(Result):
    """Rules of tensor fusion, and the best plan."""

    @property
    def plan(self) -> list[list[str]]:
        """Gradients of every message of the best plan."""
        return [message["gradients"] for message in self._told["plan"]]

    @property
    def gain(self) -> float:
        """Throughput of the best plan over the scenario's own rule, less one."""
        return float(self._told["lines"][-1]["gain"])

    @property
    def settings(self) -> dict[str, Any]:
        """What to set in PyTorch or Horovod."""
        return dict(self._told["settings"])

    def rows(self) -> list[dict[str, Any]]:
        """The scenario's own rule, then the others, the fastest first."""
        keys = ("rule", "messages", "iteration_s", "scaling_factor", "gain")
        first, *others = self._told["lines"]
        fastest = sorted(others, key=lambda line: float(line["iteration_s"]))
        return [{key: line[key] for key in keys} for line in (first, *fastest)]


class Search(Result):
    """The best configurations within constraints."""

    @property
    def best(self) -> list[dict[str, Any]]:
        """The best, in order; each with `values` and figures."""
        return list(self._told["best"])

    @property
    def front(self) -> list[dict[str, Any]]:
        """Those of which none is both faster and cheaper."""
        return list(self._told["front"])

    @property
    def gap(self) -> float | None:
        """How far the best may be above the optimum: 0 where nothing better exists."""
        return self._told.get("gap")

    def rows(self) -> list[dict[str, Any]]:
        figures = ({k: v for k, v in row.items() if k != "values"} for row in self.best)
        return [{**row["values"], **rest} for row, rest in zip(self.best, figures, strict=True)]


class Fit(Result):
    """A fitted artefact and its errors."""

    @property
    def artefact(self) -> str:
        """The text of the TOML file, for a device or a scenario to name."""
        return self._answer.artefact or ""

    def rows(self) -> list[dict[str, Any]]:
        return list(self._told["errors"])


class Imported(Result):
    """What a recording holds."""

    @property
    def notes(self) -> list[str]:
        """What was repaired, left out or looks odd."""
        return list(self._told["notes"])

    def scenario(
        self, *, set: Mapping[str, Any] | Iterable[str] | None = None, **keywords: Any
    ) -> Scenario:
        """A scenario of what was imported: a profile alone is trained asynchronously until changes say otherwise."""
        return self._answer.scenario(set=set, **keywords)

    def rows(self) -> list[dict[str, Any]]:
        simple = {k: v for k, v in self._told.items() if not isinstance(v, (list, dict))}
        return list(self._told.get("resources") or [simple])


class Validation(Result):
    """Published figures recomputed, measured ones predicted."""

    @property
    def holds(self) -> bool:
        """Whether all bounds are kept."""
        return bool(self._answer.holds)

    def rows(self) -> list[dict[str, Any]]:
        told = self._told
        return list(told["rows"]) if isinstance(told.get("rows"), list) else [{"set": set} for set in told]
