"""Plans and watched jobs: those of the command line, and typed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from conftest import ROOT, Cli

import stepcast

JOB = {"zoo": "llama3-8b", "machine": "dgx-h100", "price": {"worker-hour": 2.0}}
LAUNCH = "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 " \
    "--num-attention-heads 16 --seq-length 2048 --vocab-size 50304 --micro-batch-size 1 --global-batch-size 64 " \
    "--use-distributed-optimizer --overlap-grad-reduce --bf16 --no-such-flag 3"


def test_plans_are_those_of_the_command_line(cli: Cli, tmp_path: Path) -> None:
    found = stepcast.plan(**JOB, nodes=[1, 2], global_batch=64, tokens=1e10, minimize="cost")
    file = tmp_path / "job.toml"
    file.write_text(stepcast.Scenario(**JOB).to_toml())
    ask = ["--nodes", "1,2", "--global-batch", "64", "--tokens", "1e10", "--minimize", "cost"]
    assert found.to_json() == cli("plan", file, *ask, "--json")
    sharded = stepcast.plan(**JOB, nodes=2, global_batch=64, set={"plan.sharding": ["zero-3"], "plan.tensor": [1],
                            "plan.pipeline": [1], "plan.context": [1]})
    assert "FULL_SHARD" in sharded.emit("fsdp")
    with pytest.raises(stepcast.InputError, match="no framework"):
        sharded.emit("caffe")


def test_plans_are_typed() -> None:
    found = stepcast.plan(**JOB, nodes=[1, 2], global_batch=64, tokens=1e10)
    best, training = found.best, found.training
    assert best.workers == 8 * best.nodes and training is not None
    assert training.goodput_range is not None and training.goodput_range[0] <= training.goodput <= training.goodput_range[1]
    assert best in found.front and any(family.chosen for family in found.families)
    assert found.counts["plans"] > found.counts["evaluated"] > 0
    assert found.confirmation.confirmed and found.confirmation.step_s is not None
    planned = found.scenario()
    assert planned.workers == best.workers
    assert stepcast.predict(planned, workers=[]).iteration_s == pytest.approx(best.step_s)
    assert json.loads(found.to_json()) == found.to_dict() and "<table>" in found._repr_html_()


def test_the_best_offer_is_chosen() -> None:
    offers = ["dgx-a100", {"machine": "dgx-h100", "name": "new", "worker-hour": 3.0}]
    found = stepcast.plan(**JOB, offers=offers, nodes=[1, 2], global_batch=64, set={"plan.virtual-stages": [1]})
    assert found.best.machine == "new" and found.best.nodes == 2
    planned = found.scenario()
    assert planned.workers == found.best.workers
    assert stepcast.predict(planned, workers=[]).iteration_s == pytest.approx(found.best.step_s)
    machines = {family.value for family in found.families if family.property == "machine"}
    assert machines == {"dgx-a100", "new"}


def test_stages_may_differ() -> None:
    only = {"plan.micro-batch": [4], "plan.pipeline": [4], "plan.tensor": [1], "plan.context": [1], "plan.recompute": ["layer"],
            "plan.schedule": ["1f1b"], "plan.virtual-stages": [1]}
    found = stepcast.plan(**JOB, nodes=[1], global_batch=64, set=only)
    assert found.stages is not None and found.stages.gain > 0
    assert found.stages.least_s <= found.stages.entry.step_s < found.best.step_s
    assert "stage-recompute" in found.stages.toml or "stage-layers" in found.stages.toml
    assert stepcast.plan(**JOB, nodes=[1], global_batch=64, set={**only, "plan.per-stage": False}).stages is None


def test_what_cannot_be_planned_says_why() -> None:
    for change, reason in (
        ({"global_batch": 7, "set": {"plan.tensor": [1], "plan.pipeline": [1], "plan.context": [1]}}, "7 sequences"),
        ({"global_batch": 64, "nodes": [10**8]}, "more than"),
        ({"global_batch": 64, "budget": 1.0, "tokens": 1e12}, "budget"),
    ):
        with pytest.raises(stepcast.InputError, match=reason):
            stepcast.plan(**JOB, **change)
    with pytest.raises(stepcast.InputError):
        stepcast.plan(**JOB, global_batch=64, minimize="beauty")


def test_launch_files_are_scenarios(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "pretrain.sh"
    file.write_text(LAUNCH)
    with pytest.warns(UserWarning, match="--no-such-flag"):
        job = stepcast.Scenario(file, machine="dgx-h100")
    assert job.workers == 16
    assert stepcast.predict(job).to_json() == cli("predict", file, "--machine", "dgx-h100", "--json")
    with pytest.raises(stepcast.InputError, match="on what it runs"):
        stepcast.Scenario(file)


def test_recipes_are_planned_as_they_can_ask_for(cli: Cli) -> None:
    recipe = ROOT / "examples/launch/axolotl.yaml"
    found = stepcast.plan(recipe, set={"cluster.workers.device": "rtx-4090"})
    assert found.to_json() == cli("plan", recipe, "--device", "rtx-4090", "--json")
    assert found.settings[0] == {"name": "micro_batch_size", "scenario": 1, "best": 4}
    assert found.emit("axolotl") == cli("plan", recipe, "--device", "rtx-4090", "--emit", "axolotl")


def test_a_watched_loop() -> None:
    job = stepcast.Scenario(zoo="alexnet", cluster={"workers": [{"count": 1, "device": "a100"}]},
                            strategy={"architecture": "stand-alone", "batch": 1}, data={"samples": 10_000})
    with stepcast.watch(None, job, steps=100) as watch:
        for _ in range(30):
            time.sleep(0.015)
            watch.step()
    found = watch.check
    assert len(watch) == 30 and min(watch.times_s) >= 0.015
    assert found.verdict == "slower" and not found.inside and found.ratio > 1
    assert found.rest_s == pytest.approx(70 * found.measured_s)
    assert "slower than forecast" in watch.report() and "the rest takes" in watch.report()
    assert found.suspects == sorted(found.suspects, key=lambda suspect: -suspect.share)


def test_a_watch_judges_a_contract_and_records_ranks(tmp_path: Path) -> None:
    contract = tmp_path / "contract.toml"
    contract.write_text('agreed-step = "0.001 s"\ntolerance = 0.05\nfalse-alarm = 0.05\nmiss = 0.05\nspread = 0.03\n')
    with stepcast.watch(None, ROOT / "examples/quickstart.toml", contract=contract, record=tmp_path / "ranks") as watch:
        for _ in range(40):
            with watch.loading():
                time.sleep(0.002)
            watch.step()
    assert watch.verdict == "broken"
    lines = (tmp_path / "ranks/rank0.csv").read_text().splitlines()
    assert len(lines) == 41 and lines[0].startswith("rank,step,step-time")
    assert float(lines[5].split(",")[4]) >= 0.002


def test_a_watched_step_costs_little(tmp_path: Path) -> None:
    """Under 0.1 % of a step of 100 ms, with a recording and the test of a contract."""
    contract = tmp_path / "contract.toml"
    contract.write_text('agreed-step = "0.1 s"\ntolerance = 0.05\nfalse-alarm = 0.05\nmiss = 0.05\nspread = 1.0\n')
    with stepcast.watch(None, ROOT / "examples/quickstart.toml", contract=contract, record=tmp_path / "ranks") as watch:
        began = time.perf_counter()
        for _ in range(2000):
            watch.step()
        cost = (time.perf_counter() - began) / 2000
    assert cost < 1e-4, cost


def test_advice_is_that_of_the_plan() -> None:
    offers = [{"machine": "p4d-24xlarge", "node-hour": 22.0}, {"machine": "p5-48xlarge", "node-hour": 55.0}]
    asked = {"zoo": "llama3-8b", "machine": "p5-48xlarge", "offers": offers, "nodes": [2, 4], "tokens": 1e11}
    advice = stepcast.advise(**asked)
    assert advice == stepcast.plan(minimize="cost", **asked).advice
    assert len(advice.candidates) >= 2 and advice.regret > 0 and advice.experiments
    gains = [experiment.gain for experiment in advice.experiments]
    assert gains == sorted(gains, reverse=True)
    with pytest.raises(stepcast.InputError):
        stepcast.advise(zoo="llama3-8b", machine="p5-48xlarge")


def test_a_watch_counts_steps() -> None:
    watch = stepcast.watch(None, ROOT / "examples/quickstart.toml")
    with pytest.raises(stepcast.StepcastError, match="no step"):
        _ = watch.check
    for _ in range(101):
        watch()
    assert len(watch) == 100
    watch.pause()
    watch()
    assert len(watch) == 100


def test_a_watched_model_is_that_of_the_scenario() -> None:
    class Parameter:
        def __init__(self, count: int) -> None:
            self.count = count

        def numel(self) -> int:
            return self.count

    class Module:
        def __init__(self, count: int) -> None:
            self.count = count

        def parameters(self) -> list[Parameter]:
            return [Parameter(self.count)]

    job = stepcast.Scenario(zoo="resnet50", architecture="all-reduce")
    stepcast.watch(Module(job.parameters), job)
    with pytest.raises(stepcast.InputError, match="parameters"):
        stepcast.watch(Module(1000), job)
    with pytest.raises(stepcast.InputError, match="no parameters"):
        stepcast.watch(3, job)


def test_checks_are_those_of_the_command_line(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "steps.csv"
    times = [0.5 + 0.001 * (step % 7) for step in range(40)]
    log.write_text("step-time\n" + "".join(f"{time}\n" for time in times))
    found = stepcast.check("examples/all-reduce.toml", times, steps_left=10)
    assert found.to_json() == cli("check", "examples/all-reduce.toml", "--measured", log, "--steps-left", "10", "--json")
    with pytest.raises(stepcast.InputError, match="no time of a step"):
        stepcast.check("examples/all-reduce.toml", [0.0])
