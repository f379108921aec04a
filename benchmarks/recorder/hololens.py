"""CPU time per packet of each headset stream, compared with a bare reader of the same bytes.

    python benchmarks/recorder/hololens.py [--packets 3000] [--rounds 5]

Measures from the socket to a framed packet (`StreamClient.read_frame` and the split into timestamp, payload and
pose), and `recv_into` of the same bytes into one large buffer, in the same run, round by round. The sender is another
process that sends packets of one stream's size without a pause.
"""

from __future__ import annotations

import argparse
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from kitchensync.sensors.hololens import wire
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.client import StreamClient

PAYLOAD_BYTES = {
    "pv": 41_552, "vlc_leftfront": 6_168, "depth_ahat": 42_016, "depth_ahat raw": 1_048_592,
    "depth_longthrow": 150_008, "gyroscope": 10_080, "accelerometer": 2_976, "magnetometer": 352,
    "spatial_input": 1_936, "microphone": 520, "microphone array": 15_360, "eye_tracking": 92,
    "extended_audio": 520, "extended_video": 41_552, "extended_depth": 184_324,
}  # fmt: skip
LARGE_BYTES, LARGE_RATIO, SMALL_ABOVE_US = 40_000, 1.5, 12.0
MOST_BYTES = 1_500_000_000


def send(name: str, packets: int) -> None:
    """Serve packets of one stream's size, one client after another, until the parent is gone."""
    spec = STREAMS[name.split()[0]]
    payload = random.Random(name).randbytes(PAYLOAD_BYTES[name])
    frame = wire.join_frame(123_456_789_012, payload, bytes(spec.pose_bytes))
    several = frame * max(1, 65_536 // len(frame))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                left = packets * len(frame)
                while left > 0:
                    connection.sendall(several[: min(left, len(several))])
                    left -= len(several)


def bare(port: int, name: str) -> float:
    """Read everything in a bare loop; return CPU seconds."""
    buffer = bytearray(1 << 20)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        begin = time.thread_time()
        while connection.recv_into(buffer):
            pass
        return time.thread_time() - begin


def exact(port: int, name: str) -> float:
    """Read whole packets with a plain reader: header, then body, both exactly; return CPU seconds."""
    spec = STREAMS[name.split()[0]]
    buffer = memoryview(bytearray(2 << 20))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        begin = time.thread_time()
        while connection.recv_into(buffer, 12, socket.MSG_WAITALL) == 12:
            size = int.from_bytes(buffer[8:12], "little") + spec.pose_bytes
            connection.recv_into(buffer, size, socket.MSG_WAITALL)
        return time.thread_time() - begin


def ours(port: int, name: str) -> float:
    """Receive, frame and cut every packet as the recorder does; return CPU seconds."""
    spec = STREAMS[name.split()[0]]
    here = replace(spec, port=port)
    client = StreamClient(here, "127.0.0.1", b"")
    client.connect()
    begin = time.thread_time()
    count = 0
    try:
        while True:
            wire.split_frame(client.read_frame(), spec.pose_bytes)
            count += 1
    except Exception as error:
        if "after a complete packet" not in str(error):
            raise
    finally:
        client.close()
    return time.thread_time() - begin


def measure(name: str, packets: int, rounds: int) -> tuple[str, bool]:
    """Measure one stream; return its line and whether it meets its target."""
    packets = max(200, min(packets, MOST_BYTES // rounds // 3 // PAYLOAD_BYTES[name]))
    command = [sys.executable, "-P", __file__, "--send", name, "--packets", str(packets)]
    figures: dict[Callable[[int, str], float], list[float]] = {bare: [], exact: [], ours: []}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        port = int(sender.stdout.readline())
        for _ in range(rounds):
            for reader, found in figures.items():
                found.append(1e6 * reader(port, name) / packets)
        sender.kill()
    base, plain, mine = (statistics.median(figures[reader]) for reader in (bare, exact, ours))
    ratio = statistics.median(m / b for m, b in zip(figures[ours], figures[bare], strict=True))
    above = statistics.median(m - b for m, b in zip(figures[ours], figures[bare], strict=True))
    is_large = PAYLOAD_BYTES[name] > LARGE_BYTES
    good = ratio <= LARGE_RATIO if is_large else above <= SMALL_ABOVE_US
    target = f"<= {LARGE_RATIO:g}x" if is_large else f"<= +{SMALL_ABOVE_US:g} us"
    line = (
        f"{name:18} {PAYLOAD_BYTES[name]:9} B  bare {base:7.2f} us  exact {plain:7.2f} us  ours {mine:7.2f} us"
        f"  {ratio:5.2f}x  {above:+7.2f} us  {target:9} {'ok' if good else 'MISSED'}"
    )
    return line, good


def main() -> int:
    """Measure and print one line per stream."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--packets", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--send")
    options = parser.parse_args()
    if options.send:
        send(options.send, options.packets)
        return 0
    results = []
    for name in PAYLOAD_BYTES:
        line, good = measure(name, options.packets, options.rounds)
        print(line, flush=True)
        results.append(good)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
