"""Forecasts of distributed deep-learning training: step time, throughput, scaling, cost, bottleneck.

>>> import stepcast
>>> scenario = stepcast.Scenario(zoo="resnet50", network="25gbe", batch=64,
...     workers=[{"count": 8, "device": "tesla-v100-sxm2-16gb"}])
>>> forecast = stepcast.predict(scenario)
>>> forecast.bottleneck
'server'
"""

from ._stepcast import Figures, Scenario, __version__, methods
from .ask import compare, fit, fuse, import_trace, predict, search, validate
from .errors import InputError, InternalError, StepcastError
from .profiler import profile
from .results import Comparison, Fit, Forecast, Fusion, Imported, Result, ScalingPoint, Search, Validation
from .sweeping import Sweep, sweep

__all__ = [
    "Comparison",
    "Figures",
    "Fit",
    "Forecast",
    "Fusion",
    "Imported",
    "InputError",
    "InternalError",
    "Result",
    "ScalingPoint",
    "Scenario",
    "Search",
    "StepcastError",
    "Sweep",
    "Validation",
    "__version__",
    "compare",
    "fit",
    "fuse",
    "import_trace",
    "methods",
    "predict",
    "profile",
    "search",
    "sweep",
    "validate",
]
