"""A real queue server that somebody else runs, and the four ways in which it comes to refuse writes."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import redis
from waiting import until

from kitchensync.capture.queue.server import queue_binary

REFUSALS = ("MISCONF", "READONLY", "OOM", "NOAUTH")


class RefusingServer:
    """One server on a loopback address; `admin` stays connected and may do everything."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        command = [str(queue_binary()), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
        self.process = subprocess.Popen(
            [*command, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL
        )
        self.url = f"redis://127.0.0.1:{port}"
        self.admin = redis.Redis(port=port, single_connection_client=False)
        until(self._answers, "the server's first answer")

    def _answers(self) -> bool:
        try:
            return bool(self.admin.ping())
        except redis.ConnectionError:
            return False

    def refuse(self, kind: str) -> None:
        """Let the server refuse what is written from now on."""
        if kind == "MISCONF":  # its snapshots fail: the folder is gone
            self.admin.config_set("save", "3600 1")
            shutil.rmtree(self._folder)
            self.admin.bgsave()
            until(lambda: self.admin.info("persistence")["rdb_last_bgsave_status"] == "err", "the failure")
        elif kind == "READONLY":
            self.admin.replicaof("127.0.0.1", 1)
        elif kind == "OOM":
            self.admin.config_set("maxmemory", "1")
        elif kind == "NOAUTH":
            self.admin.config_set("requirepass", "secret")
            self.admin.client_kill_filter(_type="normal", skipme=True)

    def heal(self, kind: str) -> None:
        """Let it write again."""
        if kind == "MISCONF":
            self.admin.config_set("save", "")
        elif kind == "READONLY":
            self.admin.replicaof("NO", "ONE")
        elif kind == "OOM":
            self.admin.config_set("maxmemory", "0")
        elif kind == "NOAUTH":
            self.admin.config_set("requirepass", "")

    def close(self) -> None:
        """End it."""
        self.admin.close()
        self.process.kill()  # one that cannot save does not end by itself
        self.process.wait(30)


@contextlib.contextmanager
def refusing_server(folder: Path) -> Iterator[RefusingServer]:
    """Run one for a block."""
    server = RefusingServer(folder)
    try:
        yield server
    finally:
        server.close()
