"""The path of a packet, socket to sealed and checksummed file, as fast as it goes: one line, beside the bare socket.

    python benchmarks/path.py [--megabytes 400] [--rounds 3]

A small server sends packets of the sizes of a headset's streams without a pause over loopback TCP. The bare figure
reads them with `recv_into` and throws them away; the path figure is producer, queue server (append-only file on) and
drainers, until everything is sealed, synced and acknowledged. CPU is that of our processes, the sender apart.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from capture.plan import HeadsetPlan, Plan
from capture.queue_server import QueueServer
from capture.supervisor import Supervisor
from sensors.hololens import wire
from sensors.hololens.catalogue import Profile, configuration, stream_spec
from sensors.host_clock import utc_anchor
from storage.chunk import Chunk, chunk_paths
from storage.names import LOGS

PAYLOAD_BYTES = {"gyroscope": 10_080, "spatial_input": 1_936, "microphone": 520, "depth_ahat": 42_000}
"""As on the wire of the encoded rig; the front camera needs a camera to be switched on and is left out."""


@dataclass
class Figure:
    """One measurement."""

    packets: int
    megabytes: float
    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        per_packet_us = 1e6 * self.cpu_s / self.packets
        return (
            f"{self.packets / self.wall_s:8.0f} packets/s {self.megabytes / self.wall_s:7.1f} MB/s"
            f" {per_packet_us:6.1f} us CPU a packet"
        )


def send(host: str, stream: str, packets: int) -> None:
    """Serve one stream to one client without a pause, then close and refuse, as a device that ends."""
    spec = stream_spec(stream)
    payload = random.Random(stream).randbytes(PAYLOAD_BYTES[stream])
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, spec.port))
        listener.listen(1)
        print("ready", flush=True)
        connection, _ = listener.accept()
    with connection:
        wanted = len(configuration(stream, Profile()))
        while wanted:
            wanted -= len(connection.recv(wanted))
        for number in range(packets):
            connection.sendall(wire.join_frame(number * 10_000, payload, bytes(spec.pose_bytes)))


def senders(host: str, counts: dict[str, int]) -> list[subprocess.Popen[str]]:
    """Start one sender a stream and wait until each listens."""
    started = [
        subprocess.Popen(
            [sys.executable, "-P", __file__, "--send", stream, "--host", host, "--packets", str(count)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for stream, count in counts.items()
    ]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
    return started


def bare(host: str, counts: dict[str, int]) -> Figure:
    """Read every stream one after another with the barest loop there is."""
    processes = senders(host, counts)
    buffer = bytearray(1 << 20)
    received, begin_s, begin_cpu = 0, time.perf_counter(), time.process_time()
    for stream in counts:
        with socket.create_connection((host, stream_spec(stream).port)) as connection:
            connection.sendall(configuration(stream, Profile()))
            while count := connection.recv_into(buffer):
                received += count
    figure = Figure(
        sum(counts.values()), received / 1e6, time.perf_counter() - begin_s, time.process_time() - begin_cpu
    )
    for process in processes:
        process.wait()
    return figure


def whole(host: str, counts: dict[str, int], folder: Path) -> Figure:
    """Send every stream through producer, queue and drainers, and check that all of it was stored."""
    recording, work, runtime = folder / "take", folder / "work", folder / "r"
    for path in (recording, work, runtime, recording / LOGS):
        path.mkdir()
    plan = Plan(
        recording="take",
        uuid=str(uuid.uuid4()),
        path=str(recording),
        work=str(work),
        runtime=str(runtime),
        queue_url="",
        headsets=[HeadsetPlan("hololens", host, list(counts), {})],
        supervisor_pid=os.getpid(),
    )
    processes = senders(host, counts)
    server = QueueServer(work, runtime / "q")
    begin_cpu = _cpu_of_children()
    server.start()
    plan = replace(plan, queue_url=server.url)
    plan.save(work / "plan.json")
    supervisor = Supervisor(plan, server, [])
    own_cpu = time.process_time()
    supervisor.run(None, 60, lambda _: None)
    supervisor.close()
    server.stop()
    cpu_s = _cpu_of_children() - begin_cpu + time.process_time() - own_cpu
    for process in processes:
        process.wait()
    megabytes, wall_s = _check(recording, counts)
    return Figure(sum(counts.values()), megabytes, wall_s, cpu_s)


def _cpu_of_children() -> float:
    """CPU of the children that have been waited for: ours, since senders are waited for last."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _check(recording: Path, counts: dict[str, int]) -> tuple[float, float]:
    """Check that all was stored; return megabytes, and seconds from the first arrival to the last sealed file."""
    size, arrivals, sealed = 0, [], []
    for stream, count in counts.items():
        stored = 0
        for path in chunk_paths(recording / "hololens" / stream):
            sealed.append(path.stat().st_mtime_ns)
            with Chunk(path) as chunk:
                assert chunk.damage() == []
                arrivals.append(int(chunk.index["host_ns"][0]))
                stored += len(chunk.index)
                size += int(chunk.index["size"].sum())
        assert stored == count, f"{stream}: {stored} of {count} packets"
    anchor = utc_anchor()
    begin_utc_ns = min(arrivals) - anchor.host_ns + anchor.utc_ns
    return size / 1e6, (max(sealed) - begin_utc_ns) / 1e9


def main() -> None:
    """Measure some rounds and print the line of the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--send")
    parser.add_argument("--host", default=f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.9")
    parser.add_argument("--packets", type=int)
    options = parser.parse_args()
    if options.send:
        send(options.host, options.send, options.packets)
        return
    share = options.megabytes * 1e6 / len(PAYLOAD_BYTES)
    counts = {stream: min(int(share / size), 20_000) for stream, size in PAYLOAD_BYTES.items()}
    rounds = []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="ks") as name:
            rounds.append((bare(options.host, counts), whole(options.host, counts, Path(name))))
        print(f"round {number + 1}: bare {rounds[-1][0]} | path {rounds[-1][1]}", file=sys.stderr, flush=True)
    middle = [
        Figure(pairs[0].packets, pairs[-1].megabytes, *(statistics.median(values) for values in times))
        for pairs in zip(*rounds, strict=True)
        for times in [([pair.wall_s for pair in pairs], [pair.cpu_s for pair in pairs])]
    ]
    ratio = statistics.median(path.wall_s / raw.wall_s for raw, path in rounds)
    print(f"path {middle[1]} | bare socket {middle[0]} | path takes {ratio:.1f}x the bare socket's time")


if __name__ == "__main__":
    main()
