"""What the tests share: the examples, and the command line to compare with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a running `stepcast serve`."""
    path = binary()
    if path is None:
        pytest.skip("there is no binary to serve: cargo build -p stepcast-cli, or set STEPCAST_CLI")
    with subprocess.Popen([path, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().strip().rstrip("/")
        process.terminate()


def answered(server: str, command: str, scenario: str) -> Any:
    """The JSON of the API, whether it is an answer or a problem."""
    body = json.dumps({"scenario": scenario}).encode()
    asked = urllib.request.Request(f"{server}/api/v1/{command}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as problem:
        return json.load(problem)


def sets(changes: dict[str, object]) -> list[str]:
    return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
