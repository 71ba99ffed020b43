"""What fusion plans gain: the forecast beside real training of two ranks under DistributedDataParallel over gloo.

python python/benchmarks/fusion.py [--rate 1gbit] [--delay 200us] [--depth 24] [--width 256] [--batch 512] [--rounds 9] [--json]

All-reduces are measured on the link first, then a worker is profiled without communication. The plans of `stepcast.fuse`
follow from these two; nothing is fitted to the training that they are compared with. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from loopback import Link

SIZES = [1 << exponent for exponent in range(8, 25, 2)]
"""Bytes of the all-reduces that are measured."""
CHANNELS = 2
"""Threads of gloo, and so all-reduces under way at once."""
WARM_UP = 4
BLOCK = 4
"""Steps that are timed at a time: plans take turns, so that a slow minute of the machine hits all of them."""


def main() -> None:
    asked = _arguments()
    if asked.rank:
        found = Rank(asked).measure()
        if found is not None:
            print(json.dumps(found))
        return
    command = [sys.executable, __file__, "--rank", *sys.argv[1:]]
    with Link(asked.rate, asked.delay) as link:
        found = json.loads(link.run(command, timeout_s=540))
        found["link"] = link.shaped
    print(json.dumps(found, indent=1) if asked.json else _table(found))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit", help="rate of the link, as tc writes it")
    parser.add_argument("--delay", default="200us", help="one-way delay of the link, where the kernel has netem")
    parser.add_argument("--depth", type=int, default=24, help="blocks of the model, of four tensors each")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=9, help=f"turns of every plan, of {BLOCK} steps each")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


class Rank:
    """One of the two processes that train."""

    def __init__(self, asked: argparse.Namespace) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.dist, self.asked = torch, dist, asked
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        torch.manual_seed(1 + self.rank)
        self.inputs = torch.randn(asked.batch, asked.width)

    def measure(self) -> dict[str, Any] | None:
        import stepcast

        curve = [[f"{size} B", f"{self.all_reduce_s(size):.9f} s"] for size in SIZES]
        profile = self.profile()
        answer: list[Any] = [None]
        if self.rank == 0:
            # Growing times: a longer message that happened to be faster is noise.
            for (_, before), pair in zip(curve, curve[1:], strict=False):
                pair[1] = max(before, pair[1], key=lambda text: float(text.split()[0]))
            link = {"strategy.all-reduce.measured": curve, "strategy.all-reduce.channels": CHANNELS}
            scenario = profile.scenario(2, set=link)
            fusion = stepcast.fuse(scenario)
            answer = [(fusion.plan, {row["rule"]: row for row in fusion.rows()}, fusion.gain)]
        self.dist.broadcast_object_list(answer)
        plan, rules, forecast_gain = answer[0]
        gradients = [name for message in plan for name in message]
        ways: dict[str, Callable[[Any], Any]] = {
            next(rule for rule in rules if rule.startswith("as it is")): lambda model: self.plain(model),
            "PyTorch, 1 MiB": lambda model: self.plain(model, bucket_cap_mb=1),
            "no fusion": lambda model: stepcast.apply([[name] for name in gradients], model),
            "all at the end": lambda model: stepcast.apply([gradients], model),
            "best plan": lambda model: stepcast.apply(plan, model),
        }
        trained = {name: Trained(self, way) for name, way in ways.items() if name in rules}
        plain, best = next(iter(trained.values())), trained["best plan"]
        differ = max(one.differs(plain) for one in trained.values())
        sent = best.sent()
        sizes = {name: parameter.numel() for name, parameter in best.model.named_parameters()}
        wanted = [sum(sizes[name] for name in message) for message in plan]
        for _ in range(self.asked.rounds):
            for one in trained.values():
                one.turn()
        self.dist.barrier()
        self.dist.destroy_process_group()
        if self.rank != 0:
            return None
        base = plain.step_s()
        lines = [
            {
                "rule": name,
                "messages": rules[name]["messages"],
                "forecast_s": rules[name]["iteration_s"],
                "real_s": one.step_s(),
                "forecast_gain": rules[name]["gain"],
                "real_gain": base / one.step_s() - 1,
            }
            for name, one in trained.items()
        ]
        return {
            "tensors": len(sizes),
            "bytes": 4 * sum(sizes.values()),
            "alone_s": profile.step_s,
            "all_reduce": curve,
            "gradients_differ_by": differ,
            "sent": sent,
            "wanted": wanted,
            "forecast_gain": forecast_gain,
            "lines": lines,
        }

    def model(self) -> Any:
        """Blocks of normalisation and a linear layer."""
        nn, width = self.torch.nn, self.asked.width
        self.torch.manual_seed(0)
        blocks = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(self.asked.depth)]
        return nn.Sequential(*blocks)

    def plain(self, model: Any, **keywords: Any) -> Any:
        return self.torch.nn.parallel.DistributedDataParallel(model, **keywords)

    def step(self, model: Any, optimiser: Any) -> None:
        optimiser.zero_grad()
        model(self.inputs).square().mean().backward()
        optimiser.step()

    def optimiser(self, model: Any) -> Any:
        return self.torch.optim.SGD(model.parameters(), lr=1e-3)

    def all_reduce_s(self, size: int) -> float:
        tensor = self.torch.zeros(max(1, size // 4))
        times = []
        for turn in range(3 + 12):
            self.dist.barrier()
            begun = time.perf_counter()
            self.dist.all_reduce(tensor)
            if turn >= 3:
                times.append(time.perf_counter() - begun)
        return statistics.median(times)

    def profile(self) -> Any:
        """A worker by itself, while the other does the same."""
        import stepcast

        model = self.model()
        optimiser = self.optimiser(model)
        self.dist.barrier()
        with stepcast.profile(model, quiet=True) as found:
            for _ in range(40):
                self.step(model, optimiser)
        return found


class Trained:
    """A copy of the model under one rule."""

    def __init__(self, rank: Rank, way: Callable[[Any], Any]) -> None:
        self.rank = rank
        self.model = rank.model()
        self.wrapped = way(self.model)
        self.optimiser = rank.optimiser(self.model)
        # Weights stay as they are, so that all copies are alike; PyTorch makes its final buckets after the first step.
        for _ in range(WARM_UP):
            self.wrapped.zero_grad()
            self.wrapped(rank.inputs).square().mean().backward()
        self.gradients = [parameter.grad.clone() for parameter in self.model.parameters()]
        self.times: list[float] = []

    def differs(self, other: Trained) -> float:
        """The largest difference of gradients, against the largest gradient of the tensor."""
        pairs = zip(self.gradients, other.gradients, strict=True)
        return max(float((one - two).abs().max() / two.abs().max().clamp_min(1e-30)) for one, two in pairs)

    def sent(self) -> list[int]:
        """Numbers in the messages of one step, in the order in which they are sent."""
        dist, sizes = self.rank.dist, []
        own = dist.all_reduce

        def noted(tensor: Any, *given: Any, **keywords: Any) -> Any:
            sizes.append(tensor.numel())
            return own(tensor, *given, **keywords)

        dist.all_reduce = noted
        try:
            self.rank.step(self.wrapped, self.optimiser)
        finally:
            dist.all_reduce = own
        return sizes

    def turn(self) -> None:
        self.rank.dist.barrier()
        begun = time.perf_counter()
        for _ in range(BLOCK):
            self.rank.step(self.wrapped, self.optimiser)
        self.times.append((time.perf_counter() - begun) / BLOCK)

    def step_s(self) -> float:
        return statistics.median(self.times)


def _table(found: dict[str, Any]) -> str:
    head = (
        f"{found['tensors']} gradients of {found['bytes'] / 1e6:.1f} MB, two ranks, {found['link']}; "
        f"a step without communication {1e3 * found['alone_s']:.1f} ms"
    )
    rows = [f"{'':<40}{'messages':>9}{'forecast':>11}{'real':>11}{'forecast gain':>15}{'real gain':>11}"]
    for line in found["lines"]:
        times = f"{1e3 * line['forecast_s']:>8.1f} ms{1e3 * line['real_s']:>8.1f} ms"
        gains = f"{100 * line['forecast_gain']:>+13.1f} %{100 * line['real_gain']:>+9.1f} %"
        rows.append(f"{line['rule']:<40}{line['messages']:>9}{times}{gains}")
    honoured = "as planned" if found["sent"] == found["wanted"] else f"{found['sent']}, planned {found['wanted']}"
    tail = f"gradients differ from plain training by {found['gradients_differ_by']:.1e}; messages sent: {honoured}"
    return "\n".join([head, "", *rows, "", tail])


if __name__ == "__main__":
    main()
