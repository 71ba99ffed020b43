"""Keys of scenarios in columns of published runs: what stands between the braces of an inline table of TOML."""

import re

COLUMNS = ["shape", "model", "layers", "sequence", "device", "rated", "gpus", "node", "inside", "domain", "outside", "ports", "plan",
           "strategy", "seconds"]


def value(key, text):
    if key in ("recompute", "offload") and text[0] != "[":
        return f'["{text}"]'
    plain = re.fullmatch(r"[-+.\de]+", text) or text in ("true", "false") or text[0] in '["'
    return text if plain else f'"{text}"'


def keys(pairs):
    """`a=1 b=word` as keys of TOML."""
    named = [pair.split("=", 1) for pair in pairs.split(" ") if pair]
    return ", ".join(f"{key} = {value(key, text)}" for key, text in named)


def columns(row):
    """A run with its keys. Settings are those of the plan, behind a slash those of the strategy; a device and its links have what their data
    sheets say otherwise behind bars; `keys` are those of a shape beside its layers and its sequence."""
    settings = row["settings"].split(" ")
    sequence = row["sequence"]
    if row["shape"] == "gpt":
        shape = " ".join(f"{key}={row[key]}" for key in ("hidden", "heads", "vocabulary"))
        model = keys(f"{shape} mlp=gelu norm=layer bias=true positions={sequence} tied=true")
    else:
        model = keys(row.get("keys") or f"base={row['shape']}")
    device, *rated = row["device"].split("|")
    inside, _, domain = row["inside"].partition("|domain=")
    return row | {
        "model": model, "device": device, "rated": ", ".join('{} = "{}"'.format(*pair.split("=", 1)) for pair in rated),
        "inside": inside, "domain": domain, "plan": keys(" ".join(pair for pair in settings if pair[0] != "/")),
        "strategy": keys(" ".join(pair[1:] for pair in settings if pair[0] == "/")),
    }
