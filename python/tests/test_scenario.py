"""Scenarios: what they are made of, and that they stay what they are."""

from __future__ import annotations

import copy
import json
import pickle
import tomllib
from collections import OrderedDict
from pathlib import Path

import pytest
from conftest import EXAMPLES

import stepcast
from stepcast import Scenario

TEXT = """
[model]
zoo = "resnet50"   # a comment
[cluster]
network = "25gbe"
[strategy]
batch = 64
"""


def test_text_file_dict_and_keywords_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(TEXT)
    made = [
        Scenario(TEXT),
        Scenario(path),
        Scenario(str(path)),
        Scenario(OrderedDict(model={"zoo": "resnet50"}, cluster={"network": "25gbe"}, strategy={"batch": 64})),
        Scenario(zoo="resnet50", network="25gbe", batch=64),
        Scenario(model="resnet50", network="25gbe", batch=64),
        Scenario('model = "resnet50"\n', network="25gbe", batch=64),
        Scenario(model={"zoo": "resnet50"}, set={"cluster.network": "25gbe", "strategy.batch": 64}),
        Scenario(TEXT.replace("64", "32"), set=["strategy.batch=64"]),
        Scenario(TEXT.replace("64", "32")).changed(batch=64),
        Scenario(Scenario(TEXT).to_toml()),
    ]
    assert len(set(made)) == 1
    assert len({stepcast.predict(one).to_json() for one in made}) == 1
    assert made[0] != Scenario(TEXT, batch=65) and made[0] != TEXT
    assert made[0].name == "resnet50" and json.loads(made[0].to_json())["strategy"]["batch"] == 64
    assert tomllib.loads(made[0].to_toml())["model"] == {"zoo": "resnet50"}


def test_nothing_is_the_quick_start() -> None:
    assert stepcast.predict().to_json() == stepcast.predict("examples/quickstart.toml").to_json()


def test_scenarios_do_not_change() -> None:
    scenario = Scenario(TEXT)
    with pytest.raises(AttributeError):
        scenario.batch = 3  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        scenario.name = "x"  # type: ignore[misc]
    before = hash(scenario)
    scenario.changed(batch=1)
    assert hash(scenario) == before


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_pickles_bring_their_files(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(path)
    monkeypatch.chdir(tmp_path)
    again = pickle.loads(pickle.dumps(scenario))
    assert again == scenario and hash(again) == hash(scenario) and again.to_json() == scenario.to_json()
    assert copy.deepcopy(scenario) == scenario
    half = {"cluster.workers.speed": 0.5}
    assert again.changed(set=half).figures().to_json() == scenario.changed(set=half).figures().to_json()


def test_figures_are_those_of_a_sweep() -> None:
    row = next(stepcast.sweep(TEXT, {"batch": [64]}).rows())
    figures = Scenario(TEXT).figures()
    del row["strategy.batch"], row["interval_samples_per_s"]
    assert json.loads(figures.to_json()) == row
    assert figures.iteration_s == row["iteration_s"] and figures.method == row["method"]


def test_answers_are_shown_and_tabled() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    forecast = stepcast.predict(TEXT, workers=[1, 2, 4])
    for answer in (forecast, stepcast.compare(TEXT), stepcast.sweep(TEXT, {"batch": [8, 16]})):
        shown = answer._repr_html_()
        assert "<table>" in shown and "<script" not in shown
        assert isinstance(answer.to_pandas(), pandas.DataFrame)
    assert "<svg" in forecast._repr_html_()
    assert list(forecast.to_pandas()["workers"]) == [1, 2, 4] == [point.workers for point in forecast.scaling]
    low, high = forecast.scaling[1].interval_samples_per_s or (0, 0)
    assert low < forecast.scaling[1].throughput_samples_per_s < high


def test_names_are_escaped() -> None:
    scenario = Scenario(
        model={"custom": {"name": "<script>x</script>", "input": [4], "layers": [{"op": "linear", "out": 2}]}}
    )
    assert "<script" not in stepcast.predict(scenario)._repr_html_()
