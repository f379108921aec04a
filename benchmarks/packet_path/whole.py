"""The whole path: a virtual headset, the recorder as an operator starts it, and what it cost from outside."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cases import Case
from watch import Watch

from kitchensync.shell.host_clock import utc_anchor
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.ledger import EndNote, of_kind, read_note

COMMAND = str(Path(sys.executable).parent / "kitchensync")
LONGEST_S = 300
RINGS = Path(tempfile.gettempdir()) / f"kitchensync-rings-{os.getuid()}"
"""Where the rings of the virtual headset are kept from run to run; making them takes longer than a run."""


@dataclass
class Figure:
    """One run of the whole path.

    `wall_s` is from the first arrival to the last file on the disk, without the seconds in which the recorder only
    made sure that a silent device has gone. `drained_s` is from the end of the last stream to the last file.
    """

    case: str
    rig_seconds: float
    packets: int
    megabytes: float
    wall_s: float
    cpu_s: dict[str, float] = field(default_factory=dict)
    memory_mb: dict[str, float] = field(default_factory=dict)
    lost: int = 0
    named_losses: int = 0
    dropped_by_backpressure: int = 0
    most_behind_ms: float = 0.0
    drained_s: float = 0.0
    status: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return everything, with what is derived."""
        cpu_ms = 1e3 * sum(self.cpu_s.values())
        return asdict(self) | {
            "packets_per_s": self.packets / self.wall_s,
            "mb_per_s": self.megabytes / self.wall_s,
            "cpu_ms_per_rig_s": cpu_ms / self.rig_seconds,
            "cpu_ms_per_mb": cpu_ms / self.megabytes,
            "cpu_us_per_packet": 1e3 * cpu_ms / self.packets,
        }


def simulator(case: Case, host: str, out: Path) -> subprocess.Popen[str]:
    """Start the virtual headset and wait until all its ports accept."""
    command = [COMMAND, "simulate", "--seed", "1", "--ring-store", str(RINGS), "--out", str(out)]
    command += ["--seconds", str(case.seconds), "--speed", str(case.speed)]
    command += ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if not process.stdout.readline().startswith("ready"):
        raise SystemExit(f"the virtual headset did not start (exit {process.wait()})")
    return process


def write_rig(path: Path, case: Case, host: str) -> None:
    """Write the rig file of a case."""
    lines = [f'link = "{case.link}"', f"streams = {json.dumps(list(case.streams))}"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in case.profile.items()]
    lines += [] if case.linger_ms is None else [f"linger_ms = {case.linger_ms}"]
    path.write_text("\n".join([*lines, "[hololens]", f'hololens = "{host}"', ""]))


def free_host() -> str:
    """Return a loopback address that nobody else is likely to use."""
    return f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.{random.randint(2, 254)}"


def run(case: Case, keep: Path | None = None) -> Figure:
    """Record a case once."""
    host = free_host()
    with tempfile.TemporaryDirectory(prefix="ks", dir=keep) as name:
        folder = Path(name)
        write_rig(folder / "rig.toml", case, host)
        kitchen = simulator(case, host, folder / "sim")
        try:
            answer, watch = _record_once(case, folder)
            kitchen.wait(LONGEST_S)
        finally:
            kitchen.kill()
            kitchen.wait()
        truth = json.loads((folder / "sim" / "truth.json").read_text())
        return _figure(case, folder / "data" / "take", answer, truth, watch)


def _record_once(case: Case, folder: Path) -> tuple[dict[str, Any], Watch]:
    """Record a case into `folder`; return the recorder's answer, and what was seen of its processes."""
    command = [COMMAND, "record", "take", "--data", str(folder / "data"), "--json"]
    command += ["--rig", str(folder / "rig.toml"), "--start-timeout", "120"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as recorder:
        watch = Watch(recorder.pid)
        watch.start()
        try:
            text, told = recorder.communicate(timeout=LONGEST_S)
        except BaseException:
            recorder.terminate()
            raise
        finally:
            watch.stop()
    if not text.startswith("{") or "streams" not in (answer := json.loads(text)):
        raise SystemExit(f"{case.name}: the recorder says: {told.strip() or text.strip()}")
    return answer, watch


def _figure(
    case: Case, recording: Path, answer: dict[str, Any], truth: dict[str, Any], watch: Watch
) -> Figure:
    first_ns, last_ns, sealed_ns = _recorded_times(recording, case.streams)
    ended_ns = max(_ended_ns(recording), last_ns)
    names = [f"hololens/{short}" for short in case.streams]
    sent, stored = truth["streams"], answer["streams"]
    return Figure(
        case=case.name,
        rig_seconds=case.seconds,
        packets=sum(stored[name]["stored"] for name in names),
        megabytes=sum(stored[name]["bytes"] for name in names) / 1e6,
        wall_s=(sealed_ns - first_ns - (ended_ns - last_ns)) / 1e9,
        cpu_s=watch.cpu_s(first_ns, sealed_ns),
        memory_mb={kind: size / 1e6 for kind, size in watch.most_bytes.items()},
        lost=sum(_lost(sent[name], stored[name]) for name in names),
        named_losses=sum(last - first + 1 for name in names for first, last in stored[name]["missing"]),
        dropped_by_backpressure=sum(sent[name]["dropped_by_backpressure"] for name in names),
        most_behind_ms=max(sent[name]["most_behind_ms"] for name in names),
        drained_s=(sealed_ns - ended_ns) / 1e9,
        status=answer["status"],
    )


def _lost(truth: dict[str, Any], stored: dict[str, Any]) -> int:
    """Count what of the schedule is not stored; other bytes than those sent count as all of them."""
    if truth["packets"] == stored["stored"] and truth["sha256"] != stored["sha256"]:
        return int(truth["scheduled"])
    return int(truth["scheduled"]) - int(stored["stored"])


def _recorded_times(recording: Path, streams: tuple[str, ...]) -> tuple[int, int, int]:
    """Return when the first and the last packet arrived and when the last file was on the disk, host_ns."""
    arrivals, sealed = [], []
    for short in streams:
        for path in chunk_paths(recording / "hololens" / short):
            sealed.append(path.stat().st_mtime_ns)
            with Chunk(path) as chunk:
                arrivals += [int(chunk.index["host_ns"][0]), int(chunk.index["host_ns"][-1])]
    anchor = utc_anchor()
    return min(arrivals), max(arrivals), max(sealed) - anchor.utc_ns + anchor.host_ns


def _ended_ns(recording: Path) -> int:
    """Return when the last stream was known to have ended, from the ledger."""
    ended = [0]
    for path in chunk_paths(recording / "ledger" / "hololens"):
        with Chunk(path) as chunk:
            ended += [note.host_ns for note in of_kind(map(read_note, chunk.payloads()), EndNote)]
    return max(ended)
