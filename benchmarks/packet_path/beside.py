"""What the whole path is compared with, on the same packets: its parts alone, and what others would have written."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cases import Case
from watch import process_cpu_ns
from whole import free_host, simulator

from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.queue_reader import QueueReader
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.server import QueueServer
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.sensors.hololens import remote, wire
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.client import StreamClient
from kitchensync.sensors.hololens.profile import Profile

TOGETHER = 32
"""XADDs in one send."""


@dataclass
class Part:
    """One part: its CPU with that of the queue server where there is one, and how fast it went."""

    name: str
    packets: int
    megabytes: float
    wall_s: float
    cpu_s: float

    def as_dict(self) -> dict[str, Any]:
        """Return everything, with what is derived."""
        return asdict(self) | {
            "packets_per_s": self.packets / self.wall_s,
            "mb_per_s": self.megabytes / self.wall_s,
            "cpu_ms_per_mb": 1e3 * self.cpu_s / self.megabytes,
            "cpu_us_per_packet": 1e6 * self.cpu_s / self.packets,
        }


def profile_of(case: Case) -> Profile:
    """Return the settings that a case asks of the headset."""
    return Profile(link=case.link, **case.profile)  # type: ignore[arg-type]


def served(case: Case, receive: Callable[[str, str, bytes], None]) -> None:
    """Receive every stream of an unthrottled headset in a thread each."""
    host = free_host()
    with tempfile.TemporaryDirectory(prefix="ks") as name:
        kitchen = simulator(case, host, Path(name))
        try:
            if "pv" in case.streams:
                remote.start_pv(host)
            profile = profile_of(case)
            threads = [
                threading.Thread(target=receive, args=(host, short, headset_stream(short).configure(profile)))
                for short in case.streams
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            kitchen.terminate()
            kitchen.wait()


def packets_of(case: Case) -> dict[str, list[QueuedPacket]]:
    """Receive a case's packets and keep them: what the parts below work on."""
    kept: dict[str, list[QueuedPacket]] = {short: [] for short in case.streams}

    def receive(host: str, short: str, configured: bytes) -> None:
        spec = headset_stream(short)
        client = StreamClient(spec, host, configured, first_packet_timeout_s=120)
        client.connect()
        try:
            while True:
                frame = client.read_frame()
                ticks, payload, pose = wire.split_frame(frame, spec.pose_bytes)
                body, seq = bytes(payload) + bytes(pose), len(kept[short])
                kept[short].append(QueuedPacket(seq, ticks, time.monotonic_ns(), 1, body, spec.pose_bytes))
        except Exception as error:
            if "after a complete packet" not in str(error):
                raise
        finally:
            client.close()

    served(case, receive)
    return kept


def bare_receive(case: Case, packets: int) -> Part:
    """Read the same streams with `recv_into` and throw everything away; timed from the first byte to the last."""
    sizes: list[int] = []
    cpu_s: list[float] = []
    spans_s: list[tuple[float, float]] = []

    def receive(host: str, short: str, configured: bytes) -> None:
        buffer, size, begin_s = bytearray(1 << 20), 0, 0.0
        with socket.create_connection((host, headset_stream(short).port)) as connection:
            connection.sendall(configured)
            while count := connection.recv_into(buffer):
                begin_s = begin_s or time.perf_counter()
                size += count
                end_s = time.perf_counter()
        spans_s.append((begin_s, end_s))
        sizes.append(size)
        cpu_s.append(time.thread_time())

    served(case, receive)
    wall_s = max(end for _, end in spans_s) - min(begin for begin, _ in spans_s)
    return Part("bare loopback receive", packets, sum(sizes) / 1e6, wall_s, sum(cpu_s))


def queue_alone(kept: dict[str, list[QueuedPacket]]) -> Part:
    """XADD, XREADGROUP, XACK and XDEL of every packet, append-only file on; nothing received, nothing stored."""
    with tempfile.TemporaryDirectory(prefix="ks") as name:
        server = QueueServer(Path(name), Path(name) / "q")
        server.start()
        assert server.process is not None
        client = connect(server.url)
        writers = {short: QueueWriter(client, "u", short, 1) for short in kept}
        reader = QueueReader(client, "u", kept, "drainer-0")
        wall_s, cpu_s = time.perf_counter(), time.process_time() + process_cpu_ns(server.process.pid) / 1e9
        for short, packets in kept.items():
            for first in range(0, len(packets), TOGETHER):
                writers[short].put(packets[first : first + TOGETHER], lambda: False)
                if first // TOGETHER % 8 == 7:
                    _empty(reader)
        _empty(reader)
        cpu_s = time.process_time() + process_cpu_ns(server.process.pid) / 1e9 - cpu_s
        wall_s = time.perf_counter() - wall_s
        server.stop()
    return _part("XADD, XREADGROUP, XACK, XDEL", kept, wall_s, cpu_s)


def _empty(reader: QueueReader) -> None:
    while got := reader.fresh(count=256, block_ms=None):
        for stream, packets in got.items():
            reader.acknowledge(stream, packets, None)


def plain_files(kept: dict[str, list[QueuedPacket]]) -> Part:
    """Append the payloads to one file a stream, with one fsync each."""

    def write(folder: Path) -> None:
        for short, packets in kept.items():
            with (folder / short).open("wb", buffering=1 << 20) as file:
                for packet in packets:
                    file.write(packet.body)
                file.flush()
                os.fsync(file.fileno())

    return _timed("plain files, fsync", kept, write)


def mcap_file(kept: dict[str, list[QueuedPacket]]) -> Part | None:
    """Write one MCAP file with CRCs and without compression, as a robot's recorder would; None without `mcap`."""
    try:
        from mcap.writer import CompressionType, Writer
    except ImportError:
        return None

    def write(folder: Path) -> None:
        with (folder / "take.mcap").open("wb") as file:
            writer = Writer(file, compression=CompressionType.NONE, enable_crcs=True)
            writer.start()
            for short, packets in kept.items():
                channel = writer.register_channel(topic=short, message_encoding="bytes", schema_id=0)
                for packet in packets:
                    writer.add_message(
                        channel, packet.host_ns, bytes(packet.body), packet.device_ticks * 100, packet.seq
                    )
            writer.finish()
            file.flush()
            os.fsync(file.fileno())

    return _timed("MCAP with CRC, fsync", kept, write)


def _timed(name: str, kept: dict[str, list[QueuedPacket]], write: Callable[[Path], None]) -> Part:
    with tempfile.TemporaryDirectory(prefix="ks") as folder:
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        write(Path(folder))
        return _part(name, kept, time.perf_counter() - wall_s, time.process_time() - cpu_s)


def _part(name: str, kept: dict[str, list[QueuedPacket]], wall_s: float, cpu_s: float) -> Part:
    packets = [packet for some in kept.values() for packet in some]
    return Part(name, len(packets), sum(len(packet.body) for packet in packets) / 1e6, wall_s, cpu_s)


def machine() -> str:
    """Say on what this was measured."""
    model = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
    name = next(
        (line.split(":")[1].strip() for line in model.splitlines() if "Model name" in line), "unknown"
    )
    return f"{name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
