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
    ask = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--ignore-missing-imports", str(folder)]
    done = subprocess.run(ask, capture_output=True, text=True, cwd=folder.parent)
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
