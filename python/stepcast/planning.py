"""The best way to split a transformer: `stepcast plan`, locally or on other machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _stepcast
from ._stepcast import Scenario
from .ask import Changes, Source, scenario_of, whole
from .errors import InputError
from .executors import Parts, run
from .results import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .keywords import Keywords, ScenarioKeywords


@dataclass(frozen=True)
class PlanEntry:
    """A plan with its figures."""

    nodes: int
    workers: int
    data: int
    micro_batches: int
    plan: Mapping[str, Any]
    """The keys of `[strategy.plan]`."""
    words: str
    step_s: float
    tokens_per_s: float
    memory: float
    """Bytes that the fullest device needs, with what the allocator may lose."""
    verdict: str
    training_s: float | None = None
    cost: float | None = None
    machine: str | None = None
    """The offer whose machines these are, if there are any."""
    precision: str | None = None
    """The number format for which it was found, if not the scenario's: a framework's."""


@dataclass(frozen=True)
class Confirmation:
    """The event engine's check of a step predicted by a closed form."""

    confirmed: bool
    """Whether both agree within 3 %."""
    step_s: float | None = None
    difference: float | None = None
    """By how much the engine's step is longer, as a share."""
    ranked: int | None = None
    """Plans that the engine ran because it did not confirm the closed form's best; this plan is the fastest of them."""
    refused: str | None = None
    """Why the engine does not run the plan."""


@dataclass(frozen=True)
class PlanStages:
    """A plan whose stages have layers and recomputation of their own."""

    entry: PlanEntry
    gain: float
    """Its saving of time or cost over the best plan with equal stages, as a share."""
    least_s: float
    """No other division of the layers over these stages has a shorter step than this."""
    confirmation: Confirmation
    toml: str
    """The plan as a section of a scenario."""


@dataclass(frozen=True)
class PlanFamily:
    """All plans that share a property."""

    property: str
    value: str
    words: str
    plans: int
    fitting: int
    chosen: bool
    more: float | None
    """Additional time or cost of its best plan over the best of all, as a share; none if no plan with it is admissible."""
    plan: str
    memory: float


@dataclass(frozen=True)
class PlanTraining:
    """A whole training run, with interruptions."""

    steps: float
    without_interruptions_s: float
    time_s: float
    goodput: float
    interruptions: float
    restart_s: float
    spares: int
    interruptions_range: tuple[float, float] | None = None
    goodput_range: tuple[float, float] | None = None
    time_range_s: tuple[float, float] | None = None
    slow_machines: float | None = None
    between_interruptions_s: float | None = None
    checkpoints: Mapping[str, float] | None = None
    spares_suffice: float | None = None
    recommended_spares: int | None = None
    cost: float | None = None
    cost_range: tuple[float, float] | None = None
    energy: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Experiment:
    """A measurement before an offer is taken."""

    kind: str
    """`gpu`, `collectives`, `two-machines` or `eighth`."""
    machines: str
    time_s: float
    price: float
    value: float
    """Mean reduction of the loss by choosing after it."""
    error: float
    command: str
    choices: tuple[Mapping[str, Any], ...]
    """What would be chosen after it: `machines`, `chance`, `factor` on the forecast of the offer that is the best now, `saving`."""

    @property
    def gain(self) -> float:
        """The value less the price."""
        return self.value - self.price


@dataclass(frozen=True)
class Advice:
    """Advice on what to measure before taking one of several offers: `stepcast advise`."""

    candidates: tuple[Mapping[str, Any], ...]
    """The offers, cheapest expected cost first."""
    regret: float
    """What is lost on average by taking the first of them instead of the one that turns out the cheapest."""
    experiments: tuple[Experiment, ...]
    """The one with the largest gain first."""
    currency: str

    @property
    def best(self) -> Experiment | None:
        """The experiment to make first; none if none is worth its price."""
        first = self.experiments[0] if self.experiments else None
        return first if first is not None and first.gain > first.error else None


