#!/usr/bin/env python3
"""Peak memory of a PyTorch step, phase by phase: a second writing of analytic::transformer::memory in plain numbers.

    research/transformers/memory.py [validation/transformer-memory/h200.csv]

Prints the error of every measured step, with the phase that needs most. memory.md says what was found."""
import csv
import pathlib
import sys

MIB = 2**20
WORKSPACES = 2 * 32 * MIB  # cuBLAS on Hopper: one workspace for each thread, forward and backward


class Use:
    """Memory in use, and the most of it."""

    def __init__(self, now):
        self.now = self.most = now

    def take(self, size):
        self.now += size
        self.most = max(self.most, self.now)

    def free(self, size):
        self.now -= size


def layer(row):
    """Bytes of a token that a layer keeps, and its matrices."""
    h, f, kv = row["hidden"], row["mlp_width"], row["kv_heads"] * row["hidden"] // row["heads"]
    stream = 4 if row["amp"] else 2
    kept = 2 * stream * h + 4 * h + 2 * (h + 2 * kv) + 2 * h + 4 * row["heads"]
    if row["gpt"]:
        return kept + 16 + 4 * f, [h * (h + 2 * kv), h * h, h * f, h * f]
    return kept + 8 + 2 * (h + kv) + 2 * h + 8 * f, [h * (h + 2 * kv), h * h, h * f, h * f, h * f]


def backward(use, row, tokens, matrices):
    """One layer, which has kept its set; the gradient of its output exists."""
    h, f, kv = row["hidden"], row["mlp_width"], row["kv_heads"] * row["hidden"] // row["heads"]
    amp, stream = row["amp"], (4 if row["amp"] else 2) * row["hidden"] * tokens
    hidden, inner, projected = 2 * h * tokens, 2 * f * tokens, 2 * (h + 2 * kv) * tokens

    def matrix(size, input_gradient, gone):
        use.take(input_gradient)
        use.take(2 * size)
        use.free(gone)
        if amp:
            use.free(2 * size)
            use.take(4 * size)
            use.free(2 * size)

    def cast():
        if amp:
            use.take(hidden)
        return hidden if amp else 0

    def norm():
        if amp:
            use.take(stream)
            use.free(hidden)
        for _ in range(2):
            use.take(stream)
            use.free(2 * stream)

    matrix(matrices[-1], inner, cast() + inner)
    if row["gpt"]:
        use.take(inner)
        use.free(2 * inner)
    else:
        use.take(2 * inner)
        use.free(3 * inner)
        use.take(inner)
        use.free(2 * inner)
        matrix(matrices[3], hidden, inner)
    matrix(matrices[2], hidden, inner + hidden)
    if not row["gpt"]:
        use.take(hidden)
        use.free(2 * hidden)
    norm()
    rotated = 0 if row["gpt"] else 2 * (h + kv) * tokens
    matrix(matrices[1], hidden, cast() + (0 if row["gpt"] else hidden))
    use.take(projected + 2 * hidden)
    use.free(2 * hidden + 2 * hidden + 4 * row["heads"] * tokens + rotated)
    use.take(max(rotated, projected))
    use.free(max(rotated, projected) + projected)
    matrix(matrices[0], hidden, projected + hidden)
    norm()


def peak(row):
    """Bytes and the phase."""
    tokens, h, vocabulary, layers = row["sequence"] * row["micro_batch"], row["hidden"], row["vocabulary"], row["layers"]
    amp, again = row["amp"], row["recompute"]
    kept, matrices = layer(row)
    embedding = vocabulary * h
    small = (13 if row["gpt"] else 2) * h  # norms and biases
    parameters = layers * (sum(matrices) + small) + embedding
    parameters += (row["sequence"] + 2) * h if row["gpt"] else embedding + h
    states, gradient, stream = (12, 4, 4) if amp else (6, 2, 2)
    copies = 2 * sum(matrices) if amp else 0
    logits = vocabulary * tokens
    fixed = states * parameters + WORKSPACES
    each = stream * h * tokens if again else kept * tokens + copies
    after = fixed + layers * each + 4 * logits + (2 + stream) * h * tokens + (2 * embedding if amp else 0)
    use = Use(after)
    use.free(4 * logits + (2 + stream) * h * tokens + (2 * embedding if amp else 0))
    use.take(gradient * embedding + stream * h * tokens)
    for _ in range(layers):
        if again:
            use.take(kept * tokens + copies - stream * h * tokens)
        backward(use, row, tokens, matrices)
        use.take(gradient * small)
    sums = (0 if not row["gpt"] else 1 if amp else 2) * gradient * embedding
    return max(
        (after + 4 * logits + (layers * copies if again else 0), "forward"),
        (after + 8 * logits, "loss"),
        (use.most, "layers"),
        (fixed + gradient * parameters + sums, "embedding"),
    )


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    path = sys.argv[1] if len(sys.argv) > 1 else root / "validation/transformer-memory/h200.csv"
    with open(path) as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    errors = []
    for row in rows:
        if row["kind"] != "step":
            continue
        shape = {key: int(row[key]) for key in row if row[key].isdigit()}
        shape |= {"gpt": row["architecture"] == "gpt", "amp": row["precision"] == "amp"}
        shape["recompute"] = row["recompute"] == "true"
        found, phase = peak(shape)
        error = 100 * (found / shape["bytes"] - 1)
        errors.append(abs(error))
        print(f"{row['architecture']:6}{row['hidden']:>5} {row['precision']:5}{phase:10}{error:+6.2f} %")
    print(f"{len(errors)} steps: mean {sum(errors) / len(errors):.2f} %, worst {max(errors):.2f} %")


if __name__ == "__main__":
    main()
