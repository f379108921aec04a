"""A clustered queue server answers and cannot hold a kitchen's queue: `record` must refuse it, and leave nothing."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import redis

from kitchensync.capture.queue.queue_connection import wait_until_ready
from kitchensync.capture.queue.server import queue_binary
from kitchensync.capture.served_kitchen import process, run
from rehearsal.scenarios import REFUSED

SLOTS = 16384
LIMIT_S = 60.0
ADDRESS = "127.0.0.1"


def refused(command: Sequence[str], folder: Path, environment: dict[str, str], *, whole: bool) -> str:
    """Try to record through such a server; return what was printed. `refused.json` has that and what was left."""
    with _clustered_server(folder / "queue", whole=whole) as (url, client):
        done = run([*command, "--redis", url], folder, "record", environment=environment, limit_s=LIMIT_S)
        keys = int(client.dbsize())
    left = [str(path.relative_to(folder)) for path in sorted((folder / "data").rglob("*"))]
    said = {"exit": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
    (folder / REFUSED).write_text(json.dumps({**said, "left": left, "keys": keys}, indent=1))
    return done.stdout


@contextlib.contextmanager
def _clustered_server(folder: Path, *, whole: bool) -> Iterator[tuple[str, redis.Redis]]:
    """Run a server that is a cluster alone; it owns every slot, or half of them, so that the cluster is down."""
    folder.mkdir()
    port = _free_port()
    command = [str(queue_binary()), "--bind", ADDRESS, "--port", str(port), "--cluster-enabled", "yes"]
    command += ["--dir", str(folder), "--save", "", "--logfile", str(folder / "queue.log")]
    with process(command, folder, "server"), redis.Redis(host=ADDRESS, port=port) as client:
        url = f"redis://{ADDRESS}:{port}"
        wait_until_ready(client, url)
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1 if whole else SLOTS // 2)
        time.sleep(1.0)  # a cluster is up some moments after its last slot has an owner
        yield url, client


def _free_port() -> int:
    """Return a port that is free and whose cluster bus, 10,000 above, is free too."""
    while True:
        with socket.socket() as probe, socket.socket() as bus, contextlib.suppress(OSError, OverflowError):
            probe.bind((ADDRESS, 0))
            port = int(probe.getsockname()[1])
            bus.bind((ADDRESS, port + 10000))
            return port
