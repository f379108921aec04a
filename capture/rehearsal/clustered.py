"""A clustered queue server answers and cannot hold a kitchen's queue: `record` must refuse it, and leave nothing."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import redis

from capture.queue.server import queue_binary
from capture.rehearsal.scenarios import REFUSED

SLOTS = 16384
READY_LIMIT_S = 30.0
LIMIT_S = 60.0
ADDRESS = "127.0.0.1"


@contextlib.contextmanager
def clustered_server(folder: Path, *, whole: bool) -> Iterator[redis.Redis]:
    """Run a server that is a cluster alone; it owns every slot, or half of them, so that the cluster is down."""
    folder.mkdir()
    port = _free_port()
    command = [
        str(queue_binary()),
        "--port",
        str(port),
        "--bind",
        ADDRESS,
        "--dir",
        str(folder),
        "--save",
        "",
    ]
    command += ["--cluster-enabled", "yes", "--logfile", str(folder / "queue.log")]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(host=ADDRESS, port=port) as client:
            _wait(client)
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1 if whole else SLOTS // 2)
            time.sleep(1.0)  # a cluster is up some moments after its last slot has an owner
            yield client
    finally:
        server.terminate()
        server.wait()


def refused(
    command: Sequence[str], folder: Path, environment: dict[str, str], *, whole: bool
) -> dict[str, Any]:
    """Try to record through such a server; write `refused.json` and return it: what was said, and what was left."""
    with clustered_server(folder / "queue", whole=whole) as client:
        url = f"redis://{ADDRESS}:{client.connection_pool.connection_kwargs['port']}"
        done = subprocess.run(
            [*command, "--redis", url],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            env={**os.environ, **environment},
        )
        keys = int(client.dbsize())
    (folder / "record.log").write_text(done.stderr)
    data = folder / "data"
    left = [str(path.relative_to(folder)) for path in sorted(data.rglob("*"))] if data.is_dir() else []
    facts = {
        "exit": done.returncode,
        "stdout": done.stdout,
        "stderr": done.stderr,
        "left": left,
        "keys": keys,
    }
    (folder / REFUSED).write_text(json.dumps(facts, indent=1))
    return facts


def _wait(client: redis.Redis) -> None:
    end_s = time.monotonic() + READY_LIMIT_S
    while True:
        try:
            client.ping()
            return
        except redis.RedisError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.05)


def _free_port() -> int:
    """Return a port that is free and whose cluster bus, 10,000 above, is free too."""
    while True:
        with socket.socket() as probe, socket.socket() as bus, contextlib.suppress(OSError):
            probe.bind((ADDRESS, 0))
            port = int(probe.getsockname()[1])
            bus.bind((ADDRESS, port + 10000))
            return port
