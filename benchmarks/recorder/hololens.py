"""The receive path of a headset's streams, beside a bare reader of the same bytes; and a rig at its real rates.

    python benchmarks/recorder/hololens.py [--packets 3000] [--rounds 5] [--rig encoded|raw-depth --seconds 60]

Without --rig: CPU time a packet, from the socket to a framed packet (`StreamClient.read_frame` and the cut into
stamp, payload and pose), beside `recv_into` of the same bytes into one large buffer, for every stream, in the same
run, round by round. The sender is another process that sends packets of one stream's size without a pause.

With --rig: the virtual headset at real rates (front camera 1920x1080 at 30, H.265), all of an encoded rig or the
raw-depth rig recorded for some seconds; CPU of producers and drainers together, of the queue server apart, memory,
and losses against the truth. Video comes from rings that are encoded once at the bit rate that a real headset has.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

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
RIG_STREAMS = (
    "pv", "vlc_leftfront", "vlc_leftleft", "vlc_rightfront", "vlc_rightright", "depth_ahat", "gyroscope",
    "accelerometer", "magnetometer", "spatial_input", "microphone", "eye_tracking",
)  # fmt: skip
RIGS = {"encoded": ("wifi", 15.0), "raw-depth": ("wired", 35.0)}
"Link, and the most that clients and drainers together may take, percent of a core."
RIG_FILE = """\
link = "{link}"
pv_width = 1920
pv_height = 1080
streams = {streams}
[hololens]
hololens = "{host}"
"""
COMMAND = str(Path(sys.executable).parent / "kitchensync")


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
    """Read everything with the barest loop; return CPU seconds."""
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


def rig(which: str, seconds: float) -> bool:
    """Record a rig at real rates; print CPU, memory and losses; return whether the targets are met."""
    link, most_percent = RIGS[which]
    host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.7"
    with tempfile.TemporaryDirectory(prefix="ks") as folder:
        place = ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0", "--out", f"{folder}/sim"]
        kitchen = [COMMAND, "simulate", "--seed", "1", "--seconds", str(seconds), "--rings", *place]
        rig_file = Path(folder, "rig.toml")
        rig_file.write_text(RIG_FILE.format(link=link, streams=json.dumps(RIG_STREAMS), host=host))
        take = [COMMAND, "record", "rig", "--data", f"{folder}/data", "--rig", str(rig_file), "--json"]
        with subprocess.Popen(kitchen, stdout=subprocess.PIPE, text=True) as simulated:
            assert simulated.stdout is not None
            simulated.stdout.readline()
            recorder = subprocess.Popen(take, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            cpu, steady, memory = _watch(recorder)
            answer = json.loads(recorder.communicate()[0])
            simulated.terminate()
            simulated.wait()
        truth = json.loads(Path(folder, "sim", "truth.json").read_text())["streams"]
    lost = [n for n, s in answer["streams"].items() if s["sha256"] != truth[n]["sha256"] or s["missing"]]
    dropped = sum(stream["dropped_by_backpressure"] for stream in truth.values())
    ours_percent = 100 * (steady.get("producer", 0) + steady.get("drainer", 0))
    server_percent = 100 * steady.get("server", 0)
    parts = ", ".join(f"{kind} {100 * steady.get(kind, 0):.1f}" for kind in ("producer", "drainer"))
    whole_s = cpu.get("producer", 0) + cpu.get("drainer", 0)
    megabytes = sum(stream["bytes"] for stream in truth.values()) / 1e6
    print(
        f"{which} rig, {seconds:g} s, {megabytes / seconds:.1f} MB/s: clients and drainers {ours_percent:.1f} % of a "
        f"core ({parts}; target {most_percent:g}; {whole_s:.1f} CPU s with start and end), queue server "
        f"{server_percent:.1f} %, "
        f"differing streams {lost or 'none'}, "
        f"dropped at the source {dropped}"
    )
    for name, seen in memory.items():
        early_mib, late_mib = seen[len(seen) // 4] / 1024, max(seen[len(seen) // 2 :]) / 1024
        print(f"  memory of {name}: {early_mib:.0f} MiB early, {late_mib:.0f} MiB at most late")
    return not lost and dropped == 0 and ours_percent <= most_percent


Sums = dict[str, float]


def _watch(recorder: subprocess.Popen[str]) -> tuple[Sums, Sums, dict[str, list[int]]]:
    """Follow the recorder's processes, by kind: CPU seconds, share of a core once all streams run, resident KiB."""
    cpu: dict[int, tuple[str, float]] = {}
    memory: dict[str, list[int]] = {}
    series: list[tuple[float, Sums]] = []
    tick = os.sysconf("SC_CLK_TCK")
    while recorder.poll() is None:
        sums: dict[str, int] = {}
        for pid, kind in _processes(recorder.pid).items():
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4
            except (OSError, IndexError):
                continue
            kind = cpu[pid][0] if kind == "other" and pid in cpu else kind  # a zombie has no command line
            cpu[pid] = kind, (int(stat[11]) + int(stat[12])) / tick
            sums[kind] = sums.get(kind, 0) + resident
        for kind, value in sums.items():
            memory.setdefault(kind, []).append(value)
        series.append((time.monotonic(), _by_kind(cpu)))
        time.sleep(0.25)
    (begin_s, before), (end_s, after) = series[len(series) // 5], series[len(series) * 4 // 5]
    steady = {kind: (used - before.get(kind, 0.0)) / (end_s - begin_s) for kind, used in after.items()}
    return _by_kind(cpu), steady, memory


def _by_kind(cpu: dict[int, tuple[str, float]]) -> Sums:
    totals: Sums = {}
    for kind, used in cpu.values():
        totals[kind] = totals.get(kind, 0.0) + used
    return totals


def _processes(parent: int) -> dict[int, str]:
    kinds = {
        "kitchensync producer": "producer",
        "kitchensync drainer": "drainer",
        "kitchensync fork server": "fork server",
        "valkey": "server",
    }
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) != parent:
                continue
            line = (folder / "cmdline").read_bytes().decode()
        except (OSError, IndexError):
            continue
        found[int(folder.name)] = next((kind for part, kind in kinds.items() if part in line), "other")
    return found


def main() -> int:
    """Measure and print one line a stream, or one rig."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--packets", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--send")
    parser.add_argument("--rig", choices=list(RIGS))
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    if options.send:
        send(options.send, options.packets)
        return 0
    if options.rig:
        return 0 if rig(options.rig, options.seconds) else 1
    results = []
    for name in PAYLOAD_BYTES:
        line, good = measure(name, options.packets, options.rounds)
        print(line, flush=True)
        results.append(good)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
