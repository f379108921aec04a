"""A closed recording whose packets came at given times: to judge what a verdict says of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sealed_chunks import sealed

from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.manifest import write_json

HOST0_NS = 5_000_000_000_000
TICKS0 = 37_000_000_000
DELAY_S = 0.02
HZ = {"pv": 30.0, "depth_ahat": 45.0, "gyroscope": 21.0, "magnetometer": 4.5, "spatial_input": 30.0}


@dataclass
class Stream:
    """One stream: seconds of its stamps since the start, of its arrivals, and how it ended."""

    at_s: np.ndarray
    arrived_s: np.ndarray | None = None
    reason: str = "stopped"
    connection: np.ndarray | None = None
    ticks0: int = TICKS0
    closed: list[tuple[int, str]] = field(default_factory=list)
    "(next_seq, cause) of connections that were closed."

    def arrivals(self) -> np.ndarray:
        return self.at_s + DELAY_S if self.arrived_s is None else self.arrived_s


def steady(hz: float, start_s: float, stop_s: float) -> np.ndarray:
    return np.arange(start_s, stop_s, 1 / hz)


def host_ns(seconds: float) -> int:
    return HOST0_NS + round(seconds * 1e9)


def make(
    path: Path, streams: dict[str, Stream], stop_s: float, events: Sequence[dict[str, Any]] = ()
) -> Path:
    """Write the recording; names without a device are the headset's."""
    files: dict[str, Any] = {}
    entries: dict[str, Any] = {}
    notes: list[dict[str, Any]] = []
    for short, stream in streams.items():
        name = short if "/" in short else f"hololens/{short}"
        entries[name] = {"nominal_hz": HZ.get(short)}
        notes += [
            {"note": "closed", "stream": name, "host_ns": 0, "next_seq": seq, "cause": cause}
            for seq, cause in stream.closed
        ]
        end = {"note": "end", "stream": name, "host_ns": host_ns(stop_s), "reason": stream.reason}
        notes.append({**end, "received": len(stream.at_s)})
        (path / name).mkdir(parents=True)
        files |= sealed(path, name, 1, _packets(stream)) if len(stream.at_s) else {}
    said = [Packet(n, 1, 0, 0, 1, json.dumps(note).encode(), b"") for n, note in enumerate(notes)]
    files |= sealed(path, "ledger/hololens", 1, said)
    (path / "events").mkdir()
    manifest = {"schema": "recording/1", "recording": path.name, "state": "complete", "files": files}
    manifest |= {"streams": entries, "devices": {"hololens": {"kind": "hololens"}}}
    manifest["stopped"] = {"host_ns": host_ns(stop_s + 60), "utc_ns": 0, "reason": "time"}
    write_json(path / "recording.json", manifest)
    return path


def _packets(stream: Stream) -> list[Packet]:
    connections = stream.connection if stream.connection is not None else np.ones(len(stream.at_s), int)
    rows = zip(stream.at_s, stream.arrivals(), connections, strict=True)
    return [
        Packet(n, 1, stream.ticks0 + round(at * 1e7), host_ns(arrived), int(connection), b"packet", b"")
        for n, (at, arrived, connection) in enumerate(rows)
    ]
