"""Fusion plans: on names alone, and on real training over gloo where PyTorch is there."""

from __future__ import annotations

import os
import socket
import sys
import types
from multiprocessing import get_context
from typing import Any

import pytest

import stepcast
from stepcast.applying import Fused, messages

SIZES = [64, 256, 256, 256, 256, 64]


def test_messages_are_lists_of_parameters() -> None:
    names = ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert messages([["module.2.bias", "2.weight"], ["0.bias"]], names) == [["2.bias", "2.weight"], ["0.bias"], ["0.weight"]]
    assert messages([], names) == [names]
    for wrong in ([["3.weight"]], [["0.weight"], ["0.weight"]]):
        with pytest.raises(stepcast.InputError, match="no such parameter"):
            messages(wrong, names)


class Numbers:
    """A tensor, as far as the hook uses one."""

    is_cuda, device = False, "cpu"

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def reshape(self, _: int) -> Numbers:
        return self

    def numel(self) -> int:
        return len(self.values)

    def div_(self, by: float) -> Numbers:
        self.values = [value / by for value in self.values]
        return self

    def __getitem__(self, part: slice) -> Numbers:
        return Numbers(self.values[part])

    def view_as(self, _: Numbers) -> Numbers:
        return self

    def copy_(self, other: Numbers) -> None:
        self.values[:] = other.values


class Later:
    """A future."""

    def __init__(self, devices: Any = None) -> None:
        self.value: Any = None
        self.actions: list[Any] = []

    def set_result(self, value: Any) -> None:
        self.value = value
        for action in self.actions:
            action(self)

    def then(self, action: Any) -> None:
        self.actions.append(action)


class Parcel:
    """A bucket of DistributedDataParallel."""

    def __init__(self, parts: list[tuple[object, Numbers]]) -> None:
        self._parts = parts

    def buffer(self) -> Numbers:
        return Numbers([])

    def parameters(self) -> list[object]:
        return [parameter for parameter, _ in self._parts]

    def gradients(self) -> list[Numbers]:
        return [gradient for _, gradient in self._parts]


def test_messages_are_sent_when_they_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[Numbers, Later]] = []

    def all_reduce(flat: Numbers, group: Any, async_op: bool) -> Any:
        sent.append((flat, Later()))
        return types.SimpleNamespace(get_future=lambda: sent[-1][1])

    torch = types.ModuleType("torch")
    torch.cat = lambda parts: Numbers([value for part in parts for value in part.values])  # type: ignore[attr-defined]
    torch.futures = types.SimpleNamespace(Future=Later)  # type: ignore[attr-defined]
    dist = types.ModuleType("torch.distributed")
    dist.get_world_size = lambda group: 2  # type: ignore[attr-defined]
    dist.all_reduce = all_reduce  # type: ignore[attr-defined]
    torch.distributed = dist  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.distributed", dist)
    a, b, c = object(), object(), object()
    fused = Fused([[c, b], [a]], None)
    for step in (1.0, 2.0):
        sent.clear()
        gradients = {c: Numbers([step]), b: Numbers([2 * step, 3 * step]), a: Numbers([4 * step])}
        # The second bucket has gradients of both messages.
        first = fused.hook(Parcel([(c, gradients[c])]))
        assert not sent, "the first message waits for its second gradient"
        second = fused.hook(Parcel([(b, gradients[b]), (a, gradients[a])]))
        assert [flat.values for flat, _ in sent] == [[step / 2, step, 1.5 * step], [2 * step]]
        # The other rank has the same gradients; the later message arrives first.
        for flat, work in reversed(sent):
            assert second.value is None and first.value is None
            flat.values = [2 * value for value in flat.values]
            work.set_result(None)
        assert first.value is not None and second.value is not None
        assert [gradients[one].values for one in (c, b, a)] == [[step], [2 * step, 3 * step], [4 * step]]


def _train(rank: int, port: int, plan: list[list[str]] | None, answers: Any) -> None:
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(a, b) for a, b in zip(SIZES, SIZES[1:], strict=False)]
    model: Any = torch.nn.Sequential(*layers)
    wrapped = torch.nn.parallel.DistributedDataParallel(model) if plan is None else stepcast.apply(plan, model)
    torch.manual_seed(rank)
    for _ in range(5):
        wrapped.zero_grad()
        wrapped(torch.randn(8, SIZES[0])).square().mean().backward()
    answers.put((rank, [p.grad.flatten().tolist() for p in model.parameters()]))
    dist.destroy_process_group()


def _run(plan: list[list[str]] | None) -> list[list[float]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = get_context("spawn")
    answers = context.Queue()
    processes = [context.Process(target=_train, args=(rank, port, plan, answers)) for rank in range(2)]
    for process in processes:
        process.start()
    found = sorted(answers.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(60)
    assert found[0][1] == found[1][1], "both ranks have the same gradients"
    gradients: list[list[float]] = found[0][1]
    return gradients


def test_gradients_are_those_of_plain_training() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    names = [f"{layer}.{kind}" for layer in reversed(range(len(SIZES) - 1)) for kind in ("bias", "weight")]
    plain = _run(None)
    for plan in ([[name] for name in names], [names], [names[:3], names[3:7], names[7:]]):
        for one, other in zip(plain, _run(plan), strict=True):
            assert one == pytest.approx(other, rel=1e-5, abs=1e-7)
