"""What the profiler tells of transformers and of how jobs are split: on stand-ins for modules, and on PyTorch's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import stepcast
from stepcast.profiler.decoder import decoder
from stepcast.profiler.split import Split, speed_of, split


class Weight:
    def __init__(self, *size: int, mesh: Any = None, placements: tuple[Any, ...] = ()) -> None:
        self.size = size
        if mesh is not None:
            self.device_mesh, self.placements = mesh, placements

    def numel(self) -> int:
        product = 1
        for each in self.size:
            product *= each
        return product


class Module:
    """The part of torch.nn.Module that is asked."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__ |= parts

    def _named(self) -> list[tuple[str, Module]]:
        return [(name, part) for name, part in self.__dict__.items() if isinstance(part, Module)]

    def children(self) -> Iterator[Module]:
        return (part for _, part in self._named())

    def named_modules(self, before: str = "") -> Iterator[tuple[str, Module]]:
        yield before, self
        for name, part in self._named():
            yield from part.named_modules(f"{before}.{name}".lstrip("."))

    def modules(self) -> Iterator[Module]:
        return (module for _, module in self.named_modules())

    def parameters(self) -> Iterator[Weight]:
        for module in self.modules():
            yield from (part for part in module.__dict__.values() if isinstance(part, Weight))


class ModuleList(Module):
    pass


class RMSNorm(Module):
    pass


class LayerNorm(Module):
    pass


def linear(into: int, out: int, bias: bool = False, **more: Any) -> Module:
    weight, offset = Weight(out, into, **more), Weight(out) if bias else None
    return Module(in_features=into, out_features=out, weight=weight, bias=offset)


def embedding(rows: int, width: int) -> Module:
    return Module(num_embeddings=rows, embedding_dim=width, weight=Weight(rows, width))


def llama(layers: int = 3, **more: Any) -> Module:
    def layer() -> Module:
        attention = Module(
            n_heads=8, q=linear(512, 512, **more), k=linear(512, 128, **more), v=linear(512, 128, **more),
            o=linear(512, 512, **more),
        )  # fmt: skip
        mlp = Module(gate=linear(512, 1408), up=linear(512, 1408), down=linear(1408, 512))
        return Module(attention=attention, mlp=mlp, norm=RMSNorm(weight=Weight(512)))

    blocks = ModuleList(**{str(number): layer() for number in range(layers)})
    return Module(tokens=embedding(32000, 512), blocks=blocks, out=linear(512, 32000))


def gpt(layers: int = 2) -> Module:
    def layer() -> Module:
        attention = Module(num_heads=12, qkv=linear(768, 3 * 768, True), out=linear(768, 768, True))
        mlp = Module(up=linear(768, 3072, True), down=linear(3072, 768, True))
        return Module(attention=attention, mlp=mlp, norm=LayerNorm(weight=Weight(768), bias=Weight(768)))

    table = embedding(50257, 768)
    head = linear(768, 50257)
    head.weight = table.weight
    blocks = ModuleList(**{str(number): layer() for number in range(layers)})
    return Module(wte=table, wpe=embedding(1024, 768), blocks=blocks, head=head)


def test_a_llama_is_told_from_its_modules() -> None:
    assert decoder(llama(), 2048) == {
        "layers": 3, "hidden": 512, "heads": 8, "kv-heads": 2, "head-width": 64, "mlp-width": 1408, "mlp": "swiglu",
        "vocabulary": 32000, "sequence": 2048, "norm": "rms", "bias": False, "positions": 0, "tied": False,
    }  # fmt: skip


def test_a_gpt_is_told_from_its_modules() -> None:
    assert decoder(gpt(), 1024) == {
        "layers": 2, "hidden": 768, "heads": 12, "kv-heads": 12, "head-width": 64, "mlp-width": 3072, "mlp": "gelu",
        "vocabulary": 50257, "sequence": 1024, "norm": "layer", "bias": True, "positions": 1024, "tied": True,
    }  # fmt: skip


def test_heads_of_one_tensor_parallel_rank_are_those_of_all() -> None:
    divided = llama()
    for layer in divided.blocks.children():
        layer.attention.n_heads, layer.attention.head_dim = 4, 64
    told = decoder(divided, 2048)
    assert told is not None and (told["heads"], told["kv-heads"], told["head-width"]) == (8, 2, 64)


def test_other_networks_are_not_transformers() -> None:
    assert decoder(Module(first=linear(10, 20), second=linear(20, 10)), 128) is None
    assert decoder(llama(), None) is None
    with_experts = llama()
    with_experts.blocks.__dict__["0"].experts = Module()
    assert decoder(with_experts, 128) is None


