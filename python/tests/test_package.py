"""The package itself: types, doctests, and that it needs nothing but Python."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import stepcast


@pytest.mark.parametrize(
    "name",
    [
        "stepcast",
        "stepcast.applying",
        "stepcast.ask",
        "stepcast.catalog",
        "stepcast.errors",
        "stepcast.html",
        "stepcast.planning",
        "stepcast.sweeping",
        "stepcast.vary",
        "stepcast.watching",
    ],
)
def test_doctests(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed


def test_types() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    folder = Path(stepcast.__file__).parent
    assert (folder / "py.typed").exists()
    ask = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--ignore-missing-imports", "-p", "stepcast"]
    done = subprocess.run(ask, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_the_stub_tells_all_there_is() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    ask = [sys.executable, "-m", "mypy.stubtest", "stepcast._stepcast", "--ignore-missing-stub"]
    done = subprocess.run(ask, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_else_is_imported() -> None:
    text = "import sys, stepcast; print([n for n in ('numpy', 'pandas', 'torch', 'distributed', 'ray') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True).stdout == "[]\n"


def test_versions_agree() -> None:
    assert f'version = "{stepcast.__version__}"' in (ROOT / "Cargo.toml").read_text()


def test_misspelt_keywords_are_type_errors(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    path = tmp_path / "misspelt.py"
    path.write_text('import stepcast\nstepcast.Scenario(zoo="vgg16", btach=3)\nstepcast.predict(zoo="vgg16", netwrk="10gbe")\n')
    ask = [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports", str(path)]
    found = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    assert '"btach"' in found and '"netwrk"' in found, found


def test_the_package_brings_the_program() -> None:
    """`stepcast` of the wheel is the command line, and a printed forecast is its answer."""
    asked = ["predict", "--model", "resnet50", "--workers", "8"]
    done = subprocess.run([sys.executable, "-m", "stepcast", *asked], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("resnet50 on 8 × ")
    wrong = subprocess.run([sys.executable, "-m", "stepcast", "predict", "--modl"], capture_output=True, check=False)
    assert wrong.returncode == 2
    forecast = stepcast.predict(stepcast.Scenario(set=["model.zoo=resnet50", "cluster.workers.count=8"]))
    assert str(forecast).splitlines()[0] == done.stdout.splitlines()[0]


def test_the_catalog_is_listed() -> None:
    assert {"dgx-h100"} < {machine.id for machine in stepcast.machines()}
    assert {"10gbe"} < {network.id for network in stepcast.networks()}
    assert all(device.memory.endswith("B") for device in stepcast.devices())
