"""A recording's streams read for a report: what is damaged is named, and all the rest is still there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sensors.array_types import Int64, Mask
from sensors.host_clock import PROBE, decode
from storage.chunks.chunk import INDEX, Chunk, chunk_paths
from storage.errors import BadChunk
from storage.names import stream_folder
from storage.timeline.device_clock import HostClock, constant_clock, host_clock
from storage.timeline.session_time import SessionTime

UNREADABLE_CHUNK = (BadChunk, OSError, RuntimeError, KeyError, ValueError)
FEW_PROBES = 3


@dataclass(frozen=True)
class Damage:
    """A chunk that does not open, and the stamps of the packets around it (None at an end)."""

    file: str
    why: str
    before_ticks: int | None
    after_ticks: int | None


@dataclass
class ReadStream:
    """One stream: the index of all chunks that open, and what does not open."""

    name: str
    device: str
    nominal_hz: float | None
    format: dict[str, Any]
    description: dict[str, Any] = field(default_factory=dict)
    "Its entry in the manifest."
    parts: list[tuple[Path, npt.NDArray[np.void]]] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    hidden: Mask | None = None
    "Which of its packets may show a privacy pause, (n,); None where nobody asked."

    @cached_property
    def index(self) -> npt.NDArray[np.void]:
        """All packets that can be read, (n,) of `storage.chunks.chunk.INDEX`."""
        return np.concatenate([index for _, index in self.parts]) if self.parts else np.empty(0, INDEX)

    @property
    def ticks(self) -> Int64:
        """Device stamps of the packets, 100 ns."""
        ticks: Int64 = self.index["device_ticks"]
        return ticks

    def payload(self, row: int) -> bytes:
        """Read one payload. Raises BadChunk or OSError where the file is damaged."""
        for path, index in self.parts:
            if row < len(index):
                with Chunk(path) as chunk:
                    return chunk.payload(row)
            row -= len(index)
        raise IndexError(f"{self.name} has no packet {row}")

    def payloads(self, first: int, last: int) -> list[bytes]:
        """Read the payloads of the rows [first, last), each file opened once."""
        found: list[bytes] = []
        start = 0
        for path, index in self.parts:
            low, high = max(first - start, 0), min(last - start, len(index))
            if low < high:
                with Chunk(path) as chunk:
                    found += chunk.payloads(low, high)
            start += len(index)
        return found


def read_stream(recording: Path, name: str, facts: dict[str, Any]) -> ReadStream:
    """Read the index of every chunk of a stream that opens; `facts` is the stream's entry in the manifest."""
    device = str(facts.get("device", name.partition("/")[0]))
    stream = ReadStream(name, device, facts.get("nominal_hz"), dict(facts.get("format") or {}), dict(facts))
    broken: list[tuple[int, str, str]] = []
    for path in chunk_paths(stream_folder(recording, name)):
        try:
            with Chunk(path) as chunk:
                stream.parts.append((path, chunk.index))
        except UNREADABLE_CHUNK as error:
            broken.append((len(stream.parts), path.relative_to(recording).as_posix(), _why(error)))
    for at, file, why in broken:
        before = next((i["device_ticks"][-1] for _, i in reversed(stream.parts[:at]) if len(i)), None)
        after = next((i["device_ticks"][0] for _, i in stream.parts[at:] if len(i)), None)
        stream.damage.append(Damage(file, why, _integer(before), _integer(after)))
    return stream


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)


def _why(error: Exception) -> str:
    """Say what is wrong, without the path that stands beside it anyway."""
    text = " ".join(str(error).split())
    return text.partition("damaged chunk: ")[2].partition("; run")[0] or text or type(error).__name__


@dataclass(frozen=True)
class TicksToHost:
    """Device ticks to host ns: from clock probes, or, without any, from the arrival of packets."""

    device: str
    to_host: HostClock
    probes: npt.NDArray[np.void]
    damage: list[Damage]

    @property
    def from_probes(self) -> bool:
        """Tell which of the two it is."""
        return len(self.probes) >= FEW_PROBES


def read_clock(recording: Path, device: str, streams: list[ReadStream]) -> TicksToHost | None:
    """Fit a device's clock to the host's; None when nothing was received from it."""
    stream = read_stream(recording, f"clock/{device}", {"device": device})
    known: list[npt.NDArray[np.void]] = []
    damage = list(stream.damage)
    for path, index in stream.parts:
        try:
            with Chunk(path) as chunk:
                known += [decode(payload) for payload in chunk.payloads(0, len(index))]
        except UNREADABLE_CHUNK as error:
            damage.append(Damage(path.relative_to(recording).as_posix(), _why(error), None, None))
    probes = np.concatenate(known) if known else np.empty(0, PROBE)
    fitted = host_clock(probes["host_send_ns"], probes["host_receive_ns"], probes["device_ticks"])
    if fitted is None or len(probes) < FEW_PROBES:
        fitted = _from_arrival([s for s in streams if s.device == device and len(s.index)])
    return TicksToHost(device, fitted, probes, damage) if fitted else None


def _from_arrival(streams: list[ReadStream]) -> HostClock | None:
    """Take the least delay between stamp and arrival: delay only adds."""
    if not streams:
        return None
    ticks0 = int(streams[0].ticks[0])
    late = [s.index["host_ns"].astype(np.int64) - 100 * (s.ticks - ticks0) for s in streams]
    least = min(int(part.min()) for part in late)
    usual = max(int(np.median(part)) - least for part in late)
    return constant_clock(ticks0, least, usual)


@dataclass(frozen=True, slots=True)
class ShownTime:
    """The seconds that are shown of host times: session time, or since `zero_host_ns` where no headset tells it."""

    session: SessionTime | None
    zero_host_ns: int

    def seconds(self, host_ns: int) -> float:
        """Seconds after zero."""
        session_ns = self.session.of_host([host_ns]) if self.session is not None else None
        if session_ns is None:
            return (int(host_ns) - self.zero_host_ns) / 1e9
        return float(session_ns[0]) / 1e9
