"""Hooks on a PyTorch module while somebody trains it.

After some steps to warm up comes one in which the end of every layer's forward pass and the moment at which each gradient
is ready are noted. That may slow it down by half where a GPU waits for the host to launch its work. From then on steps
alternate in blocks: in some a part of the layers and gradients is noted, the next part each time, so few that it costs
little; in the others nothing but the start of the step. What noting costs is the difference between these, and the
profile is scaled to the steps without it. PyTorch is asked through the module itself and is not needed to import
Stepcast.
"""

from __future__ import annotations

import gzip
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from .. import ask
from .._stepcast import Scenario
from ..errors import InputError, StepcastError
from ..results import Forecast, Fusion
from . import recording
from .decoder import decoder
from .marks import Clock, Cuda, Host, Step, timed
from .shape import Shape, shape
from .split import Split, speed_of, split

BLOCK = 4
"""Steps of a block."""
WHOLE = -1
"""The part of a step in which everything is noted."""
NOTE_S = 40e-6
"""What it takes to note a moment, at most: a call from the engine that computes gradients into Python, and an event."""
PRECISIONS = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}
SHARE = 0.025
"""Share of a step that noting may take."""


class Profiler:
    """What is seen of a training loop, and what can be asked about it.

    `batch` is the number of samples of a step, if the first dimension of the first input is not. `forwards` is the number of
    forward passes of a step: micro-batches of a pipeline, or of gradients that are added up. `plan` says how the job is
    split as far as its parameters do not tell: keys of `[strategy.plan]`, such as {"pipeline": 4}.
    """

    def __init__(
        self,
        model: Any,
        *,
        batch: int | None = None,
        name: str | None = None,
        forwards: int = 1,
        plan: Mapping[str, Any] | None = None,
        warm_up: int = 3,
        most_steps: int = 64,
        quiet: bool = False,
    ) -> None:
        if not hasattr(model, "named_modules") or not hasattr(model, "register_forward_pre_hook"):
            raise InputError(f"a {type(model).__name__} is no PyTorch module", "give the torch.nn.Module", "model")
        self._model, self._batch, self._quiet = model, batch, quiet
        self._warm_up, self._most = warm_up, most_steps
        self._forwards, self._given = forwards, dict(plan or {})
        self._passes = 0
        self._tokens: tuple[int, ...] | None = None
        """Size of the first input of whole numbers: samples and tokens of each."""
        self._split = Split()
        self._decoder: dict[str, Any] | None = None
        inner = model.module if type(model).__name__.endswith("DataParallel") else model
        self._inner = inner
        self.name = name or type(inner).__name__
        """What the profile is called."""
        self._sizes: dict[str, int] = {}
        self._steps: list[Step] = []
        self._seen = 0
        self._began: float | None = None
        """When the last step began, by the clock of the host."""
        self._shortest = float("inf")
        self._noted: dict[tuple[str, str], int] = {}
        """Places of all layers and gradients in the order in which they are noted in turn."""
        self._parts = 1
        self._root: list[Any] = []
        self._hooks: list[Any] = []
        self._clock: Clock = Host()
        self._shape: Shape | None = None
        self._light: list[float] = []
        self._heavy: list[float] = []

    def __enter__(self) -> Profiler:
        self._parameters = [(name, p) for name, p in self._inner.named_parameters() if p.requires_grad]
        if not self._parameters:
            raise InputError("the module has no parameters to train", "give the module that is trained", "model")
        self._layers = [
            (name, module)
            for name, module in self._inner.named_modules()
            if not any(True for _ in module.children()) and any(True for _ in module.parameters())
        ]
        self._sizes = {name: p.numel() * p.element_size() for name, p in self._parameters}
        self._split = split(self._model, self._given)
        if self._parameters[0][1].device.type == "cuda":
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
        steps = [timed(step, self._clock) for step in self._steps]
        self._steps = []
        whole = next((step for step in steps if step.part == WHOLE), None)
        noted = [step for step in steps if step.part not in (None, WHOLE)]
        self._decoder = decoder(self._inner, self._tokens[1] if self._tokens else None)
        try:
            self._shape = shape(whole, noted, self._part_of("layer"), self._part_of("gradient"))
        except StepcastError:
            # Some ranks of a split job have no gradients of their own; the length of their steps is told all the same.
            if self._split.is_whole or whole is None:
                raise
        self._light = [step.length for step in steps if step.part is None]
        self._heavy = [step.length for step in noted]
        if whole and not self._light:
            self._light = [whole.length]
        if not self._quiet:
            print(self, file=sys.stderr)

    def _begin(self, module: Any, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """A step begins, and with it the one before has ended."""
        if module.training:
            self._passes += 1
            if (self._passes - 1) % self._forwards:
                return
        now = self._clock.now()
        if self._steps and self._steps[-1].end is None:
            self._steps[-1].end = now
        self._unhook()
        if not module.training:
            return
        since = self._seen - self._warm_up
        self._seen += 1
        self._measure()
        if since < 0 or since > 2 * self._most:
            return
        if self._batch is None:
            own = _first_dimension((*inputs, *keywords.values()))
            self._batch = None if own is None else own * self._forwards
        if self._tokens is None:
            self._tokens = _tokens((*inputs, *keywords.values()))
        part = None
        if since == 0:
            part = WHOLE
        elif (block := (since - 1) // BLOCK) % 2 == 1:
            part = (block // 2 * BLOCK + (since - 1) % BLOCK) % self._parts
        if part is not None:
            self._hook(part)
        self._steps.append(Step(self._clock.now(), part))

    def _measure(self) -> None:
        """Sees how short steps are, and so in how many parts layers and gradients can be noted."""
        now = time.perf_counter()
        if self._began is not None:
            self._shortest = min(self._shortest, now - self._began)
            if self._seen == self._warm_up + 2:
                self._parts = max(1, math.ceil(len(self._noted) * NOTE_S / (SHARE * self._shortest)))
        self._began = now

    def _part_of(self, kind: str) -> Callable[[str], int]:
        return lambda name: self._noted[kind, name] % self._parts

    def _hook(self, part: int) -> None:
        now = self._clock.now

        def after_layer(name: str) -> Any:
            def note(*_: Any) -> None:
                self._steps[-1].forward.append((name, now()))

            return note

        def after_gradient(name: str) -> Any:
            def note(_: Any) -> None:
                self._steps[-1].ready.append((name, now()))

            return note

        def wanted(kind: str, name: str) -> bool:
            place = self._noted.setdefault((kind, name), len(self._noted))
            return part in (WHOLE, place % self._parts)

        for name, module in self._layers:
            if wanted("layer", name):
                self._hooks.append(module.register_forward_hook(after_layer(name)))
        for name, parameter in self._parameters:
            if wanted("gradient", name):
                self._hooks.append(parameter.register_post_accumulate_grad_hook(after_gradient(name)))

    def _unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @property
    def steps_s(self) -> list[float]:
        """Lengths of the steps in which nothing but their start was noted; if there are none, of the one that was."""
        return self._light

    @property
    def overhead(self) -> float | None:
        """Share of a step that noting layers and gradients adds; none where too few steps were seen."""
        if len(self._light) < 2 or len(self._heavy) < 2:
            return None
        return statistics.median(self._heavy) / statistics.median(self._light) - 1.0

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
        steps = f"{len(self._heavy) + len(self._light)} steps of {1e3 * self.step_s:.4g} ms ± {100 * self.spread:.2g} %"
        cost = "not known: run more steps" if self.overhead is None else f"{100 * self.overhead:.2g} %"
        return f"{self.name}: {steps}, {len(self._sizes)} gradients; overhead of the profiler {cost}"

    def to_dict(self) -> dict[str, Any]:
        """The profile: docs/profile.md has the format."""
        if self._shape is None:
            raise StepcastError("nothing was profiled yet", "train inside `with stepcast.profile(model) as p:` first")
        if self._batch is None:
            raise InputError("the samples of a step are not known", "say them: profile(model, batch=32)", "batch")
        version = getattr(sys.modules.get("torch"), "__version__", "?")
        source = f"hooks on PyTorch {version}: {len(self._light)} steps, layers and gradients in {self._shape.steps} more"
        return recording.record(self._shape, self.steps_s, self._sizes, self._batch, self.name, source)

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
            usual["network"] = network
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

    @property
    def plan(self) -> dict[str, Any]:
        """How the job is split, as its parameters tell and `plan=` adds: keys of `[strategy.plan]`."""
        return dict(self._split.plan)

    @property
    def groups(self) -> list[tuple[str, str, int]]:
        """Process groups of this rank: name, what it divides, ranks."""
        return list(self._split.groups)

    @property
    def transformer(self) -> dict[str, Any] | None:
        """The shape of the transformer, as far as its modules tell it: keys of `[model.transformer]`."""
        return None if self._decoder is None else dict(self._decoder)

    def planned(
        self,
        plan: Mapping[str, Any] | None = None,
        workers: int | None = None,
        *,
        device: str | Mapping[str, Any] | None = None,
        transformer: Mapping[str, Any] | None = None,
        cluster: Mapping[str, Any] | None = None,
        strategy: Mapping[str, Any] | None = None,
    ) -> Scenario:
        """The transformer under `plan` on so many workers, at the speed that the recorded step shows.

        Without a plan, under the recorded one. `transformer` corrects what modules told of the shape; on a stage of a pipeline
        it has to say the `layers` of all. `cluster` and `strategy` are tables of a scenario. The speed is the factor
        at which the recorded plan takes as long as the recorded steps.
        """
        recorded = self.plan
        own = (device, transformer, cluster, strategy)
        count = self._split.ranks
        speed = speed_of(lambda speed: self._described(recorded, count, speed, *own).figures().iteration_s, self.step_s)
        if plan is None and workers is None:
            return self._described(recorded, count, speed, *own)
        return self._described(dict(plan or {}), workers or count, speed, *own)

    def _described(
        self,
        plan: Mapping[str, Any],
        workers: int,
        speed: float,
        device: str | Mapping[str, Any] | None,
        transformer: Mapping[str, Any] | None,
        cluster: Mapping[str, Any] | None,
        strategy: Mapping[str, Any] | None,
    ) -> Scenario:
        shape = {**(self._decoder or {}), **(transformer or {})}
        if not shape:
            remedy = "say it: planned(..., transformer={'base': 'llama3-8b', 'sequence': 4096})"
            raise InputError("the modules do not tell the shape of a transformer", remedy, "transformer")
        if self._batch is None:
            raise InputError("the samples of a step are not known", "say them: profile(model, batch=32)", "batch")
        data = self.plan.get("data", 1)
        usual = {"micro-batch": max(1, self._batch // self._forwards), "global-batch": self._batch * data}
        own = {"count": workers, "device": device or self._device(), "speed": speed}
        return Scenario(
            {
                "model": {"transformer": shape},
                "cluster": {"workers": [own], **(cluster or {})},
                "strategy": {"precision": self._precision(), **(strategy or {}), "plan": {**usual, **plan}},
            }
        )

    def _device(self) -> str:
        if isinstance(self._clock, Cuda):
            return str(sys.modules["torch"].cuda.get_device_name())
        raise InputError("the device is not known", "name one of the catalog: planned(..., device='xeon-core')", "device")

    def _precision(self) -> str:
        kinds = [str(parameter.dtype) for _, parameter in self._parameters]
        return next((name for kind, name in PRECISIONS.items() if kind in kinds), "fp32")

    def predict_plan(self, plan: Mapping[str, Any], workers: int | None = None, **keywords: Any) -> Forecast:
        """What the transformer would do under another plan; keywords are those of `planned`."""
        return ask.predict(self.planned(plan, workers, **keywords))

    def fuse(self, workers: int, network: str | None = None, **keywords: Any) -> Fusion:
        """Which gradients should travel together among so many workers."""
        return ask.fuse(self.scenario(workers, network, **keywords))


def _tokens(values: tuple[Any, ...]) -> tuple[int, ...] | None:
    """The size of the first tensor of whole numbers with two dimensions: samples and their tokens."""
    for value in values:
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape) == 2 and not getattr(value, "is_floating_point", lambda: True)():
            return tuple(int(size) for size in shape)
    return None


def _first_dimension(values: tuple[Any, ...]) -> int | None:
    for value in values:
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape) > 0:
            return int(shape[0])
    return None


profile = Profiler
"""A profile of the training that happens inside `with`; docs/python.md shows it."""
