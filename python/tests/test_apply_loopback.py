"""A fusion plan on real training of two ranks: the forecast gain beside the real one. Needs PyTorch."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "fusion.py"

CLEAR = 0.15
"""A forecast gain that real training must show the sign of."""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: pip install torch")
def test_the_forecast_gain_stands_beside_the_real_one(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [sys.executable, str(SCRIPT), "--json", "--depth", "16", "--rounds", "5"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["gradients_differ_by"] <= 1e-6
    assert found["sent"] == found["wanted"], "messages are those of the plan, in its order"
    best = found["lines"][-1]
    with capsys.disabled():
        gains = f"forecast gain {100 * best['forecast_gain']:.0f} %, real {100 * best['real_gain']:.0f} %"
        print(f"\nbest plan of {best['messages']} messages on {found['link']}: {gains}")
    if best["forecast_gain"] > CLEAR:
        assert best["real_gain"] > 0
