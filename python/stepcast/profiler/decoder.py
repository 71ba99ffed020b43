"""The shape of a transformer, as far as its modules tell it: keys of `[model.transformer]`.

Modules are known by what they have, not by their classes, so that PyTorch's own, those of libraries and those of one's own
are read alike, sharded or not: the widths that modules state are those of the whole layer.
"""

from __future__ import annotations

from typing import Any

HEADS = ("num_heads", "n_heads", "n_head", "num_attention_heads", "nhead", "heads")
HEAD_WIDTH = ("head_dim", "head_width", "head_size", "width")
GROUPS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "kv_heads", "num_key_value_groups_heads")
POSITIONS = ("pos", "wpe")


def decoder(module: Any, sequence: int | None) -> dict[str, Any] | None:
    """The shape; none if it is no transformer, or one of a kind that modules do not tell."""
    layers = _layers(module)
    embeddings = [(name, each) for name, each in module.named_modules() if _is_embedding(each)]
    if not layers or not embeddings or sequence is None:
        return None
    layer = layers[0]
    vocabulary, hidden = max((int(each.num_embeddings), int(each.embedding_dim)) for _, each in embeddings)
    linears = [(name, widths) for name, each in layer.named_modules() if (widths := _widths(each))]
    heads = _stated(layer, HEADS) or _stated(module, HEADS)
    back = [(name, wide) for name, (wide, out) in linears if out == hidden]
    if heads is None or len(back) < 2 or any("expert" in name for name, _ in layer.named_modules()):
        return None
    down, width = max(back, key=lambda own: own[1])
    up = [out for name, (into, out) in linears if into == hidden and out in (width, 2 * width) and name != down]
    attended = next((wide for name, wide in back if name != down), hidden)
    stated = _stated(layer, GROUPS) or _stated(module, GROUPS)
    each = _stated(layer, HEAD_WIDTH)
    if each is not None and attended % each == 0 and heads * each != attended:
        # Tensor parallelism by hand leaves modules with the heads of one rank.
        heads, stated = attended // each, None
    keys = stated or _grouped(linears, hidden, attended, heads)
    norms = [each for _, each in layer.named_modules() if "Norm" in type(each).__name__]
    learned = [each for name, each in embeddings if any(word in name.lower() for word in POSITIONS)]
    has_bias = getattr(dict(layer.named_modules())[down], "bias", None) is not None
    return {
        "layers": len(layers),
        "hidden": hidden,
        "heads": heads,
        "kv-heads": keys,
        "head-width": attended // heads,
        "mlp-width": width,
        "mlp": "swiglu" if len(up) > 1 or up == [2 * width] else "gelu",
        "vocabulary": vocabulary,
        "sequence": sequence,
        "norm": _norm(norms),
        "bias": has_bias,
        "positions": int(learned[0].num_embeddings) if learned else 0,
        "tied": _is_tied(module, embeddings, vocabulary, hidden),
    }


def _layers(module: Any) -> list[Any]:
    """The largest list of modules of one kind that have linear layers."""
    best: list[Any] = []
    for _, each in module.named_modules():
        children = list(each.children())
        kinds = {type(child).__name__ for child in children}
        linear = children and all(sum(1 for one in child.modules() if _widths(one)) > 1 for child in children)
        if len(kinds) == 1 and linear and type(each).__name__.endswith(("ModuleList", "Sequential", "ModuleDict")):
            if _numbers(children) > _numbers(best):
                best = children
    return best


def _numbers(modules: list[Any]) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def _is_embedding(module: Any) -> bool:
    return hasattr(module, "num_embeddings") and hasattr(module, "embedding_dim")


def _widths(module: Any) -> tuple[int, int] | None:
    """Widths of the input and the output of a linear layer."""
    if hasattr(module, "in_features") and hasattr(module, "out_features"):
        return int(module.in_features), int(module.out_features)
    if hasattr(module, "nx") and hasattr(module, "nf"):  # GPT-2 in transformers: a transposed linear layer
        return int(module.nx), int(module.nf)
    return None


def _stated(module: Any, names: tuple[str, ...]) -> int | None:
    """A number that a module, or the configuration that it keeps, has under one of these names."""
    for _, each in module.named_modules():
        for owner in (each, getattr(each, "config", None)):
            for name in names:
                value = getattr(owner, name, None)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
    return None


def _grouped(linears: list[tuple[str, tuple[int, int]]], hidden: int, attended: int, heads: int) -> int:
    """Heads of keys and values, from the widths of their layers: three apart, or one for all."""
    widths = [out for _, (into, out) in linears if into == hidden]
    narrow = [out for out in widths if out < attended and out * heads % attended == 0]
    if len(narrow) >= 2:
        return max(1, min(narrow) * heads // attended)
    joined = [(out - attended) // 2 for out in widths if attended < out < 3 * attended and (out - attended) % 2 == 0]
    whole = [width * heads // attended for width in joined if width * heads % attended == 0]
    return whole[0] if whole else heads


def _norm(norms: list[Any]) -> str:
    if any("RMS" in type(each).__name__ for each in norms):
        return "rms"
    return "layer" if any(getattr(each, "bias", None) is not None for each in norms) else "layer-no-bias"


def _is_tied(module: Any, embeddings: list[tuple[str, Any]], vocabulary: int, hidden: int) -> bool:
    """Whether the output layer has the embedding's weight, or there is none with a weight of its own."""
    tables = [each.weight for _, each in embeddings]
    heads = [each for each in module.modules() if _widths(each) == (hidden, vocabulary)]
    return not any(all(head.weight is not table for table in tables) for head in heads)
