"""Forecasts of distributed deep-learning training: step time, throughput, scaling, cost, bottleneck.

>>> import stepcast
>>> scenario = stepcast.Scenario(zoo="resnet50", network="25gbe", batch=64,
...     workers=[{"count": 8, "device": "tesla-v100-sxm2-16gb"}])
>>> forecast = stepcast.predict(scenario)
>>> forecast.bottleneck
'compute'
"""

from ._stepcast import Figures, Scenario, __version__, methods
from .applying import apply
from .ask import check, compare, fit, fuse, import_trace, predict, search, validate
from .catalog import CatalogDevice, CatalogMachine, CatalogModel, CatalogNetwork, devices, machines, models, networks
from .errors import InputError, InternalError, StepcastError
from .planning import Advice, Confirmation, Experiment, Plan, PlanEntry, PlanFamily, PlanStages, PlanTraining, advise, plan
from .profiler import profile
from .results import Check, Comparison, Fit, Forecast, Fusion, Imported, Result, ScalingPoint, Search, SearchEntry, Suspect, Validation
from .sweeping import Sweep, sweep
from .watching import Watch, watch

__all__ = [
    "Advice",
    "CatalogDevice",
    "CatalogMachine",
    "CatalogModel",
    "CatalogNetwork",
    "Check",
    "Comparison",
    "Confirmation",
    "Experiment",
    "Figures",
    "Fit",
    "Forecast",
    "Fusion",
    "Imported",
    "InputError",
    "InternalError",
    "Plan",
    "PlanEntry",
    "PlanFamily",
    "PlanStages",
    "PlanTraining",
    "Result",
    "ScalingPoint",
    "Scenario",
    "Search",
    "SearchEntry",
    "StepcastError",
    "Suspect",
    "Sweep",
    "Validation",
    "Watch",
    "__version__",
    "advise",
    "apply",
    "check",
    "compare",
    "devices",
    "fit",
    "fuse",
    "import_trace",
    "machines",
    "methods",
    "models",
    "networks",
    "plan",
    "predict",
    "profile",
    "search",
    "sweep",
    "validate",
    "watch",
]
