"""Counts the passes of scans over memory on one H200: fits `scans.csv` of the validation set transformer-steps, with every shape left out in turn.

    python3 scans.py ../../validation/transformer-steps/scans.csv

Needs numpy and scipy. A time is a sum of what is read and written at the rate of passes, of the chunks that a delta net's state goes
through one after the other, and of the starts of kernels; coefficients are not negative and minimise relative errors. Those in
`compute/mixers.rs` are rounded from fits of convolution, scan and norm one by one, which the table has together.
"""
import csv
import math
import sys

import numpy as np
from scipy.optimize import nnls

PASS = 0.5774 * 4.8e12
START = 4.4e-6
MULTIPROCESSORS = 132
KERNELS = {"delta": [17, 33], "mamba-2": [9, 46], "mamba-1": [4, 15]}


def terms(row):
    """Seconds of one pass over values, of one over states, of a chunk in every round of blocks, and of a thousand
    numbers for each head in its norm; of Mamba 1, of a picosecond for each element of a state."""
    own = {key: float(value) for key, value in row.items() if key != "kind"}
    tokens = own["sequence"] * own["micro_batch"]
    inner = own["heads"] * own["width"]
    values = 2 * tokens * inner / PASS
    if row["kind"] == "delta":
        rounds = math.ceil(own["micro_batch"] * inner / 32 / MULTIPROCESSORS)
        states = 4 * tokens * inner * own["key_width"] / 64 / PASS
        return [values, states, own["sequence"] / 64 * rounds * 1e-6, 2 * tokens * own["heads"] * 1e3 / PASS]
    if row["kind"] == "mamba-2":
        return [values, 4 * tokens * inner * own["state"] / own["chunk"] / PASS, 0.0, 0.0]
    return [tokens * inner * own["state"] / 1e12, 0.0, 0.0, 0.0]


def solve(design, measured, starts):
    return nnls(design / measured[:, None], (measured - starts) / measured)[0]


rows = list(csv.DictReader(line for line in open(sys.argv[1]) if not line.startswith("#")))
for kind, kernels in KERNELS.items():
    own = [row for row in rows if row["kind"] == kind]
    design = np.array([terms(row) for row in own])
    shapes = [tuple(row[key] for key in ("key_heads", "heads", "key_width", "width", "groups", "state", "chunk")) for row in own]
    for index, name in enumerate(("forward", "backward")):
        measured = np.array([float(row[f"{name}_ms"]) / 1e3 for row in own])
        starts = np.full(len(own), kernels[index] * START)
        errors = []
        for shape in sorted(set(shapes)):
            out = np.array([other == shape for other in shapes])
            fitted = solve(design[~out], measured[~out], starts[~out])
            errors += list(np.abs((design[out] @ fitted + starts[out]) / measured[out] - 1))
        fitted = solve(design, measured, starts)
        print(f"{kind:8} {name:8} {np.round(fitted, 2)}  shape left out: mean {np.mean(errors):.1%}, worst {np.max(errors):.1%}")
