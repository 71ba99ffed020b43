"""What the tests share: the examples, and the command line to compare with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.toml") if path.name != "Cargo.toml")

QUICK = {"methods.simulate.runs": 2, "methods.simulate.steps": 20, "methods.simulate.warm-up": 2}
"""Simulations that are long enough to be one."""

Cli = Callable[..., str]


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def binary() -> Path | None:
    named = os.environ.get("STEPCAST_CLI")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [target / profile / "stepcast" for profile in ("release", "debug")]
    found = [Path(named)] if named else [path for path in built if path.exists()]
    if not found and (installed := shutil.which("stepcast")):
        found = [Path(installed)]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


@pytest.fixture(scope="session")
def cli() -> Cli:
    """Runs the command line and gives what it prints; the newest binary is meant."""
    path = binary()
    if path is None:
        pytest.skip("there is no binary to compare with: cargo build -p stepcast-cli, or set STEPCAST_CLI")

    def run(*arguments: object, code: int = 0) -> str:
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


def sets(changes: dict[str, object]) -> list[str]:
    return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
