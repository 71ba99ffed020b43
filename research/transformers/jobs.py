#!/usr/bin/env python3
"""Parallel jobs over gloo by rules: what was tried before crates/validation/src/sets/parallel_jobs was written.

    research/transformers/jobs.py [validation/parallel-jobs/parallel_gloo.jsonl.gz]

Prints mean, worst and mean signed error of several rules for each kind of job. jobs.md says which were kept."""
import collections
import gzip
import itertools
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = sys.argv[1] if len(sys.argv) > 1 else ROOT / "validation/parallel-jobs/parallel_gloo.jsonl.gz"
with gzip.open(PATH, "rt") as lines:
    ROWS = [row for row in map(json.loads, lines) if not row.get("noisy")]
ISSUE = 0.3e-3


def measured(row):
    return statistics.median(row["iter"])


def curve(row, kind, ranks=None):
    sizes = collections.defaultdict(list)
    for other in ROWS:
        same = other["kind"] == kind and (other["rate"], other["world"]) == (row["rate"], row["world"])
        if same and (ranks is None or other["N"] == ranks):
            sizes[other["bytes"]].append(statistics.median(other.get("s") or other["half_round_trip"]))
    return sorted((size, statistics.mean(times)) for size, times in sizes.items())


def time(row, kind, size, ranks=None, active=0):
    """Of a collective; while `active` ranks communicate, no faster than in one group of them."""
    points = curve(row, kind, ranks)
    for (low, a), (high, b) in zip(points, points[1:]):
        if size <= high:
            found = a + (b - a) * max(0, size - low) / (high - low)
            break
    else:
        (low, a), (high, b) = points[-2:]
        found = b + (b - a) / (high - low) * (size - high)
    if ranks and active > ranks and curve(row, kind, active):
        moved = lambda n: (n - 1) / n
        found = max(found, time(row, kind, size, active) * moved(ranks) / moved(active))
    return found


def profile(row, t=1, sp=False):
    """Layers profiled on all ranks at once, and how much slower the slowest of n ranks is."""
    fits = lambda other: all(other[key] == row[key] for key in ("model", "world", "b")) and other["ranks"] > 1
    rows = [other for other in ROWS if other["kind"] == "profile" and fits(other) and other["t"] == t]
    rows = [other for other in rows if other["sp"] == sp] or [other for other in rows if not other["sp"]]
    mean = lambda part, key: statistics.mean(statistics.mean(x[key] for x in other["layers"][part]) for other in rows)
    names = {"embed": slice(0, 1), "block": slice(1, -1), "head": slice(-1, None)}
    layers = {name: {key: mean(part, key) for key in ("fwd", "bwd", "opt")} for name, part in names.items()}

    def wait(n):
        each = [other["total_by_rank"] for other in rows]
        slowest = lambda x: statistics.mean(map(max, itertools.combinations(x, min(n, len(x)))))
        return statistics.mean(slowest(x) / statistics.mean(x) for x in each)

    return layers, wait


def rank_of(row, stage):
    back = row["schedule"] == "zbv" and stage >= row["p"]
    return 2 * row["p"] - 1 - stage if back else stage % row["p"]


def link(row, op, given):
    """The message that an operation waits for, or gives."""
    stage, kind, micro = op
    other = stage + (1 if (kind == "F") == given else -1)
    if kind == "W" or not 0 <= other < len(row["split"]) or rank_of(row, other) == rank_of(row, stage):
        return None
    return ("F" if kind == "F" else "B", stage if given else other, micro)


def actions(row, rule):
    """What every rank does in turn: compute, send, ask for and wait for messages."""
    spans = sorted(row["timeline"], key=lambda span: span[4])
    orders = [[tuple(x[1:4]) for x in spans if x[0] == rank] for rank in range(row["p"])]
    out = [[] for _ in orders]
    if rule != "planned":
        for rank, order in enumerate(orders):
            if rule == "asynchronous":
                out[rank] += [("ask", link(row, op, False)) for op in order if link(row, op, False)]
            for op in order:
                if needed := link(row, op, False):
                    out[rank] += [("ask", needed)] * (rule == "on demand") + [("wait", needed)]
                out[rank].append(("do", op))
                if given := link(row, op, True):
                    out[rank].append(("send", given))
        return out
    asked, done = set(), [0] * len(orders)
    while any(n < len(order) for n, order in zip(done, orders)):
        for rank, order in enumerate(orders):
            if done[rank] == len(order):
                continue
            op = order[done[rank]]
            needed = link(row, op, False)
            if needed and needed not in asked:
                continue
            out[rank] += [("wait", needed)] * bool(needed) + [("do", op)]
            done[rank] += 1
            if given := link(row, op, True):
                out[rank].append(("send", given))
                out[rank_of(row, given[1] + (1 if given[0] == "F" else -1))].append(("ask", given))
                asked.add(given)
    return out


def ends(row, rule, duration):
    lists, send = actions(row, rule), time(row, "p2p", row["act_bytes"])
    at, now, asked, sent, moved = [0] * len(lists), [0.0] * len(lists), {}, {}, True
    while moved:
        moved = False
        for rank, todo in enumerate(lists):
            while at[rank] < len(todo):
                what, of = todo[at[rank]]
                if what == "wait":
                    if of not in sent or of not in asked:
                        break
                    now[rank] = max(now[rank], max(sent[of], asked[of]) + send)
                elif what == "do":
                    now[rank] += duration(of) + ISSUE
                else:
                    (asked if what == "ask" else sent)[of] = now[rank]
                at[rank] += 1
                moved = True
    return now


