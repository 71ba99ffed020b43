"""The numbers of Python are those of the command line, byte for byte."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLES, QUICK, ROOT, Cli, answered, sets

import stepcast

ALL = [*EXAMPLES, ROOT / "examples/one-worker.json", ROOT / "examples/notebook/small-cnn.json"]


def workers(path: Path) -> tuple[int, int]:
    """Two numbers of workers for which the scenario is valid: a plan needs whole replicas."""
    own = {"deepseek-v3.toml": (1024, 2048), "gpt-oss-nvl72.toml": (64, 320), "lora.toml": (1, 2)}
    # As many again of another kind are beside them.
    own |= {"plan-mixed.toml": (64, 128), "plan-zones.toml": (32, 64)}
    own |= {"plan-mixed-pipelines.toml": (64, 128)}
    return own.get(path.name, (256, 512) if "[strategy.plan]" in path.read_text() else (2, 4))


by_name = pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)

# Each kind of scenario once: the program's own tests ask every command about every example.
KINDS = ("all-reduce", "lora", "one-worker", "quickstart", "transformer")
SOME = ALL if "STEPCAST_FULL_TESTS" in os.environ else [path for path in ALL if path.stem in KINDS]
some_by_name = pytest.mark.parametrize("path", SOME, ids=lambda path: path.name)


@by_name
def test_predict(path: Path, cli: Cli) -> None:
    ask = ["--json", *sets(QUICK)]
    forecast = stepcast.predict(path, set=QUICK)
    assert forecast.to_json() == cli("predict", path, *ask)
    assert forecast.iteration_s == forecast.to_dict()["prediction"]["iteration_s"]
    if path not in SOME:
        return
    few, more = workers(path)
    some = stepcast.predict(path, set=QUICK, workers=[more, few, few], worth=0.2)
    assert some.to_json() == cli("predict", path, "--workers", f"{few},{more}", "--worth", "20", *ask)


@some_by_name
def test_compare(path: Path, cli: Cli) -> None:
    told = stepcast.compare(path, set=QUICK)
    assert told.to_json() == cli("compare", path, "--json", *sets(QUICK))
    for row in told.rows():
        if "iteration_s" in row:
            few, _ = workers(path)
            one = stepcast.predict(path, method=row["method"], workers=few, set=QUICK)
            ask = ["--method", row["method"], "--workers", few, "--json", *sets(QUICK)]
            assert one.to_json() == cli("predict", path, *ask), row["method"]


QUESTIONS = json.loads((ROOT / "crates/cli/tests/roads/questions.json").read_text())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["flags"])
def test_questions_by_every_road(question: dict[str, Any], cli: Cli, server: str) -> None:
    """Flags, keys from Python and a scenario on the page: one answer."""
    by_flags = cli("predict", "--json", *shlex.split(question["flags"]))
    assert stepcast.predict(set=question["keys"]).to_json() == by_flags
    written = stepcast.Scenario(set=question["keys"]).to_toml()
    assert answered(server, "predict", written) == json.loads(by_flags)


def test_remedies_by_every_road(cli: Cli, server: str) -> None:
    """The refusals of methods are the same data from Python, the command line and the API."""
    path = ROOT / "examples/all-reduce.toml"
    told = json.loads(stepcast.compare(path).to_json())["rows"]
    assert told == json.loads(cli("compare", path, "--json"))["rows"]
    assert told == answered(server, "compare", path.read_text())["rows"]
    kinds = {remedy["kind"] for row in told for remedy in row.get("remedies", [])}
    assert {"use-method", "set-key"} <= kinds
    with pytest.raises(stepcast.InputError) as caught:
        stepcast.predict('model.zoo = "vgg61"\n')
    assert caught.value.remedies == answered(server, "predict", 'model.zoo = "vgg61"\n')["remedies"]
    with pytest.raises(stepcast.InputError, match='"strategy.architecture": "parameter-server"'):
        stepcast.predict(ROOT / "examples/transformer.toml", method="zeng2023")


@some_by_name
def test_sweep(path: Path, cli: Cli) -> None:
    # A plan has its own batches.
    key, sizes = ("strategy.plan.micro-batch", [1, 2, 4]) if "global-batch" in path.read_text() else ("batch", [8, 16, 32])
    vary = {key: sizes, "network.bandwidth": ["1Gbit/s", "25Gbit/s"]}
    swept = stepcast.sweep(path, vary, set=QUICK)
    ask = ["--vary", f"{key}={','.join(map(str, sizes))}", "--vary", "network.bandwidth=1Gbit/s,25Gbit/s", *sets(QUICK)]
    assert swept.to_jsonl().decode() == cli("sweep", path, *ask, "--json")
    assert len(list(swept.rows())) == len(swept) == 6


def test_sweep_into_files(cli: Cli, tmp_path: Path) -> None:
    for format in ("csv", "jsonl"):
        ours, theirs = tmp_path / f"ours.{format}", tmp_path / f"theirs.{format}"
        vary = ["batch=1..100", "servers.count=1..9"]
        swept = stepcast.sweep("examples/quickstart.toml", vary, output=ours)
        flags = [word for axis in vary for word in ("--vary", axis)]
        cli("sweep", "examples/quickstart.toml", *flags, "-o", theirs)
        whole = ours.read_bytes()
        assert whole == theirs.read_bytes()
        assert sum(1 for _ in swept.rows()) == 900
        # Whoever began the file, the other may complete it.
        theirs.write_bytes(whole[: len(whole) // 2])
        stepcast.sweep("examples/quickstart.toml", vary, output=theirs, resume=True)
        assert theirs.read_bytes() == whole


def test_search(cli: Cli) -> None:
    ask = ["--minimize", "cost", "--subject-to", "deadline<=2d", "--vary", "batch=16..128:x2", "--vary", "servers.count=1..4"]
    found = stepcast.search(
        "examples/search.toml",
        minimize="cost",
        subject_to=["deadline<=2d"],
        vary={"batch": "16..128:x2", "servers.count": range(1, 5)},
    )
    assert found.to_json() == cli("search", "examples/search.toml", *ask, "--json")
    assert found.gap == 0.0 and found.front and "<svg" in (found.to_svg() or "")
    priced = {"tesla-t4": 0.4, "tesla-v100-sxm2-16gb": 2.5}
    found = stepcast.search("examples/search.toml", minimize="time", devices=priced, count="0..4")
    devices = ["--devices", ",".join(priced), "--count", "0..4"]
    prices = [word for item in priced.items() for word in ("--price", "{}={}".format(*item))]
    assert found.to_json() == cli("search", "examples/search.toml", "--minimize", "time", *devices, *prices, "--json")


@pytest.mark.parametrize("path", ["examples/all-reduce.toml", "examples/one-worker.json", None])
def test_fuse(path: str | None, cli: Cli) -> None:
    told = stepcast.fuse(path)
    assert told.to_json() == cli("fuse", *[path] if path else [], "--json")
    assert sum(len(message) for message in told.plan) == told.to_dict()["tensors"]


def test_validate(cli: Cli) -> None:
    told = stepcast.validate("zeng2023")
    assert told.to_json() == cli("validate", "zeng2023", "--json")
    assert told.holds


def test_fit(cli: Cli, tmp_path: Path) -> None:
    data = ROOT / "examples/fitted-device/all-reduce.csv"
    ours, theirs = tmp_path / "ours.toml", tmp_path / "theirs.toml"
    told = stepcast.fit("transfer", data, output=ours)
    printed = json.loads(cli("fit", "transfer", data, "-o", theirs, "--json"))
    assert told.to_dict() == {**printed, "written": str(ours)}
    assert ours.read_text() == theirs.read_text() == told.artefact
    with pytest.raises(stepcast.InputError, match="exists already"):
        stepcast.fit("transfer", data, output=ours)


def test_import(cli: Cli, tmp_path: Path) -> None:
    table = tmp_path / "layers.csv"
    table.write_text("layer,forward_ms,backward_ms,bytes\nconv,1.5,3,4000\nhead,0.5,1,2000000\n")
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    told = stepcast.import_trace(table, batch=8, output=ours)
    printed = json.loads(cli("import", table, "--batch", 8, "-o", theirs, "--json"))
    assert told.to_dict() == {**printed, "written": str(ours)}
    assert ours.read_bytes() == theirs.read_bytes()
    scenario = told.scenario(workers=[{"count": 4}])
    assert scenario.workers == 4 and stepcast.predict(scenario).iteration_s > 0
