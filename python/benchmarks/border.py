"""What the border costs: one prediction, a million, and workers of Dask one against three.

python python/benchmarks/border.py [STEPCAST]   with the release binary to compare with
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import stepcast

SCENARIO = Path(__file__).parents[2] / "examples" / "quickstart.toml"
MILLION = ["batch=1..1000", "servers.count=1..100", "network.bandwidth=1Gbit/s,2Gbit/s,4Gbit/s,5Gbit/s,8Gbit/s,"
           "10Gbit/s,20Gbit/s,25Gbit/s,40Gbit/s,100Gbit/s"]


def best(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def one() -> None:
    scenario = stepcast.Scenario(SCENARIO)
    calls = 20_000

    def ask() -> None:
        for _ in range(calls):
            scenario.figures("zeng2023").iteration_s

    whole = best(ask, 5) / calls
    sweep = stepcast._stepcast.Sweep(scenario, ["batch=1..20000"], "zeng2023")
    inside = best(lambda: sweep.rows(0, calls, "csv", 1), 5) / calls
    print(f"one prediction from Python: {1e6 * whole:.2f} µs; within a sweep of one thread, with its line of CSV: "
          f"{1e6 * inside:.2f} µs")
    print(f"one forecast (predict): {1e3 * best(lambda: stepcast.predict(scenario), 20):.2f} ms")
    watch = stepcast.watch(None, SCENARIO)

    def steps() -> None:
        for _ in range(calls):
            watch()

    print(f"one watched step: {1e6 * best(steps, 5) / calls:.2f} µs")


def million(binary: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "sweep.csv")
        python = best(lambda: stepcast.sweep(SCENARIO, MILLION, output=out, force=True), 3)
        print(f"a million scenarios from Python: {python:.2f} s on {os.cpu_count()} cores")
        if binary:
            flags = [word for axis in MILLION for word in ("--vary", axis)]
            ask = [binary, "sweep", str(SCENARIO), *flags, "-o", os.path.join(folder, "cli.csv"), "--force"]
            cli = best(lambda: subprocess.run(ask, check=True, capture_output=True), 3)
            same = Path(out).read_bytes() == Path(folder, "cli.csv").read_bytes()
            print(f"by the command line: {cli:.2f} s; Python takes {python / cli:.2f} times as long; same bytes: {same}")


def dask() -> None:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("Dask is not installed")
        return
    took = {}
    for workers in (1, 3):
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
        with cluster, Client(cluster) as client:
            def ask() -> None:
                stepcast.sweep(SCENARIO, MILLION, executor=client, chunk=2048, threads=1, limit=300_000)

            ask()
            took[workers] = best(ask, 2)
    print(f"300,000 scenarios by Dask: one worker {took[1]:.2f} s, three {took[3]:.2f} s, "
          f"{took[1] / took[3]:.2f} times as fast on {os.cpu_count()} cores")


if __name__ == "__main__":
    one()
    million(sys.argv[1] if len(sys.argv) > 1 else None)
    dask()