def loss(row):
    last = len(row["split"]) - 1
    spans = sorted((x for x in row["timeline"] if x[0] == rank_of(row, last)), key=lambda x: x[4])
    gaps = [b[4] - a[5] for a, b in zip(spans, spans[1:]) if a[1] == last and a[2] == "F"]
    return max(0, min(gaps) - ISSUE)


def pipeline(row, rule, source):
    last = len(row["split"]) - 1
    extra = lambda op: loss(row) if op[0] == last and op[1] == "F" else 0
    recorded = {tuple(x[1:4]): x[5] - x[4] for x in row["timeline"]}
    own = lambda op: recorded[op] if source == "replay" else row["ops"][f"{op[0]}{op[1]}"]
    return max(ends(row, rule, lambda op: own(op) + extra(op))) + max(parts[-1] for parts in row["parts"])


def sharded(row, waits, serial):
    layers, wait = profile(row)
    names = ["embed"] + ["block"] * row["L"] + ["head"]
    factor, n = (wait(row["N"]) if waits else 1), row["N"]
    units = [
        (factor * layers[name]["fwd"], factor * layers[name]["bwd"], time(row, "allgather", size, n), time(row, "reducescatter", size, n))
        for name, size in zip(names, row["grad_bytes"])
    ]
    own, stage, over = row["impl"] == "own", row["stage"], row["overlap"]
    now = wire = second = 0.0

    def go(order, gathers, part, reduces):
        nonlocal now, wire, second
        ready = now
        if gathers:
            ready = wire = max(wire, now) + order[0][2]
        for index, unit in enumerate(order):
            now = max(now, ready)
            following = order[index + 1][2] if gathers and index + 1 < len(order) else None
            if following is not None and over:
                ready = wire = max(wire, now) + following
            now += unit[part]
            if reduces and over and own:
                if serial:
                    wire = second = max(wire, now) + unit[3]
                else:
                    second = max(second, now) + unit[3]
            elif reduces:
                now = wire = max(wire, now) + unit[3]
            if following is not None and not over:
                ready = wire = max(wire, now) + following

    go(units, not own or stage == 3, 0, False)
    go(units[::-1], stage == 3, 1, not own or stage >= 2)
    now = max(now, second) + sum(layers[name]["opt"] for name in names) / n
    return now + sum(unit[2] for unit in units) * (own and stage < 3) + sum(unit[3] for unit in units) * (own and stage == 1)


def tensor(row, waits, together):
    layers, wait = profile(row, row["t"], row["sp"])
    ranks, blocks, size = row["t"] * row["dp"], row["L"], row["act_bytes"]
    factor, active = (wait(ranks) if waits else 1), ranks if together else 0
    hidden = int(row["model"][1:].split("s")[0])
    gather, scatter = (time(row, kind, size, row["t"], active) for kind in ("allgather", "reducescatter"))
    total = time(row, "allreduce", size, row["t"], active)
    half, end, start = (gather + scatter, scatter, gather) if row["sp"] else (total, total, 0)
    now = factor * (layers["embed"]["fwd"] + blocks * layers["block"]["fwd"] + layers["head"]["fwd"])
    now += end + 2 * blocks * half + start + 3 * time(row, "allreduce", size / hidden, row["t"], active)
    left = 0
    for name, index in [("head", blocks + 1), *(("block", i) for i in range(blocks, 0, -1)), ("embed", 0)]:
        compute = factor * layers[name]["bwd"]
        left = max(0, left - compute) if row["overlap"] else left
        now += compute + {"head": end, "block": 2 * half, "embed": start}[name]
        if row["dp"] > 1:
            left += time(row, "allreduce", row["grad_bytes"][index], row["dp"], active)
    now += time(row, "allreduce", row["norm_bytes"], row["t"], active) if row["sp"] else 0
    return now + left + layers["embed"]["opt"] + blocks * layers["block"]["opt"] + layers["head"]["opt"]


def score(name, rows, predict):
    errors = [100 * (predict(row) / measured(row) - 1) for row in rows]
    sizes = [abs(error) for error in errors]
    print(f"{name:58}{len(rows):3}  {statistics.mean(sizes):5.1f} /{max(sizes):5.1f}  ({statistics.mean(errors):+.1f}) %")


def main():
    of = lambda kind: [row for row in ROWS if row["kind"] == kind]
    pipelines = [row for row in of("pp") if row["dp"] == 1]
    on_demand = lambda row: "on demand" if row["schedule"] in ("gpipe", "f1b") else "planned"
    for source in ("replay", "stage times"):
        for rule in ("asynchronous", "on demand", "planned"):
            score(f"pipelines, {source}, all {rule}", pipelines, lambda row: pipeline(row, rule, source))
        score(f"pipelines, {source}, by schedule", pipelines, lambda row: pipeline(row, on_demand(row), source))
    for waits in (False, True):
        for together in (False, True):
            name = f"{', slowest rank' * waits}{', groups together' * together}"
            score(f"tensor{name}", [row for row in of("tp") if row["dp"] == 1], lambda row: tensor(row, waits, together))
            score(f"tensor x data{name}", [row for row in of("tp") if row["dp"] > 1], lambda row: tensor(row, waits, together))
        for serial in (True, False):
            name = f"{', slowest rank' * waits}{', one link' if serial else ', two links'}"
            score(f"ZeRO and FSDP2{name}", of("zero"), lambda row: sharded(row, waits, serial))


if __name__ == "__main__":
    main()
