"""The exceptions: each has a reason, a position and a remedy."""

from __future__ import annotations

import json
from typing import Any


class StepcastError(Exception):
    """The base class of all exceptions of Stepcast.

    >>> import stepcast
    >>> try:
    ...     stepcast.Scenario(zoo="resnet50", batch=0)
    ... except stepcast.InputError as error:
    ...     print(error.key, "|", error.reason, "|", error.remedy)
    strategy.batch | must be between 1 and 100000000, but is 0 | use the number of samples per worker and step
    """

    def __init__(self, reason: str, remedy: str = "", key: str = "", place: str = "", remedies: str = "[]") -> None:
        super().__init__(reason, remedy, key, place, remedies)
        self.reason = reason
        """What is wrong."""
        self.remedy = remedy
        """What to do about it."""
        self.key = key
        """The key of the scenario or the argument that it is about, if one is known."""
        self.place = place
        """The file, with line and column where they are known, or the text that brought it in."""
        self.remedies: list[dict[str, Any]] = json.loads(remedies)
        """What to do about it as data, as in the JSON of the command line: alternatives, the best first."""

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.place, self.key) if part)
        text = f"{where}: {self.reason}" if where else self.reason
        return f"{text} ({self.remedy})" if self.remedy else text


class InputError(StepcastError, ValueError):
    """A scenario, a file or an argument cannot be used."""


class InternalError(StepcastError, RuntimeError):
    """An error in Stepcast itself."""
