"""A recording whose recorder was killed with everything it had started; its queue still holds packets."""

from __future__ import annotations

import os
from pathlib import Path

from processes import wait_until_synced

from kitchensync.capture.plan import HeadsetPlan, Plan
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.storage.manifest import write_json
from kitchensync.storage.names import LOGS, MANIFEST, WORK

QUEUED = 100


def put(server: QueueServer, plan: Plan, stream: str) -> None:
    """Queue packets of one stream, until they are on the disk."""
    with connect(server.url) as client:
        writer = QueueWriter(client, plan.uuid, stream, 7)
        packets = [QueuedPacket(n, n * 100, n * 10_000, 1, b"%06d" % n, 0) for n in range(QUEUED)]
        assert writer.put(packets, lambda: True) == QUEUED
        writer.pipe.close()
        wait_until_synced(client)


def leave_an_orphan(
    data: Path,
    runtime: Path,
    name: str = "take",
    streams: tuple[str, ...] = ("gyroscope",),
    *,
    with_socket: bool = False,
) -> Plan:
    """Leave the recording `name` below `data` as a kill leaves it; `runtime` is a short folder for its socket.

    The socket of the queue server is left only where a test wants it.
    """
    work, recording = data / WORK / name, data / name
    work.mkdir(parents=True)
    (recording / LOGS).mkdir(parents=True)
    sockets = runtime / f"sockets-{name}"
    sockets.mkdir()
    plan = Plan(
        recording=name,
        uuid=f"u-{name}",
        path=str(recording),
        work=str(work),
        runtime=str(sockets),
        queue_url=f"unix://{sockets}/queue",
        headsets=[HeadsetPlan("hololens", "127.0.0.1", list(streams), {})],
        drainers=1,
        supervisor_pid=os.getpid(),
    )
    plan.save(work / "plan.json")
    manifest = {
        "schema": "recording/1",
        "recording": name,
        "uuid": plan.uuid,
        "state": "recording",
        "devices": {},
        "files": {},
        "streams": {f"hololens/{short}": {} for short in streams},
        "started": None,
        "stopped": None,
    }
    write_json(recording / MANIFEST, manifest)
    server = QueueServer(work, sockets / "queue")
    server.start()
    for short in streams:
        put(server, plan, f"hololens/{short}")
    server.process.kill()
    server.process.wait()
    if not with_socket:
        (sockets / "queue").unlink()
        sockets.rmdir()
    return plan
