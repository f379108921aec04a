"""Ground truth: counts and hashes of the payloads that were sent."""

import hashlib
import json
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any


@dataclass
class StreamTruth:
    """The packets of one stream. One thread at a time adds to it; bytes and hash cover the payloads in order.

    `scheduled` counts the packets that were due while a client was served: those sent, those dropped at the source,
    and the one that could not be sent because the client had left.
    """

    name: str
    folder: Path
    scheduled: int = 0
    packets: int = 0
    dropped_by_backpressure: int = 0
    payload_bytes: int = 0
    most_behind_s: float = 0.0
    """Largest delay of a packet, host time: this computer or the client was busy."""
    _hash: Any = field(default_factory=hashlib.sha256)
    _lines: IO[str] | None = None

    def sent(
        self, k: int, ticks: int, payload: bytes, connection: int, fault: str | None, sha256: str = ""
    ) -> None:
        """Record one whole packet that was sent; pass `sha256` to save hashing a payload that is sent often."""
        self._hash.update(payload)
        self.packets += 1
        self.payload_bytes += len(payload)
        sha256 = sha256 or hashlib.sha256(payload).hexdigest()
        self._file().write(
            f'{{"k": {k}, "ticks": {ticks}, "size": {len(payload)}, "sha256": "{sha256}", '
            f'"connection": {connection}, "fault": {json.dumps(fault) if fault else "null"}}}\n'
        )

    def _file(self) -> IO[str]:
        if self._lines is None:
            path = self.folder / f"{self.name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lines = path.open("w", encoding="utf-8")
        return self._lines

    def close(self) -> None:
        """Write the remaining lines to disk."""
        self._file().close()

    def summary(self) -> dict[str, Any]:
        """Return the stream's object of truth.json."""
        return {
            "scheduled": self.scheduled,
            "packets": self.packets,
            "dropped_by_backpressure": self.dropped_by_backpressure,
            "bytes": self.payload_bytes,
            "most_behind_ms": round(self.most_behind_s * 1e3, 3),
            "sha256": self._hash.hexdigest(),
        }


class Truth:
    """Everything the devices of one kitchen did, kept under `folder`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.world0_host_ns: int | None = None
        self.notes: dict[str, Any] = {}
        self.faults: list[dict[str, Any]] = []
        self._streams: dict[str, StreamTruth] = {}
        self._gopro: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def stream(self, name: str) -> StreamTruth:
        """Return the truth of one stream, such as "hololens/gyroscope"."""
        with self._lock:
            return self._streams.setdefault(name, StreamTruth(name, self.folder / "truth"))

    def add_gopro_file(
        self, file: str, size: int, sha256: str, clock_map: dict[str, Any], **more: Any
    ) -> None:
        """Register one finished camera file; `more` keys are added to its object.

        One of several cameras adds `camera`: its number in the order of the ports, from 0.
        """
        entry = {"file": file, "bytes": size, "sha256": sha256, "clock_map": clock_map, **more}
        with self._lock:
            self._gopro.append(entry)

    def add_fault(self, fault: dict[str, Any]) -> None:
        """Register one fault with its window."""
        with self._lock:
            self.faults.append(fault)

    def as_dict(self) -> dict[str, Any]:
        """Return the object of truth.json."""
        with self._lock:
            return {
                "schema": "truth/1",
                "seed": self.seed,
                "world0_host_ns": self.world0_host_ns,
                "streams": {name: stream.summary() for name, stream in sorted(self._streams.items())},
                "gopro": list(self._gopro),
                "faults": list(self.faults),
                **self.notes,
            }

    def write(self) -> Path:
        """Write truth.json under a temporary name, sync it and rename it."""
        for stream in self._streams.values():
            stream.close()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "truth.json"
        part = path.with_suffix(".json.part")
        with part.open("w", encoding="utf-8") as file:
            json.dump(self.as_dict(), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        return path
