#!/usr/bin/env python3
"""Records steps of several ranks with planted faults: the tables in crates/study/tests/ranks.

Every rank is a process in a network namespace of its own, joined to the others by a bridge; `tc` limits the rate at which it
sends. A step waits for data, computes (a sleep with 1 % of noise), and sends chunks around the ring of all ranks, as an
all-reduce does. Needs Linux, root, iproute2; nothing else. The namespaces vanish with the processes.

  unshare -n research/ranks/testbed.py -o crates/study/tests/ranks          all recordings
  unshare -n research/ranks/testbed.py -o recordings --variations 10        ten of each, at random ranks, steps and sizes, with what
                                                                            was planted in planted.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from typing import NamedTuple

RANKS, STEPS, CHUNK = 6, 45, 150_000
COMPUTE_S, MBIT = 0.08, 120
FAULTS = ("healthy", "slow-rank", "slow-link", "pauses", "documents", "loading")


class Planted(NamedTuple):
    """A fault: the rank that has it, its size (of a link, the share of the rate), and the steps of pauses."""

    fault: str
    rank: int
    size: float
    every: int = 10
    first: int = 7

    @staticmethod
    def usual(fault: str) -> Planted:
        of = {"slow-rank": (4, 0.1), "slow-link": (3, 0.5), "pauses": (2, 0.06), "documents": (0, 0.2), "loading": (1, 0.02)}
        return Planted(fault, *of.get(fault, (0, 0.0)))

    @staticmethod
    def at_random(fault: str, seed: int) -> Planted:
        """At least as large as what has to be found: a rank that is 10 % slow, half of the rate, pauses of 3 % of the time."""
        chance = random.Random(f"{fault} {seed}")
        every = chance.randint(4, 12)
        # A step takes about 0.14 s.
        sizes = {"slow-rank": (0.1, 0.2), "slow-link": (0.3, 0.5), "pauses": (0.0042 * every, 0.008 * every), "documents": (0.1, 0.25), "loading": (0.01, 0.03)}
        size = chance.uniform(*sizes.get(fault, (0.0, 0.0)))
        return Planted(fault, chance.randrange(RANKS), size, every, chance.randrange(every))


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def waited_for_link() -> None:
    while subprocess.run(["ip", "link", "show", "eth0"], capture_output=True, check=False).returncode:
        time.sleep(0.05)


def read_exactly(connection: socket.socket, size: int) -> tuple[float, float]:
    """Seconds until the first byte, and from the first byte to the last."""
    began = time.perf_counter()
    first, left = None, size
    while left:
        got = len(connection.recv(min(left, 1 << 16)))
        if not got:
            raise ConnectionError("a rank has ended")
        first = time.perf_counter() if first is None else first
        left -= got
    assert first is not None
    return first - began, time.perf_counter() - first


def work(rank: int, planted: Planted, path: str) -> None:
    """One rank: its namespace has been made, its link comes from outside."""
    # Other work of the machine is to wait: ranks sleep most of the time.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    waited_for_link()
    fault, has_it = planted.fault, rank == planted.rank
    run("ip", "link", "set", "lo", "up")
    run("ip", "addr", "add", f"10.9.0.{rank + 1}/24", "dev", "eth0")
    run("ip", "link", "set", "eth0", "up")
    rate = MBIT * (planted.size if fault == "slow-link" and has_it else 1.0)
    run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{rate * 1000:.0f}kbit", "burst", "32kb", "latency", "200ms")
    listener = socket.create_server(("", 7000))
    to = socket.socket()
    while to.connect_ex((f"10.9.0.{(rank + 1) % RANKS + 1}", 7000)):
        to.close()
        to = socket.socket()
        time.sleep(0.05)
    source, _ = listener.accept()
    noise = random.Random(rank)
    before = (rank - 1) % RANKS
    rows = ["rank,step,step-time,communication,data,tokens,machine,peer,transfer"]
    last = time.perf_counter()
    for step in range(STEPS):
        data = planted.size if fault == "loading" and has_it else 0.0
        time.sleep(data)
        tokens = round(1000 * (noise.lognormvariate(0, planted.size) if fault == "documents" else 1.0))
        slow = 1.0 + planted.size if fault == "slow-rank" and has_it else 1.0
        paused = planted.size if fault == "pauses" and has_it and step % planted.every == planted.first else 0.0
        time.sleep(COMPUTE_S * slow * tokens / 1000 * noise.lognormvariate(0, 0.01) + paused)
        began, transfer = time.perf_counter(), 0.0
        for _ in range(RANKS - 1):
            sender = threading.Thread(target=to.sendall, args=(bytes(CHUNK),))
            sender.start()
            transfer += read_exactly(source, CHUNK)[1]
            sender.join()
        now = time.perf_counter()
        rows.append(f"{rank},{step},{now - last:.5f},{now - began:.5f},{data:.5f},{tokens},node-{rank // 2},{before},{transfer:.5f}")
        last = now
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(rows) + "\n")


def record(name: str, planted: Planted, folder: str) -> None:
    run("ip", "link", "add", "ring", "type", "bridge")
    run("ip", "link", "set", "ring", "up")
    paths = [f"{folder}/{name}.{rank}.csv" for rank in range(RANKS)]
    children = []
    for rank, path in enumerate(paths):
        command = ["unshare", "-n", sys.executable, __file__, "--rank", str(rank), "--planted", json.dumps(planted), "-o", path]
        child = subprocess.Popen(command)
        children.append(child)
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{child.pid}/ns/net") == own:
            time.sleep(0.05)
        run("ip", "link", "add", f"r{rank}", "type", "veth", "peer", "name", "eth0", "netns", str(child.pid))
        run("ip", "link", "set", f"r{rank}", "master", "ring", "up")
    codes = [child.wait() for child in children]
    run("ip", "link", "del", "ring")
    if any(codes):
        raise SystemExit(f"a rank of {name} failed")
    with open(f"{folder}/{name}.csv", "w", encoding="utf-8") as joined:
        for rank, path in enumerate(paths):
            with open(path, encoding="utf-8") as file:
                joined.writelines(file.readlines()[1 if rank else 0 :])
            os.remove(path)
    print(f"{name}.csv", flush=True)


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("-o", "--output", required=True, help="the folder of the recordings")
    made.add_argument("--variations", type=int, default=0, help="recordings of each fault, at random ranks, steps and sizes")
    made.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    made.add_argument("--planted", help=argparse.SUPPRESS)
    asked = made.parse_args()
    if asked.rank is not None:
        work(asked.rank, Planted(*json.loads(asked.planted)), asked.output)
        return
    if not asked.variations:
        for fault in FAULTS:
            record(fault, Planted.usual(fault), asked.output)
        return
    planted = {f"{fault}-{seed}": Planted.at_random(fault, seed) for seed in range(asked.variations) for fault in FAULTS}
    os.makedirs(asked.output, exist_ok=True)
    with open(f"{asked.output}/planted.json", "w", encoding="utf-8") as file:
        json.dump({name: fault._asdict() for name, fault in planted.items()}, file, indent=1)
    for name, fault in planted.items():
        record(name, fault, asked.output)


if __name__ == "__main__":
    main()
