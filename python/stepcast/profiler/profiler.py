"""Hooks on a PyTorch module while somebody trains it.

Steps alternate in blocks: in some, the end of every layer's forward pass and the moment at which each gradient is ready
are noted; in the others nothing but the start of the step. What noting costs is the difference, and the profile is
scaled to the steps without it. PyTorch is asked through the module itself and is not needed to import Stepcast.
"""

from __future__ import annotations

import gzip
import os
import statistics
import sys
from types import TracebackType
from typing import Any

from .. import ask
from .._stepcast import Scenario
from ..errors import InputError, StepcastError
from ..results import Forecast, Fusion
from . import recording
from .marks import Clock, Cuda, Host, Step, Timed, timed

BLOCK = 4
"""Steps of a block."""


class Profiler:
    """What is seen of a training loop, and what can be asked about it.

    `batch` is the number of samples of a step, if the first dimension of the first input is not.
    """

    def __init__(
        self,
        model: Any,
        *,
        batch: int | None = None,
        name: str | None = None,
        warm_up: int = 3,
        most_steps: int = 64,
        quiet: bool = False,
    ) -> None:
        if not hasattr(model, "named_modules") or not hasattr(model, "register_forward_pre_hook"):
            raise InputError(f"a {type(model).__name__} is no PyTorch module", "give the torch.nn.Module", "model")
        self._model, self._batch, self._quiet = model, batch, quiet
        self._warm_up, self._most = warm_up, most_steps
        inner = model.module if type(model).__name__.endswith("DataParallel") else model
        self._inner = inner
        self.name = name or type(inner).__name__
        """What the profile is called."""
        self._sizes: dict[str, int] = {}
        self._steps: list[Step] = []
        self._seen = 0
        self._root: list[Any] = []
        self._hooks: list[Any] = []
        self._clock: Clock = Host()
        self._full: list[Timed] = []
        self._light: list[float] = []

    def __enter__(self) -> Profiler:
        parameters = [(name, p) for name, p in self._inner.named_parameters() if p.requires_grad]
        if not parameters:
            raise InputError("the module has no parameters to train", "give the module that is trained", "model")
        self._sizes = {name: p.numel() * p.element_size() for name, p in parameters}
        if parameters[0][1].device.type == "cuda":
            self._clock = Cuda(sys.modules["torch"])
        self._root = [self._model.register_forward_pre_hook(self._begin, with_kwargs=True)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._steps:
            # Nobody knows whether the last step has ended: its optimiser may be still to come.
            self._steps.pop()
        self._unhook()
        for hook in self._root:
            hook.remove()
        if error is not None:
            return
        self._clock.wait()
        steps = [(step.full, timed(step, self._clock)) for step in self._steps]
        self._steps = []
        self._full = recording.common([step for full, step in steps if full])
        self._light = [step.length for full, step in steps if not full]
        if not self._quiet:
            print(self, file=sys.stderr)

    def _begin(self, module: Any, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """A step begins, and with it the one before has ended."""
        now = self._clock.now()
        if self._steps and self._steps[-1].end is None:
            self._steps[-1].end = now
        if not module.training:
            return
        self._seen += 1
        since = self._seen - self._warm_up - 1
        if since < 0 or since >= 2 * self._most:
            self._unhook()
            return
        if self._batch is None:
            self._batch = _first_dimension((*inputs, *keywords.values()))
        full = since // BLOCK % 2 == 1
        if full and not self._hooks:
            self._hook()
        elif not full:
            self._unhook()
        self._steps.append(Step(self._clock.now(), full))

    def _hook(self) -> None:
        now = self._clock.now

        def after_layer(name: str) -> Any:
            def note(*_: Any) -> None:
                self._steps[-1].forward.append((name, now()))

            return note

        def after_gradient(name: str) -> Any:
            def note(_: Any) -> None:
                self._steps[-1].ready.append((name, now()))

            return note

        for name, module in self._inner.named_modules():
            if not any(True for _ in module.children()) and any(True for _ in module.parameters()):
                self._hooks.append(module.register_forward_hook(after_layer(name)))
        for name, parameter in self._inner.named_parameters():
            if parameter.requires_grad:
                self._hooks.append(parameter.register_post_accumulate_grad_hook(after_gradient(name)))

    def _unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @property
    def steps_s(self) -> list[float]:
        """Lengths of the steps in which nothing but their start was noted; of all others if there are none."""
        return self._light or [step.length for step in self._full]

    @property
    def overhead(self) -> float | None:
        """Share of a step that noting layers and gradients adds; none where steps without it were not seen."""
        if len(self._light) < 2 or len(self._full) < 2:
            return None
        return statistics.median(step.length for step in self._full) / statistics.median(self._light) - 1.0

    @property
    def step_s(self) -> float:
        """Mean length of a step."""
        return statistics.fmean(self.steps_s)

    @property
    def spread(self) -> float:
        """Standard deviation of steps against their mean."""
        lengths = self.steps_s
        return statistics.stdev(lengths) / self.step_s if len(lengths) > 1 else 0.0

    def __str__(self) -> str:
        steps = f"{len(self._full) + len(self._light)} steps of {1e3 * self.step_s:.4g} ms ± {100 * self.spread:.2g} %"
        cost = "not known: run more steps" if self.overhead is None else f"{100 * self.overhead:.2g} %"
        return f"{self.name}: {steps}, {len(self._sizes)} gradients; overhead of the profiler {cost}"

    def to_dict(self) -> dict[str, Any]:
        """The profile: docs/profile.md has the format."""
        if not self._full:
            raise StepcastError("nothing was profiled yet", "train inside `with stepcast.profile(model) as p:` first")
        if self._batch is None:
            raise InputError("the samples of a step are not known", "say them: profile(model, batch=32)", "batch")
        mean = statistics.fmean(step.length for step in self._full)
        version = getattr(sys.modules.get("torch"), "__version__", "?")
        source = f"hooks on PyTorch {version}, {len(self._full)} steps, scaled by {self.step_s / mean:.4f}"
        return recording.record(self._full, self._sizes, self._batch, self.name, source, self.step_s / mean)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the profile (.json or .json.gz) for `stepcast predict`: whole or not at all."""
        name = os.fspath(path)
        if not name.endswith((".json", ".json.gz")):
            raise InputError("the name of a profile ends in .json or .json.gz", "use such a name", place=name)
        data = recording.printed(self.to_dict()).encode()
        folder, file = os.path.split(name)
        beside = os.path.join(folder, f".{file}.{os.getpid()}.part")
        try:
            with open(beside, "wb") as out:
                out.write(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
            os.replace(beside, name)
        except OSError as error:
            if os.path.exists(beside):
                os.unlink(beside)
            raise InputError(f"it cannot be written: {error.strerror}", "name another file", place=name) from error

    def scenario(self, workers: int = 1, network: str | None = None, **keywords: Any) -> Scenario:
        """Training by all-reduce with PyTorch's buckets, unless keywords say otherwise.

        `network` is a name of the catalog or a bandwidth such as "25 Gbit/s".
        """
        usual = {
            "architecture": "all-reduce",
            "synchronisation": "bsp",
            "fusion": {"rule": "pytorch"},
            "workers": [{"count": workers}],
        }
        if keywords.get("architecture", "all-reduce") != "all-reduce":
            del usual["fusion"]
        if network is not None:
            usual["network"] = {"bandwidth": network} if "/s" in network else network
        text = recording.printed(self.to_dict())
        return Scenario.of_profile(text, f"{self.name}.json", **{**usual, **keywords})

    def predict(
        self,
        workers: int | list[int] | range = 1,
        network: str | None = None,
        *,
        method: str = "auto",
        **keywords: Any,
    ) -> Forecast:
        """What so many workers would do, each like the one that was profiled."""
        numbers = [workers] if isinstance(workers, int) else ask.whole(workers, "workers")
        if not numbers:
            raise InputError("there are no workers", "use numbers such as [1, 2, 4, 8]", "workers")
        asked = self.scenario(max(numbers), network, **keywords)
        return ask.predict(asked, method=method, workers=numbers)

    def fuse(self, workers: int, network: str | None = None, **keywords: Any) -> Fusion:
        """Which gradients should travel together among so many workers."""
        return ask.fuse(self.scenario(workers, network, **keywords))


def _first_dimension(values: tuple[Any, ...]) -> int | None:
    for value in values:
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape) > 0:
            return int(shape[0])
    return None


def profile(
    model: Any,
    *,
    batch: int | None = None,
    name: str | None = None,
    warm_up: int = 3,
    most_steps: int = 64,
    quiet: bool = False,
) -> Profiler:
    """A profile of the training that happens inside `with`; docs/python.md shows it."""
    return Profiler(model, batch=batch, name=name, warm_up=warm_up, most_steps=most_steps, quiet=quiet)
