"""Sweeps on other processes: the same bytes in the same order, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import stepcast
from stepcast import executors

VARY = {"batch": range(1, 101), "servers.count": range(1, 21)}
QUICK_START = "examples/quickstart.toml"


@pytest.fixture(scope="module")
def local() -> bytes:
    os.chdir(ROOT)
    return stepcast.sweep(QUICK_START, VARY).to_jsonl()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method: str, local: bytes) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        swept = stepcast.sweep(QUICK_START, VARY, executor=pool, chunk=300, threads=1)
        assert swept.to_jsonl() == local
        # Threads inside: those of the parent are not there in a child that was forked.
        assert stepcast.sweep(QUICK_START, VARY, executor=pool, chunk=1500).to_jsonl() == local


def test_files_travel(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text((ROOT / "examples/profile.toml").read_text())
    (tmp_path / "one-worker.json").write_bytes((ROOT / "examples/one-worker.json").read_bytes())
    vary = {"batch": [16, 32, 64], "methods.simulate.steps": [20], "methods.simulate.runs": [2], "methods.simulate.warm-up": [2]}
    scenario = stepcast.Scenario(tmp_path / "job.toml")
    here = stepcast.sweep(scenario, vary).to_jsonl()
    asked = stepcast._stepcast.Sweep(scenario, stepcast.vary.axes(vary), "auto")
    work = executors.Rows.of(asked, "jsonl", 1)
    for file in tmp_path.iterdir():
        file.unlink()
    executors._unpacked.cache_clear()
    assert b"".join(executors.run_chunk(work, i, i + 1) for i in range(3)) == here


def test_a_pool_that_loses_a_worker(local: bytes) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        died = pool.submit(os._exit, 1)
        with pytest.raises(Exception):
            died.result()
        with pytest.warns(RuntimeWarning, match="lost a worker"):
            assert stepcast.sweep(QUICK_START, VARY, executor=pool, chunk=300).to_jsonl() == local


class Unruly(Executor):
    """Runs chunks late, in any order, and loses some of them."""

    def __init__(self) -> None:
        self.handed: list[tuple[int, int]] = []
        self._pool = ThreadPoolExecutor(4)

    def submit(self, function: Any, /, *arguments: Any, **keywords: Any) -> Future[Any]:
        _, since, until = arguments
        lost = since % 700 == 0 and (since, until) not in self.handed
        self.handed.append((since, until))

        def run() -> Any:
            time.sleep(0.002 * (since % 3))
            if lost:
                raise executors.BrokenExecutor("a worker died")
            return function(*arguments)

        return self._pool.submit(run)


def test_lost_chunks_are_run_again(local: bytes) -> None:
    unruly = Unruly()
    assert stepcast.sweep(QUICK_START, VARY, executor=unruly, chunk=100).to_jsonl() == local
    again = {chunk for chunk in unruly.handed if unruly.handed.count(chunk) > 1}
    assert again == {(since, since + 100) for since in range(0, 2000, 700)}
    assert len(unruly.handed) == 20 + len(again)


def test_a_chunk_that_kills_every_worker() -> None:
    class Deadly(Executor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(executors.BrokenExecutor("a worker died"))
            return future

    with pytest.raises(stepcast.StepcastError, match="lost 4 times"):
        stepcast.sweep(QUICK_START, VARY, executor=Deadly())


def test_errors_of_workers_come_back() -> None:
    with ThreadPoolExecutor(1) as pool:
        work = executors.Rows(b"", ("batch=1",), "auto", "jsonl", 1)
        with pytest.raises(Exception):
            list(executors.run(pool, work, 0, 1, 1))


PLAN = {"nodes": [1, 2, 4, 8], "global_batch": 64, "tokens": 1e10}


def searched(**keywords: Any) -> str:
    return stepcast.plan(zoo="llama3-8b", machine="dgx-h100", price={"worker-hour": 2.0}, **PLAN, **keywords).to_json()


def test_plans_on_processes() -> None:
    local = searched()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert searched(executor=pool, threads=1) == local
    unruly = Unruly()
    assert searched(executor=unruly) == local
    assert unruly.handed.count((0, 1)) == 2, "a part that is lost is searched again"


@pytest.fixture(scope="module")
def cluster() -> Any:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    os.chdir(ROOT)
    made = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    )
    with made, distributed.Client(made) as client:
        yield client


def workers(client: Any) -> list[int]:
    return [worker["pid"] for worker in client.run(lambda: {"pid": os.getpid()}).values()]


def test_dask(cluster: Any, local: bytes, tmp_path: Path) -> None:
    swept = stepcast.sweep(QUICK_START, VARY, executor=cluster, chunk=200, threads=1)
    assert swept.to_jsonl() == local


def killed_midway(executor: Any, victim: int, folder: Path) -> None:
    """A sweep of a few seconds; `victim` is killed as soon as rows arrive."""
    vary = {"batch": range(1, 101), "servers.count": range(1, 101)}
    whole = folder / "local.csv"
    stepcast.sweep(QUICK_START, vary, output=whole)
    path = folder / "elsewhere.csv"
    killed = threading.Event()

    def kill() -> None:
        while not path.exists() or path.stat().st_size < 20_000:
            time.sleep(0.001)
        os.kill(victim, signal.SIGKILL)
        killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    stepcast.sweep(QUICK_START, vary, executor=executor, chunk=100, threads=1, output=path)
    killer.join()
    assert killed.is_set() and path.read_bytes() == whole.read_bytes()


def plans_killed_midway(executor: Any, victim: int) -> None:
    """A search over plans; `victim` is killed while it runs."""
    local = searched()
    killer = threading.Timer(0.2, os.kill, (victim, signal.SIGKILL))
    killer.start()
    assert searched(executor=executor, threads=1) == local
    killer.join()


def test_dask_plans(cluster: Any) -> None:
    plans_killed_midway(cluster, workers(cluster)[0])


def test_dask_loses_a_worker(cluster: Any, tmp_path: Path) -> None:
    victim = workers(cluster)[0]
    killed_midway(cluster, victim, tmp_path)
    assert victim not in workers(cluster)


def test_python_m_stepcast(cluster: Any, local: bytes, tmp_path: Path) -> None:
    address = cluster.scheduler.address
    ask = [sys.executable, "-m", "stepcast", "sweep", QUICK_START, "--vary", "batch=1..100", "--vary", "servers.count=1..20"]
    done = subprocess.run([*ask, "--dask", address, "--threads", "1"], capture_output=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == local
    gone = subprocess.run([*ask, "--dask", "tcp://127.0.0.1:1"], capture_output=True, text=True, cwd=ROOT)
    assert gone.returncode == 2 and "help:" in gone.stderr
    wrong = subprocess.run([*ask, "--set", "model.zoo=none"], capture_output=True, text=True, cwd=ROOT)
    assert wrong.returncode == 2 and "error: " in wrong.stderr


@pytest.fixture(scope="module")
def ray() -> Any:
    module = pytest.importorskip("ray", reason="Ray is not installed")
    os.chdir(ROOT)
    module.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    yield module
    module.shutdown()


def test_ray(ray: Any, local: bytes) -> None:
    assert stepcast.sweep(QUICK_START, VARY, executor=ray, chunk=500, threads=1).to_jsonl() == local


def processes(ray: Any) -> list[int]:
    def process() -> int:
        time.sleep(0.2)
        return os.getpid()

    found: list[int] = ray.get([ray.remote(process).remote() for _ in range(3)])
    return found


def test_ray_plans(ray: Any) -> None:
    plans_killed_midway(ray, processes(ray)[0])


def test_ray_loses_a_worker(ray: Any, tmp_path: Path) -> None:
    killed_midway(ray, processes(ray)[0], tmp_path)