Shard = type("Shard", (), {})
Replicate = type("Replicate", (), {})


def test_dimensions_of_meshes_are_the_plan() -> None:
    mesh = SimpleNamespace(shape=(2, 4), mesh_dim_names=("dp", "tp"))
    told = split(llama(mesh=mesh, placements=(Replicate(), Shard())), {})
    assert told.plan == {"data": 2, "tensor": 4}
    assert told.groups == [("dp", "data", 2), ("tp", "tensor", 4)]
    assert not told.is_whole
    unnamed = SimpleNamespace(shape=(4,), mesh_dim_names=None)
    assert split(llama(mesh=unnamed, placements=(Shard(),)), {}).plan == {"tensor": 4}
    assert split(llama(), {}).plan == {} and split(llama(), {}).is_whole


def test_fsdp_is_known_by_the_classes_that_it_makes() -> None:
    class FSDPModule(Module):
        def __init__(self, keeps: bool, **parts: Any) -> None:
            super().__init__(**parts)
            self._mesh_info = None if keeps else object()

        def _get_fsdp_state(self) -> Any:
            return SimpleNamespace(_fsdp_param_group=SimpleNamespace(post_forward_mesh_info=self._mesh_info))

    mesh = SimpleNamespace(shape=(8,), mesh_dim_names=None)
    inner = {"mesh": mesh, "placements": (Shard(),)}
    for keeps, sharding in ((False, "zero-3"), (True, "fsdp-keep")):
        module = FSDPModule(True, one=FSDPModule(keeps, own=linear(8, 8, **inner)))
        assert split(module, {}).plan == {"data": 8, "sharding": sharding}
    both = SimpleNamespace(shape=(2, 4), mesh_dim_names=("dp_replicate", "dp_shard"))
    module = FSDPModule(False, own=linear(8, 8, mesh=both, placements=(Replicate(), Shard())))
    assert split(module, {}).plan == {"data": 8, "sharding": "hsdp", "sharding-group": 4}


def test_ranks_that_nothing_explains_are_replicas_or_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepcast.profiler.split._world", lambda: 16)
    mesh = SimpleNamespace(shape=(4,), mesh_dim_names=("tp",))
    assert split(llama(mesh=mesh, placements=(Shard(),)), {}).plan == {"tensor": 4, "data": 4}
    both = SimpleNamespace(shape=(2, 4), mesh_dim_names=("dp", "tp"))
    assert split(llama(mesh=both, placements=(Shard(), Shard())), {}).plan == {"data": 2, "tensor": 4, "pipeline": 2}
    told = split(llama(mesh=mesh, placements=(Shard(),)), {"pipeline": 2})
    assert told.plan == {"tensor": 4, "pipeline": 2, "data": 2} and not told.is_whole
    assert Split(plan={"data": 8}).is_whole


def test_the_speed_is_that_of_the_measured_step() -> None:
    assert speed_of(lambda speed: 0.2 + 1.0 / speed, 0.7) == pytest.approx(2.0, rel=1e-3)
    assert speed_of(lambda speed: 1.0 + 1.0 / speed, 0.5) == pytest.approx(100.0, rel=1e-2)


def test_other_plans_are_predicted_from_a_recorded_step(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    nn = torch.nn

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(64, 4, bias=False, batch_first=True)
            self.first, self.second = nn.LayerNorm(64), nn.LayerNorm(64)
            self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            x = x + self.attention(y, y, y, need_weights=False)[0]
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(512, 64)
            self.layers = nn.ModuleList(Layer() for _ in range(2))
            self.out = nn.Linear(64, 512, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens)
            for layer in self.layers:
                x = layer(x)
            return self.out(x)

    model = Net()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    tokens = torch.randint(512, (4, 32))
    with stepcast.profile(model, quiet=True) as p:
        for _ in range(30):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(tokens).view(-1, 512), tokens.view(-1)).backward()
            optimiser.step()
    assert p.transformer is not None
    told = {key: p.transformer[key] for key in ("layers", "hidden", "heads", "mlp-width", "vocabulary", "sequence")}
    assert told == {"layers": 2, "hidden": 64, "heads": 4, "mlp-width": 256, "vocabulary": 512, "sequence": 32}
    assert p.plan == {} and p.groups == []
    device = "xeon-core"
    assert p.planned(device=device).figures().iteration_s == pytest.approx(p.step_s, rel=0.01)
    split_up = p.predict_plan({"pipeline": 2, "global-batch": 8, "micro-batch": 4}, 2, device=device)
    assert split_up.iteration_s > p.step_s
    with pytest.raises(stepcast.InputError, match="device"):
        p.planned()
