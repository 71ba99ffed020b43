"""A profile of a training loop that is there already: `with stepcast.profile(model) as p: train(...)`."""

from .profiler import Profiler, profile

__all__ = ["Profiler", "profile"]
