"""Moments of a step, on the time line of the device that computes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Protocol


class Clock(Protocol):
    def now(self) -> Any: ...

    def wait(self) -> None:
        """Until the device has come to every moment that was noted."""
        ...

    def seconds(self, start: Any, end: Any) -> float: ...


class Host:
    """A CPU computes while its thread does."""

    now = staticmethod(time.perf_counter)

    def wait(self) -> None:
        pass

    def seconds(self, start: Any, end: Any) -> float:
        return float(end - start)


class Cuda:
    """A GPU computes later than it is told to: moments are events in its stream."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def now(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        self._torch.cuda.synchronize()

    def seconds(self, start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) / 1e3


@dataclass
class Step:
    """What was noted from the start of one forward pass to the start of the next."""

    start: Any
    part: int | None
    """Which of the layers and gradients were noted; none but the start if none."""
    forward: list[tuple[str, Any]] = field(default_factory=list)
    """Ends of layers."""
    ready: list[tuple[str, Any]] = field(default_factory=list)
    """When gradients were ready."""
    end: Any = None


@dataclass(frozen=True)
class Timed:
    """A step in seconds since its start."""

    part: int | None
    forward: list[tuple[str, float]]
    ready: list[tuple[str, float]]
    length: float


def timed(step: Step, clock: Clock) -> Timed:
    def since(moments: list[tuple[str, Any]]) -> list[tuple[str, float]]:
        return [(name, max(0.0, clock.seconds(step.start, moment))) for name, moment in moments]

    return Timed(step.part, since(step.forward), since(step.ready), clock.seconds(step.start, step.end))
