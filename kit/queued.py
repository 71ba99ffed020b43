"""Times of calls on a device: behind a pause, so that no launch shows, and as the host issues them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from common import import_torch

Call = Callable[[], Any]

RUNS = 5
# A run lasts about this long, unless a single call takes longer.
RUN_S = 4e-3
# Kernels that wait in a queue without holding up the host.
QUEUE = 600
# Cycles of the pause in a second: no GPU's clock is above.
CYCLES = 3e9
# A pause ends this much after the host has issued everything.
MARGIN_S = 5e-4
# A device under load for this long has reached the clock that its power limit allows.
LOAD_S = 0.6


class Bench:
    """One device."""

    def __init__(self, device: Any) -> None:
        self.torch = import_torch()
        self.device = device
        self.is_gpu = device.type == "cuda"

    def wait(self) -> None:
        if self.is_gpu:
            self.torch.cuda.synchronize()

    def _once(self, call: Call, number: int, pause: float) -> tuple[float, float]:
        """Seconds of the device and of the host for `number` calls."""
        self.wait()
        if not self.is_gpu:
            start = time.perf_counter()
            for _ in range(number):
                call()
            took = time.perf_counter() - start
            return took, took
        cuda = self.torch.cuda
        first, last = (cuda.Event(enable_timing=True) for _ in range(2))
        if pause > 0:
            cuda._sleep(int(pause * CYCLES))
        start = time.perf_counter()
        first.record()
        for _ in range(number):
            call()
        last.record()
        issued = time.perf_counter() - start
        cuda.synchronize()
        return first.elapsed_time(last) / 1e3, issued

    def seconds(self, call: Call, kernels: int = 1) -> float:
        """Of one call that issues so many kernels, behind a pause: median of runs."""
        for _ in range(2):
            call()
        rough, _ = self._once(call, 1, 0.0)
        number = max(1, min(int(RUN_S / max(rough, 1e-7)), QUEUE // max(kernels, 1), 50))
        _, issued = self._once(call, number, 0.0)
        pause = 1.3 * issued + MARGIN_S
        return statistics.median(self._once(call, number, pause)[0] / number for _ in range(RUNS))

    def loaded_seconds(self, call: Call) -> float:
        """Of one call while the device does not rest: mean over the last of three runs in a row."""
        rough, _ = self._once(call, 3, 0.0)
        number = max(3, min(int(LOAD_S / (rough / 3)), 4000))
        for _ in range(2):
            self._once(call, number, 0.0)
        return self._once(call, number, 0.0)[0] / number

    def issue_seconds(self, call: Call, runs: int = RUNS) -> float:
        """Of the host for one call that finds the device idle: median of runs."""
        return statistics.median(self._once(call, 1, 0.0)[1] for _ in range(runs))

    def consecutive(self, call: Call, number: int) -> list[float]:
        """Of calls that follow each other without waiting for the device, each."""
        if not self.is_gpu:
            return [self._once(call, 1, 0.0)[0] for _ in range(number)]
        cuda = self.torch.cuda
        marks = [cuda.Event(enable_timing=True) for _ in range(number + 1)]
        cuda.synchronize()
        marks[0].record()
        for mark in marks[1:]:
            call()
            mark.record()
        cuda.synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]
