"""Two ranks of one machine on a link of a given rate: network namespaces where these can be made, otherwise plain loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from types import TracebackType

RANKS = 2


class Link:
    """A link between two ranks. `shaped` says what it is, in words."""

    def __init__(self, rate: str, delay: str | None = None) -> None:
        self._rate, self._delay = rate, delay
        self._tag = f"sc{os.getpid()}"
        self._namespaces: list[str] = []
        self.shaped = "plain loopback, not shaped"

    def __enter__(self) -> Link:
        if os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc"):
            try:
                self._make()
            except (OSError, subprocess.CalledProcessError):
                self._remove()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _make(self) -> None:
        for rank in range(RANKS):
            _do("ip", "netns", "add", self._name(rank))
            self._namespaces.append(self._name(rank))
        _do("ip", "link", "add", self._port(0), "netns", self._name(0), "type", "veth",
            "peer", "name", self._port(1), "netns", self._name(1))
        kinds = set()
        for rank in range(RANKS):
            _do("ip", "-n", self._name(rank), "addr", "add", f"10.213.7.{rank + 1}/24", "dev", self._port(rank))
            for device in ("lo", self._port(rank)):
                _do("ip", "-n", self._name(rank), "link", "set", device, "up")
            kinds.add(self._shape(rank))
        self.shaped = f"{self._rate} between two namespaces, {' and '.join(sorted(kinds))}"

    def _shape(self, rank: int) -> str:
        """The rate by a token bucket, with a delay before it where the kernel has one to give."""
        base = ("tc", "-n", self._name(rank), "qdisc", "add", "dev", self._port(rank))
        if self._delay is not None:
            try:
                _do(*base, "root", "netem", "delay", self._delay, "rate", self._rate, "limit", "10000")
                return f"delay {self._delay}"
            except subprocess.CalledProcessError:
                pass
        _do(*base, "root", "tbf", "rate", self._rate, "burst", "128kb", "latency", "100ms")
        return "no delay"

    def _remove(self) -> None:
        for name in self._namespaces:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self._namespaces = []

    def _name(self, rank: int) -> str:
        return f"{self._tag}-{rank}"

    def _port(self, rank: int) -> str:
        return f"{self._tag}v{rank}"

    def run(self, command: Sequence[str], timeout_s: float) -> str:
        """Runs the command once for each rank, with the variables that `torch.distributed` reads; what rank 0 prints."""
        apart = bool(self._namespaces)
        host = "10.213.7.1" if apart else "127.0.0.1"
        port = 29400 if apart else _free()
        ranks = []
        for rank in range(RANKS):
            within = ["ip", "netns", "exec", self._name(rank)] if apart else []
            own = {
                "MASTER_ADDR": host,
                "MASTER_PORT": str(port),
                "RANK": str(rank),
                "WORLD_SIZE": str(RANKS),
                "GLOO_SOCKET_IFNAME": self._port(rank) if apart else "lo",
            }
            whole = [*within, *command]
            ranks.append(subprocess.Popen(whole, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True))
        try:
            printed = [rank.communicate(timeout=timeout_s)[0] for rank in ranks]
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
                    rank.wait()
        failed = [str(number) for number, rank in enumerate(ranks) if rank.returncode != 0]
        if failed:
            raise RuntimeError(f"rank {' and '.join(failed)} failed")
        return printed[0]


def _do(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
