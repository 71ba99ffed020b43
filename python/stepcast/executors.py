"""Runs chunks of a sweep or of a search over plans in other processes and on other machines, with any executor of functions.

Results are returned in the order of the chunks, whichever finishes first. A chunk whose worker died is run
again; a chunk is a function of its arguments alone, so running it again gives the same bytes.
"""

from __future__ import annotations

import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from . import _stepcast
from .errors import InputError, StepcastError

AHEAD = 64
"""Chunks that are handed out at once: enough to keep workers busy, few enough to hold."""

TRIES = 4
"""How often a chunk is run before its worker's death is taken for its own fault."""


class Work(Protocol):
    """What is sent to workers: small, hashable, and the same for all chunks."""

    def run(self, since: int, until: int) -> bytes:
        """Computes a range of points or parts, one line each."""
        ...


@dataclass(frozen=True)
class Rows:
    """A sweep."""

    packed: bytes
    vary: tuple[str, ...]
    method: str
    format: str
    threads: int | None

    @staticmethod
    def of(sweep: _stepcast.Sweep, format: str, threads: int | None) -> Rows:
        packed = zlib.compress(sweep.packed().encode())
        return Rows(packed, tuple(sweep.vary), sweep.method, format, threads)

    def run(self, since: int, until: int) -> bytes:
        sweep = _unpacked(self.packed, self.vary, self.method)
        return sweep.rows(since, until, self.format, self.threads)


@dataclass(frozen=True)
class Parts:
    """A search over plans, in parts."""

    packed: bytes
    minimize: str
    threads: int | None

    @staticmethod
    def of(search: _stepcast.PlanSearch, minimize: str, threads: int | None) -> Parts:
        return Parts(zlib.compress(search.packed().encode()), minimize, threads)

    def run(self, since: int, until: int) -> bytes:
        search = _searched(self.packed, self.minimize)
        return "\n".join(search.part(place, self.threads) for place in range(since, until)).encode()


@lru_cache(maxsize=4)
def _unpacked(packed: bytes, vary: tuple[str, ...], method: str) -> _stepcast.Sweep:
    scenario = _stepcast.Scenario._unpack(zlib.decompress(packed).decode())
    return _stepcast.Sweep(scenario, vary, method)


@lru_cache(maxsize=4)
def _searched(packed: bytes, minimize: str) -> _stepcast.PlanSearch:
    return _stepcast.PlanSearch(_stepcast.Scenario._unpack(zlib.decompress(packed).decode()), minimize)


def run_chunk(work: Work, since: int, until: int) -> bytes:
    """Computes a chunk on a worker."""
    return work.run(since, until)


class Ticket(Protocol):
    """A submitted chunk."""

    def result(self) -> bytes: ...


class Crew(Protocol):
    """A pool of workers that run chunks."""

    def hand_out(self, work: Work, since: int, until: int) -> Ticket: ...

    def is_death(self, error: BaseException) -> bool:
        """Whether an error means that a worker died, not that the chunk is wrong."""
        ...


class Futures:
    """Any executor of `concurrent.futures`. After the loss of a worker, the remaining work runs locally."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._broken = False

    def hand_out(self, work: Work, since: int, until: int) -> Ticket:
        if not self._broken:
            try:
                return self._executor.submit(run_chunk, work, since, until)
            except BrokenExecutor:
                self._broken = True
                message = "the executor has lost a worker and takes no more work: the rest is run here"
                warnings.warn(message, RuntimeWarning, stacklevel=2)
        return Here(work, since, until)

    def is_death(self, error: BaseException) -> bool:
        return isinstance(error, BrokenExecutor)


@dataclass(frozen=True)
class Here:
    """A chunk that runs locally."""

    work: Work
    since: int
    until: int

    def result(self) -> bytes:
        return run_chunk(self.work, self.since, self.until)


class Dask:
    """A client of Dask. Its scheduler runs the chunks of dead workers again by itself, three times."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def hand_out(self, work: Work, since: int, until: int) -> Ticket:
        ticket: Ticket = self._client.submit(run_chunk, work, since, until, pure=False)
        return ticket

    def is_death(self, error: BaseException) -> bool:
        names = {"KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError"}
        return type(error).__name__ in names


class Ray:
    """The module `ray`, or a handle that has `remote`, `put` and `get`. Ray runs lost tasks again by itself."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._run = ray.remote(run_chunk).options(max_retries=TRIES)
        self._works: dict[Work, Any] = {}

    def hand_out(self, work: Work, since: int, until: int) -> Ticket:
        if work not in self._works:
            self._works[work] = self._ray.put(work)
        return Reference(self._ray, self._run.remote(self._works[work], since, until))

    def is_death(self, error: BaseException) -> bool:
        return type(error).__name__ in {"WorkerCrashedError", "NodeDiedError", "OutOfMemoryError"}


@dataclass(frozen=True)
class Reference:
    """The reference to a chunk's result in Ray."""

    ray: Any
    object: Any

    def result(self) -> bytes:
        found: bytes = self.ray.get(self.object)
        return found


def crew_of(executor: Any) -> Crew:
    """The crew for this executor, recognised by its methods rather than by an import."""
    if isinstance(executor, Executor):
        return Futures(executor)
    if type(executor).__module__.split(".")[0] == "distributed" and hasattr(executor, "submit"):
        return Dask(executor)
    if all(hasattr(executor, name) for name in ("remote", "put", "get")):
        return Ray(executor)
    raise InputError(
        f"a {type(executor).__name__} does not run functions elsewhere",
        "use an executor of concurrent.futures, a Dask Client or the module ray",
        "executor",
    )


def run(
    executor: Any, work: Work, since: int, until: int, chunk: int, ahead: int = AHEAD
) -> Iterator[tuple[bytes, int]]:
    """Yields the lines of all points in order, chunk by chunk, with the number of lines in each."""
    crew = crew_of(executor)
    ranges = ((start, min(start + chunk, until)) for start in range(since, until, chunk))
    handed: deque[tuple[int, int, Ticket]] = deque()

    def hand_out(start: int, end: int) -> Ticket:
        return _accepted(lambda: crew.hand_out(work, start, end))

    try:
        while True:
            while len(handed) < ahead and (following := next(ranges, None)):
                handed.append((*following, hand_out(*following)))
            if not handed:
                return
            start, end, ticket = handed.popleft()
            for left in reversed(range(TRIES)):
                try:
                    rows = ticket.result()
                    break
                except StepcastError:
                    raise
                except Exception as error:
                    if not crew.is_death(error):
                        raise
                    if not left:
                        raise StepcastError(
                            f"points {start} to {end} were lost {TRIES} times: {error}",
                            "look at the workers' logs, or use a smaller `chunk`",
                        ) from error
                    ticket = hand_out(start, end)
            yield rows, end - start
    finally:
        for *_, ticket in handed:
            if hasattr(ticket, "cancel"):
                ticket.cancel()


def _accepted(hand_out: Callable[[], Ticket]) -> Ticket:
    try:
        return hand_out()
    except StepcastError:
        raise
    except Exception as error:
        raise InputError(
            f"the executor refuses work: {error}", "use one that is open and can be reached", "executor"
        ) from error
