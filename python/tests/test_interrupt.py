"""Ctrl-C stops what runs long, and other threads run meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import ROOT

import stepcast

SLOW = {"methods.simulate.steps": 200, "methods.simulate.runs": 4}

SEARCH = """stepcast.search("examples/async.toml", method="simulate", minimize="iteration", how="heuristic",
    vary={"batch": range(1, 500)}, budget=100_000, set={"methods.simulate.steps": 200})"""
SWEEP = """stepcast.sweep("examples/async.toml", {"batch": range(1, 5000)}, method="simulate", output=sys.argv[1])"""

PROGRAM = """
import sys, stepcast
print("ready", flush=True)
try:
    WORK
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("work", [SEARCH, SWEEP], ids=["search", "sweep"])
def test_control_c(work: str, tmp_path: Path) -> None:
    text = PROGRAM.replace("WORK", work)
    ask = [sys.executable, "-c", text, str(tmp_path / "sweep.jsonl")]
    # Jobs in the background of a shell ignore SIGINT, and so do their children.
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    running = subprocess.Popen(ask, stdout=subprocess.PIPE, text=True, cwd=ROOT, preexec_fn=heard)
    assert running.stdout is not None and running.stdout.readline() == "ready\n"
    time.sleep(1.0)
    assert running.poll() is None, "it was too quick to be interrupted"
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    assert out == "interrupted\n" and running.returncode == 0


def test_other_threads_run_meanwhile() -> None:
    ticks = 0
    over = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not over.is_set():
            ticks += 1
            time.sleep(0.005)

    ticking = threading.Thread(target=tick)
    ticking.start()
    begun = time.monotonic()
    stepcast.predict("examples/async.toml", method="simulate", workers=[2, 4], set=SLOW)
    took = time.monotonic() - begun
    over.set()
    ticking.join()
    assert took > 0.2, "it was too quick to tell"
    assert ticks > 10 * took, "the other thread could hardly run"