class Plan(Result):
    """The best plan, what else is worth having, and what every property costs."""

    @property
    def best(self) -> PlanEntry:
        return PlanEntry(**self._data["best"])

    @property
    def assumed_prices(self) -> list[dict[str, object]]:
        """Prices that nobody gave: offer, node_hour, range, date and source of each."""
        return list(self._data.get("assumed_prices", []))

    @property
    def training(self) -> PlanTraining | None:
        """The training with the best plan, if tokens are given."""
        found = self._data.get("training")
        if found is None:
            return None
        ranges = {key: tuple(value) for key, value in found.items() if isinstance(value, list)}
        return PlanTraining(**{**found, **ranges})

    @property
    def confirmation(self) -> Confirmation:
        """The event engine on the best plan."""
        return Confirmation(**self._data["confirmation"])

    @property
    def stages(self) -> PlanStages | None:
        """Layers and recomputation stage by stage, where that is better than the best plan with equal stages."""
        found = self._data.get("stages")
        if found is None:
            return None
        own = {"entry": PlanEntry(**found["entry"]), "confirmation": Confirmation(**found["confirmation"])}
        return PlanStages(**{**found, **own})

    @property
    def front(self) -> list[PlanEntry]:
        """Plans of which none is better in time, cost and memory at once, the fastest first."""
        return [PlanEntry(**entry) for entry in self._data["front"]]

    @property
    def families(self) -> list[PlanFamily]:
        """What every property costs."""
        return [PlanFamily(**family) for family in self._data["families"]]

    @property
    def counts(self) -> dict[str, int]:
        """How many plans were looked at."""
        return dict(self._data["counts"])

    @property
    def advice(self) -> Advice | None:
        """What to measure before an offer is taken, where several are compared by cost."""
        found = self._data.get("advice")
        if found is None:
            return None
        experiments = tuple(Experiment(**{**own, "choices": tuple(own["choices"])}) for own in found["experiments"])
        return Advice(**{**found, "candidates": tuple(found["candidates"]), "experiments": experiments})

    @property
    def settings(self) -> list[dict[str, object]]:
        """Settings of the recipe that was planned: `name`, and its value in the `scenario` and in the `best` plan."""
        return list(self._data.get("settings", []))

    @property
    def toml(self) -> str:
        """The best plan as a section of a scenario."""
        return str(self._data["toml"])

    def emit(self, framework: str) -> str:
        """The best plan for megatron, torchtitan, deepspeed or fsdp, or as settings of a recipe for axolotl, llama-factory, torchtune
        or trl: `stepcast plan --emit`."""
        return self._answer.emit(framework)

    def scenario(self, *, set: Changes = None, **keywords: Unpack[ScenarioKeywords]) -> Scenario:
        """The scenario with the best plan on its machines, for `predict` and `watch`."""
        return self._answer.scenario(set=set, **keywords)

    def rows(self) -> list[dict[str, Any]]:
        """One row for every plan of the front."""
        return [{key: value for key, value in entry.items() if key != "plan"} for entry in self._data["front"]]

    def __repr__(self) -> str:
        best = self.best
        workers = "1 worker" if best.workers == 1 else f"{best.workers} workers"
        return f"<{self._title}: {best.words} on {workers}, {best.step_s:.3g} s a step>"


def offer_of(offer: str | Mapping[str, Any]) -> dict[str, Any]:
    """An offer as a table of `[[plan.offers]]`."""
    return {"machine": offer} if isinstance(offer, str) else dict(offer)


def plan(
    scenario: Source = None,
    *,
    minimize: str = "time",
    offers: Iterable[str | Mapping[str, Any]] | None = None,
    nodes: int | Iterable[int] | None = None,
    global_batch: int | None = None,
    tokens: float | None = None,
    deadline: str | None = None,
    budget: float | None = None,
    may_fit: bool | None = None,
    threads: int | None = None,
    executor: Any = None,
    set: Changes = None,
    **keywords: Unpack[Keywords],
) -> Plan:
    """The best of all valid plans of a transformer: `stepcast plan`.

    `offers` are machines to choose from: names from `stepcast machines`, or mappings with the keys of `[[plan.offers]]`.
    `executor` searches kinds and numbers of machines elsewhere: an executor of `concurrent.futures`, a Dask `Client` or the
    module `ray`. The answer is the same, byte for byte. `threads` is the number of threads of each worker.

    >>> import stepcast
    >>> found = stepcast.plan(zoo="llama3-8b", machine="dgx-h100", nodes=[1, 2], global_batch=64)
    >>> found.best.workers
    16
    """
    bounds = {
        "offers": None if offers is None else [offer_of(offer) for offer in offers],
        "nodes": None if nodes is None else whole([nodes] if isinstance(nodes, int) else nodes, "nodes"),
        "global-batch": global_batch,
        "tokens": None if tokens is None else float(tokens),
        "deadline": deadline,
        "budget": None if budget is None else float(budget),
        "may-fit": may_fit,
    }
    asked = scenario_of(scenario, set, keywords)
    given = {f"plan.{key}": value for key, value in bounds.items() if value is not None}
    search = _stepcast.PlanSearch(asked.changed(set=given) if given else asked, minimize)
    if executor is None:
        parts = [search.part(place, threads) for place in range(search.parts)]
    else:
        lines = run(executor, Parts.of(search, minimize, threads), 0, search.parts, 1)
        parts = [line.decode() for line, _ in lines]
    return Plan(search.join(parts))


def advise(scenario: Source = None, **keywords: Any) -> Advice:
    """What to measure before one of several offers is taken: `stepcast advise`. Takes what `plan` takes.

    >>> import stepcast
    >>> offers = [{"machine": "p4d-24xlarge", "node-hour": 22.0}, {"machine": "p5-48xlarge", "node-hour": 55.0}]
    >>> advice = stepcast.advise(zoo="llama3-8b", machine="p5-48xlarge", offers=offers, nodes=[4], tokens=1e9)
    >>> len(advice.candidates), advice.best is None
    (2, True)
    """
    found = plan(scenario, minimize="cost", **keywords).advice
    if found is None:
        raise InputError("there is nothing to choose", "give several offers or nodes, their prices, and tokens", "offers")
    return found
