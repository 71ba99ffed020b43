"""Times of one worker's training step: whole, by layer, and when each gradient is ready."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tasks import Batch, Task, casts

Moment = Any


class Clock:
    """Moments on the device's own time line: events in the stream of a GPU, the clock of the host for a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.is_gpu = device.type == "cuda"

    def now(self) -> Moment:
        if not self.is_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    def seconds(self, start: Moment, end: Moment) -> float:
        """After `wait`."""
        return start.elapsed_time(end) / 1e3 if self.is_gpu else end - start


class Worker:
    """One network in training on one device."""

    def __init__(self, task: Task, device: torch.device, batch: int, precision: str = "fp32") -> None:
        self.task, self.device, self.precision = task, device, precision
        self.clock = Clock(device)
        task.module.to(device).train()
        self.batch: Batch = task.data(batch, device)
        self.parameters = [parameter for parameter in task.module.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.SGD(self.parameters, lr=1e-3)

    def forward(self) -> torch.Tensor:
        with casts(self.precision, self.device):
            return self.task.loss(self.batch)

    def step(self) -> tuple[Moment, Moment, Moment, Moment]:
        """Starts of forward, backward and optimiser, and the end."""
        self.optimiser.zero_grad(set_to_none=True)
        start = self.clock.now()
        loss = self.forward()
        forwarded = self.clock.now()
        loss.backward()
        computed = self.clock.now()
        self.optimiser.step()
        return start, forwarded, computed, self.clock.now()

    def warm_up(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.clock.wait()

    def parts(self, steps: int) -> list[tuple[float, float, float]]:
        """Forward, backward and optimiser of every step, s."""
        found = []
        for _ in range(steps):
            marks = self.step()
            self.clock.wait()
            found.append(tuple(self.clock.seconds(a, b) for a, b in itertools.pairwise(marks)))
        return found  # type: ignore[return-value]

    def iteration(self, steps: int) -> float:
        """Mean time of steps that follow each other without waiting for the device, s."""
        self.clock.wait()
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.clock.wait()
        return (time.perf_counter() - start) / steps

    def layers(self, steps: int) -> list[dict[str, Any]]:
        """Forward ms of every leaf module, median over steps.

        A module that runs several times in a step stands where it ran first, with the figures of its last run.
        """
        records: dict[str, dict[str, Any]] = {}
        times: dict[str, list[float]] = {}
        marks: dict[str, tuple[Moment, Moment]] = {}
        handles = []

        def before(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, inputs: tuple[Any, ...]) -> None:
                marks[name] = (self.clock.now(), None)

            return hook

        def after(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, inputs: tuple[Any, ...], out: Any) -> None:
                marks[name] = (marks[name][0], self.clock.now())
                records.setdefault(name, {}).update(
                    name=name,
                    type=type(module).__name__,
                    inp=shape_of(inputs),
                    out=shape_of(out),
                    desc=" ".join(repr(module).split()),
                )

            return hook

        for name, module in self.task.module.named_modules():
            if not any(True for _ in module.children()):
                handles.append(module.register_forward_pre_hook(before(name)))
                handles.append(module.register_forward_hook(after(name)))
        try:
            for _ in range(steps):
                marks.clear()
                self.step()
                self.clock.wait()
                for name, (start, end) in marks.items():
                    times.setdefault(name, []).append(self.clock.seconds(start, end))
        finally:
            for handle in handles:
                handle.remove()
        for name, record in records.items():
            record["fwd_ms"] = round(1e3 * statistics.median(times[name]), 5)
        return list(records.values())

    def gradients(self, steps: int) -> tuple[list[dict[str, Any]], float]:
        """When each gradient was ready, s after the start of backward, and how long backward took meanwhile; medians.

        Sorted by that time; sizes as in memory.
        """
        named = [(name, p) for name, p in self.task.module.named_parameters() if p.requires_grad]
        ready: dict[str, list[float]] = {}
        backward: list[float] = []
        marks: dict[str, Moment] = {}
        handles = []

        def note(name: str) -> Callable[[torch.Tensor], None]:
            def hook(_: torch.Tensor) -> None:
                marks[name] = self.clock.now()

            return hook

        for name, parameter in named:
            handles.append(parameter.register_post_accumulate_grad_hook(note(name)))
        try:
            for _ in range(steps):
                marks.clear()
                _, start, end, _ = self.step()
                self.clock.wait()
                backward.append(self.clock.seconds(start, end))
                for name, mark in marks.items():
                    ready.setdefault(name, []).append(self.clock.seconds(start, mark))
        finally:
            for handle in handles:
                handle.remove()
        found = [
            {
                "name": name,
                "shape": list(parameter.shape),
                "bytes": parameter.numel() * parameter.element_size(),
                "ready": statistics.median(ready[name]),
            }
            for name, parameter in named
            if name in ready
        ]
        return sorted(found, key=lambda gradient: gradient["ready"]), statistics.median(backward)


def shape_of(value: Any) -> list[int] | None:
    """Of the first tensor in it."""
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return next((shape for shape in map(shape_of, value) if shape is not None), None)
    return None
