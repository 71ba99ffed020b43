"""Whatever is wrong is an exception with a reason; nothing ends the interpreter."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import stepcast
from stepcast import InputError, Scenario

MODEL = {"zoo": "resnet50"}


@pytest.mark.parametrize(
    ("keywords", "key", "reason"),
    [
        ({"zoo": "resnet51"}, "model.zoo", "resnet51"),
        ({**MODEL, "batch": 0}, "strategy.batch", "must be between 1 and"),
        ({**MODEL, "batch": -1}, "strategy.batch", "-1"),
        ({**MODEL, "batch": 1.5}, "strategy.batch", "float"),
        ({**MODEL, "batch": "many"}, "strategy.batch", "string"),
        ({**MODEL, "batch": 10**30}, "strategy.batch", "too large"),
        ({**MODEL, "batch": object()}, "strategy.batch", "object is no value"),
        ({**MODEL, "price": {"worker-hour": float("nan")}}, "price.worker-hour", "NaN is no number"),
        ({**MODEL, "price": {"worker-hour": float("inf")}}, "price.worker-hour", "inf"),
        ({**MODEL, "btach": 3}, "btach", "no scenario has a key"),
        ({**MODEL, "strategy": {"btach": 3}}, "strategy", "btach"),
        ({**MODEL, "workers": [{"count": 2, "device": "abacus"}]}, "cluster.workers[0].device", "abacus"),
        ({**MODEL, "cluster": {1: 2}}, "cluster", "is no text"),
    ],
)
def test_scenarios(keywords: dict[str, Any], key: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        Scenario(**keywords)
    error = caught.value
    assert error.key == key and reason in error.reason and error.remedy
    assert reason in str(error) and isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (again.key, again.reason, again.remedy, again.place) == (key, error.reason, error.remedy, error.place)


def test_places_have_lines() -> None:
    with pytest.raises(InputError) as caught:
        Scenario('[model]\nzoo = "resnet50"\n[strategy]\nbatch = 0\n')
    assert caught.value.place == "scenario:4:9"


@pytest.mark.parametrize("source", [3, 2.5, [1, 2], object(), b"x", {"model": None, "x": {}}, "no/such/file.toml", ""])
def test_sources(source: Any) -> None:
    with pytest.raises((TypeError, InputError)):
        Scenario(source)


def test_values_that_contain_themselves() -> None:
    loop: dict[str, Any] = {}
    loop["model"] = loop
    with pytest.raises(InputError, match="nested too deeply"):
        Scenario(loop)


@pytest.mark.parametrize(
    "call",
    [
        lambda: stepcast.predict(method="magic"),
        lambda: stepcast.predict(worth=float("nan")),
        lambda: stepcast.predict(workers=[0]),
        lambda: stepcast.predict(workers=[1.5]),
        lambda: stepcast.predict(workers=[-3]),
        lambda: stepcast.predict(workers=[2**40]),
        lambda: stepcast.predict(workers=range(1, 10_000)),
        lambda: stepcast.compare(workers=True),
        lambda: stepcast.sweep(),
        lambda: stepcast.sweep(vary={"batch": [float("nan")]}),
        lambda: stepcast.sweep(vary={"batch": [object()]}),
        lambda: stepcast.sweep(vary={"batch": []}),
        lambda: stepcast.sweep(vary=[3]),
        lambda: stepcast.sweep(vary={"btach": [3]}),
        lambda: stepcast.sweep(vary={"batch": "1..9"}, limit=0),
        lambda: stepcast.sweep(vary={"batch": "1..99999", "workers.count": "1..99999"}),
        lambda: stepcast.sweep(vary={"batch": [3]}, output="sweep.txt"),
        lambda: stepcast.sweep(vary={"batch": [3]}, executor=object()),
        lambda: stepcast.sweep(vary={"batch": [3]}, executor=ThreadPoolExecutor(1), chunk=0),
        lambda: stepcast.search(minimize="joy", vary={"batch": [3, 4]}),
        lambda: stepcast.search(minimize="iteration"),
        lambda: stepcast.search(minimize="iteration", vary={"batch": [3, 4]}, subject_to="patience<=3"),
        lambda: stepcast.fit("luck", "x.csv"),
        lambda: stepcast.fit("transfer", "no-such.csv"),
        lambda: stepcast.import_trace("no-such.json"),
        lambda: stepcast.validate("no-such-set"),
        lambda: stepcast.validate("tf-ps"),
        lambda: stepcast.fuse("examples/async.toml"),
        lambda: stepcast.profile("a text"),
    ],
)
def test_questions(call: Any) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.reason and caught.value.remedy


@pytest.mark.parametrize("call", [lambda: stepcast.predict(method=3), lambda: stepcast.sweep(vary={"batch": [3]}, threads=-1)])
def test_types(call: Any) -> None:
    with pytest.raises((TypeError, OverflowError)):
        call()


def test_an_executor_that_refuses() -> None:
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    with pytest.raises(InputError, match="refuses work"):
        stepcast.sweep(vary={"batch": [3, 4]}, executor=closed)


def test_pickles_of_other_versions() -> None:
    dumped = pickle.dumps(Scenario(**MODEL))
    version = stepcast.__version__.encode()
    other = dumped.replace(b'"stepcast":"' + version, b'"stepcast":"' + b"9" * len(version))
    assert other != dumped
    with pytest.raises(InputError, match="it is of version 9") as caught:
        pickle.loads(other)
    assert "same version" in caught.value.remedy
    with pytest.raises(InputError, match="damaged"):
        Scenario._unpack("{")
